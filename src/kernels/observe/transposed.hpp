// The stored values of some rows in the order of their columns, and those columns numbered.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <type_traits>
#include <utility>
#include <vector>

#include "basis/groups.hpp"
#include "expand/row_groups.hpp"
#include "matrix/csr_view.hpp"
#include "matrix/own_columns.hpp"
#include "platform/huge_array.hpp"
#include "platform/stretches.hpp"
#include "platform/threads.hpp"

namespace polysparse {

/// A stored value and what follows it in its row: positions [begin, end) of the columns.
template <class Column>
struct Tail {
    Column column;
    uint32_t begin, end;
};

/// Sorts tails by column, stably: those of one column stay in the order of the rows. One pass for
/// each 11 bits of the largest column, between two arrays, shared by threads.
template <class Column>
class TailSorter {
  public:
    explicit TailSorter(int64_t n) : n_(n), tails_(n), other_(n) {}

    Tail<Column>* tails() { return tails_.data(); }

    /// Needs: tails() were filled. Frees the second array. Throws Stopped.
    HugeArray<Tail<Column>> sort(Column largest, int64_t n_threads,
                                 const StopRequest& should_stop) {
        for (int shift = 0; shift < static_cast<int>(std::bit_width(largest)); shift += digit_bits)
            sort_by_digit(shift, n_threads, should_stop);
        other_ = HugeArray<Tail<Column>>(0);
        return std::move(tails_);
    }

  private:
    static constexpr int digit_bits = 11;
    using Places = std::array<uint32_t, 1 << digit_bits>;

    void sort_by_digit(int shift, int64_t n_threads, const StopRequest& should_stop) {
        const auto digit = [&](const Tail<Column>& tail) {
            return static_cast<size_t>(tail.column >> shift) % (1 << digit_bits);
        };
        const auto stretches = equal_stretches(n_, n_threads);
        std::vector<Places> places(stretches.size());
        stretches.run(should_stop, [&](int64_t stretch, int64_t begin, int64_t end) {
            Places& here = places[stretch];
            here.fill(0);
            for (int64_t i = begin; i < end; ++i) ++here[digit(tails_[i])];
        });
        uint32_t place = 0;
        for (size_t d = 0; d < places[0].size(); ++d)
            for (Places& here : places) place += std::exchange(here[d], place);
        stretches.run(should_stop, [&](int64_t stretch, int64_t begin, int64_t end) {
            Places& here = places[stretch];
            for (int64_t i = begin; i < end; ++i) other_[here[digit(tails_[i])]++] = tails_[i];
        });
        std::swap(tails_, other_);
    }

    int64_t n_;
    HugeArray<Tail<Column>> tails_, other_;
};

/// Rows of a CSR matrix by column. Columns that occur are numbered, in order.
template <class Column>
struct Transposed {
    HugeArray<Column> columns{0};      // [t]: the column of stored value t
    HugeArray<Tail<Column>> tails{0};  // by column
    std::vector<uint32_t> first;       // [i]: the first tail of column number i; and the end
    std::vector<Column> names;         // [i]: column number i
    HugeArray<uint32_t> numbers{0};    // [t]: the number of stored value t's column
    HugeArray<uint32_t> next{0};       // [t]: the first stored value that may follow t, with groups

