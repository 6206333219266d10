#include "online/ftrl.hpp"

#include <algorithm>
#include <cmath>
#include <new>
#include <type_traits>
#include <vector>

#include "apply/hashed_lister.hpp"
#include "expand/row_readers.hpp"
#include "expand/row_shape.hpp"
#include "online/block_outputs.hpp"
#include "platform/processors.hpp"
#include "platform/threads.hpp"
#include "select/append_rows.hpp"

namespace polysparse {
namespace {

/// Lists rows that are expanded already.
struct ExpandedRows {
    int64_t fill(const CsrView<float>& x, int64_t r, int64_t, int64_t,
                 Slots<int32_t, float> out) const {
        const int64_t begin = x.row_offsets[r], n = x.row_offsets[r + 1] - begin;
        x.columns.copy(begin, n, out.columns);
        std::copy_n(x.values + begin, n, out.values);
        return n;
    }
};

/// Calls f with n makers of rows, and with what returns how many outputs a row has at most.
template <class F>
bool with_row_makers(const OnlineColumns& columns, const CsrView<float>& x, int64_t n, const F& f) {
    if (columns.basis == nullptr) {
        std::vector<ExpandedRows> makers(n);
        return f(makers, [&](int64_t r) { return x.row_offsets[r + 1] - x.row_offsets[r]; });
    }
    const Basis& basis = *columns.basis;
    const RowShape largest = largest_shape(x.row_offsets, x.n_rows);
    if (!is_countable(basis, largest)) throw std::bad_alloc();
    RowSizes size_of(basis);
    return with_row_reader<int64_t>(basis, [&]<class Rows>(std::type_identity<Rows>) {
        std::vector<HashedLister<Rows, float>> makers;
        for (int64_t worker = 0; worker < n; ++worker)
            makers.emplace_back(basis, *columns.hasher, largest);
        return f(makers, [&](int64_t r) { return size_of(shape_of(x.row_offsets, r)); });
    });
}

/// Blocks that are listed together, and the largest of them.
struct Ranges {
    std::vector<BlockRange> all;
    int64_t most_rows = 0, most_blocks = 0, most_outputs = 0, most_in_block = 0;
};

/// Outputs that are listed together, about: what stays in cache.
constexpr int64_t outputs_together = int64_t{1} << 15;

template <class SizeOf>
Ranges ranges_of(const OnlineRows& rows, const SizeOf& size_of) {
    Ranges out;
    BlockRange range{0, 0, 0, 0};
    int64_t n_outputs = 0;
    const auto end_range = [&] {
        if (range.first_block == range.last_block) return;
        out.all.push_back(range);
        out.most_rows = std::max(out.most_rows, range.last_row - range.first_row);
        out.most_blocks = std::max(out.most_blocks, range.last_block - range.first_block);
        out.most_outputs = std::max(out.most_outputs, n_outputs);
        range = {range.last_block, range.last_block, range.last_row, range.last_row};
        n_outputs = 0;
    };
    for (int64_t b = 0; b < rows.n_blocks; ++b) {
        int64_t in_block = 0;
        for (int64_t r = range.last_row; r < rows.ends[b]; ++r) in_block += size_of(r);
        out.most_in_block = std::max(out.most_in_block, in_block);
        if (n_outputs + in_block > outputs_together) end_range();
        n_outputs += in_block;
        range.last_block = b + 1;
        range.last_row = rows.ends[b];
    }
    end_range();
    return out;
}

/// The weight of a coordinate.
POLYSPARSE_INLINE float weight_of(float z, float n, float beta, float per_rate, float l1,
                                  float l2) {
    const float size = std::abs(z) - l1;
    const float weight = size / ((beta + std::sqrt(n)) * per_rate + l2);
    return size > 0 ? (z > 0 ? -weight : weight) : 0;
}

/// The coordinates of a block, side by side, in the order of its columns.
class Coordinates {
  public:
    explicit Coordinates(int64_t n) : z_(n), n_(n), w_(n), g_(n) {}

