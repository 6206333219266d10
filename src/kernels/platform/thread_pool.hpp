// Threads that wait for more work.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

namespace polysparse {

/// Starts threads when they are needed and keeps them for some time between one call of `run` and
/// the next. After a fork the child has none of them, and starts its own.
class ThreadPool {
  public:
    ThreadPool();
    ~ThreadPool();
    ThreadPool(const ThreadPool&) = delete;
    ThreadPool& operator=(const ThreadPool&) = delete;

    /// Calls work(0) on this thread and work(1), ..., work(n_workers - 1) on others. A thread that
    /// is not ready before work(0) is done is left out and not waited for. `work` must not throw.
    /// Returns false, and calls nothing, if the pool is running already.
    bool run(int64_t n_workers, const std::function<void(int64_t worker)>& work);

    /// Ends the threads, unless the pool is running.
    void shutdown();

    /// The pool that the calling thread uses, or null.
    static ThreadPool* current();

  private:
    struct Threads;

    void abandon_threads_of_parent();

    std::unique_ptr<Threads> threads_;
    std::atomic<bool> is_running_{false};
};

/// Lets the calling thread use a pool, as long as this lives.
class UsePool {
  public:
    explicit UsePool(ThreadPool& pool);
    ~UsePool();
    UsePool(const UsePool&) = delete;
    UsePool& operator=(const UsePool&) = delete;

  private:
    ThreadPool* before_;
};

}  // namespace polysparse
