// Many tasks, several threads, one way to stop.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <thread>
#include <vector>

namespace polysparse {

/// Who begins where. `apart`: each worker begins with tasks of its own, in order, and then helps
/// the others with theirs; so two of them seldom meet in one page of memory, where the first touch
/// of a huge page would have both clear it. `in_order`: no task begins before all those ahead of it
/// have.
enum class Order { apart, in_order };

/// Calls work(worker, task) once for every task below n_tasks, with 0 <= worker < n_threads. The
/// calling thread is worker 0. Between its own tasks it asks should_stop(); once that is true no
/// further task begins, and the answer is false. `work` must not throw. Threads that the system
/// refuses are done without.
template <Order order = Order::apart, class Work, class Stop>
bool run_tasks(int64_t n_tasks, int64_t n_threads, const Work& work, Stop& should_stop) {
    const int64_t n_workers = std::clamp<int64_t>(n_tasks, 1, n_threads);
    const int64_t n_shares = order == Order::apart ? n_workers : 1;
    std::vector<std::atomic<int64_t>> next(n_shares);
    const auto first_of = [&](int64_t share) { return n_tasks * share / n_shares; };
    for (int64_t share = 0; share < n_shares; ++share) next[share] = first_of(share);
    std::atomic<bool> stopped{false};
    const auto work_through = [&](int64_t worker) {
        for (int64_t turn = 0; turn < n_shares; ++turn) {
            const int64_t share = (worker + turn) % n_shares;
            while (!stopped.load(std::memory_order_relaxed)) {
                const int64_t task = next[share].fetch_add(1, std::memory_order_relaxed);
                if (task >= first_of(share + 1)) break;
                work(worker, task);
                if (worker == 0 && should_stop()) stopped.store(true, std::memory_order_relaxed);
            }
        }
    };
    std::vector<std::thread> helpers;
    try {
        helpers.reserve(n_workers - 1);
        for (int64_t worker = 1; worker < n_workers; ++worker)
            helpers.emplace_back(work_through, worker);
    } catch (const std::exception&) {  // no more threads, or no memory for them
    }
    work_through(0);
    for (std::thread& helper : helpers) helper.join();
    return !stopped;
}

}  // namespace polysparse
