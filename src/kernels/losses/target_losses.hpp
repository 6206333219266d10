// Losses of a number and one score for each row: sums of them, gradients and curvatures. All
// functions return false if they were stopped.
#pragma once

#include <cstdint>

#include "losses/log_losses.hpp"

namespace polysparse {

/// The losses. models/losses has a file for each, which explains its targets and its parameter.
enum class TargetLoss { poisson, gamma, tweedie, squared_hinge, squared_tube };

/// How many numbers the target of a row has.
inline int64_t target_width(TargetLoss loss) {
    return loss == TargetLoss::squared_hinge || loss == TargetLoss::squared_tube ? 1 : 2;
}

/// Rows of one score, and the numbers that their losses depend on.
struct TargetRows {
    TargetLoss loss;
    double parameter;
    int64_t n;
    const double* scores;
    double intercept;
    const double* targets;  // target_width(loss) for each row
    const double* weights;
};

/// Writes n_loss_sums(1) sums, and the least and the largest score to `range`.
bool sum_target_losses(const TargetRows& rows, const Change& change, double* sums, double* range,
                       const Work& work);

/// Writes how the loss of each row changes with its score, and how that changes with it.
bool fill_target_losses(const TargetRows& rows, double* residuals, double* curvatures,
                        const Work& work);

/// out = exp(x); out = log(x), of positive x.
bool fill_exponentials(int64_t n, const double* x, double* out, const Work& work);
bool fill_logarithms(int64_t n, const double* x, double* out, const Work& work);

}  // namespace polysparse
