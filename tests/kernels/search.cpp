#include "search/search.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <numeric>
#include <vector>

#include "brute_force.hpp"
#include "checks.hpp"
#include "search/score_test.hpp"

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

// ------------------------------------------------------------------------------------ score tests

using Vector = std::vector<double>;

/// What regressions on the first vectors, with weights, leave of the last one: its squares.
double left_of_last(std::vector<Vector> vectors, const Vector& weights) {
    const auto dot = [&](const Vector& a, const Vector& b) {
        double sum = 0;
        for (size_t r = 0; r < a.size(); ++r) sum += weights[r] * a[r] * b[r];
        return sum;
    };
    for (size_t i = 0; i < vectors.size(); ++i) {
        const double before = dot(vectors[i], vectors[i]);
        for (int twice = 0; twice < 2; ++twice)
            for (size_t j = 0; j < i; ++j) {
                const double norm = dot(vectors[j], vectors[j]);
                const double factor = norm > 0 ? dot(vectors[j], vectors[i]) / norm : 0;
                for (size_t r = 0; r < weights.size(); ++r) vectors[i][r] -= factor * vectors[j][r];
            }
        if (dot(vectors[i], vectors[i]) <= 1e-9 * before) std::ranges::fill(vectors[i], 0.0);
    }
    return dot(vectors.back(), vectors.back());
}

/// Rows, their weights and residuals, and the squared statistics of all interactions by column.
struct TestedRows {
    static constexpr int64_t n_draws = 5;
    Matrix<int32_t, int32_t, double> x;
    Vector weights, residuals;
    std::map<int64_t, Vector> statistics;

    TestedRows(const Basis& basis, bool is_unit, bool has_weights)
        : x(random_matrix<int32_t, int32_t, double>(30, basis.n_features, 5)) {
        std::normal_distribution<double> any;
        std::uniform_real_distribution<double> positive(0.3, 2);
        if (is_unit) std::ranges::fill(x.values, 1.0);
        for (int64_t r = 0; r < x.n_rows(); ++r)
            weights.push_back(has_weights ? positive(random_bits) : 1);
        for (int64_t i = 0; i < x.n_rows() * n_draws; ++i) residuals.push_back(any(random_bits));
        std::map<int64_t, std::vector<int64_t>> members;
        std::map<int64_t, Vector> columns;
        std::vector<Vector> features(basis.n_features, Vector(x.n_rows()));
        Basis all = basis;
        for (int64_t r = 0; r < x.n_rows(); ++r) {
            for (int64_t t = x.row_offsets[r]; t < x.row_offsets[r + 1]; ++t)
                features[x.columns[t]][r] = x.values[t];
            each_output(all, x, r, [&](const int64_t* tuple, int64_t d, double product) {
                if (d < 2) return;
                const int64_t column = basis.rank(tuple, d);
                members[column].assign(tuple, tuple + d);
                columns[column].resize(x.n_rows());
                columns[column][r] = product;
            });
        }
        for (const auto& [column, z] : columns) {
            if (std::ranges::count_if(z, [](double value) { return value != 0; }) < 2) continue;
            std::vector<Vector> vectors{Vector(x.n_rows(), 1.0)};
            for (const int64_t j : members[column]) vectors.push_back(features[j]);
            vectors.push_back(z);
            const double information = left_of_last(std::move(vectors), weights);
            if (information > 0) statistics[column] = statistics_of(z, information);
        }
    }

    Vector statistics_of(const Vector& z, double information) const {
        Vector found(n_draws);
        for (int64_t i = 0; i < n_draws; ++i) {
            double sum = 0;
            for (size_t r = 0; r < z.size(); ++r) sum += z[r] * residuals[r * n_draws + i];
            found[i] = sum * sum / information;
        }
        return found;
    }
};

bool is_close(double a, double b) {
    return std::abs(a - b) <= 1e-7 * (1 + std::abs(b));
}

void test_score_tests_of(const Basis& basis, bool is_unit, bool has_weights) {
    const TestedRows rows(basis, is_unit, has_weights);
    std::vector<int64_t> features(basis.n_features);
    std::iota(features.begin(), features.end(), 0);
    const std::vector<Use> uses(basis.n_features, Use::any);
    const StopRequest never = [] { return false; };
    for (const int64_t n_threads : {1, 3}) {
        std::atomic<double> done{0};
        ScoreTest test(basis, {basis.n_features, features.data(), uses.data()},
                       {rows.x.n_rows(), rows.x.row_offsets.data(), rows.x.columns.data(),
                        is_unit ? nullptr : rows.x.values.data()},
                       has_weights ? rows.weights.data() : nullptr, 0, 2, n_threads, never);
        check(test.add_pairs(n_threads, never) == Searched::all, "pairs");
        Vector first;
        for (size_t r = 0; r < rows.weights.size(); ++r)
            first.push_back(rows.residuals[r * TestedRows::n_draws]);
        std::vector<Candidate> found;
        int64_t n_tested = 0;
        check(test.find_leaders({first.data(), 1}, 1'000'000, INT64_MAX, n_threads, never, done,
                                found, n_tested) == Searched::all,
              "leaders");
        check(n_tested == std::ssize(rows.statistics) && n_tested == std::ssize(found),
              "every interaction is tested");
        for (const Candidate& one : found)
            check(is_close(one.score * one.score, rows.statistics.at(one.column)[0]), "statistics");
        for (const bool has_excluded : {false, true}) {
            std::vector<int64_t> excluded;
            for (const auto& [column, _] : rows.statistics)
                if (has_excluded && column % 2 == 0) excluded.push_back(column);
            Vector maxima(TestedRows::n_draws, -1), expected(TestedRows::n_draws);
            check(test.find_maxima({rows.residuals.data(), TestedRows::n_draws}, excluded,
                                   n_threads, never, done, maxima.data()) == Searched::all,
                  "maxima");
            for (const auto& [column, own] : rows.statistics)
                for (int64_t i = 0; i < TestedRows::n_draws; ++i)
                    if (!std::ranges::binary_search(excluded, column))
                        expected[i] = std::max(expected[i], own[i]);
            check(std::ranges::equal(maxima, expected, is_close), "the largest of each draw");
        }
    }
}

