// Many tasks, several threads, one way to stop.
#pragma once

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

}  // namespace polysparse
