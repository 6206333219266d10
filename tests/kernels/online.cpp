#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "checks.hpp"
#include "online/block_outputs.hpp"
#include "online/ftrl.hpp"
#include "online/scale_blocks.hpp"

namespace polysparse::tests {
namespace {

/// Numbers of columns are those of plain counting, for a few columns and for many.
void test_numbers(int64_t n, int64_t n_columns) {
    subject = std::to_string(n) + " numbers of columns";
    ColumnNumbers numbers(std::min(n, n_columns));
    for (int64_t round = 0; round < 3; ++round) {
        std::vector<int32_t> wanted(n), found(n), columns(n + 1), seen;
        for (int32_t& column : wanted) column = static_cast<int32_t>(random_bits() % n_columns);
        int64_t n_found = 0;
        for (int64_t t = 0; t < n; t += 7)
            n_found = numbers.number(wanted.data() + t, std::min<int64_t>(7, n - t),
                                     found.data() + t, columns.data(), n_found);
        for (int64_t t = 0; t < n; ++t) {
            const auto at = std::ranges::find(seen, wanted[t]);
            check(found[t] == at - seen.begin(), "the number of a column");
            if (at == seen.end()) seen.push_back(wanted[t]);
        }
        columns.resize(n_found);
        check(columns == seen, "columns in the order in which they are found");
        numbers.forget(n_found);
    }
}

/// Rows with random values, some of whose columns come several times.
struct Stream {
    int64_t n_rows, n_columns, k;
    std::vector<int64_t> offsets{0}, ends;
    std::vector<int32_t> columns;
    std::vector<float> values, rates, betas;
    std::vector<double> targets, weights;