    void load(const float* state, const int32_t* columns, int64_t n, int64_t k) {
        for (int64_t u = 0; u < n; ++u) {
            const float* const from = state + 2 * k * columns[u];
            for (int64_t c = 0; c < k; ++c) {
                z_[u * k + c] = from[2 * c];
                n_[u * k + c] = from[2 * c + 1];
            }
        }
    }

    /// Computes the weights, and sets the gradients to 0.
    POLYSPARSE_PER_PROCESSOR void weigh(int64_t n, float beta, float per_rate, float l1, float l2) {
        const float* const __restrict zs = z_.data();
        const float* const __restrict ns = n_.data();
        float* const __restrict ws = w_.data();
        float* const __restrict gs = g_.data();
        for (int64_t u = 0; u < n; ++u) {
            ws[u] = weight_of(zs[u], ns[u], beta, per_rate, l1, l2);
            gs[u] = 0;
        }
    }

    POLYSPARSE_PER_PROCESSOR void step(int64_t n, float per_rate) {
        float* const __restrict zs = z_.data();
        float* const __restrict ns = n_.data();
        const float* const __restrict ws = w_.data();
        const float* const __restrict gs = g_.data();
        for (int64_t u = 0; u < n; ++u) {
            const float sum = ns[u] + gs[u] * gs[u];
            zs[u] += gs[u] - (std::sqrt(sum) - std::sqrt(ns[u])) * per_rate * ws[u];
            ns[u] = sum;
        }
    }

    void store(float* state, const int32_t* columns, int64_t n, int64_t k) const {
        for (int64_t u = 0; u < n; ++u) {
            float* const to = state + 2 * k * columns[u];
            for (int64_t c = 0; c < k; ++c) {
                to[2 * c] = z_[u * k + c];
                to[2 * c + 1] = n_[u * k + c];
            }
        }
    }

    const float* weights() const { return w_.data(); }
    float* gradients() { return g_.data(); }

  private:
    std::vector<float> z_, n_, w_, g_;
};

/// Adds the products of a listed row with the weights of its columns to k scores.
template <class K>
POLYSPARSE_INLINE void add_scores(const int32_t* numbers, const float* values, int64_t n,
                                  const float* weights, K k, double* scores) {
    if constexpr (K() == 1) {  // four sums in turn, so that they need not wait for each other
        double turns[4] = {};
        int64_t t = 0;
        for (; t + 4 <= n; t += 4)
            for (int64_t u = 0; u < 4; ++u)
                turns[u] += static_cast<double>(values[t + u]) * weights[numbers[t + u]];
        for (; t < n; ++t) turns[0] += static_cast<double>(values[t]) * weights[numbers[t]];
        *scores += (turns[0] + turns[1]) + (turns[2] + turns[3]);
    } else {
        for (int64_t t = 0; t < n; ++t)
            for (int64_t c = 0; c < k; ++c)
                scores[c] += static_cast<double>(values[t]) * weights[numbers[t] * k + c];
    }
}

/// Adds a listed row, times the changes of its k scores, to the gradients of its columns.
template <class K>
POLYSPARSE_INLINE void add_gradients(const int32_t* numbers, const float* values, int64_t n,
                                     const float* changes, K k, float* gradients) {
    for (int64_t t = 0; t < n; ++t)
        for (int64_t c = 0; c < k; ++c) gradients[numbers[t] * k + c] += values[t] * changes[c];
}

POLYSPARSE_PER_PROCESSOR void fill_two_class_losses(int64_t n, const double* scores,
                                                    const double* targets, double* changes,
                                                    double* losses) {
    two_class_losses(n, scores, targets, changes, losses);
}

/// Writes the losses of n rows, and how they change with each of their k scores.
void fill_losses(OnlineLoss loss, int64_t n, int64_t k, const double* scores, const double* targets,
                 double* changes, double* losses) {
    if (loss == OnlineLoss::two_classes)
        return fill_two_class_losses(n, scores, targets, changes, losses);
    for (int64_t r = 0; r < n; ++r)
        losses[r] = online_loss(loss, k, scores + r * k, targets[r], changes + r * k);
}

/// How many scores there are, if it is one, as the compiler knows.
template <class F>
void with_scores(int64_t k, const F& f) {
    if (k == 1)
        f(std::integral_constant<int64_t, 1>{});
    else
        f(k);
}

/// Learns from one block after the other.
class Learning {
  public:
    Learning(const OnlineColumns& columns, const FtrlTable& table, const OnlineRows& rows,
             const Learners& learners, const Progress& progress, int64_t most_columns,
             int64_t most_rows)
        : columns_(columns),
          table_(table),
          rows_(rows),
          learners_(learners),
          progress_(progress),
          coordinates_(most_columns * table.k),
          intercepts_(table.k),
          scores_(most_rows * table.k),
          losses_(most_rows),
          changes_(most_rows * table.k),
          own_changes_(most_rows * table.k) {}

