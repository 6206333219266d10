// How large a row's degrees are, and the runs they are made of.
//
// P_d is a row's tuples of degree d, in order. A run of P_d is the tuples led by one stored value.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "basis/basis.hpp"
#include "matrix/csr_view.hpp"
#include "platform/processors.hpp"

namespace polysparse {

/// All that the sizes of a row's degrees depend on. Only this header looks inside.
struct RowShape {
    int64_t n_stored = 0;
};

template <class RowOffsets>
RowShape shape_of(const RowOffsets& row_offsets, int64_t r) {
    return {row_offsets[r + 1] - row_offsets[r]};
}
template <class Index, class Value>
RowShape shape_of(const Row<Index, Value>& row) {
    return {row.n};
}
/// Of a row that stores n values.
inline RowShape shape_storing(int64_t n) {
    return {n};
}
/// Of a row that stores every feature.
inline RowShape dense_shape(const Basis& basis) {
    return {basis.n_features};
}

inline bool is_empty(RowShape shape) {
    return shape.n_stored == 0;
}
/// How many values a row of this shape stores.
inline int64_t n_stored(RowShape shape) {
    return shape.n_stored;
}
/// Of a row without its first few values.
inline RowShape rest_of(RowShape shape, int64_t n_first) {
    return {shape.n_stored - n_first};
}
/// A shape that needs at least as much room as either.
inline RowShape larger(RowShape a, RowShape b) {
    return {std::max(a.n_stored, b.n_stored)};
}
/// Rows that need equal room.
struct RowsOfShape {
    RowShape shape;
    int64_t n_rows;
};
/// A shape that needs at least as much room as any of n rows.
inline RowShape largest_shape(const Indices& row_offsets, int64_t n_rows) {
    return row_offsets.visit([&](const auto* offsets) {
        RowShape largest;
        for (int64_t r = 0; r < n_rows; ++r) largest = larger(largest, shape_of(offsets, r));
        return largest;
    });
}

/// Reads rows as they are stored, for one worker.
struct StoredRows {
    StoredRows(const Basis&, RowShape) {}

    template <class Index, class Value>
    POLYSPARSE_INLINE Row<Index, Value> read(const Row<Index, Value>& row) {
        return row;
    }
};

/// How many stored values, from the front, lead no tuple of degree d that is needed. Below the
/// lowest degree of an interaction expansion a tuple only serves as the tail of longer ones, so at
/// least lowest - d values come before it. This keeps the scratch no larger than the output.
inline int64_t skipped(const Basis& basis, int64_t d) {
    return basis.interaction_only && d < basis.lowest ? basis.lowest - d : 0;
}
inline int64_t skipped(const Basis& basis, int64_t d, RowShape) {
    return skipped(basis, d);
}

/// The runs of P_d, d >= 2. Run a, for first <= a < last, is led by stored value a; its tails are
/// the last length(a) tuples of P_{d-1}. If Degree is a compile-time constant its simplex numbers
/// are written out.
template <class Degree>
struct Runs {
    int64_t length(int64_t a) const {
        POLYSPARSE_ASSUME(a < last);
        return static_cast<int64_t>(simplex(d - 1, last - a));
    }

    /// Tuples in the runs before a.
    int64_t start(int64_t a) const {
        return static_cast<int64_t>(simplex(d, last - first) - simplex(d, last - a));
    }

    /// The run that tuple t of the degree is in.
    int64_t holding(int64_t t) const {
        return largest_where(first, last - 1, [&](int64_t a) { return start(a) <= t; });
    }

    Degree d;
    int64_t first, last;
};

template <class Degree>
POLYSPARSE_INLINE Runs<Degree> runs_of(const Basis& basis, Degree d, RowShape shape) {
    return {d, skipped(basis, d), shape.n_stored - basis.gap(d)};
}

/// Tuples of P_d: the row's outputs of that degree or, below the lowest, what longer tuples are
/// made from.
inline int64_t degree_size(const Basis& basis, int64_t d, RowShape shape) {
    return static_cast<int64_t>(simplex(d, shape.n_stored - skipped(basis, d) - basis.gap(d)));
}

/// Outputs of a row.
inline int64_t row_size(const Basis& basis, RowShape shape) {
    int64_t size = basis.include_bias;
    if (is_empty(shape)) return size;
    for (int64_t d = basis.lowest; d <= basis.highest; ++d) size += degree_size(basis, d, shape);
    return size;
}

/// No row has as many outputs: their arrays could not be allocated.
constexpr int64_t uncountable = int64_t{1} << 58;

/// degree_size, or `uncountable` if it is larger, even if it exceeds every integer.
inline int64_t countable_degree_size(const Basis& basis, int64_t d, RowShape shape) {
    const int64_t n = shape.n_stored - skipped(basis, d) - basis.gap(d);
    if (n <= 0) return 0;
    const int64_t k = std::min(d, n - 1), least = std::max(d, n - 1);  // T_d(n) = C(least + k, k)
    int64_t size = 1;
    for (int64_t i = 1; i <= k; ++i) {
        if (size > uncountable / (least + i)) return uncountable;
        size = size * (least + i) / i;
    }
    return std::min(size, uncountable);
}

/// Whether the outputs of a row can be counted. Plain bases are never asked to expand others; with
/// groups, row_size is an upper bound, and may exceed every integer though there are few outputs.
inline bool is_countable(const Basis& basis, RowShape shape) {
    int64_t size = basis.include_bias;
    for (int64_t d = basis.lowest; d <= basis.highest && size < uncountable; ++d)
        size += countable_degree_size(basis, d, shape);
    return size < uncountable;
}

/// row_size for many rows; remembers the sizes of short ones.
class RowSizes {
  public:
    explicit RowSizes(const Basis& basis) : basis_(&basis), known_(n_known, -1) {}

    int64_t operator()(RowShape shape) {
        if (shape.n_stored >= n_known) return row_size(*basis_, shape);
        int64_t& size = known_[shape.n_stored];
        if (size < 0) size = row_size(*basis_, shape);
        return size;
    }

  private:
    static constexpr int64_t n_known = 256;
    const Basis* basis_;
    std::vector<int64_t> known_;
};

}  // namespace polysparse
