// Sums and derivatives of a loss of one score for each row. The loss is a function:
// loss(r, margin) returns a RowLoss of row r, for a weight of 1.
#pragma once

#include <cmath>

#include "losses/exponentials.hpp"
#include "losses/log_losses.hpp"

namespace polysparse {

/// The loss of a row and its derivatives. With two classes, also whether the row is of the second
/// one.
struct RowLoss {
    double value, residual, curvature;
    bool is_second = false;
};

/// Scores of rows, and what to add to them.
struct MarginRows {
    const double* scores;
    double intercept;
    const double* weights;
};

/// Adds the sums of rows from begin to end, as n_loss_sums(1) numbers.
template <bool has_change, class Loss>
POLYSPARSE_INLINE void sum_rows(const MarginRows& rows, const Loss& loss, const Change& change,
                                int64_t begin, int64_t end, double* sums, double* range) {
    const double* const __restrict scores = rows.scores;
    const double* const __restrict weights = rows.weights;
    const double* const __restrict changes = change.scores;
    const double* const __restrict old = change.old_curvatures;
    const double intercept = rows.intercept, size = change.size;
    const double shift = has_change ? change.shifts[0] : 0;
    LaneSum value, along, square, before, changed, slope, cross, hessian, expected;
    double lowest[lanes], highest[lanes];
    for (int64_t u = 0; u < lanes; ++u) {
        lowest[u] = range[0];
        highest[u] = range[1];
    }
    for_places(begin, end, [&](int64_t r, int64_t u) POLYSPARSE_INLINE_LAMBDA {
        double z = scores[r], t = 0;
        if constexpr (has_change) {
            t = changes[r] - shift;
            z += size * t;
        }
        lowest[u] = select(z < lowest[u], z, lowest[u]);
        highest[u] = select(z > highest[u], z, highest[u]);
        const double weight = weights[r];
        const RowLoss own = loss(r, z + intercept);
        const double residual = weight * own.residual, curvature = weight * own.curvature;
        value.parts[u] += weight * own.value;
        slope.parts[u] += residual;
        expected.parts[u] += residual + select(own.is_second, weight, 0);
        hessian.parts[u] += curvature;
        if constexpr (has_change) {
            const double curved = curvature * t, squared = changes[r] * changes[r];
            along.parts[u] += residual * t;
            cross.parts[u] += curved;
            square.parts[u] += curved * t;
            before.parts[u] += old[r] * squared;
            changed.parts[u] += std::abs(curvature - old[r]) * squared;
        }
    });
    sums[sum_value] = value.total();
    sums[sum_along] = along.total();
    sums[sum_square] = square.total();
    sums[sum_before] = before.total();
    sums[sum_changed] = changed.total();
    sums[sum_lists] = slope.total();
    sums[sum_lists + 1] = expected.total();
    sums[sum_lists + 2] = cross.total();
    sums[sum_lists + 3] = hessian.total();
    for (int64_t u = 0; u < lanes; ++u) {
        range[0] = std::min(range[0], lowest[u]);
        range[1] = std::max(range[1], highest[u]);
    }
}

/// Writes the derivatives of rows from begin to end, with their weights.
template <class Loss>
POLYSPARSE_INLINE void fill_rows(const MarginRows& rows, const Loss& loss,
                                 double* __restrict residuals, double* __restrict curvatures,
                                 int64_t begin, int64_t end) {
    const double* const __restrict scores = rows.scores;
    const double* const __restrict weights = rows.weights;
    for_places(begin, end, [&](int64_t r, int64_t) POLYSPARSE_INLINE_LAMBDA {
        const RowLoss own = loss(r, scores[r] + rows.intercept);
        residuals[r] = weights[r] * own.residual;
        curvatures[r] = weights[r] * own.curvature;
    });
}

constexpr int64_t rows_in_block = int64_t{1} << 12;

/// Writes the sums of n rows, and the least and the largest score to `range`. sum(begin, end, own,
/// ends) adds those of a block.
template <class Sum>
bool sum_blocks(int64_t n, double* sums, double* range, const Work& work, const Sum& sum) {
    Ranges ranges(work.n_threads);
    std::fill_n(sums, n_loss_sums(1), 0.0);
    const bool is_done =
        sum_stretches(n, rows_in_block, work, n_loss_sums(1), sums,
                      [&](int64_t worker, int64_t begin, int64_t end, double* own) {
                          sum(begin, end, own, ranges.of(worker));
                      });
    ranges.write(range);
    return is_done;
}

}  // namespace polysparse
