// Sums over many places, made of stretches that are added in their order: the same for any number
// of threads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "platform/processors.hpp"
#include "platform/threads.hpp"

namespace polysparse {

/// How many threads may work, and what stops them.
struct Work {
    int64_t n_threads;
    const StopRequest& should_stop;
};

/// Calls add(worker, begin, end) for stretches of so many of n places; false if it was stopped.
template <class Add>
bool for_stretches(int64_t n, int64_t length, const Work& work, const Add& add) {
    const int64_t n_stretches = (n + length - 1) / length;
    const auto run = [&](int64_t worker, int64_t stretch) {
        add(worker, stretch * length, std::min(n, (stretch + 1) * length));
    };
    return run_tasks(n_stretches, work.n_threads, run, work.should_stop);
}

/// The same with add(worker, begin, end, sums), which adds to sums of its stretch, all of them 0.
/// Adds the sums of all stretches to `out`, which has n_sums.
template <class Add>
bool sum_stretches(int64_t n, int64_t length, const Work& work, int64_t n_sums, double* out,
                   const Add& add) {
    std::vector<double> parts((n + length - 1) / length * n_sums);
    const bool is_done =
        for_stretches(n, length, work, [&](int64_t worker, int64_t begin, int64_t end) {
            add(worker, begin, end, parts.data() + begin / length * n_sums);  // n_sums may be 0
        });
    for (size_t i = 0; i < parts.size(); ++i) out[i % n_sums] += parts[i];
    return is_done;
}

/// Calls step(i, lane) for i from begin to end; neighbours are in neighbouring lanes.
template <class Step>
POLYSPARSE_INLINE void for_places(int64_t begin, int64_t end, const Step& step) {
    int64_t i = begin;
    for (; i + lanes <= end; i += lanes)
        for_lanes([&](int64_t u) POLYSPARSE_INLINE_LAMBDA { step(i + u, u); });
    for (int64_t u = 0; i + u < end; ++u) step(i + u, u);
}

/// A sum that each lane has a part of.
struct LaneSum {
    double parts[lanes] = {};

    POLYSPARSE_INLINE double total() const {
        double sum = 0;
        for (const double part : parts) sum += part;
        return sum;
    }
};

/// The least and the largest number that each worker has seen.
class Ranges {
  public:
    explicit Ranges(int64_t n_workers) {
        for (; n_workers > 0; --n_workers) ends_.insert(ends_.end(), {infinity, -infinity});
    }

    double* of(int64_t worker) { return &ends_[2 * worker]; }

    void write(double* range) const {
        range[0] = infinity;
        range[1] = -infinity;
        for (size_t i = 0; i < ends_.size(); i += 2) {
            range[0] = std::min(range[0], ends_[i]);
            range[1] = std::max(range[1], ends_[i + 1]);
        }
    }

  private:
    static constexpr double infinity = std::numeric_limits<double>::infinity();

    std::vector<double> ends_;
};

}  // namespace polysparse
