// Many tasks, several threads, one way to stop.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>

namespace polysparse {

/// Called from time to time, only by the thread that called the kernel, which returns early once
/// the result is true.
using StopRequest = std::function<bool()>;

/// `apart`: each worker starts with a stretch of tasks of its own, in order, and then helps with
/// the others'. Two workers seldom write to the same huge page, which both would clear on first
/// touch. `in_order`: no task starts before all tasks ahead of it have started.
enum class Order { apart, in_order };

/// Calls work(worker, task) once for every task below n_tasks, with 0 <= worker < n_threads. The
/// calling thread is worker 0. It calls should_stop after each of its tasks; once that is
/// true no further task starts, and false is returned. `work` must not throw. If the system refuses
/// to start a thread the others do its work.
bool run_tasks(int64_t n_tasks, int64_t n_threads,
               const std::function<void(int64_t worker, int64_t task)>& work,
               const StopRequest& should_stop, Order order = Order::apart);

/// The same, for work that cannot be stopped.
void run_tasks(int64_t n_tasks, int64_t n_threads,
               const std::function<void(int64_t worker, int64_t task)>& work);

/// A cheap pass over n things, in equal ranges: as many as are worth a thread each.
class EqualRanges {
  public:
    EqualRanges(int64_t n, int64_t n_threads)
        : n_(n), n_ranges_(std::clamp<int64_t>(n / worth_a_thread, 1, n_threads)) {}

    int64_t size() const { return n_ranges_; }
    int64_t begin(int64_t i) const { return n_ * i / n_ranges_; }

    /// Calls work(i, begin, end) for every range, each on a thread of its own.
    template <class Work>
    void run(const Work& work) const {
        run_tasks(n_ranges_, n_ranges_,
                  [&](int64_t, int64_t i) { work(i, begin(i), begin(i + 1)); });
    }

  private:
    static constexpr int64_t worth_a_thread = int64_t{1} << 16;

    int64_t n_, n_ranges_;
};

}  // namespace polysparse
