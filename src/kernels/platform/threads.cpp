#include "platform/threads.hpp"

#include <algorithm>
#include <atomic>
#include <vector>

#include "platform/thread_pool.hpp"

namespace polysparse {

bool run_tasks(int64_t n_tasks, int64_t n_threads,
               const std::function<void(int64_t, int64_t)>& work, const StopRequest& should_stop,
               Order order) {
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
    ThreadPool* const pool = ThreadPool::current();
    if (n_workers == 1)
        work_through(0);
    else if (pool == nullptr || !pool->run(n_workers, work_through))
        ThreadPool().run(n_workers, work_through);
    return !stopped;
}

void run_tasks(int64_t n_tasks, int64_t n_threads,
               const std::function<void(int64_t, int64_t)>& work) {
    run_tasks(n_tasks, n_threads, work, [] { return false; });
}

}  // namespace polysparse
