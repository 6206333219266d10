#include "platform/crew.hpp"

#include <chrono>
#include <condition_variable>
#include <exception>
#include <list>
#include <mutex>
#include <thread>
#include <utility>

#if defined(__unix__) || defined(__APPLE__)
#include <unistd.h>
#endif

namespace polysparse {
namespace {

thread_local Crew* crew_on_duty = nullptr;

int64_t this_process() {
#if defined(__unix__) || defined(__APPLE__)
    return getpid();
#else
    return 0;  // cannot fork
#endif
}

using Clock = std::chrono::steady_clock;

/// Waits a moment for a condition, since to sleep and be woken takes longer.
template <class Condition>
void look_out_for(const Condition& condition) {
    const auto end = Clock::now() + std::chrono::microseconds(50);
    while (!condition() && Clock::now() < end) std::this_thread::yield();
}

/// How long to sleep. Whoever is not called goes home: many may have a crew, and few need it.
constexpr auto longest_sleep = std::chrono::seconds(1);

}  // namespace

/// Whoever has the mutex may change the numbers. Those who wait look at them without it first.
struct Crew::Threads {
    struct Member {
        std::thread thread;
        std::atomic<bool> has_left{false};
    };

    const int64_t process = this_process();
    std::mutex mutex;
    std::condition_variable called, left;
    const std::function<void(int64_t)>* work = nullptr;
    std::atomic<int64_t> next_worker{0}, n_workers{0};  // next_worker < n_workers: come
    std::atomic<int64_t> n_inside{0};                   // threads that came and have not left
    std::atomic<bool> is_over{false};
    std::list<Member> members;

    ~Threads() {
        {
            const std::lock_guard lock(mutex);
            is_over = true;
        }
        called.notify_all();
        for (Member& member : members) member.thread.join();
    }

    void attend(Member& member) {
        const auto is_called = [&] { return is_over || next_worker < n_workers; };
        std::unique_lock lock(mutex, std::defer_lock);
        while (true) {
            look_out_for(is_called);
            lock.lock();
            if (!called.wait_for(lock, longest_sleep, is_called) || is_over) break;
            const int64_t worker = next_worker++;
            ++n_inside;
            const auto& do_work = *work;
            lock.unlock();
            do_work(worker);
            lock.lock();
            if (--n_inside == 0) left.notify_one();
            lock.unlock();
        }
        member.has_left = true;
    }

    /// Starts threads until there are so many, or as many as the system lets us have.
    void start(int64_t n) {
        members.remove_if([](Member& member) {
            const bool has_left = member.has_left;
            if (has_left) member.thread.join();
            return has_left;
        });
        try {
            while (static_cast<int64_t>(members.size()) < n) {
                Member& member = members.emplace_back();
                member.thread = std::thread([this, &member] { attend(member); });
            }
        } catch (const std::exception&) {  // no more threads, or no memory for them
            if (!members.empty() && !members.back().thread.joinable()) members.pop_back();
        }
    }

    void work_together(int64_t wanted, const std::function<void(int64_t)>& do_work) {
        {
            const std::lock_guard lock(mutex);
            work = &do_work;
            next_worker = 1;
            n_workers = wanted;
        }
        called.notify_all();
        start(wanted - 1);
        do_work(0);
        const auto all_left = [&] { return n_inside == 0; };
        {
            const std::lock_guard lock(mutex);
            n_workers = 0;
        }
        look_out_for(all_left);
        std::unique_lock lock(mutex);
        left.wait(lock, all_left);
    }
};

Crew::Crew() = default;

Crew::~Crew() {
    forget_those_of_a_parent();  // even if they are at work there
    end();
}

void Crew::forget_those_of_a_parent() {
    // Their memory is given up: they cannot be joined, and may have held the mutex.
    if (threads_ != nullptr && threads_->process != this_process()) (void)threads_.release();
}

bool Crew::work(int64_t n_workers, const std::function<void(int64_t)>& work) {
    if (at_work_.exchange(true)) return false;
    forget_those_of_a_parent();
    try {
        if (threads_ == nullptr) threads_ = std::make_unique<Threads>();
    } catch (...) {
        at_work_ = false;
        throw;
    }
    threads_->work_together(n_workers, work);
    at_work_ = false;
    return true;
}

void Crew::end() {
    if (at_work_.exchange(true)) return;
    forget_those_of_a_parent();
    threads_.reset();
    at_work_ = false;
}

Crew* Crew::on_duty() {
    return crew_on_duty;
}

OnDuty::OnDuty(Crew& crew) : before_(std::exchange(crew_on_duty, &crew)) {}

OnDuty::~OnDuty() {
    crew_on_duty = before_;
}

}  // namespace polysparse
