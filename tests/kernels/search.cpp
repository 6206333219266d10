#include "search/search.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <numeric>
#include <vector>

#include "brute_force.hpp"
#include "checks.hpp"

namespace polysparse::tests {
namespace {

/// What a search is for, and the arrays that it reads.
struct Question {
    Score score;
    int64_t n_targets;
    bool is_unit, has_weights;
    std::vector<double> targets{}, weights{};
    double total = 0, largest = 0;

    /// Random numbers; targets of correlations are centred and scaled.
    void fill(int64_t n_rows) {
        std::normal_distribution<double> any;
        std::uniform_real_distribution<double> positive(0.3, 2);
        for (int64_t r = 0; r < n_rows; ++r)
            weights.push_back(has_weights ? positive(random_bits) : 1);
        total = std::accumulate(weights.begin(), weights.end(), 0.0);
        largest = *std::ranges::max_element(weights);
        for (int64_t i = 0; i < n_rows * n_targets; ++i) targets.push_back(any(random_bits));
        for (int64_t i = 0; i < n_targets; ++i) {
            double mean = 0, squares = 0;
            for (int64_t r = 0; r < n_rows; ++r)
                mean += weights[r] * targets[r * n_targets + i] / total;
            for (int64_t r = 0; r < n_rows; ++r)
                squares += weights[r] * std::pow(targets[r * n_targets + i] - mean, 2);
            for (int64_t r = 0; r < n_rows; ++r) {
                double& target = targets[r * n_targets + i];
                if (score == Score::correlation) target = (target - mean) / std::sqrt(squares);
                target *= weights[r];
            }
        }
    }
    ScoredTargets scored(bool is_signed) const {
        return {score, n_targets, targets.data(), has_weights ? weights.data() : nullptr,
                total, largest,   is_signed};
    }
};

struct Sums {
    std::vector<double> sums;
    double squares = 0, sum = 0;
    int64_t n_rows = 0;
};

/// The size of the largest score of each column that occurs, and the number of its rows.
template <class Matrix>
std::map<int64_t, std::pair<double, int64_t>> score_by_brute_force(const Basis& basis,
                                                                   const Matrix& x,
                                                                   const Question& question) {
    std::map<int64_t, Sums> all;
    const int64_t n = question.n_targets;
    for (int64_t r = 0; r < x.n_rows(); ++r)
        each_output(basis, x, r, [&](const int64_t* columns, int64_t d, double product) {
            Sums& sums = all[basis.rank(columns, d)];
            sums.sums.resize(n);
            for (int64_t i = 0; i < n; ++i) sums.sums[i] += product * question.targets[r * n + i];
            sums.squares += product * product * question.weights[r];
            sums.sum += product * question.weights[r];
            ++sums.n_rows;
        });
    std::map<int64_t, std::pair<double, int64_t>> scores;
    for (const auto& [column, sums] : all) {
        double largest = 0;
        for (const double sum : sums.sums) largest = std::max(largest, std::abs(sum));
        double scale = 1;
        if (question.score == Score::normalized) scale = std::sqrt(sums.squares);
        if (question.score == Score::correlation)
            scale = std::sqrt(std::max(sums.squares - sums.sum * sums.sum / question.total, 0.0));
        scores[column] = {scale > 1e-6 ? largest / scale : 0, sums.n_rows};
    }
    return scores;
}

template <class Matrix>
Searched searched(const Basis& basis, const Matrix& x, const Question& question, int64_t k,
                  int64_t least, int64_t n_threads, StopAt stop, std::vector<Candidate>& found) {
    std::vector<int64_t> features(x.n_columns);
    std::iota(features.begin(), features.end(), 0);
    const std::vector<Use> uses(x.n_columns, Use::any);
    const SearchedColumns columns{x.n_columns, features.data(), uses.data()};
    const SearchedRows rows{x.n_rows(), x.row_offsets.data(), x.columns.data(),
                            question.is_unit ? nullptr : x.values.data()};
    std::atomic<double> done{0};
    const StopRequest should_stop = stop;
    const bool is_signed = std::ranges::any_of(x.values, [](double v) { return v < 0; });
    const Searching how{k, INT64_MAX, false, {least, n_threads, &should_stop, &done}};
    return search(basis, columns, rows, question.scored(is_signed), how, found);
}

void test_best_columns(const Basis& basis, Question question, bool is_positive) {
    auto x = random_matrix<int32_t, int32_t, double>(14, basis.n_features, 5);
    for (double& value : x.values)
        value = question.is_unit ? 1 : is_positive ? std::abs(value) : value;
    question.fill(x.n_rows());
    const auto expected = score_by_brute_force(basis, x, question);
    for (const int64_t least : {1, 2})
        for (const int64_t k : {1, 9, 1'000'000}) {
            std::vector<double> sizes;
            for (const auto& [column, one] : expected)
                if (one.second >= least) sizes.push_back(-one.first);
            std::ranges::sort(sizes);
            std::vector<Candidate> first;
            for (const int64_t n_threads : {1, 3}) {
                std::vector<Candidate> found;
                check(
                    searched(basis, x, question, k, least, n_threads, {-1}, found) == Searched::all,
                    "searched");
                check(std::ssize(found) == std::min<int64_t>(k, std::ssize(sizes)),
                      "as many as there are");
                for (size_t i = 0; i < found.size(); ++i) {
                    const auto& [size, n_rows] = expected.at(found[i].column);
                    check(std::abs(found[i].high + sizes[i]) < 1e-7, "the best, in order");
                    check(std::abs(found[i].high - size) < 1e-7 && found[i].n_rows == n_rows,
                          "their scores and counts");
                    check(n_threads == 1 || (first[i].column == found[i].column &&
                                             first[i].score == found[i].score),
                          "the same for any number of threads");
                }
                if (n_threads == 1) first = found;
            }
        }
}

void test_search_in(const Basis& basis) {
    if (basis.terms || basis.include_bias) return;
    const std::string of_basis = subject;
    for (const Score score : {Score::dot, Score::normalized, Score::correlation})
        for (const bool is_unit : {true, false})
            for (const bool has_weights : {false, true})
                for (const int64_t n_targets : {1, 2}) {
                    subject = of_basis + ", score " + std::to_string(static_cast<int>(score));
                    test_best_columns(basis, {score, n_targets, is_unit, has_weights}, has_weights);
                }
}

/// Rows whose columns have changed: it ends, and finds columns of the basis.
void test_search_changed(const Basis& basis) {
    if (basis.terms || basis.include_bias) return;
    const auto x = random_matrix<int32_t, int32_t, double>(14, basis.n_features, 5);
    Question question{Score::dot, 1, false, false};
    question.fill(x.n_rows());
    for_each_change(x, [&](const auto& changed) {
        std::vector<Candidate> found;
        check(searched(basis, changed, question, 20, 1, 2, {-1}, found) == Searched::all, "ends");
        for (const Candidate& one : found)
            check(0 <= one.column && one.column < basis.n_columns(), "columns in the basis");
    });
}

void test_stopped_search() {
    const Basis basis = make_basis(40, 1, 3, true, false);
    const auto x = random_matrix<int32_t, int32_t, double>(60, 40, 3);
    Question question{Score::dot, 1, false, false};
    question.fill(x.n_rows());
    const auto is_stopped = [&](int64_t at, int64_t n_threads) {
        std::vector<Candidate> found;
        const Searched end = searched(basis, x, question, 20, 1, n_threads, {at}, found);
        check((end == Searched::all) == !found.empty(), "all or nothing");
        return end == Searched::stopped;
    };
    int64_t n_stops = 0;  // the last ones are while scores are computed once more
    while (is_stopped(n_stops + 1, 1)) ++n_stops;
    check(n_stops > 40, "stopped");
    for (int64_t at = 1; at < 40; ++at) is_stopped(at, 3);
}

/// Whatever the order and the rounding, what can be among the best is kept, and ties by column.
void test_best() {
    subject = "best";
    for (const int64_t k : {1, 5, 700}) {
        for (const double error : {0.0, 0.3}) {
            Best best(k, INT64_MAX);
            std::vector<std::pair<double, int64_t>> all;
            for (int64_t i = 0; i < 20'000; ++i) {
                const auto column = static_cast<int64_t>(random_bits() % 1'000'000'007);
                const auto size = static_cast<double>(random_bits() % 50);
                all.emplace_back(-size, column);
                best.offer({column, 1, 0, size, size - error, size + error});
            }
            std::ranges::sort(all);
            std::vector<std::pair<double, int64_t>> kept;
            for (const Candidate& one : best.take()) kept.emplace_back(-one.score, one.column);
            std::ranges::sort(kept);
            check(std::ssize(kept) >= k && (error > 0 || std::ssize(kept) == k), "how many");
            check(std::equal(all.begin(), all.begin() + k, kept.begin()), "the best");
        }
    }
    Best few(3, 10);
    int64_t n = 0;
    try {
        for (; n < 100'000; ++n) few.offer({n, 1, 0, 1, 0.9, 1.1});
    } catch (const std::bad_alloc&) {
    }
    check(n < 100'000, "too many ties");
}

}  // namespace

void test_search() {
    test_best();
    for_each_basis({0, 1, 9}, 4, test_search_in);
    for_each_grouped_basis(4, test_search_in);
    for_each_basis({1, 9}, 3, test_search_changed);
    for_each_grouped_basis(3, test_search_changed);
    test_stopped_search();
}

}  // namespace polysparse::tests