    int64_t n_columns() const { return static_cast<int64_t>(names.size()); }
    /// The number of the first column that is not below this one.
    int64_t number_from(int64_t column) const {
        const auto is_below = [](Column name, int64_t column) {
            return static_cast<int64_t>(name) < column;
        };
        return std::lower_bound(names.begin(), names.end(), column, is_below) - names.begin();
    }
};

/// Rows in stretches. `row_offsets` must outlive them.
inline auto stretches_of_rows(const Indices& row_offsets, int64_t n_rows, int64_t n_threads) {
    return Stretches(n_rows, n_threads, [row_offsets](int64_t r) { return row_offsets[r]; });
}

/// Copies the columns of all stored values, and writes their tails in the same order. Returns the
/// largest column. Throws Stopped.
template <class Index, class Column>
Column list_tails(const Indices& row_offsets, int64_t n_rows, const Index* columns,
                  int64_t n_columns, int64_t n_threads, const StopRequest& should_stop, Column* own,
                  Tail<Column>* tails) {
    const int64_t first = row_offsets[0];
    const auto stretches = stretches_of_rows(row_offsets, n_rows, n_threads);
    std::vector<Column> largest(stretches.size(), 0);
    stretches.run(should_stop, [&](int64_t stretch, int64_t first_row, int64_t end_row) {
        for (int64_t r = first_row; r < end_row; ++r) {
            const int64_t begin = row_offsets[r] - first, end = row_offsets[r + 1] - first;
            if (begin == end) continue;
            copy_increasing(columns + row_offsets[r], end - begin, n_columns, own + begin);
            for (int64_t t = begin; t < end; ++t)
                tails[t] = {own[t], static_cast<uint32_t>(t), static_cast<uint32_t>(end)};
            largest[stretch] = std::max(largest[stretch], own[end - 1]);
        }
    });
    return *std::max_element(largest.begin(), largest.end());
}

/// Numbers the columns of n sorted tails. Those whose first tail is in a stretch are numbered
/// together, once it is known how many are numbered before. Throws Stopped.
template <class Column>
void number_columns(Transposed<Column>& x, int64_t n, int64_t n_threads,
                    const StopRequest& should_stop) {
    const auto stretches = equal_stretches(n, n_threads);
    const auto is_first = [&](int64_t i) {
        return i == 0 || x.tails[i].column != x.tails[i - 1].column;
    };
    std::vector<int64_t> n_before(stretches.size() + 1);
    stretches.run(should_stop, [&](int64_t stretch, int64_t begin, int64_t end) {
        int64_t n_first = 0;
        for (int64_t i = begin; i < end; ++i) n_first += is_first(i);
        n_before[stretch + 1] = n_first;
    });
    std::partial_sum(n_before.begin(), n_before.end(), n_before.begin());
    x.first.resize(n_before.back() + 1);
    x.names.resize(n_before.back());
    x.numbers = HugeArray<uint32_t>(n);
    x.first.back() = static_cast<uint32_t>(n);
    stretches.run(should_stop, [&](int64_t stretch, int64_t begin, int64_t end) {
        int64_t last = n_before[stretch] - 1;
        for (int64_t i = begin; i < end; ++i) {
            if (is_first(i)) {
                x.first[++last] = static_cast<uint32_t>(i);
                x.names[last] = x.tails[i].column;
            }
            x.numbers[x.tails[i].begin] = static_cast<uint32_t>(last);
        }
    });
}

/// Finds what may follow each stored value, in its row: itself if its group has powers, otherwise
/// what begins with the next group. Throws Stopped.
template <class Column, class Groups>
void list_followers(Transposed<Column>& x, const Groups& groups, const Indices& row_offsets,
                    int64_t n_rows, int64_t n_threads, const StopRequest& should_stop) {
    const int64_t first = row_offsets[0];
    x.next = HugeArray<uint32_t>(row_offsets[n_rows] - first);
    const auto stretches = stretches_of_rows(row_offsets, n_rows, n_threads);
    stretches.run(should_stop, [&](int64_t, int64_t first_row, int64_t end_row) {
        for (int64_t r = first_row; r < end_row; ++r) {
            const int64_t begin = row_offsets[r] - first, end = row_offsets[r + 1] - first;
            find_next(groups, x.columns.data() + begin, end - begin, begin, x.next.data() + begin);
        }
    });
}

/// Needs: rows inspected and increasing, fewer than 2^32 stored values. Takes 28 bytes per stored
/// value (40 for columns of 64 bits), of which it frees 8 (12); `next` of 4 is made after that, if
/// groups are not null. Throws bad_alloc and Stopped.
template <class Index, class Column = std::make_unsigned_t<Index>>
Transposed<Column> transpose(const Indices& row_offsets, int64_t n_rows, const Index* columns,
                             int64_t n_columns, const GroupTable* groups, int64_t n_threads,
                             const StopRequest& should_stop) {
    const int64_t n = row_offsets[n_rows] - row_offsets[0];
    TailSorter<Column> sorter(n);
    Transposed<Column> out;
    out.columns = HugeArray<Column>(n);
    const Column largest = list_tails(row_offsets, n_rows, columns, n_columns, n_threads,
                                      should_stop, out.columns.data(), sorter.tails());
    out.tails = sorter.sort(largest, n_threads, should_stop);
    number_columns(out, n, n_threads, should_stop);
    if (groups != nullptr)
        list_followers(out, *groups, row_offsets, n_rows, n_threads, should_stop);
    return out;
}

}  // namespace polysparse
