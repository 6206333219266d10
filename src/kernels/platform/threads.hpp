// Many tasks, several threads, one way to stop.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>

namespace polysparse {

/// Asked from time to time, by the thread that called the kernel only. Once it has answered true
/// the kernel gives up.
using StopRequest = std::function<bool()>;

/// `apart`: each worker starts with a stretch of tasks of its own, in order, and then helps with
/// the others'. Two workers seldom write to the same huge page, which both would clear on first
/// touch. `in_order`: no task starts before all tasks ahead of it have started.
enum class Order { apart, in_order };

/// Calls work(worker, task) once for every task below n_tasks, with 0 <= worker < n_threads. The
/// calling thread is worker 0. It asks should_stop after each of its tasks; if that says so no
/// further task starts, and the answer is false. `work` must not throw. If the system refuses to
/// start a thread the others do its work.
bool run_tasks(int64_t n_tasks, int64_t n_threads,
               const std::function<void(int64_t worker, int64_t task)>& work,
               const StopRequest& should_stop, Order order = Order::apart);

/// The same where nobody can ask to stop.
void run_tasks(int64_t n_tasks, int64_t n_threads,
               const std::function<void(int64_t worker, int64_t task)>& work);

/// A cheap pass over n things in equal parts: as many as are worth a thread each.
class Parts {
  public:
    Parts(int64_t n, int64_t n_threads)
        : n_(n), n_parts_(std::clamp<int64_t>(n / worth_a_thread, 1, n_threads)) {}

    int64_t size() const { return n_parts_; }
    int64_t begin(int64_t part) const { return n_ * part / n_parts_; }

    /// Calls work(part, begin, end) for every part, each on a thread of its own.
    template <class Work>
    void run(const Work& work) const {
        run_tasks(n_parts_, n_parts_,
                  [&](int64_t, int64_t part) { work(part, begin(part), begin(part + 1)); });
    }

  private:
    static constexpr int64_t worth_a_thread = int64_t{1} << 16;

    int64_t n_, n_parts_;
};

}  // namespace polysparse
