// Passes over many things that can be stopped between two stretches of them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <exception>
#include <type_traits>

#include "platform/threads.hpp"

namespace polysparse {

/// Thrown by a pass that was stopped, on the thread that began it.
struct Stopped : std::exception {};

/// n things, and the stored values of each, in stretches of about equal size. One takes a worker
/// some milliseconds.
template <class Ahead>
class Stretches {
  public:
    /// ahead(i) is the number of values before thing i, for i <= n; it is not called if n is 0.
    /// There is a stretch for each thread at least; some may be empty.
    Stretches(int64_t n, int64_t n_threads, const Ahead& ahead)
        : n_(n), n_threads_(n_threads), ahead_(ahead) {
        n_stretches_ = std::max(size_before(n) / longest + 1, n_threads);
    }

    int64_t size() const { return n_stretches_; }

    /// Calls work(i, begin, end) for every stretch i, or work(worker, i, begin, end); in their
    /// order if there is one thread. Throws Stopped.
    template <class Work>
    void run(const StopRequest& should_stop, const Work& work) const {
        const auto run_one = [&](int64_t worker, int64_t i) {
            const int64_t begin = begin_of(i), end = begin_of(i + 1);
            if constexpr (std::is_invocable_v<Work, int64_t, int64_t, int64_t, int64_t>)
                work(worker, i, begin, end);
            else
                work(i, begin, end);
        };
        if (!run_tasks(n_stretches_, n_threads_, run_one, should_stop)) throw Stopped();
    }

  private:
    static constexpr int64_t longest = int64_t{1} << 20;

    int64_t size_before(int64_t i) const { return i == 0 ? 0 : i + ahead_(i) - ahead_(0); }

    /// The first thing that has a share of i stretches, or more, before it.
    int64_t begin_of(int64_t i) const {
        if (i == n_stretches_) return n_;
        const int64_t all = size_before(n_), each = all / n_stretches_;
        const int64_t share = each * i + all % n_stretches_ * i / n_stretches_;
        int64_t low = 0, high = n_;
        while (low < high) {
            const int64_t middle = low + (high - low) / 2;
            if (size_before(middle) < share)
                low = middle + 1;
            else
                high = middle;
        }
        return low;
    }

    int64_t n_, n_threads_, n_stretches_;
    Ahead ahead_;
};

/// The same of things that are alike.
inline auto equal_stretches(int64_t n, int64_t n_threads) {
    return Stretches(n, n_threads, [](int64_t) { return int64_t{0}; });
}

}  // namespace polysparse
