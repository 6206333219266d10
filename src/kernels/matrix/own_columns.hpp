// Columns that may change while they are read.
//
// X belongs to the caller, who may write to its columns while a kernel reads them, although they
// were inspected. So a column that decides where a kernel reads or writes is read once, and brought
// into its range; if the order of a row decides, the row is copied, and the copy checked. The
// numbers of a row that has changed are wrong, but nothing outside of an array is read or written.
// Row offsets need none of this: they are the package's own, and no row is longer than there are
// columns.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <iterator>
#include <limits>
#include <memory>
#include <numeric>
#include <type_traits>
#include <vector>

#include "matrix/csr_view.hpp"
#include "platform/processors.hpp"

namespace polysparse {

/// The column, or the last of n_columns if it is none of them.
POLYSPARSE_INLINE int64_t within(int64_t column, int64_t n_columns) {
    return static_cast<int64_t>(std::min(static_cast<uint64_t>(out_of_lanes(column)),
                                         static_cast<uint64_t>(n_columns - 1)));
}

/// Copies the columns of a row, and replaces them by 0, 1, ... unless they increase and are below
/// n_columns.
template <class Index, class Column>
POLYSPARSE_PER_PROCESSOR void copy_increasing(const Index* columns, int64_t n, int64_t n_columns,
                                              Column* __restrict to) {
    for (int64_t t = 0; t < n; ++t) to[t] = static_cast<Column>(columns[t]);
    std::atomic_signal_fence(std::memory_order_seq_cst);  // from here on, the copy is read
    std::make_unsigned_t<Column> n_down = 0;  // as wide as the columns, so that lanes are as many
    for (int64_t t = 1; t < n; ++t) n_down += to[t] <= to[t - 1];
    const bool is_inside = n == 0 || (to[0] >= 0 && static_cast<uint64_t>(to[n - 1]) <
                                                        static_cast<uint64_t>(n_columns));
    if (n_down == 0 && is_inside) return;
    for (int64_t t = 0; t < n; ++t) to[t] = static_cast<Column>(t);
}

/// Whether the columns of a copied row may be in any order, or increase.
enum class ColumnOrder { any, increasing };

/// Columns [first, last], both included.
struct ColumnRange {
    int64_t first, last;
};

/// Copies of the columns of a few rows at a time, each below n_columns. Value number p of a row has
/// column p or a later one; from number `least` on, column `least` or a later one. Unless they may
/// be in any order, a row whose columns do not increase has 0, 1, ... instead.
template <class Index>
class OwnColumns {
  public:
    /// For rows of up to `longest` stored values; `n_stored` of them at a time, or one row. Throws
    /// bad_alloc.
    OwnColumns(int64_t least, int64_t n_columns, int64_t longest, int64_t n_stored,
               ColumnOrder order = ColumnOrder::any)
        : least_(as_index(least)),
          last_(as_index(n_columns - 1)),
          order_(order),
          size_(std::max(longest, n_stored)),
          n_sure_(std::max<int64_t>(size_ / std::max<int64_t>(longest, 1), 1)),
          columns_(std::make_unique_for_overwrite<Index[]>(size_)) {}

    /// For rows that have a column in each of these ranges, which increase; `n_stored` values of
    /// them at a time, or one row. Others are brought into them.
    OwnColumns(const std::vector<ColumnRange>& ranges, int64_t n_stored)
        : OwnColumns(0, ranges.back().last + 1, std::ssize(ranges), n_stored) {
        for (int64_t r = 0; r < lanes; ++r)  // whole groups of lanes
            for (const ColumnRange& range : ranges) {
                firsts_.push_back(as_index(range.first));
                lasts_.push_back(as_index(range.last));
            }
    }

    /// Copies rows from `first` on, up to `last` or as many as there is room for. Returns the first
    /// that is not copied.
    template <class Value>
    int64_t read(const CsrView<Value>& x, int64_t first, int64_t last) {
        return x.row_offsets.visit([&](const auto* row_offsets) {
            begin_ = row_offsets[first];
            int64_t end = std::min(first + n_sure_, last);
            while (end < last && row_offsets[end + 1] - begin_ <= size_) ++end;
            const Index* const from = x.columns.template as<Index>() + begin_;
            if (!firsts_.empty()) {
                copy_into_ranges(from, row_offsets[end] - begin_);
                return end;
            }
            copy_from(from, row_offsets[end] - begin_, least_, last_, columns_.get());
            for (Index p = 0; p < least_; ++p)
                for (int64_t r = first; r < end; ++r) {
                    const int64_t place = row_offsets[r] - begin_ + p;
                    if (place < row_offsets[r + 1] - begin_)
                        columns_[place] = between(p, from[place], last_);
                }
            if (order_ == ColumnOrder::increasing) replace_changed(row_offsets, first, end);
            return end;
        });
    }

