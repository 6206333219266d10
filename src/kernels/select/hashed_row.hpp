// One row of the hashed expansion.
//
// Its outputs are listed in the order of the basis and sorted by bucket. Those of one bucket are
// summed in the order they were listed, so that the result is the same to the bit wherever it is
// made. A row with more than an eighth as many outputs as there are buckets is not listed but
// summed in place, in memory for all buckets. Of these, the longest are shared:
// long_hashed_row.hpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "basis/basis.hpp"
#include "expand/layout.hpp"
#include "expand/row_shape.hpp"
#include "expand/walk.hpp"
#include "matrix/csr_view.hpp"
#include "platform/processors.hpp"
#include "select/append_rows.hpp"
#include "select/bucket_sort.hpp"
#include "select/hash.hpp"
#include "select/mixed_rows.hpp"
#include "select/output_list.hpp"
#include "select/to_buckets.hpp"

namespace polysparse {

/// A row with more outputs is summed in place.
inline int64_t most_listed(const Hasher& hasher) {
    return static_cast<int64_t>(hasher.n_columns / 8);
}

/// Makes hashed rows, for one worker (see append_rows). Rows reads them.
template <class Rows, class Value>
class HashedRow : public WholeRows {
  public:
    /// For rows up to a shape. The basis, whose numbers of columns do not matter, must outlive it.
    /// Throws bad_alloc.
    HashedRow(const Basis& basis, const Hasher& hasher, RowShape largest)
        : WholeRows(basis, static_cast<int64_t>(hasher.n_columns)),
          hasher_(hasher),
          rows_(basis, largest),
          scratch_(basis, largest),
          listed_(std::min(row_size(basis, largest), most_listed(hasher))) {
        scratch_.clear();
        if (row_size(basis, largest) <= most_listed(hasher)) return;
        sums_ = std::make_unique_for_overwrite<Value[]>(hasher.n_columns);
        seen_ = std::make_unique_for_overwrite<uint64_t[]>(hasher.n_columns / 64 + 1);
    }

    /// What one takes: 16 bytes per tuple of a degree below the highest, 26 to 38 per listed output
    /// and, if the largest row is not listed, 8 per bucket, for doubles.
    static uint64_t bytes(const Basis& basis, const Hasher& hasher, RowShape largest) {
        const int64_t size = row_size(basis, largest), most = most_listed(hasher);
        return MixedRows<Rows, Value>::bytes(basis, largest) + Tails::bytes(basis, largest) +
               OutputList<Value>::bytes(std::min(size, most)) +
               (size <= most ? 0 : HashedSums<Value>::bytes(hasher.n_columns));
    }

    int64_t fill(const CsrView<Value>& x, int64_t r, int64_t, int64_t, Slots<int32_t, Value> out) {
        return on_this_processor([&]() POLYSPARSE_INLINE_LAMBDA { return fill(x, r, out); });
    }

    /// Sorted, unique buckets and summed values of row r, at `out`. Returns how many; no slot
    /// behind them is written. There are at most row_size, and at most n_columns.
    POLYSPARSE_PER_PROCESSOR int64_t fill(const CsrView<Value>& x, int64_t r,
                                          Slots<int32_t, Value> out) {
        const auto row = rows_.read(x, r, hasher_);
        if (row_size(basis(), shape_of(row)) > most_listed(hasher_)) {
            HashedSums<Value> sums{sums_.get(), seen_.get()};
            if (!std::exchange(has_sums_, true)) sums.clear(hasher_.n_columns);
            return walk(row, sums).take(n_columns(), out);
        }
        const HashedList<Value> list = walk(row, HashedList<Value>{listed_.list()});
        return listed_.sum(list.n, bit_width(n_columns() - 1), out);
    }

  private:
    using Tails =
        Scratch<typename MixedRows<Rows, Value>::Keys, ToBuckets<Value, HashedList<Value>>>;

    /// Puts all outputs of a row.
    template <class AnyRow, class Outputs>
    POLYSPARSE_INLINE Outputs walk(const AnyRow& row, Outputs outputs) {
        ToBuckets<Value, Outputs> sink{hasher_, outputs};
        walk_row(basis(), row, rows_.keys(), scratch_.layout(), sink);
        return sink.outputs;
    }

    Hasher hasher_;
    MixedRows<Rows, Value> rows_;
    Tails scratch_;
    OutputList<Value> listed_;
    std::unique_ptr<Value[]> sums_;
    std::unique_ptr<uint64_t[]> seen_;
    bool has_sums_ = false;  // whether they were cleared: many workers never see such a row
};

}  // namespace polysparse
