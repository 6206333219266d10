// The outputs of hashed rows, not sorted and not summed: products need neither.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "apply/lead_parts.hpp"
#include "expand/grouped_rows.hpp"
#include "expand/layout.hpp"
#include "expand/term_rows.hpp"
#include "expand/walk.hpp"
#include "matrix/csr_view.hpp"
#include "platform/processors.hpp"
#include "select/hash.hpp"
#include "select/mixed_rows.hpp"
#include "select/to_buckets.hpp"

namespace polysparse {

/// A row of whose tuples only those led by the first few values are wanted.
template <class Index, class Value>
struct GroupedLedRow : GroupedRow<Index, Value> {
    int64_t leads;
    int64_t n_leads() const { return leads; }

    static constexpr bool all_lead = false;
};

/// Lists rows, for one worker (see append_rows). Buckets come in the order of the basis, and may
/// come several times. Rows reads the rows.
template <class Rows, class Value>
class HashedLister {
  public:
    /// For rows up to a shape. The basis, whose numbers of columns do not matter, must outlive it.
    /// Throws bad_alloc.
    HashedLister(const Basis& basis, const Hasher& hasher, RowShape largest)
        : basis_(&basis),
          no_bias_(basis),
          hasher_(hasher),
          rows_(basis, largest),
          scratch_(basis, largest) {
        no_bias_.include_bias = false;
        scratch_.clear();
    }

    /// A row may have any number of outputs.
    int64_t n_columns() const { return std::numeric_limits<int64_t>::max(); }

    int64_t n_parts(RowShape shape, int64_t share) const {
        if (basis_->terms || row_size(*basis_, shape) <= 4 * share) return 1;
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
        const auto row = rows_.read(x, r, hasher_, from);
        ToListed sink{hasher_, {out}};
        walk_row(part == 0 ? *basis_ : no_bias_, led(row, to - from), rows_.keys(),
                 scratch_.layout(), sink);
        return sink.outputs.n;
    }

    /// A row of which the first n values lead. Rows of terms are not divided.
    static LedRow<uint64_t, Value> led(const Row<uint64_t, Value>& row, int64_t n) {
        return {row, n};
    }
    static GroupedLedRow<int64_t, Value> led(const GroupedRow<int64_t, Value>& row, int64_t n) {
        return {row, n};
    }
    static const TermRow<int64_t, Value>& led(const TermRow<int64_t, Value>& row, int64_t) {
        return row;
    }

    using ToListed = ToBuckets<Value, HashedList<Value>>;

    const Basis* basis_;
    Basis no_bias_;  // for the parts of a row but the first
    Hasher hasher_;
    MixedRows<Rows, Value> rows_;
    Scratch<typename MixedRows<Rows, Value>::Keys, ToListed> scratch_;
};

}  // namespace polysparse