    Stream(int64_t n_rows, int64_t n_columns, int64_t k, OnlineLoss loss, int64_t n_learners)
        : n_rows(n_rows), n_columns(n_columns), k(k) {
        std::uniform_real_distribution<float> any(-1, 1);
        for (int64_t r = 0; r < n_rows; ++r) {
            for (uint64_t n = random_bits() % 9; n > 0; --n) {
                columns.push_back(static_cast<int32_t>(random_bits() % n_columns));
                values.push_back(any(random_bits));
            }
            offsets.push_back(std::ssize(columns));
            const int64_t n_classes = loss == OnlineLoss::classes ? k : 2;
            targets.push_back(loss == OnlineLoss::squared ? any(random_bits)
                                                          : random_bits() % n_classes);
            weights.push_back(1 + any(random_bits));
        }
        while (ends.empty() || ends.back() < n_rows)
            ends.push_back(std::min<int64_t>(
                n_rows, (ends.empty() ? 0 : ends.back()) + 1 + random_bits() % 5));
        for (size_t b = 0; b < ends.size(); ++b) {
            betas.push_back(1 + any(random_bits) / 2);
            for (int64_t i = 0; i < n_learners; ++i) rates.push_back(static_cast<float>(i + 1) / 4);
        }
    }
    CsrView<float> x() const {
        return {n_rows, n_columns, offsets.data(), columns.data(), values.data()};
    }
};

float plain_weight(const float* zn, float l1, float l2, float beta, float rate) {
    const float size = std::abs(zn[0]) - l1;
    if (!(size > 0)) return 0;
    return std::copysign(size / ((beta + std::sqrt(zn[1])) / rate + l2), -zn[0]);
}

/// One learner in plain loops: its state.
std::vector<float> learn_plainly(const Stream& stream, const FtrlTable& table, int64_t learner,
                                 int64_t n_learners) {
    const int64_t k = stream.k, n = stream.n_columns + 1;
    std::vector<float> state(2 * n * k), gradients(n * k), w(n * k);
    int64_t begin = 0;
    for (size_t b = 0; b < stream.ends.size(); ++b) {
        const float rate = stream.rates[b * n_learners + learner], beta = stream.betas[b];
        for (int64_t i = 0; i < n * k; ++i) {
            const bool is_intercept = i >= stream.n_columns * k;
            w[i] = plain_weight(state.data() + 2 * i, is_intercept ? 0 : table.l1,
                                is_intercept ? 0 : table.l2, beta, rate);
        }
        std::ranges::fill(gradients, 0.f);
        for (int64_t r = begin; r < stream.ends[b]; ++r) {
            std::vector<double> scores(k), changes(k);
            for (int64_t c = 0; c < k; ++c) {
                for (int64_t t = stream.offsets[r]; t < stream.offsets[r + 1]; ++t)
                    scores[c] += stream.values[t] * double{w[stream.columns[t] * k + c]};
                if (table.has_intercept) scores[c] += w[stream.n_columns * k + c];
            }
            online_loss(table.loss, k, scores.data(), stream.targets[r], changes.data());
            for (int64_t c = 0; c < k; ++c) {
                const auto change = static_cast<float>(stream.weights[r] * changes[c]);
                for (int64_t t = stream.offsets[r]; t < stream.offsets[r + 1]; ++t)
                    gradients[stream.columns[t] * k + c] += stream.values[t] * change;
                if (table.has_intercept) gradients[stream.n_columns * k + c] += change;
            }
        }
        for (int64_t i = 0; i < n * k; ++i) {
            const float g = gradients[i], sum = state[2 * i + 1] + g * g;
            state[2 * i] += g - (std::sqrt(sum) - std::sqrt(state[2 * i + 1])) / rate * w[i];
            state[2 * i + 1] = sum;
        }
        begin = stream.ends[b];
    }
    return state;
}

/// States are those of plain loops, and have the same bits for any number of threads.
void test_learning(OnlineLoss loss, int64_t k, int64_t n_rows) {
    subject = "learning from " + std::to_string(n_rows) + " rows with loss " +
              std::to_string(static_cast<int>(loss));
    constexpr int64_t n_learners = 2, n_columns = 60;
    const Stream stream(n_rows, n_columns, k, loss, n_learners);
    const FtrlTable table{k, n_rows % 2 == 0, loss, 0.05f, 0.1f};
    const OnlineColumns columns{nullptr, nullptr, n_columns};
    const OnlineRows rows{stream.x(), stream.targets.data(), stream.weights.data(),
                          static_cast<int64_t>(stream.ends.size()), stream.ends.data()};
    const auto never = [] { return false; };
    std::vector<float> first;
    std::vector<double> first_scores;
    for (const int64_t n_threads : {1, 2, 5}) {
        std::vector<std::vector<float>> states(n_learners,
                                               std::vector<float>(2 * k * (n_columns + 1)));
        std::vector<double> losses(n_learners), row_losses(n_rows), scores(n_rows * k);
        float* const tables[] = {states[0].data(), states[1].data()};
        int64_t n_done = -1;
        const Learners learners{n_learners, tables, stream.rates.data(), stream.betas.data(),
                                losses.data()};
        check(learn(columns, table, rows, learners, {row_losses.data(), scores.data(), &n_done},
                    n_threads, never),
              "not stopped");
        check(n_done == rows.n_blocks, "all blocks are done");
        if (n_threads == 1) {
            first = states[1], first_scores = scores;
            for (int64_t i = 0; i < n_learners; ++i) {
                const std::vector<float> wanted = learn_plainly(stream, table, i, n_learners);
                for (size_t j = 0; j < wanted.size(); ++j)
                    check(std::abs(states[i][j] - wanted[j]) <= 1e-3f * (1 + std::abs(wanted[j])),
                          "z and n of plain loops");
            }
            // What is scored later is what the next block would be scored with.
            std::vector<double> later(n_rows * k), again(n_rows * k);
            for (std::vector<double>* out : {&later, &again})
                check(score(columns, table, stream.x(), states[0].data(), 0.25f, 1, out->data(),
                            out == &later ? 1 : 3, never),
                      "not stopped");
            check(later == again, "scores have the same bits for any number of threads");
        }
        check(states[1] == first && scores == first_scores, "the same bits");
    }
    int64_t n_done = -1;
    std::vector<float> state(2 * k * (n_columns + 1));
    float* const tables[] = {state.data(), state.data()};
    std::vector<double> losses(n_learners), row_losses(n_rows), scores(n_rows * k);
    const bool is_done =
        learn(columns, table, rows,
              {n_learners, tables, stream.rates.data(), stream.betas.data(), losses.data()},
              {row_losses.data(), scores.data(), &n_done}, 2, [] { return true; });
    check(is_done || n_rows == 0 || n_done <= rows.n_blocks, "stopped between blocks");
}

/// Values are divided by scales that include their block, in however many calls; undone changes
/// leave the scales as they were.
void test_scales(int64_t n_blocks, int64_t capacity) {
    subject = "scales of " + std::to_string(n_blocks) + " blocks";
    constexpr int64_t n_features = 7;
    std::vector<int64_t> starts{0};
    std::vector<int32_t> columns;
    std::vector<double> values, limits;
    for (int64_t b = 0; b < n_blocks; ++b) {
        for (uint64_t n = random_bits() % 20; n > 0; --n) {
            columns.push_back(static_cast<int32_t>(random_bits() % n_features));
            values.push_back(std::ldexp(1.0 + random_bits() % 8, static_cast<int>(b / 4)) *
                             (random_bits() % 2 ? 1 : -1));
        }
        starts.push_back(std::ssize(columns));
        limits.push_back(b < n_blocks / 2 ? 1 : 2);
    }
    std::vector<double> wanted(n_features), scales(n_features);
    std::vector<float> scaled(values.size()), out(values.size());
    for (int64_t b = 0; b < n_blocks; ++b) {
        std::vector<double> largest(n_features);
        for (int64_t i = starts[b]; i < starts[b + 1]; ++i)
            largest[columns[i]] = std::max(largest[columns[i]], std::abs(values[i]));
        for (int64_t j = 0; j < n_features; ++j)
            if (largest[j] > limits[b] * wanted[j])
                wanted[j] = wanted[j] > 0 ? largest[j] / limits[b] : largest[j];
        for (int64_t i = starts[b]; i < starts[b + 1]; ++i)
            scaled[i] = static_cast<float>(values[i] / wanted[columns[i]]);
    }
    std::vector<int64_t> features(capacity), all_features;
    std::vector<double> before(capacity), all_before;
    for (int64_t first = 0; first < n_blocks;) {
        ScaleChanges changes{0, capacity, features.data(), before.data()};
        first =
            scale_blocks({n_blocks, starts.data(), limits.data(), columns.data(), values.data()},
                         first, {n_features, scales.data()}, changes, out.data());
        all_features.insert(all_features.end(), features.begin(), features.begin() + changes.n);
        all_before.insert(all_before.end(), before.begin(), before.begin() + changes.n);
    }
    check(scales == wanted, "scales of plain loops");
    check(out == scaled, "values divided by the scales of their block");
    for (int64_t c = std::ssize(all_before) - 1; c >= 0; --c)
        scales[all_features[c]] = all_before[c];
    check(scales == std::vector<double>(n_features), "changes that are undone");
}

}  // namespace

void test_online() {
    for (const int64_t n_blocks : {0, 1, 40}) {
        test_scales(n_blocks, 20);
        test_scales(n_blocks, 1000);
    }
    for (const int64_t n : {0, 1, 50, 3000}) {
        test_numbers(n, 3);
        test_numbers(n, 1000);
        test_numbers(n, 1 << 30);
    }
    for (const int64_t n_rows : {1, 30, 20'001}) {
        test_learning(OnlineLoss::two_classes, 1, n_rows);
        test_learning(OnlineLoss::classes, 3, n_rows);
        test_learning(OnlineLoss::squared, 1, n_rows);
        test_learning(OnlineLoss::poisson, 1, n_rows);
    }
}

}  // namespace polysparse::tests
