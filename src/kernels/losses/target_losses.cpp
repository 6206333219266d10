#include "losses/target_losses.hpp"

#include "losses/one_score.hpp"

namespace polysparse {
namespace {

// Half the deviances of the mean exp(margin). A target is a pair: the logarithm t of the number,
// and a factor, which is 0 if the number is; then t is 0, less the offset. With x = margin - t, the
// mean is exp(x) times the number.

struct Poisson {
    const double* __restrict targets;

    POLYSPARSE_INLINE RowLoss operator()(int64_t r, double margin) const {
        const double factor = targets[2 * r + 1];
        const bool is_zero = factor == 0;
        const Exponential mean(margin - targets[2 * r]);
        return {select(is_zero, mean.value, factor * mean.above_tangent),
                select(is_zero, mean.value, factor * mean.minus_1),
                select(is_zero, mean.value, factor * mean.value)};
    }
};

/// Its numbers are positive, and its factors 1.
struct Gamma {
    const double* __restrict targets;

    POLYSPARSE_INLINE RowLoss operator()(int64_t r, double margin) const {
        const Exponential inverse(targets[2 * r] - margin);
        return {inverse.above_tangent, -inverse.minus_1, inverse.value};
    }
};

/// A power between 1 and 2. Where the number is not 0, both parts of the loss, and of its
/// derivatives, have the same sign, so that nothing cancels.
struct Tweedie {
    const double* __restrict targets;
    double power;

    POLYSPARSE_INLINE RowLoss operator()(int64_t r, double margin) const {
        const double factor = targets[2 * r + 1], x = margin - targets[2 * r];
        const double up = 2 - power, down = power - 1;
        const bool is_zero = factor == 0;
        const Exponential rising(up * x), falling(-down * x);
        const double value = rising.above_tangent / up + falling.above_tangent / down;
        const double curvature = up * rising.value + down * falling.value;
        return {select(is_zero, rising.value / up, factor * value),
                select(is_zero, rising.value, factor * (rising.minus_1 - falling.minus_1)),
                select(is_zero, up * rising.value, factor * curvature)};
    }
};

/// Half the square of what a margin lacks to be 1 on the side of the target, 1 or -1.
struct SquaredHinge {
    const double* __restrict targets;

    POLYSPARSE_INLINE RowLoss operator()(int64_t r, double margin) const {
        const double lack = 1 - targets[r] * margin, own = select(lack > 0, lack, 0);
        return {own * own / 2, -targets[r] * own, select(lack > 0, 1, 0)};
    }
};

/// Half the square of how far a margin is from the target, beyond a radius.
struct SquaredTube {
    const double* __restrict targets;
    double radius;

    POLYSPARSE_INLINE RowLoss operator()(int64_t r, double margin) const {
        const double error = margin - targets[r], beyond = std::abs(error) - radius;
        const double own = select(beyond > 0, beyond, 0);
        return {own * own / 2, select(error > 0, own, -own), select(beyond > 0, 1, 0)};
    }
};

template <class Loss, bool has_change>
POLYSPARSE_PER_PROCESSOR void sum_block(const MarginRows& rows, const Loss& loss,
                                        const Change& change, int64_t begin, int64_t end,
                                        double* sums, double* range) {
    sum_rows<has_change>(rows, loss, change, begin, end, sums, range);
}

template <class Loss>
POLYSPARSE_PER_PROCESSOR void fill_block(const MarginRows& rows, const Loss& loss,
                                         double* residuals, double* curvatures, int64_t begin,
                                         int64_t end) {
    fill_rows(rows, loss, residuals, curvatures, begin, end);
}

/// Returns use(loss).
template <class Use>
bool with_loss(const TargetRows& rows, const Use& use) {
    switch (rows.loss) {
        case TargetLoss::poisson:
            return use(Poisson{rows.targets});
        case TargetLoss::gamma:
            return use(Gamma{rows.targets});
        case TargetLoss::tweedie:
            return use(Tweedie{rows.targets, rows.parameter});
        case TargetLoss::squared_hinge:
            return use(SquaredHinge{rows.targets});
        default:
            return use(SquaredTube{rows.targets, rows.parameter});
    }
}

POLYSPARSE_PER_PROCESSOR void exponentials_of(const double* __restrict x, double* __restrict out,
                                              int64_t begin, int64_t end) {
    for_places(begin, end, [&](int64_t i, int64_t) POLYSPARSE_INLINE_LAMBDA {
        out[i] = Exponential(x[i]).value;
    });
}

POLYSPARSE_PER_PROCESSOR void logarithms_of(const double* __restrict x, double* __restrict out,
                                            int64_t begin, int64_t end) {
    for_places(begin, end, [&](int64_t i, int64_t) POLYSPARSE_INLINE_LAMBDA {
        out[i] = log_of_positive(x[i]);
    });
}

}  // namespace

bool sum_target_losses(const TargetRows& rows, const Change& change, double* sums, double* range,
                       const Work& work) {
    const MarginRows margins{rows.scores, rows.intercept, rows.weights};
    return with_loss(rows, [&](const auto& loss) {
        using Loss = std::remove_cvref_t<decltype(loss)>;
        const auto sum =
            change.scores != nullptr ? &sum_block<Loss, true> : &sum_block<Loss, false>;
        return sum_blocks(rows.n, sums, range, work,
                          [&](int64_t begin, int64_t end, double* own, double* ends) {
                              sum(margins, loss, change, begin, end, own, ends);
                          });
    });
}

bool fill_target_losses(const TargetRows& rows, double* residuals, double* curvatures,
                        const Work& work) {
    const MarginRows margins{rows.scores, rows.intercept, rows.weights};
    return with_loss(rows, [&](const auto& loss) {
        return for_stretches(rows.n, rows_in_block, work, [&](int64_t, int64_t begin, int64_t end) {
            fill_block(margins, loss, residuals, curvatures, begin, end);
        });
    });
}

bool fill_exponentials(int64_t n, const double* x, double* out, const Work& work) {
    return for_stretches(n, rows_in_block, work, [&](int64_t, int64_t begin, int64_t end) {
        exponentials_of(x, out, begin, end);
    });
}

bool fill_logarithms(int64_t n, const double* x, double* out, const Work& work) {
    return for_stretches(n, rows_in_block, work, [&](int64_t, int64_t begin, int64_t end) {
        logarithms_of(x, out, begin, end);
    });
}

}  // namespace polysparse
