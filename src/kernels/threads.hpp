// Many tasks, several threads, one way to stop.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <thread>
#include <vector>

namespace polysparse {

/// Calls work(worker, task) once for every task below n_tasks, with 0 <= worker < n_threads; tasks
/// are handed out in order. The calling thread is worker 0. Between its own tasks it asks
/// should_stop(); once that is true no further task begins, and the answer is false.
/// `work` must not throw. Threads that the system refuses are done without.
template <class Work, class Stop>
bool run_tasks(int64_t n_tasks, int64_t n_threads, const Work& work, Stop& should_stop) {
    std::atomic<int64_t> next{0};
    std::atomic<bool> stopped{false};
    const auto help = [&](int64_t worker) {
        while (!stopped.load(std::memory_order_relaxed)) {
            const int64_t task = next.fetch_add(1, std::memory_order_relaxed);
            if (task >= n_tasks) break;
            work(worker, task);
            if (worker == 0 && should_stop()) stopped.store(true, std::memory_order_relaxed);
        }
    };
    const int64_t n_helpers = std::max<int64_t>(std::min(n_threads, n_tasks) - 1, 0);
    std::vector<std::thread> helpers;
    try {
        helpers.reserve(n_helpers);
        for (int64_t worker = 1; worker <= n_helpers; ++worker) helpers.emplace_back(help, worker);
    } catch (const std::exception&) {  // no more threads, or no memory for them
    }
    help(0);
    for (std::thread& helper : helpers) helper.join();
    return !stopped;
}

}  // namespace polysparse
