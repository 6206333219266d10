#include <cmath>
#include <type_traits>

#include "losses/exponentials.hpp"
#include "losses/log_losses.hpp"

namespace polysparse {
namespace {

/// Rows in a block. What is kept of a block is at most an eighth of its scores.
int64_t length_of(int64_t k) {
    return std::max<int64_t>(int64_t{1} << 10, 8 * k);
}

/// Numbers of k classes for `lanes` rows: element c * lanes + u is that of class c of row u.
/// `lists` has three such panels, of slopes, what is expected, and cross; `line` has k numbers of a
/// row.
struct Panels {
    double *probabilities, *margins, *change, *lists, *line;
};

/// The panels of each worker.
class Buffers {
  public:
    Buffers(int64_t n_workers, int64_t k) : k_(k), numbers_(n_workers * size()) {}

    Panels of(int64_t worker) {
        double* const first = &numbers_[worker * size()];
        const int64_t panel = lanes * k_;
        return {first, first + panel, first + 2 * panel, first + 3 * panel, first + 6 * panel};
    }

  private:
    int64_t size() const { return 7 * lanes * k_; }

    int64_t k_;
    std::vector<double> numbers_;
};

/// Calls step(u) for so many rows: all lanes, or one.
template <int64_t width, class Step>
POLYSPARSE_INLINE void for_rows(const Step& step) {
    if constexpr (width == lanes)
        for_lanes(step);
    else
        step(0);
}

/// Calls group(r, lane, width) for groups of `lanes` rows from r on, and for the last rows one by
/// one; the width is a constant.
template <class Group>
POLYSPARSE_INLINE void for_groups(int64_t begin, int64_t end, const Group& group) {
    int64_t r = begin;
    for (; r + lanes <= end; r += lanes)
        group(r, int64_t{0}, std::integral_constant<int64_t, lanes>{});
    for (int64_t u = 0; r + u < end; ++u) group(r + u, u, std::integral_constant<int64_t, 1>{});
}

/// Makes margins, less the largest of each row, from scores plus intercepts, and probabilities.
/// Writes the logarithm of the sum of exponentials of such margins for each row.
template <int64_t width>
POLYSPARSE_INLINE void make_probabilities(int64_t k, const double* intercepts, const Panels& own,
                                          double* logs) {
    double* const __restrict margins = own.margins;
    double* const __restrict probabilities = own.probabilities;
    double highest[width], sums[width];
    for_rows<width>([&](int64_t u) POLYSPARSE_INLINE_LAMBDA {
        highest[u] = -std::numeric_limits<double>::infinity();
        sums[u] = 0;
    });
    for (int64_t c = 0; c < k; ++c) {
        const double intercept = intercepts == nullptr ? 0 : intercepts[c];
        for_rows<width>([&](int64_t u) POLYSPARSE_INLINE_LAMBDA {
            const double margin = margins[c * lanes + u] + intercept;
            margins[c * lanes + u] = margin;
            highest[u] = select(margin > highest[u], margin, highest[u]);
        });
    }
    for (int64_t c = 0; c < k; ++c)
        for_rows<width>([&](int64_t u) POLYSPARSE_INLINE_LAMBDA {
            margins[c * lanes + u] -= highest[u];
            probabilities[c * lanes + u] = exp_of_minus(-margins[c * lanes + u]);
            sums[u] += probabilities[c * lanes + u];
        });
    for (int64_t c = 0; c < k; ++c)
        for_rows<width>([&](int64_t u)
                            POLYSPARSE_INLINE_LAMBDA { probabilities[c * lanes + u] /= sums[u]; });
    for_rows<width>([&](int64_t u) POLYSPARSE_INLINE_LAMBDA { logs[u] = log_of(sums[u]); });
}

/// Writes the probability of all classes but the true one for each row: 1 less that of the true
/// class would cancel.
template <int64_t width>
POLYSPARSE_INLINE void sum_others(int64_t k, const double* probabilities, const int64_t* classes,
                                  double* others) {
    for_rows<width>([&](int64_t u) POLYSPARSE_INLINE_LAMBDA { others[u] = 0; });
    for (int64_t c = 0; c < k; ++c)
        for_rows<width>([&](int64_t u) POLYSPARSE_INLINE_LAMBDA {
            others[u] += select(classes[u] == c, 0, probabilities[c * lanes + u]);
        });
}

/// Sums of a block, in lanes.
struct BlockSums {
    LaneSum value, along, square, before, changed;
};

template <bool has_change>
POLYSPARSE_PER_PROCESSOR void sum_block(const ScoredRows& rows, const Change& change,
                                        const Panels& own, int64_t begin, int64_t end, double* sums,
                                        double* range) {
    const int64_t k = rows.k;
    double* const __restrict margins = own.margins;
    double* const __restrict moved = own.change;
    double *const hessian = sums + sum_lists + 3 * k, *const line = own.line;
    double lowest = range[0], highest = range[1];
    BlockSums total;
    std::fill_n(own.lists, 3 * lanes * k, 0.0);
    for_groups(begin, end, [&](int64_t r, int64_t lane, auto is_width) POLYSPARSE_INLINE_LAMBDA {
        constexpr int64_t width = is_width;
        for (int64_t u = 0; u < width; ++u)
            for (int64_t c = 0; c < k; ++c) {
                double z = rows.scores[(r + u) * k + c];
                if constexpr (has_change) {
                    moved[c * lanes + u] = change.scores[(r + u) * k + c] - change.shifts[c];
                    z += change.size * moved[c * lanes + u];
                }
                lowest = z < lowest ? z : lowest;
                highest = z > highest ? z : highest;
                margins[c * lanes + u] = z;
            }
        double logs[width], others[width], means[width] = {};
        make_probabilities<width>(k, rows.intercepts, own, logs);
        const double* const __restrict weights = rows.weights + r;
        const int64_t* const __restrict classes = rows.classes + r;
        const double* const __restrict probabilities = own.probabilities;
        sum_others<width>(k, probabilities, classes, others);
        for (int64_t u = 0; u < width; ++u)
            total.value.parts[lane + u] += weights[u] * (logs[u] - margins[classes[u] * lanes + u]);
        if constexpr (has_change)
            for (int64_t c = 0; c < k; ++c)
                for_rows<width>([&](int64_t u) POLYSPARSE_INLINE_LAMBDA {
                    means[u] += probabilities[c * lanes + u] * moved[c * lanes + u];
                });
        for (int64_t c = 0; c < k; ++c) {
            double* const __restrict slopes = own.lists + c * lanes + lane;
            double* const __restrict expected = own.lists + (k + c) * lanes + lane;
            double* const __restrict cross = own.lists + (2 * k + c) * lanes + lane;
            for_rows<width>([&](int64_t u) POLYSPARSE_INLINE_LAMBDA {
                const double p = probabilities[c * lanes + u], weighted = weights[u] * p;
                const double residual = select(classes[u] == c, -weights[u] * others[u], weighted);
                expected[u] += weighted;
                slopes[u] += residual;
                if constexpr (has_change) {
                    const double t = moved[c * lanes + u], curved = (t - means[u]) * weighted;
                    const double before = change.old_curvatures[(r + u) * k + c];
                    const double raw = change.scores[(r + u) * k + c], squared = raw * raw;
                    cross[u] += curved;
                    total.along.parts[lane + u] += residual * t;
                    total.square.parts[lane + u] += curved * t;
                    total.before.parts[lane + u] += before * squared;
                    total.changed.parts[lane + u] +=
                        std::abs(weighted * (1 - p) - before) * squared;
                }
            });
        }
        for (int64_t u = 0; u < width; ++u) {
            for (int64_t c = 0; c < k; ++c) line[c] = probabilities[c * lanes + u];
            for (int64_t c = 0; c < k; ++c) {
                const double weighted = weights[u] * line[c];
                for (int64_t d = c; d < k; ++d) hessian[c * k + d] -= weighted * line[d];
            }
        }
    });
    range[0] = lowest;
    range[1] = highest;
    sums[sum_value] = total.value.total();
    sums[sum_along] = total.along.total();
    sums[sum_square] = total.square.total();
    sums[sum_before] = total.before.total();
    sums[sum_changed] = total.changed.total();
    for (int64_t c = 0; c < 3 * k; ++c)
        for (int64_t u = 0; u < lanes; ++u) sums[sum_lists + c] += own.lists[c * lanes + u];
}

POLYSPARSE_PER_PROCESSOR void fill_block(const ScoredRows& rows, const Panels& own, int64_t begin,
                                         int64_t end, double* residuals, double* curvatures,
                                         double* probabilities) {
    const int64_t k = rows.k;
    for_groups(begin, end, [&](int64_t r, int64_t, auto is_width) POLYSPARSE_INLINE_LAMBDA {
        constexpr int64_t width = is_width;
        for (int64_t u = 0; u < width; ++u)
            for (int64_t c = 0; c < k; ++c)
                own.margins[c * lanes + u] = rows.scores[(r + u) * k + c];
        double logs[width], others[width];
        make_probabilities<width>(k, rows.intercepts, own, logs);
        for (int64_t u = 0; u < width; ++u)
            for (int64_t c = 0; c < k; ++c)
                probabilities[(r + u) * k + c] = own.probabilities[c * lanes + u];
        if (residuals == nullptr) return;
        const int64_t* const classes = rows.classes + r;
        sum_others<width>(k, own.probabilities, classes, others);
        for (int64_t u = 0; u < width; ++u)
            for (int64_t c = 0; c < k; ++c) {
                const bool is_true = c == classes[u];
                const double p = own.probabilities[c * lanes + u], weight = rows.weights[r + u];
                residuals[(r + u) * k + c] = weight * (is_true ? -others[u] : p);
                curvatures[(r + u) * k + c] = weight * p * (is_true ? others[u] : 1 - p);
            }
    });
}

/// Calls take(c, value) for each class of a row: its Hessian times (change - shifts).
template <class Take>
POLYSPARSE_INLINE void hessian_product_of_row(const ProbabilityRows& rows, int64_t r,
                                              const Take& take) {
    const double *const probabilities = rows.probabilities + r * rows.k, *const change =
                                                                             rows.change +
                                                                             r * rows.k;
    double mean = 0;
    for (int64_t c = 0; c < rows.k; ++c) mean += probabilities[c] * (change[c] - rows.shifts[c]);
    for (int64_t c = 0; c < rows.k; ++c)
        take(c, (change[c] - rows.shifts[c] - mean) * probabilities[c] * rows.weights[r]);
}

}  // namespace

bool sum_classes(const ScoredRows& rows, const Change& change, double* sums, double* range,
                 const Work& work) {
    const int64_t k = rows.k, n_sums = n_loss_sums(k);
    Ranges ranges(work.n_threads);
    Buffers buffers(work.n_threads, k);
    std::fill_n(sums, n_sums, 0.0);
    const auto sum = change.scores != nullptr ? &sum_block<true> : &sum_block<false>;
    const auto add = [&](int64_t worker, int64_t begin, int64_t end, double* own) {
        sum(rows, change, buffers.of(worker), begin, end, own, ranges.of(worker));
    };
    const bool is_done = sum_stretches(rows.n, length_of(k), work, n_sums, sums, add);
    ranges.write(range);
    double *const expected = sums + sum_lists + k, *const hessian = sums + sum_lists + 3 * k;
    for (int64_t c = 0; c < k; ++c) {
        hessian[c * k + c] += expected[c];
        for (int64_t d = 0; d < c; ++d) hessian[c * k + d] = hessian[d * k + c];
    }
    return is_done;
}

bool fill_classes(const ScoredRows& rows, double* residuals, double* curvatures,
                  double* probabilities, const Work& work) {
    Buffers buffers(work.n_threads, rows.k);
    return for_stretches(
        rows.n, length_of(rows.k), work, [&](int64_t worker, int64_t begin, int64_t end) {
            fill_block(rows, buffers.of(worker), begin, end, residuals, curvatures, probabilities);
        });
}

bool fill_probabilities(int64_t n, int64_t k, const double* scores, double* out, const Work& work) {
    return fill_classes({n, k, scores, nullptr, nullptr, nullptr}, nullptr, nullptr, out, work);
}

bool fill_hessian_products(const ProbabilityRows& rows, double* out, const Work& work) {
    return for_stretches(rows.n, length_of(rows.k), work, [&](int64_t, int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r)
            hessian_product_of_row(rows, r,
                                   [&](int64_t c, double value) { out[r * rows.k + c] = value; });
    });
}

bool sum_hessian_products(const ProbabilityRows& rows, double* sums, const Work& work) {
    std::fill_n(sums, rows.k, 0.0);
    return sum_stretches(rows.n, length_of(rows.k), work, rows.k, sums,
                         [&](int64_t, int64_t begin, int64_t end, double* own) {
                             for (int64_t r = begin; r < end; ++r)
                                 hessian_product_of_row(
                                     rows, r, [&](int64_t c, double value) { own[c] += value; });
                         });
}

}  // namespace polysparse
