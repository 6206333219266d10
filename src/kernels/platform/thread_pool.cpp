#include "platform/thread_pool.hpp"

#include <chrono>
#include <condition_variable>
#include <exception>
#include <list>
#include <mutex>
#include <thread>
#include <utility>

#include "platform/spin.hpp"

#if defined(__unix__) || defined(__APPLE__)
#include <unistd.h>
#endif

namespace polysparse {
namespace {

thread_local ThreadPool* current_pool = nullptr;

int64_t this_process() {
#if defined(__unix__) || defined(__APPLE__)
    return getpid();
#else
    return 0;  // cannot fork
#endif
}

/// How long an idle thread sleeps before it exits: there may be many pools, and few are in use.
constexpr auto longest_sleep = std::chrono::seconds(1);

}  // namespace

/// The mutex guards changes of the numbers. Waiting threads read them without it first.
struct ThreadPool::Threads {
    struct Worker {
        std::thread thread;
        std::atomic<bool> has_exited{false};
    };

    const int64_t process = this_process();
    std::mutex mutex;
    std::condition_variable called, finished;
    const std::function<void(int64_t)>* work = nullptr;
    std::atomic<int64_t> next_worker{0},
        n_workers{0};                  // next_worker < n_workers: a worker is called
    std::atomic<int64_t> n_active{0};  // workers that have not finished
    std::atomic<bool> is_shut_down{false};
    std::list<Worker> workers;

    ~Threads() {
        {
            const std::lock_guard lock(mutex);
            is_shut_down = true;
        }
        called.notify_all();
        for (Worker& worker : workers) worker.thread.join();
    }

    void serve(Worker& worker) {
        const auto is_called = [&] { return is_shut_down || next_worker < n_workers; };
        std::unique_lock lock(mutex, std::defer_lock);
        while (true) {
            spin_until(is_called);
            lock.lock();
            if (!called.wait_for(lock, longest_sleep, is_called) || is_shut_down) break;
            const int64_t number = next_worker++;
            ++n_active;
            const auto& do_work = *work;
            lock.unlock();
            do_work(number);
            lock.lock();
            if (--n_active == 0) finished.notify_one();
            lock.unlock();
        }
        worker.has_exited = true;
    }

    /// Starts threads until there are n, or as many as the system allows.
    void start(int64_t n) {
        workers.remove_if([](Worker& worker) {
            const bool has_exited = worker.has_exited;
            if (has_exited) worker.thread.join();
            return has_exited;
        });
        try {
            while (static_cast<int64_t>(workers.size()) < n) {
                Worker& worker = workers.emplace_back();
                worker.thread = std::thread([this, &worker] { serve(worker); });
            }
        } catch (const std::exception&) {  // no more threads, or no memory for them
            if (!workers.empty() && !workers.back().thread.joinable()) workers.pop_back();
        }
    }

    void run(int64_t wanted, const std::function<void(int64_t)>& do_work) {
        {
            const std::lock_guard lock(mutex);
            work = &do_work;
            next_worker = 1;
            n_workers = wanted;
        }
        called.notify_all();
        start(wanted - 1);
        do_work(0);
        const auto all_finished = [&] { return n_active == 0; };
        {
            const std::lock_guard lock(mutex);
            n_workers = 0;
        }
        spin_until(all_finished);
        std::unique_lock lock(mutex);
        finished.wait(lock, all_finished);
    }
};

ThreadPool::ThreadPool() = default;

ThreadPool::~ThreadPool() {
    abandon_threads_of_parent();  // even if they are running there
    shutdown();
}

void ThreadPool::abandon_threads_of_parent() {
    // Their memory leaks: they cannot be joined, and may have held the mutex.
    if (threads_ != nullptr && threads_->process != this_process()) (void)threads_.release();
}

bool ThreadPool::run(int64_t n_workers, const std::function<void(int64_t)>& work) {
    if (is_running_.exchange(true)) return false;
    abandon_threads_of_parent();
    try {
        if (threads_ == nullptr) threads_ = std::make_unique<Threads>();
    } catch (...) {
        is_running_ = false;
        throw;
    }
    threads_->run(n_workers, work);
    is_running_ = false;
    return true;
}

void ThreadPool::shutdown() {
    if (is_running_.exchange(true)) return;
    abandon_threads_of_parent();
    threads_.reset();
    is_running_ = false;
}

ThreadPool* ThreadPool::current() {
    return current_pool;
}

UsePool::UsePool(ThreadPool& pool) : before_(std::exchange(current_pool, &pool)) {}

UsePool::~UsePool() {
    current_pool = before_;
}

}  // namespace polysparse
