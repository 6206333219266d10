#include "losses/coordinate_descent.hpp"

#include <cmath>
#include <vector>

#include "platform/processors.hpp"

namespace polysparse {
namespace {

/// Minimizes along coordinate j; returns how much that changes the gradient of the coordinate.
POLYSPARSE_INLINE double step(const ElasticNet& p, int64_t j) {
    const double* const __restrict column = p.hessian + j * p.stride;
    const double curvature = column[j] + p.l2[j], before = p.w[j];
    if (!(column[j] > 0)) return 0;
    // Where the coordinate would go without l1, times the curvature.
    const double pull = column[j] * before - p.gradient[j];
    const double left = std::abs(pull) - p.l1[j];
    const double after = left > 0 ? std::copysign(left, pull) / curvature : 0.0;
    const double change = after - before;
    if (change == 0) return 0;
    p.w[j] = after;
    double* const __restrict gradient = p.gradient;
    for (int64_t b = 0; b < p.n; ++b) gradient[b] += change * column[b];
    return std::abs(change) * curvature;
}

POLYSPARSE_PER_PROCESSOR double pass_over(const ElasticNet& problem, const int64_t* places,
                                          int64_t n) {
    double largest = 0;
    for (int64_t i = 0; i < n; ++i) {
        const double change = step(problem, places[i]);
        largest = change > largest ? change : largest;
    }
    return largest;
}

}  // namespace

bool descend(const ElasticNet& problem, double tol, int64_t most, int64_t* n_passes,
             const StopRequest& should_stop) {
    std::vector<int64_t> all(problem.n), others;
    for (int64_t j = 0; j < problem.n; ++j) all[j] = j;
    int64_t done = 0;
    *n_passes = 0;
    while (done < most) {
        ++done;
        const double largest = pass_over(problem, all.data(), problem.n);
        if (largest <= tol) break;
        others.clear();
        for (int64_t j = 0; j < problem.n; ++j)
            if (problem.w[j] != 0) others.push_back(j);
        while (done < most) {
            if (should_stop()) return false;
            ++done;
            if (pass_over(problem, others.data(), static_cast<int64_t>(others.size())) <= tol)
                break;
        }
    }
    *n_passes = done;
    return true;
}

}  // namespace polysparse
