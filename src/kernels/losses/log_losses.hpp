// The logistic losses of rows: sums of them, gradients, curvatures and probabilities. All functions
// return false if they were stopped.
#pragma once

#include <cstdint>

#include "losses/sums.hpp"

namespace polysparse {

/// Rows of scores, of k classes; one score for each row if there are two classes, and k is 1.
struct ScoredRows {
    int64_t n, k;
    const double* scores;
    const double* intercepts;  // k of them
    const int64_t* classes;    // counted from 0
    const double* weights;
};

/// How scores change: rows are looked at where they are `size` times (scores less shifts) further.
struct Change {
    const double* scores;  // null: there is no change
    const double* shifts;  // k of them
    double size;
    const double* old_curvatures;  // to compare curvatures with
};

/// What there are sums of, in this order; models/losses.py explains them.
enum LossSum : int64_t {
    sum_value,
    sum_along,
    sum_square,
    sum_before,
    sum_changed,
    sum_lists,  // k slopes, k expected, k cross, k * k of the Hessian
};

inline int64_t n_loss_sums(int64_t k) {
    return sum_lists + 3 * k + k * k;
}

/// Writes the sums, and the least and the largest score to `range`.
bool sum_two_classes(const ScoredRows& rows, const Change& change, double* sums, double* range,
                     const Work& work);
bool sum_classes(const ScoredRows& rows, const Change& change, double* sums, double* range,
                 const Work& work);

/// Writes how the loss of each row changes with its scores, and how that changes with them, each
/// score for itself; `probabilities`: of classes, if there are more than two.
bool fill_two_classes(const ScoredRows& rows, double* residuals, double* curvatures,
                      const Work& work);
bool fill_classes(const ScoredRows& rows, double* residuals, double* curvatures,
                  double* probabilities, const Work& work);

/// Rows of probabilities of k classes, and how their scores change.
struct ProbabilityRows {
    int64_t n, k;
    const double* probabilities;
    const double* weights;
    const double* change;
    const double* shifts;  // subtracted from the change, k of them
};

/// Writes the Hessian of the losses times the change; or only its sums over rows, k of them.
bool fill_hessian_products(const ProbabilityRows& rows, double* out, const Work& work);
bool sum_hessian_products(const ProbabilityRows& rows, double* sums, const Work& work);

/// Writes the probabilities of both classes for each score; of k classes for each k scores.
bool fill_two_probabilities(int64_t n, const double* scores, double* out, const Work& work);
bool fill_probabilities(int64_t n, int64_t k, const double* scores, double* out, const Work& work);

}  // namespace polysparse
