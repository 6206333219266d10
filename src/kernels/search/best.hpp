// The k best of many scored columns, shared by threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <mutex>
#include <new>
#include <tuple>
#include <vector>

namespace polysparse {

/// A column that may be among the best. The size of its score is in [low, high]: they are equal if
/// it was computed with the order of sums and products that all results have.
struct Candidate {
    int64_t column;
    int64_t n_rows;
    int64_t target;  // of the largest score
    double score;    // with its sign
    double low, high;

    bool is_exact() const { return low == high; }
};

/// Keeps every column that may be among the k with the largest scores; of equal ones those with the
/// smallest column numbers. What it keeps does not depend on the order in which they are offered.
class Best {
  public:
    /// Throws bad_alloc, later, if more than `most` columns cannot be told from the k-th best.
    Best(int64_t k, int64_t most) : k_(k), most_(most) {}

    /// A score below this one is not among the best. It never falls.
    double threshold() const { return threshold_.load(std::memory_order_relaxed); }

    /// Throws bad_alloc.
    void offer(const Candidate& one) {
        const std::lock_guard lock(mutex_);
        if (!is_needed(one)) return;
        candidates_.push_back(one);
        raise_threshold(one.low);
        if (std::ssize(candidates_) >= limit_) drop_beaten();
    }

    /// All that may be among the best. Throws bad_alloc.
    std::vector<Candidate> take() {
        drop_beaten();
        return std::move(candidates_);
    }

  private:
    static constexpr int64_t least_limit = 1024;

    bool is_needed(const Candidate& one) const {
        const double least = threshold();
        if (!(one.high >= least)) return false;
        return !(one.is_exact() && one.low == least && one.column > last_tie_);
    }

    /// Keeps the k largest lower limits: the k-th is the threshold.
    void raise_threshold(double low) {
        if (std::ssize(lows_) == k_ && low <= lows_.front()) return;
        lows_.push_back(low);
        std::ranges::push_heap(lows_, std::greater<>{});
        if (std::ssize(lows_) > k_) {
            std::ranges::pop_heap(lows_, std::greater<>{});
            lows_.pop_back();
        }
        if (std::ssize(lows_) < k_ || lows_.front() <= threshold()) return;
        threshold_.store(lows_.front(), std::memory_order_relaxed);
        last_tie_ = INT64_MAX;
    }

    /// Drops what is below the threshold, and exact ties at it that come after the k-th column.
    void drop_beaten() {
        const double least = threshold();
        std::erase_if(candidates_, [&](const Candidate& one) { return one.high < least; });
        const auto is_tie = [&](const Candidate& one) {
            return one.is_exact() && one.low == least;
        };
        const auto ties = std::partition(candidates_.begin(), candidates_.end(),
                                         [&](const Candidate& one) { return !is_tie(one); });
        const int64_t n_above = std::count_if(
            candidates_.begin(), ties, [&](const Candidate& one) { return one.low > least; });
        const int64_t n_wanted = std::max<int64_t>(k_ - n_above, 0);
        if (std::ssize(lows_) == k_ && candidates_.end() - ties >= n_wanted && n_wanted > 0) {
            std::nth_element(
                ties, ties + (n_wanted - 1), candidates_.end(),
                [](const Candidate& a, const Candidate& b) { return a.column < b.column; });
            candidates_.erase(ties + n_wanted, candidates_.end());
            last_tie_ = candidates_.back().column;
        }
        const int64_t n = std::ssize(candidates_);
        if (n - k_ > most_) throw std::bad_alloc();
        limit_ = std::max(2 * n, least_limit);
    }

    int64_t k_, most_;
    std::mutex mutex_;
    std::vector<Candidate> candidates_;
    std::vector<double> lows_;  // a heap, the least first
    int64_t limit_ = least_limit;
    int64_t last_tie_ = INT64_MAX;  // exact ties at the threshold after this column are beaten
    std::atomic<double> threshold_{-1};
};

}  // namespace polysparse