    void learn(const BlockOutputs& outputs, const BlockRange& range) {
        int64_t first = range.first_row;
        for (int64_t b = range.first_block; b < range.last_block; ++b) {
            const double* const losses = learners_.losses;
            const int64_t leader = std::min_element(losses, losses + learners_.n) - losses;
            for (int64_t i = 0; i < learners_.n; ++i)
                with_scores(table_.k, [&](auto k) {
                    learn_block(outputs, b - range.first_block, b, first, i, i == leader, k);
                });
            first = rows_.ends[b];
            *progress_.n_done = b + 1;
        }
    }

  private:
    template <class K>
    void learn_block(const BlockOutputs& outputs, int64_t listed, int64_t b, int64_t first,
                     int64_t learner, bool is_leader, K k) {
        const int64_t last = rows_.ends[b], n = outputs.n_columns(listed);
        const int32_t* const columns = outputs.columns(listed);
        float* const state = learners_.states[learner];
        const float per_rate = 1 / learners_.rates[b * learners_.n + learner];
        const float beta = learners_.betas[b];
        const int32_t intercept = 0;
        float* const of_intercepts = state + 2 * k * columns_.n_columns;

        coordinates_.load(state, columns, n, k);
        coordinates_.weigh(n * k, beta, per_rate, table_.l1, table_.l2);
        intercepts_.load(of_intercepts, &intercept, 1, k);
        intercepts_.weigh(k, beta, per_rate, 0, 0);
        for (int64_t r = first; r < last; ++r) {
            double* const scores = scores_.data() + (r - first) * k;
            for (int64_t c = 0; c < k; ++c) scores[c] = 0;
            add_scores(outputs.numbers(r), outputs.values(r), outputs.n_outputs(r),
                       coordinates_.weights(), k, scores);
            if (table_.has_intercept)
                for (int64_t c = 0; c < k; ++c) scores[c] += intercepts_.weights()[c];
        }
        find_changes(first, last, learner, is_leader, k);
        for (int64_t r = first; r < last; ++r)
            add_gradients(outputs.numbers(r), outputs.values(r), outputs.n_outputs(r),
                          own_changes_.data() + (r - first) * k, k, coordinates_.gradients());
        coordinates_.step(n * k, per_rate);
        coordinates_.store(state, columns, n, k);
        if (!table_.has_intercept) return;
        for (int64_t r = first; r < last; ++r)
            for (int64_t c = 0; c < k; ++c)
                intercepts_.gradients()[c] += own_changes_[(r - first) * k + c];
        intercepts_.step(k, per_rate);
        intercepts_.store(of_intercepts, &intercept, 1, k);
    }

