// The monomials of an expansion, their order, and the bijection between tuples of input columns and
// output columns.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "basis/groups.hpp"
#include "basis/simplex.hpp"

namespace polysparse {

/// Which monomials there are. Interactions are polynomials with a gap: a strictly increasing
/// k-tuple below n is a weakly increasing one below n - (k - 1). So one set of formulas serves
/// both, with gap(k) subtracted. With groups or terms there are fewer monomials; simplex numbers of
/// the length of a row are then upper bounds of its outputs.
struct Basis {
    int64_t n_features;
    int64_t lowest;   // lowest degree in the output, at least 1
    int64_t highest;  // highest degree in the output; below `lowest` if there is none
    bool interaction_only;
    bool include_bias;
    /// [d]: one past the last output column of degree d, modulo 2^64. A degree below `lowest` has
    /// no output columns; there it is the number of its monomials.
    std::vector<uint64_t> degree_end;
    /// Null unless features are in groups; interaction_only is true if no group has powers.
    std::shared_ptr<const GroupTable> groups{};
    /// Null unless terms are chosen, which need groups.
    std::shared_ptr<const TermTable> terms{};
    /// Whether every row is known to have at most one value of each group.
    bool rows_are_distinct = false;
    /// [a]: the group of value a of every row, if it is known to be the same for all; or empty.
    std::vector<int32_t> row_groups{};

    /// Whether the sizes of rows are those of interactions, and only their columns depend on
    /// groups.
    bool has_sizes_of_interactions() const {
        return rows_are_distinct && interaction_only && !terms;
    }

    /// Whether every row is known to have one value of each of the same groups.
    bool knows_groups() const { return rows_are_distinct && !row_groups.empty(); }

    int64_t gap(int64_t k) const { return interaction_only ? k - 1 : 0; }

    /// Output columns. Meaningless if there are more than int64 can count.
    int64_t n_columns() const {
        return highest < lowest ? include_bias : static_cast<int64_t>(degree_end[highest]);
    }

    /// What column j, as the first of a k-tuple, contributes to the tuple's distance from the end
    /// of its degree: how many k-tuples are led by a later column. Needs: no terms.
    uint64_t depth(int64_t k, int64_t j) const {
        if (groups) return groups->depth(k, j);
        return simplex(k, n_features - 1 - j - gap(k));
    }

    /// The output column of a increasing tuple of k >= 1 columns. Needs: lowest <= k <= highest.
    int64_t rank(const int64_t* tuple, int64_t k) const;

    /// Writes the tuple of an output column and returns its degree. Needs: the column exists.
    int64_t unrank(int64_t column, int64_t* tuple) const;
};

/// n tuples, one after the other, each `width` numbers: increasing columns, then -1 as padding.
struct TupleTable {
    const int64_t* data;
    int64_t n, width;

    const int64_t* operator[](int64_t i) const { return data + i * width; }
    int64_t degree(int64_t i) const {
        int64_t k = 0;
        while (k < width && (*this)[i][k] >= 0) ++k;
        return k;
    }
};

/// Writes the output column of every tuple.
void rank_all(const Basis& basis, TupleTable tuples, int64_t* columns);

/// Writes the tuples of n output columns, each padded with -1 to `width`. Needs: width >= highest.
void unrank_all(const Basis& basis, const int64_t* columns, int64_t n, int64_t width,
                int64_t* tuples);

/// Whether each number is larger than the one before.
bool is_rising(const int64_t* numbers, int64_t n);

}  // namespace polysparse
