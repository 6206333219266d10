// Coordinate descent for a quadratic function with an elastic-net penalty.
#pragma once

#include <cstdint>

#include "platform/threads.hpp"

namespace polysparse {

/// Minimizes  w'Hw/2 + linear terms + sum of l1 |w| + l2 w^2/2  over w, from the given one.
struct ElasticNet {
    int64_t n;
    int64_t stride;         // of the rows of H
    const double* hessian;  // H, symmetric; column j is skipped if its diagonal element is not > 0
    const double* l1;       // of each coordinate
    const double* l2;
    double* gradient;  // of all but the penalty, at w; it follows w
    double* w;
};

/// Runs passes over the coordinates until no step changes the gradient of its coordinate by more
/// than `tol`, `most` passes at the most. Between passes over all, it passes over those that are
/// not 0. Writes the number of passes. False if stopped.
bool descend(const ElasticNet& problem, double tol, int64_t most, int64_t* n_passes,
             const StopRequest& should_stop);

}  // namespace polysparse
