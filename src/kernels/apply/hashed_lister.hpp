// The outputs of hashed rows, not sorted and not summed: products need neither.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>

#include "apply/lead_parts.hpp"
#include "expand/layout.hpp"
#include "expand/walk.hpp"
#include "select/hash.hpp"
#include "select/to_buckets.hpp"

namespace polysparse {

/// Lists rows, for one worker (see append_rows). Buckets come in the order of the basis, and may
/// come several times.
template <class Value>
class HashedLister {
  public:
    /// For rows up to a shape. The basis, of which only the degrees and flags matter, must outlive
    /// it. Throws bad_alloc.
    HashedLister(const Basis& basis, const Hasher& hasher, RowShape largest)
        : basis_(&basis),
          no_bias_(basis),
          hasher_(hasher),
          mixed_(std::make_unique<uint64_t[]>(n_stored(largest) + lanes)),
          scratch_(basis, largest) {
        no_bias_.include_bias = false;
        scratch_.clear();
    }

    /// A row may have any number of outputs.
    int64_t n_columns() const { return std::numeric_limits<int64_t>::max(); }

    int64_t n_parts(RowShape shape, int64_t share) const {
        if (row_size(*basis_, shape) <= 4 * share) return 1;
        return LeadParts::of_about(*basis_, shape, share).count();
    }
    int64_t part_capacity(RowShape shape, int64_t n_parts) const {
        const LeadParts parts(*basis_, shape, n_parts);
        int64_t largest = 0;
        for (int64_t part = 0; part < n_parts; ++part)
            largest = std::max(largest, parts.size(part));
        return largest + 1;
    }

    /// Writes a part of row r and returns its length. Writes up to lanes - 1 slots behind it.
    int64_t fill(const CsrView<Value>& x, int64_t r, int64_t part, int64_t n_parts,
                 Slots<int32_t, Value> out) {
        return on_this_processor(
            [&]() POLYSPARSE_INLINE_LAMBDA { return fill_part(x, r, part, n_parts, out); });
    }

  private:
    POLYSPARSE_PER_PROCESSOR int64_t fill_part(const CsrView<Value>& x, int64_t r, int64_t part,
                                               int64_t n_parts, Slots<int32_t, Value> out) {
        const RowShape shape = shape_of(x.row_offsets, r);
        int64_t from = 0, to = n_stored(shape);
        if (n_parts > 1) {
            const LeadParts parts(*basis_, shape, n_parts);
            from = parts.first(part), to = parts.first(part + 1);
        }
        const int64_t begin = x.row_offsets[r] + from, n = n_stored(shape) - from;
        uint64_t* const mixed = mixed_.get();
        x.columns.copy(begin, n, mixed);
        ToListed sink{hasher_, {out}};
        for (int64_t a = 0; a < n; a += lanes)
            for_lanes([&](int64_t u) POLYSPARSE_INLINE_LAMBDA {
                mixed[a + u] = sink.hasher.mix(mixed[a + u]);
            });
        // Only the values are used: the walk reads columns through its keys.
        const LedRow<uint64_t, Value> row{{{mixed, x.values + begin}, n}, to - from};
        walk_row(part == 0 ? *basis_ : no_bias_, row, HashKeys{mixed}, scratch_.layout(), sink);
        return sink.outputs.n;
    }

    using ToListed = ToBuckets<Value, HashedList<Value>>;

    const Basis* basis_;
    Basis no_bias_;  // for the parts of a row but the first
    Hasher hasher_;
    std::unique_ptr<uint64_t[]> mixed_;  // mix of the row's columns
    Scratch<HashKeys, ToListed> scratch_;
};

}  // namespace polysparse