void test_score_tests(const Basis& basis) {
    if (basis.terms || basis.include_bias) return;
    for (const bool is_unit : {true, false})
        for (const bool has_weights : {false, true})
            test_score_tests_of(basis, is_unit, has_weights);
}

/// Progress within the work of one column is counted, and ends at 1.
void test_progress() {
    const Basis basis = make_basis(60, 2, 4, true, false);
    const auto x = random_matrix<int32_t, int32_t, double>(200, 60, 1);
    Question question{Score::dot, 1, true, false};
    question.fill(x.n_rows());
    std::vector<int64_t> features(60);
    std::iota(features.begin(), features.end(), 0);
    const std::vector<Use> uses(60, Use::any);
    std::atomic<double> done{0};
    std::vector<double> shares;
    const StopRequest note = [&] {
        shares.push_back(done);
        return false;
    };
    const Searching how{1'000'000, INT64_MAX, false, {1, 1, &note, &done}};
    std::vector<Candidate> found;
    check(search(basis, {60, features.data(), uses.data()},
                 {x.n_rows(), x.row_offsets.data(), x.columns.data(), nullptr},
                 question.scored(false), how, found) == Searched::all,
          "searched");
    check(std::ranges::is_sorted(shares), "progress does not fall");
    check(std::abs(done - 1) < 1e-9, "all is done");
    const auto last = std::unique(shares.begin(), shares.end());
    check(last - shares.begin() > 75, "progress of columns that take long");
}

/// Preparation stops, too: in the constructor, wherever it is.
void test_stopped_preparation() {
    const Basis basis = make_basis(40, 2, 3, true, false);
    const TestedRows rows(basis, false, true);
    std::vector<int64_t> features(40);
    std::iota(features.begin(), features.end(), 0);
    const std::vector<Use> uses(40, Use::any);
    int n_stopped = 0;
    for (bool is_stopped = true; is_stopped; ++n_stopped) {
        try {
            ScoreTest test(basis, {40, features.data(), uses.data()},
                           {rows.x.n_rows(), rows.x.row_offsets.data(), rows.x.columns.data(),
                            rows.x.values.data()},
                           rows.weights.data(), 0, 2, 1,
                           [n = n_stopped]() mutable { return n-- <= 0; });
            is_stopped = false;
        } catch (const Stopped&) {
        }
    }
    check(n_stopped > 8, "each pass can be stopped");
}

/// The stretches are in order, and cover everything once; none is long.
void test_stretches() {
    subject = "stretches";
    for (const int64_t n : {int64_t{0}, int64_t{3}, int64_t{5'000'000}})
        for (const int64_t values : {0, 3}) {
            const Stretches stretches(n, 2, [&](int64_t i) { return 7 + i * values; });
            int64_t next = 0, longest = 0;
            std::vector<std::pair<int64_t, int64_t>> found(stretches.size());
            stretches.run([] { return false; },
                          [&](int64_t i, int64_t begin, int64_t end) { found[i] = {begin, end}; });
            for (const auto& [begin, end] : found) {
                check(begin == next && end >= begin, "in order");
                next = end;
                longest = std::max(longest, (end - begin) * (1 + values));
            }
            check(next == n && longest <= (1 << 20) + 4, "all, in short ones");
        }
}

void test_stopped_score_test() {
    const Basis basis = make_basis(40, 2, 3, true, false);
    const TestedRows rows(basis, true, false);
    std::vector<int64_t> features(40);
    std::iota(features.begin(), features.end(), 0);
    const std::vector<Use> uses(40, Use::any);
    ScoreTest test(basis, {40, features.data(), uses.data()},
                   {rows.x.n_rows(), rows.x.row_offsets.data(), rows.x.columns.data(), nullptr},
                   nullptr, 0, 2, 1, [] { return false; });
    check(test.add_pairs(1, [] { return false; }) == Searched::all, "pairs");
    std::atomic<double> done{0};
    Vector maxima(TestedRows::n_draws);
    check(test.find_maxima(
              {rows.residuals.data(), TestedRows::n_draws}, {}, 1, [] { return true; }, done,
              maxima.data()) == Searched::stopped,
          "stopped");
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
    for_each_basis({0, 1, 9}, 4, test_score_tests);
    for_each_grouped_basis(4, test_score_tests);
    test_stopped_score_test();
    test_stopped_preparation();
    test_stretches();
    test_progress();
}

}  // namespace polysparse::tests
