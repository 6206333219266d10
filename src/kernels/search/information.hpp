// How much rows tell about the coefficient of an interaction, besides its members' own effects.
//
// With the column z of an interaction, its members x_1, ..., x_m and weights w of the rows, the
// information is the least of the sum over rows of w (z - a_0 - a_1 x_1 - ... - a_m x_m)^2: what a
// weighted regression of z on its members leaves. It is the variance of the sum over rows of z
// times residuals with variances w from which the effects of the members were projected; if the
// effects of further columns were, too, the variance is smaller. It is the last pivot of
// the symmetric elimination of the sums of products of 1, x_1, ..., x_m and z.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "search/column_sums.hpp"

namespace polysparse {

constexpr int64_t most_members = 5;  // of an interaction that is tested

/// Returns the last pivot, or 0 if rounding may be all that is left of it. The matrix of size n, of
/// which the lower triangle is read, is overwritten.
template <int64_t width>
double last_pivot(std::array<std::array<double, width>, width>& matrix, int64_t n) {
    constexpr double least = 1e-11;  // of what a pivot was at first
    std::array<double, width> before{};
    for (int64_t i = 0; i < n; ++i) before[i] = matrix[i][i];
    for (int64_t k = 0; k < n - 1; ++k) {
        if (!(matrix[k][k] > least * before[k])) continue;  // depends on those before it
        for (int64_t i = k + 1; i < n; ++i) {
            const double factor = matrix[i][k] / matrix[k][k];
            for (int64_t j = k + 1; j <= i; ++j) matrix[i][j] -= factor * matrix[j][k];
        }
    }
    const double pivot = matrix[n - 1][n - 1];
    return pivot > least * before[n - 1] ? pivot : 0;
}

/// The information of all interactions that extend a prefix by one column, one after the other in
/// the order of their numbers.
class Information {
  public:
    /// References must outlive it. `pairs` may be empty if no prefix has two members.
    Information(const ColumnSums& columns, const PairSums& pairs)
        : columns_(&columns), pairs_(&pairs) {}

    void set_prefix(const int64_t* prefix, int64_t n) {
        n_ = 0;
        is_pair_ = n == 1;  // the sum of products with the next column is that of z
        for (int64_t i = 0; i < n; ++i) {
            if (i > 0 && prefix[i] == prefix[i - 1]) continue;  // of a power
            members_[n_] = prefix[i];
            places_[n_] = i;
            next_[n_] = 0;
            ++n_;
        }
        for (int64_t i = 0; i < n_; ++i)
            for (int64_t j = 0; j < i; ++j) {
                size_t from = 0;
                between_[i][j] = pair_sum(members_[j], members_[i], from);
            }
    }

    /// Sums over rows of w z, w z^2, w z x for the last member x, and for each x of the prefix.
    struct Sums {
        double sum, square, with_last;
        const double* with_prefix;
    };

    /// Needs: a number above that of the last call since the prefix was set.
    double of(int64_t number, const Sums& sums) {
        Matrix matrix{};
        int64_t size = 0;
        matrix[size++][0] = columns_->total;
        for (int64_t i = 0; i < n_; ++i, ++size) {
            matrix[size][0] = columns_->sums[members_[i]];
            for (int64_t j = 0; j < i; ++j) matrix[size][1 + j] = between_[i][j];
            matrix[size][1 + i] = columns_->squares[members_[i]];
        }
        const bool is_new = n_ == 0 || members_[n_ - 1] != number;
        if (is_new) {
            matrix[size][0] = columns_->sums[number];
            for (int64_t i = 0; i < n_; ++i)
                matrix[size][1 + i] = is_pair_ ? sums.sum : pair_sum(members_[i], number, next_[i]);
            matrix[size][size] = columns_->squares[number];
            ++size;
        }
        matrix[size][0] = sums.sum;
        for (int64_t i = 0; i < n_; ++i) matrix[size][1 + i] = sums.with_prefix[places_[i]];
        if (is_new) matrix[size][size - 1] = sums.with_last;
        matrix[size][size] = sums.square;
        return last_pivot<width>(matrix, size + 1);
    }

  private:
    static constexpr int64_t width = most_members + 2;
    using Matrix = std::array<std::array<double, width>, width>;

    /// Goes on in the pairs of column i where the last call ended; 0 if there is no such pair.
    double pair_sum(int64_t i, int64_t j, size_t& next) const {
        const std::vector<PairSum>& own = (*pairs_)[i];
        while (next < own.size() && own[next].number < j) ++next;
        return next < own.size() && own[next].number == j ? own[next].sum : 0;
    }

    const ColumnSums* columns_;
    const PairSums* pairs_;
    int64_t n_ = 0;  // different members of the prefix
    bool is_pair_ = false;
    std::array<int64_t, most_members> members_{}, places_{};
    std::array<size_t, most_members> next_{};
    std::array<std::array<double, most_members>, most_members> between_{};
};

}  // namespace polysparse