    /// Row r, which was copied. It is valid until others are.
    template <class Value>
    POLYSPARSE_INLINE Row<Index, Value> row(const CsrView<Value>& x, int64_t r) const {
        const int64_t start = x.row_offsets[r];
        return {{columns_.get() + (start - begin_), x.values + start},
                x.row_offsets[r + 1] - start};
    }

    /// Calls visit(r, row) for rows [first, last).
    template <class Value, class Visit>
    POLYSPARSE_INLINE void for_each(const CsrView<Value>& x, int64_t first, int64_t last,
                                    const Visit& visit) {
        while (first < last)
            for (const int64_t end = read(x, first, last); first < end; ++first)
                visit(first, row(x, first));
    }

  private:
    using Unsigned = std::make_unsigned_t<Index>;

    static Index as_index(int64_t n) {
        return static_cast<Index>(std::min<int64_t>(n, std::numeric_limits<Index>::max()));
    }

    /// The column, or `last` if it is not between both.
    POLYSPARSE_INLINE static Index between(Index least, Index column, Index last) {
        const auto low = static_cast<Unsigned>(least);
        const auto span = static_cast<Unsigned>(last) - low;
        return static_cast<Index>(std::min(static_cast<Unsigned>(column) - low, span) + low);
    }

    POLYSPARSE_PER_PROCESSOR static void copy_from(const Index* columns, int64_t n, Index least,
                                                   Index last, Index* __restrict to) {
        for (int64_t t = 0; t < n; ++t) to[t] = between(least, columns[t], last);
    }

    void copy_into_ranges(const Index* columns, int64_t n) {
        const int64_t step = std::ssize(firsts_);
        for (int64_t t = 0; t < n; t += step)
            copy_between(columns + t, std::min(step, n - t), firsts_.data(), lasts_.data(),
                         columns_.get() + t);
    }

    POLYSPARSE_PER_PROCESSOR static void copy_between(const Index* columns, int64_t n,
                                                      const Index* __restrict firsts,
                                                      const Index* __restrict lasts,
                                                      Index* __restrict to) {
        for (int64_t t = 0; t < n; ++t) to[t] = between(firsts[t], columns[t], lasts[t]);
    }

    /// How many of n columns are not larger than the one before.
    POLYSPARSE_PER_PROCESSOR static int64_t count_down(const Index* columns, int64_t n) {
        Unsigned n_down = 0;  // as wide as the columns, so that lanes are as many
        for (int64_t t = 1; t < n; ++t) n_down += columns[t] <= columns[t - 1];
        return static_cast<int64_t>(n_down);
    }

    /// Replaces the rows among [first, end), which are copied, whose columns do not increase. All
    /// of them are looked at together: columns may fall from one row to the next, nowhere else.
    template <class Offset>
    POLYSPARSE_APART void replace_changed(const Offset* row_offsets, int64_t first, int64_t end) {
        std::atomic_signal_fence(std::memory_order_seq_cst);  // from here on, the copy is read
        Index* const columns = columns_.get();
        const auto start_of = [&](int64_t r) -> int64_t { return row_offsets[r] - begin_; };
        int64_t n_down = 0;
        for (int64_t r = first + 1; r < end; ++r) {
            const int64_t start = start_of(r);
            if (start > 0 && start < start_of(r + 1))
                n_down += columns[start] <= columns[start - 1];
        }
        if (count_down(columns, start_of(end)) == n_down) return;
        for (int64_t r = first; r < end; ++r) {
            Index* const row = columns + start_of(r);
            const int64_t n = start_of(r + 1) - start_of(r);
            if (count_down(row, n) > 0) std::iota(row, row + n, Index(0));
        }
    }

    Index least_, last_;
    ColumnOrder order_;
    int64_t size_;
    int64_t n_sure_;     // there is room for so many rows, however long they are
    int64_t begin_ = 0;  // the first stored value that was copied
    std::unique_ptr<Index[]> columns_;
    std::vector<Index> firsts_, lasts_;  // of ranges, for as many rows as there are lanes
};

}  // namespace polysparse
