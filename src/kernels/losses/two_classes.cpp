#include "losses/one_score.hpp"

namespace polysparse {
namespace {

/// The logistic loss of two classes, numbered 0 and 1.
struct TwoClasses {
    const int64_t* __restrict classes;

    POLYSPARSE_INLINE RowLoss operator()(int64_t r, double margin) const {
        const bool is_second = classes[r] != 0;
        const double small = exp_of_minus(std::abs(margin)), share = 1 / (1 + small);
        const double wrong = select(is_second, -margin, margin);
        // What is added is 0 if the row is on the right side.
        const double value = log_1_plus(small) + select(wrong > 0, wrong, 0);
        const double unlikely = select(wrong > 0, share, small * share);
        return {value, select(is_second, -unlikely, unlikely), small * share * share, is_second};
    }
};

template <bool has_change>
POLYSPARSE_PER_PROCESSOR void sum_block(const ScoredRows& rows, const Change& change, int64_t begin,
                                        int64_t end, double* sums, double* range) {
    sum_rows<has_change>({rows.scores, rows.intercepts[0], rows.weights}, TwoClasses{rows.classes},
                         change, begin, end, sums, range);
}

POLYSPARSE_PER_PROCESSOR void fill_block(const ScoredRows& rows, double* residuals,
                                         double* curvatures, int64_t begin, int64_t end) {
    fill_rows({rows.scores, rows.intercepts[0], rows.weights}, TwoClasses{rows.classes}, residuals,
              curvatures, begin, end);
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
    const auto sum = change.scores != nullptr ? &sum_block<true> : &sum_block<false>;
    return sum_blocks(rows.n, sums, range, work,
                      [&](int64_t begin, int64_t end, double* own, double* ends) {
                          sum(rows, change, begin, end, own, ends);
                      });
}

bool fill_two_classes(const ScoredRows& rows, double* residuals, double* curvatures,
                      const Work& work) {
    return for_stretches(rows.n, rows_in_block, work, [&](int64_t, int64_t begin, int64_t end) {
        fill_block(rows, residuals, curvatures, begin, end);
    });
}

bool fill_two_probabilities(int64_t n, const double* scores, double* out, const Work& work) {
    return for_stretches(n, rows_in_block, work, [&](int64_t, int64_t begin, int64_t end) {
        fill_probabilities(scores, out, begin, end);
    });
}

}  // namespace polysparse
