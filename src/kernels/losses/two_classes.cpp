#include <cmath>

#include "losses/exponentials.hpp"
#include "losses/log_losses.hpp"

namespace polysparse {
namespace {

constexpr int64_t length = int64_t{1} << 12;  // of a block

/// The loss of a score, and its derivatives, for a weight of 1.
struct Loss {
    double value, residual, curvature;

    POLYSPARSE_INLINE Loss(double margin, bool is_second) {
        const double small = exp_of_minus(std::abs(margin)), share = 1 / (1 + small);
        const double wrong = select(is_second, -margin, margin);
        // What is added is 0 if the row is on the right side.
        value = log_1_plus(small) + select(wrong > 0, wrong, 0);
        const double unlikely = select(wrong > 0, share, small * share);
        residual = select(is_second, -unlikely, unlikely);
        curvature = small * share * share;
    }
};

template <bool has_change>
POLYSPARSE_PER_PROCESSOR void sum_block(const ScoredRows& rows, const Change& change, int64_t begin,
                                        int64_t end, double* sums, double* range) {
    const double* const __restrict scores = rows.scores;
    const double* const __restrict weights = rows.weights;
    const double* const __restrict changes = change.scores;
    const double* const __restrict old = change.old_curvatures;
    const int64_t* const __restrict classes = rows.classes;
    const double intercept = rows.intercepts[0], size = change.size;
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
        const bool is_second = classes[r] != 0;
        const double weight = weights[r];
        const Loss loss(z + intercept, is_second);
        const double residual = weight * loss.residual, curvature = weight * loss.curvature;
        value.parts[u] += weight * loss.value;
        slope.parts[u] += residual;
        expected.parts[u] += residual + select(is_second, weight, 0);
        hessian.parts[u] += curvature;
        if constexpr (has_change) {
            const double curved = curvature * t, own = changes[r] * changes[r];
            along.parts[u] += residual * t;
            cross.parts[u] += curved;
            square.parts[u] += curved * t;
            before.parts[u] += old[r] * own;
            changed.parts[u] += std::abs(curvature - old[r]) * own;
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

POLYSPARSE_PER_PROCESSOR void fill_block(const ScoredRows& rows, double* __restrict residuals,
                                         double* __restrict curvatures, int64_t begin,
                                         int64_t end) {
    const double* const __restrict scores = rows.scores;
    const double* const __restrict weights = rows.weights;
    const int64_t* const __restrict classes = rows.classes;
    const double intercept = rows.intercepts[0];
    for_places(begin, end, [&](int64_t r, int64_t) POLYSPARSE_INLINE_LAMBDA {
        const Loss loss(scores[r] + intercept, classes[r] != 0);
        residuals[r] = weights[r] * loss.residual;
        curvatures[r] = weights[r] * loss.curvature;
    });
}

POLYSPARSE_PER_PROCESSOR void fill_probabilities(const double* __restrict scores,
                                                 double* __restrict out, int64_t begin,
                                                 int64_t end) {
    for_places(begin, end, [&](int64_t r, int64_t) POLYSPARSE_INLINE_LAMBDA {
        const double small = exp_of_minus(std::abs(scores[r])), larger = 1 / (1 + small);
        const double smaller = small * larger;
        out[2 * r] = select(scores[r] > 0, smaller, larger);
        out[2 * r + 1] = select(scores[r] > 0, larger, smaller);
    });
}

}  // namespace

bool sum_two_classes(const ScoredRows& rows, const Change& change, double* sums, double* range,
                     const Work& work) {
    Ranges ranges(work.n_threads);
    std::fill_n(sums, n_loss_sums(1), 0.0);
    const auto sum = change.scores != nullptr ? &sum_block<true> : &sum_block<false>;
    const auto add = [&](int64_t worker, int64_t begin, int64_t end, double* own) {
        sum(rows, change, begin, end, own, ranges.of(worker));
    };
    const bool is_done = sum_stretches(rows.n, length, work, n_loss_sums(1), sums, add);
    ranges.write(range);
    return is_done;
}

bool fill_two_classes(const ScoredRows& rows, double* residuals, double* curvatures,
                      const Work& work) {
    return for_stretches(rows.n, length, work, [&](int64_t, int64_t begin, int64_t end) {
        fill_block(rows, residuals, curvatures, begin, end);
    });
}

bool fill_two_probabilities(int64_t n, const double* scores, double* out, const Work& work) {
    return for_stretches(n, length, work, [&](int64_t, int64_t begin, int64_t end) {
        fill_probabilities(scores, out, begin, end);
    });
}

}  // namespace polysparse
