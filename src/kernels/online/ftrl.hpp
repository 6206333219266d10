// FTRL-proximal with a rate for each coordinate (McMahan et al. 2013, "Ad click prediction: a view
// from the trenches", algorithm 1), on outputs that are listed a few rows at a time.
//
// The state of a coordinate is z and n, in float32. Its weight is
//
//     w = 0                                                            if |z| <= l1
//     w = -(z - sign(z) l1) / ((beta + sqrt(n)) / rate + l2)           otherwise
//
// All rows of a block are scored with the weights from before the block. Gradients of a coordinate
// are added in the order of the rows, and then, once for each block,
//
//     z += g - (sqrt(n + g^2) - sqrt(n)) / rate * w,   n += g^2
//
// Workers list blocks ahead and take turns to learn from them, so results do not depend on the
// number of threads. The intercept is a coordinate without l1 and l2.
#pragma once

#include <cstdint>

#include "basis/basis.hpp"
#include "matrix/csr_view.hpp"
#include "online/losses.hpp"
#include "platform/threads.hpp"
#include "select/hash.hpp"

namespace polysparse {

/// Which outputs there are: those of a basis, hashed; or the values of x themselves, whose columns
/// are below n_columns.
struct OnlineColumns {
    const Basis* basis;  // null: x is expanded already
    const Hasher* hasher;
    int64_t n_columns;
};

/// Of each coordinate k pairs of z and n; the intercepts are the last coordinate.
struct FtrlTable {
    int64_t k;
    bool has_intercept;
    OnlineLoss loss;
    float l1, l2;
};

/// Rows, in blocks: `ends` are one past the last row of each.
struct OnlineRows {
    CsrView<float> x;
    const double* targets;  // 0 and up, for classes
    const double* weights;
    int64_t n_blocks;
    const int64_t* ends;
};

/// Learners that see the same rows. Before each block the one with the least sum of losses leads.
struct Learners {
    int64_t n;
    float* const* states;
    const float* rates;  // for each block n of them
    const float* betas;  // for each block
    double* losses;      // sums over rows so far, weighted: n of them
};

/// What the leader made of each row, before it was learned from.
struct Progress {
    double* losses;
    double* scores;   // k for each row
    int64_t* n_done;  // blocks
};

/// Learns from every block; false if stopped after n_done of them. Throws bad_alloc before any.
bool learn(const OnlineColumns& columns, const FtrlTable& table, const OnlineRows& rows,
           const Learners& learners, const Progress& progress, int64_t n_threads,
           const StopRequest& should_stop);

/// Writes k scores for each row of x.
bool score(const OnlineColumns& columns, const FtrlTable& table, const CsrView<float>& x,
           const float* state, float rate, float beta, double* scores, int64_t n_threads,
           const StopRequest& should_stop);

}  // namespace polysparse