    /// Of the rows of a block, from their scores.
    template <class K>
    void find_changes(int64_t first, int64_t last, int64_t learner, bool is_leader, K k) {
        const int64_t n = last - first;
        fill_losses(table_.loss, n, k, scores_.data(), rows_.targets + first, changes_.data(),
                    losses_.data());
        double& sum = learners_.losses[learner];
        for (int64_t r = 0; r < n; ++r) {
            const double weight = rows_.weights[first + r];
            sum += weight * losses_[r];
            if (!std::isfinite(sum)) sum = INFINITY;  // it never leads again
            for (int64_t c = 0; c < k; ++c)
                own_changes_[r * k + c] = static_cast<float>(weight * changes_[r * k + c]);
        }
        if (!is_leader) return;
        std::copy_n(losses_.data(), n, progress_.losses + first);
        std::copy_n(scores_.data(), n * k, progress_.scores + first * k);
    }

    OnlineColumns columns_;
    FtrlTable table_;
    OnlineRows rows_;
    Learners learners_;
    Progress progress_;
    Coordinates coordinates_, intercepts_;
    std::vector<double> scores_, losses_, changes_;  // of each row of the block
    std::vector<float> own_changes_;                 // weighted
};

}  // namespace

bool learn(const OnlineColumns& columns, const FtrlTable& table, const OnlineRows& rows,
           const Learners& learners, const Progress& progress, int64_t n_threads,
           const StopRequest& should_stop) {
    *progress.n_done = 0;
    return with_row_makers(columns, rows.x, n_threads, [&](auto& makers, const auto& size_of) {
        const Ranges ranges = ranges_of(rows, size_of);
        const int64_t most_columns = std::min(ranges.most_in_block, columns.n_columns);
        std::vector<BlockOutputs> listed;
        for (int64_t worker = 0; worker < n_threads; ++worker)
            listed.emplace_back(ranges.most_rows, ranges.most_blocks, ranges.most_outputs,
                                most_columns);
        Learning learning(columns, table, rows, learners, progress, most_columns, ranges.most_rows);
        Turns turns;
        const auto learn_range = [&](int64_t worker, int64_t number) {
            listed[worker].list(makers[worker], rows.x, ranges.all[number], rows.ends);
            turns.wait(number);
            learning.learn(listed[worker], ranges.all[number]);
            turns.pass();
        };
        return run_tasks(std::ssize(ranges.all), n_threads, learn_range, should_stop,
                         Order::in_order);
    });
}

bool score(const OnlineColumns& columns, const FtrlTable& table, const CsrView<float>& x,
           const float* state, float rate, float beta, double* scores, int64_t n_threads,
           const StopRequest& should_stop) {
    const int64_t k = table.k;
    const float per_rate = 1 / rate;
    const float* const intercepts = state + 2 * k * columns.n_columns;
    return with_row_makers(columns, x, n_threads, [&](auto& makers, const auto& size_of) {
        int64_t most = 0;
        for (int64_t r = 0; r < x.n_rows; ++r) most = std::max(most, size_of(r));
        std::vector<SlotArrays<int32_t, float>> listed;
        for (int64_t worker = 0; worker < n_threads; ++worker) listed.emplace_back(most + lanes);
        const auto score_row = [&](int64_t worker, int64_t r) {
            const Slots<int32_t, float> row = listed[worker].slots();
            const int64_t n = makers[worker].fill(x, r, 0, 1, row);
            double* const own = scores + r * k;
            std::fill_n(own, k, 0.0);
            for (int64_t t = 0; t < n; ++t) {
                const float* const of_column = state + 2 * k * row.columns[t];
                for (int64_t c = 0; c < k; ++c)
                    own[c] += static_cast<double>(row.values[t]) *
                              weight_of(of_column[2 * c], of_column[2 * c + 1], beta, per_rate,
                                        table.l1, table.l2);
            }
            for (int64_t c = 0; c < k && table.has_intercept; ++c)
                own[c] += weight_of(intercepts[2 * c], intercepts[2 * c + 1], beta, per_rate, 0, 0);
        };
        constexpr int64_t together = 64;
        return run_tasks((x.n_rows + together - 1) / together, n_threads,
                         [&](int64_t worker, int64_t task) {
                             for (int64_t r = task * together;
                                  r < std::min(x.n_rows, (task + 1) * together); ++r)
                                 score_row(worker, r);
                         },
                         should_stop);
    });
}

}  // namespace polysparse
