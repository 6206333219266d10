// Parts of rows: the outputs that some neighbouring values of a row lead.
#pragma once

#include <algorithm>
#include <cstdint>

#include "basis/basis.hpp"
#include "expand/row_shape.hpp"
#include "matrix/csr_view.hpp"

namespace polysparse {

/// The part of a row whose outputs are led by its values [from, to).
template <class Index, class Value>
LedRow<Index, Value> led_by(Row<Index, Value> row, int64_t from, int64_t to) {
    return {{row.begin + from, row.n - from}, to - from, from};
}

/// A basis to share out the work of n rows by: the same one or, if there are groups, one without
/// them. Its sizes of rows are then upper bounds, without the highest degrees if they would be too
/// large to add up.
inline Basis sizing_basis(const Basis& basis, const Indices& row_offsets, int64_t n_rows) {
    Basis sizing = basis;
    if (!basis.groups) return sizing;
    sizing.groups = nullptr;
    sizing.terms = nullptr;
    const RowShape largest = largest_shape(row_offsets, n_rows);
    while (sizing.highest > 1 && !is_countable(sizing, largest)) {
        --sizing.highest;
        sizing.lowest = std::min(sizing.lowest, sizing.highest);
    }
    return sizing;
}

/// How many outputs, but for the bias, a row's values [from, to) lead.
inline int64_t size_led(const Basis& basis, RowShape shape, int64_t from, int64_t to) {
    return row_size(basis, rest_of(shape, from)) - row_size(basis, rest_of(shape, to));
}

/// A long row, divided by leads. Every part makes the lower degrees again, so it is large compared
/// to them.
class LeadParts {
  public:
    /// In `count` parts. The basis must outlive it.
    LeadParts(const Basis& basis, RowShape shape, int64_t count)
        : basis_(&basis), shape_(shape), count_(count) {}

    /// In parts of about `share` outputs.
    static LeadParts of_about(const Basis& basis, RowShape shape, int64_t share) {
        LeadParts parts(basis, shape, 1);
        const int64_t below = parts.size() - degree_size(basis, basis.highest, shape);
        const int64_t most = std::max<int64_t>(n_stored(shape), 1);
        parts.count_ = std::clamp<int64_t>(parts.size() / std::max(share, 4 * below), 1, most);
        return parts;
    }

    int64_t count() const { return count_; }

    /// The first lead of a part, or one past the last lead of the row.
    int64_t first(int64_t part) const {
        if (part == count_) return n_stored(shape_);
        const int64_t before = size() / count_ * part;
        return largest_where(0, n_stored(shape_),
                             [&](int64_t a) { return size_led(*basis_, shape_, 0, a) <= before; });
    }

    /// Outputs of a part.
    int64_t size(int64_t part) const {
        return size_led(*basis_, shape_, first(part), first(part + 1));
    }

  private:
    int64_t size() const { return size_led(*basis_, shape_, 0, n_stored(shape_)); }

    const Basis* basis_;
    RowShape shape_;
    int64_t count_;
};

}  // namespace polysparse
