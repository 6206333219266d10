// The loss of a row, and how it changes with the scores of the row.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "losses/exponentials.hpp"

namespace polysparse {

/// Log losses of two classes (one score) and of more (a score for each), squares, and the Poisson
/// deviance of counts, whose scores are logarithms of means.
enum class OnlineLoss : int64_t { two_classes, classes, squared, poisson };

/// Scores of counts beyond it do not change a mean any more, whose square must be a float.
constexpr double most_log_mean = 30;

/// Log losses of n rows of two classes; see online_losses.
POLYSPARSE_INLINE void two_class_losses(int64_t n, const double* __restrict scores,
                                        const double* __restrict targets,
                                        double* __restrict changes, double* __restrict losses) {
    for (int64_t r = 0; r < n; ++r) {
        const double score = scores[r], small = exp_of_minus(std::abs(score));
        const double likely = 1 / (1 + small), second = select(score > 0, likely, small * likely);
        changes[r] = second - targets[r];
        const double wrong = select(targets[r] > 0, -score, score);
        losses[r] = select(wrong < 0, 0, wrong) + log_1_plus(small);
    }
}

/// Writes how the loss of a row changes with each of k scores, and returns the loss.
inline double online_loss(OnlineLoss loss, int64_t k, const double* scores, double target,
                          double* changes) {
    switch (loss) {
        case OnlineLoss::two_classes: {
            double value = 0;
            two_class_losses(1, scores, &target, changes, &value);
            return value;
        }
        case OnlineLoss::classes: {
            const double largest = *std::max_element(scores, scores + k);
            double sum = 0;
            for (int64_t c = 0; c < k; ++c) sum += changes[c] = exp_of_minus(largest - scores[c]);
            for (int64_t c = 0; c < k; ++c) changes[c] /= sum;
            const auto own = static_cast<int64_t>(target);
            changes[own] -= 1;
            return largest - scores[own] + log_of(sum);
        }
        case OnlineLoss::squared:
            *changes = *scores - target;
            return *changes * *changes;
        case OnlineLoss::poisson: {
            const double score = std::clamp(*scores, -most_log_mean, most_log_mean);
            const double mean = Exponential(score).value;
            *changes = mean - target;
            const double log_ratio = target > 0 ? log_of_positive(target) - score : 0;
            return 2 * (target * log_ratio + *changes);
        }
    }
    return 0;
}

}  // namespace polysparse
