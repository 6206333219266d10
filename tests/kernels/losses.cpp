#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "checks.hpp"
#include "losses/exponentials.hpp"
#include "losses/log_losses.hpp"
#include "losses/target_losses.hpp"
#include "losses/vectors.hpp"

namespace polysparse::tests {
namespace {

/// The functions are within three units in the last place of those of long doubles.
void test_exponentials() {
    subject = "exponentials";
    std::uniform_real_distribution<double> any(0, 1);
    const auto is_close = [](double found, long double wanted) {
        const auto rounded = static_cast<double>(wanted);
        return std::abs(found - wanted) <= 3 * (std::nextafter(rounded, 1e9) - rounded);
    };
    for (int64_t i = 0; i < 100'000; ++i) {
        const double x = 745 * std::pow(any(random_bits), 8), share = std::pow(any(random_bits), 8);
        const double large = 1 + std::pow(10, 9 * any(random_bits) - 6);
        check(is_close(exp_of_minus(x), std::exp(static_cast<long double>(-x))), "exp");
        check(is_close(log_1_plus(share), std::log1p(static_cast<long double>(share))), "log1p");
        check(is_close(log_of(large), std::log(static_cast<long double>(large))), "log");
    }
    check(exp_of_minus(0) == 1 && exp_of_minus(INFINITY) == 0 && std::isnan(exp_of_minus(NAN)),
          "exp at the ends");
    check(log_1_plus(0) == 0 && log_of(1) == 0 && std::isnan(log_1_plus(NAN)) &&
              std::isnan(log_of(NAN)),
          "log at the ends");
}

/// Exponentials of both signs, and what is left of them without 1 and without 1 + x.
void test_differences_of_exponentials() {
    subject = "differences of exponentials";
    std::uniform_real_distribution<double> any(-1, 1);
    const auto is_close = [](double found, long double wanted, double units) {
        return std::abs(found - wanted) <= units * 0x1p-52L * std::abs(wanted);
    };
    for (int64_t i = 0; i < 100'000; ++i) {
        const double share = any(random_bits), x = share * std::pow(10, 2.8 - 10 * std::abs(share));
        const Exponential own(x);
        const auto wide = static_cast<long double>(x);
        const long double minus_1 = std::expm1(wide);
        long double above = 0, term = wide * wide / 2;
        for (int k = 3; k < 40; ++k, term *= wide / (k - 1)) above += term;
        if (std::abs(x) > 1) above = minus_1 - wide;
        check(is_close(own.value, std::exp(wide), 3), "exp");
        check(is_close(own.minus_1, minus_1, 8), "exp - 1");
        check(is_close(own.above_tangent, above, 40), "exp - 1 - x");
        const double positive = std::exp2(1000 * share);
        check(is_close(log_of_positive(positive), std::log(static_cast<long double>(positive)), 4),
              "log of positive numbers");
    }
    const Exponential none(0), large(1e300), small(-1e300);
    check(none.value == 1 && none.minus_1 == 0 && none.above_tangent == 0, "exp at 0");
    check(std::isfinite(large.value) && small.value == 0 && small.minus_1 == -1, "exp at the ends");
    check(std::isnan(Exponential(NAN).value) && std::isnan(log_of_positive(INFINITY)),
          "what is not a number");
    check(is_close(log_of_positive(0x1p-1074), -1074 * std::log(2.0L), 2), "log of the least");
}

/// Losses of targets: derivatives by differences, the same bits for any number of threads.
void test_target_losses(TargetLoss loss, double parameter, int64_t n) {
    subject = std::to_string(n) + " rows of loss " + std::to_string(static_cast<int>(loss));
    std::uniform_real_distribution<double> any(-2, 2);
    const int64_t width = target_width(loss);
    std::vector<double> scores(n), change(n), weights(n), targets(n * width);
    for (int64_t r = 0; r < n; ++r) {
        scores[r] = any(random_bits);
        change[r] = any(random_bits);
        weights[r] = std::abs(any(random_bits));
        targets[r * width] = width == 2 ? any(random_bits) : r % 2 == 0 ? 1 : -1;
        if (width == 2) targets[2 * r + 1] = r % 3 == 0 && loss != TargetLoss::gamma ? 0 : 1.5;
        if (loss == TargetLoss::gamma) targets[2 * r + 1] = 1;
    }
    const auto rows_at = [&](const std::vector<double>& where) {
        return TargetRows{loss, parameter, n, where.data(), 0.25, targets.data(), weights.data()};
    };
    const double shift = 0.1, size = 0.5, step = 1e-5;
    std::vector<std::vector<double>> first;
    for (const int64_t n_threads : {1, 3}) {
        const StopRequest never = StopAt{-1};
        const Work work{n_threads, never};
        std::vector<double> residuals(n), curvatures(n), sums(n_loss_sums(1)), range(2);
        std::vector<double> up(n), down(n), unused(n), further(n), higher(sums.size()),
            lower(sums.size()), ends(2);
        const Change along{change.data(), &shift, size, curvatures.data()};
        check(fill_target_losses(rows_at(scores), residuals.data(), curvatures.data(), work) &&
                  sum_target_losses(rows_at(scores), along, sums.data(), range.data(), work),
              "not stopped");
        double slope = 0, square = 0, steepest = 0;
        for (int64_t r = 0; r < n; ++r) further[r] = scores[r] + size * (change[r] - shift);
        fill_target_losses(rows_at(further), up.data(), down.data(), work);
        for (int64_t r = 0; r < n; ++r) {
            const double t = change[r] - shift;
            slope += up[r] * t;
            square += down[r] * t * t;
            steepest += std::abs(up[r] * t) + down[r] * t * t;
        }
        check(std::abs(sums[sum_along] - slope) <= 1e-12 * steepest, "slope");
        check(std::abs(sums[sum_square] - square) <= 1e-12 * steepest, "curvature");
        std::vector<double> above = further, below = further;
        for (int64_t r = 0; r < n; ++r) {
            above[r] += step * (change[r] - shift);
            below[r] -= step * (change[r] - shift);
        }
        sum_target_losses(rows_at(above), {}, higher.data(), ends.data(), work);
        sum_target_losses(rows_at(below), {}, lower.data(), ends.data(), work);
        const double difference = (higher[sum_value] - lower[sum_value]) / (2 * step);
        check(std::abs(difference - slope) <= 1e-6 * (steepest + 1), "slope by differences");
        const std::vector<std::vector<double>> found{residuals, curvatures, sums, range};
        if (n_threads == 1) first = found;
        check(found == first, "same bits");
        const StopRequest at_once = StopAt{1};
        check(n == 0 || !sum_target_losses(rows_at(scores), {}, sums.data(), range.data(),
                                           Work{1, at_once}),
              "stopped");
    }
}

/// Rows of k scores, and vectors as long as all of them: the same bits for any number of threads,
/// and all stop.
void test_scores(int64_t n, int64_t k) {
    subject = std::to_string(n) + " rows of " + std::to_string(k) + " scores";
    std::uniform_real_distribution<double> any(-3, 3);
    const auto vector = [&](int64_t size) {
        std::vector<double> found(size);
        for (double& number : found) number = any(random_bits);
        return found;
    };
    const std::vector<double> scores = vector(n * k), change = vector(n * k), shifts = vector(k);
    std::vector<double> weights = vector(n);
    std::vector<int64_t> classes(n);
    for (int64_t r = 0; r < n; ++r) {
        weights[r] = std::abs(weights[r]);
        classes[r] = r % std::max<int64_t>(k, 2);
    }
    const ScoredRows rows{n, k, scores.data(), shifts.data(), classes.data(), weights.data()};
    std::vector<std::vector<double>> first;
    for (const int64_t n_threads : {1, 3}) {
        const StopRequest never = StopAt{-1};
        const Work work{n_threads, never};
        std::vector<double> residuals(n * k), curvatures(n * k),
            probabilities(n * std::max<int64_t>(k, 2));
        std::vector<double> sums(n_loss_sums(k)), more(sums.size()), range(2), curved(n * k),
            cross(k), singles(3), updated = scores, products(n * k);
        std::vector<double> squares = change, means = scores, raised(n * k), cleared = scores;
        std::vector<double> along_rows(k), added(n);  // scores are k vectors here
        const std::vector<double> totals(k, 2.5);
        const Change along{change.data(), shifts.data(), 0.5, curvatures.data()};
        bool is_done =
            k == 1 ? fill_two_classes(rows, residuals.data(), curvatures.data(), work) &&
                         fill_two_probabilities(n, scores.data(), probabilities.data(), work)
                   : fill_classes(rows, residuals.data(), curvatures.data(), probabilities.data(),
                                  work);
        const auto sum = k == 1 ? sum_two_classes : sum_classes;
        is_done = is_done && sum(rows, {}, sums.data(), range.data(), work) &&
                  sum(rows, along, more.data(), range.data(), work);
        if (k > 1) {
            const ProbabilityRows own{
                n, k, probabilities.data(), weights.data(), change.data(), shifts.data()};
            is_done = is_done && fill_hessian_products(own, curved.data(), work) &&
                      sum_hessian_products(own, cross.data(), work);
        }
        is_done = is_done && dot(n * k, scores.data(), change.data(), &singles[0], work) &&
                  weighted_squares(n, weights.data(), scores.data(), 0.5, &singles[1], work) &&
                  combine(n * k, 0.5, updated.data(), 2, change.data(), 0.1, work) &&
                  multiply(n * k, scores.data(), change.data(), 0.1, products.data(), work) &&
                  divide(n, scores.data(), weights.data(), curved.data(), &singles[2], work) &&
                  rescale(n * k, updated.data(), 0.5, 1, work) &&
                  raise_shifted(n * k, scores.data(), 0.5, raised.data(), work) &&
                  center(n, k, squares.data(), means.data(), totals.data(), work) &&
                  dots(n, k, scores.data(), weights.data(), along_rows.data(), work) &&
                  add_rows(n, k, along_rows.data(), scores.data(), added.data(), work) &&
                  clear(n * k * sizeof(double), cleared.data(), work);
        check(is_done, "losses: not stopped");
        check(cleared == std::vector<double>(n * k), "cleared");
        for (int64_t c = 0; c < k; ++c) {
            double sum = 0;
            for (int64_t r = 0; r < n; ++r) sum += scores[c * n + r] * weights[r];
            check(std::abs(sum - along_rows[c]) <= 1e-9 * (1 + n), "dots");
        }
        for (int64_t r = 0; r < n; ++r) {
            double sum = 0, size = 1;
            for (int64_t c = 0; c < k; ++c) {
                sum += along_rows[c] * scores[c * n + r];
                size += std::abs(along_rows[c] * scores[c * n + r]);
            }
            check(std::abs(sum - added[r]) <= 1e-12 * size, "rows added");
        }
        for (int64_t i = 0; i < n * k; ++i) {
            const double own = scores[i] + 0.5, expected = own > 0 ? std::pow(own, 0.75) : 1;
            check(std::abs(raised[i] - expected) <= 1e-14 * expected, "raised");
            const double rest = change[i] - scores[i] * scores[i] / 2.5;
            check(squares[i] == std::max(rest, 0.0) && means[i] == scores[i] / 2.5, "centered");
        }
        double slope = 0, value = 0, least = INFINITY, most = -INFINITY;
        for (int64_t r = 0; r < n; ++r) {
            double total = k == 1 ? 1 : 0;
            for (int64_t c = 0; c < k; ++c) {
                total += std::exp(scores[r * k + c] + shifts[c]);
                const double z = scores[r * k + c] + 0.5 * (change[r * k + c] - shifts[c]);
                least = std::min(least, z);
                most = std::max(most, z);
            }
            const bool is_second = k > 1 || classes[r] == 1;
            const int64_t own = k == 1 ? 0 : classes[r];
            const double margin = is_second ? scores[r * k + own] + shifts[own] : 0;
            value += weights[r] * (std::log(total) - margin);
            slope += residuals[r * k];
        }
        check(std::abs(sums[sum_value] - value) <= 1e-11 * n, "sum of losses");
        check(std::abs(sums[sum_lists] - slope) <= 1e-11 * n, "slope");
        check(range[0] == least && range[1] == most, "range");
        const std::vector<std::vector<double>> found{
            residuals, curvatures, probabilities, sums,     more,    range, curved,
            cross,     singles,    updated,       products, squares, means, raised};
        if (n_threads == 1) first = found;
        check(found == first, "losses: same bits");
        const StopRequest at_once = StopAt{1};
        check(n == 0 || !sum(rows, {}, sums.data(), range.data(), Work{1, at_once}),
              "losses: stopped");
    }
}

}  // namespace

void test_losses() {
    test_exponentials();
    test_differences_of_exponentials();
    for (const int64_t n : {0, 1, 13, 5'000}) {
        test_target_losses(TargetLoss::poisson, 1, n);
        test_target_losses(TargetLoss::gamma, 2, n);
        test_target_losses(TargetLoss::tweedie, 1.3, n);
        test_target_losses(TargetLoss::squared_hinge, 0, n);
        test_target_losses(TargetLoss::squared_tube, 0.2, n);
    }
    for (const int64_t k : {1, 3, 20})
        for (const int64_t n : {0, 1, 13, 5'000}) test_scores(n, k);
}

}  // namespace polysparse::tests
