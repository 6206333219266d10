#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "checks.hpp"
#include "platform/slabs.hpp"
#include "platform/thread_pool.hpp"
#include "platform/threads.hpp"

namespace polysparse::tests {
namespace {

/// Every task runs once: without a pool, with one, with one that was shut down, and with one that
/// is running for this thread or for another.
void test_thread_pool() {
    subject = "thread pool";
    const auto run_all = [](int64_t n_tasks, const auto& also) {
        std::vector<std::atomic<int64_t>> done(n_tasks);
        run_tasks(n_tasks, 4, [&](int64_t worker, int64_t task) {
            ++done[task];
            also(worker, task);
        });
        return std::ranges::all_of(done, [](const auto& times) { return times == 1; });
    };
    const auto nothing = [](int64_t, int64_t) {};
    ThreadPool pool;
    {
        const UsePool use(pool);
        for (int64_t round = 0; round < 300; ++round) {
            if (round % 100 == 50) pool.shutdown();
            if (round == 70)  // longer than threads wait
                std::this_thread::sleep_for(std::chrono::milliseconds(1100));
            check(run_all(round % 7, nothing), "one piece of work after the other");
        }
        std::atomic<bool> holds{true};
        check(run_all(5,
                      [&](int64_t, int64_t) {
                          if (!run_all(3, nothing)) holds = false;
                      }) &&
                  holds,
              "work within work");
        std::thread other([&] {
            const UsePool same(pool);
            for (int64_t round = 0; round < 100; ++round)
                if (!run_all(9, nothing)) holds = false;
        });
        for (int64_t round = 0; round < 100; ++round)
            if (!run_all(9, nothing)) holds = false;
        other.join();
        check(holds && ThreadPool::current() == &pool, "two threads at once");
        {
            ThreadPool inner;
            const UsePool for_a_while(inner);
            check(ThreadPool::current() == &inner && run_all(20, nothing),
                  "a pool in place of another");
        }
        check(ThreadPool::current() == &pool, "the first pool is current again");
    }
    check(ThreadPool::current() == nullptr && run_all(50, nothing), "no pool");
}

/// Arrays of all sizes keep what is written to them, after their arena is gone and others are
/// freed.
void test_slabs() {
    subject = "slabs";
    using Array = std::vector<int64_t, SlabAllocator<int64_t>>;
    std::vector<Array> arrays;
    {
        std::vector<SlabArena> arenas(2);
        for (int64_t i = 0; i < 400; ++i) {
            const int64_t size = i % 7 == 0 ? i : i % 50 == 1 ? 400'000 : 5'000 + 100 * i;
            arrays.emplace_back(size, i, SlabAllocator<int64_t>(arenas[i % 2]));
        }
        arenas.emplace_back(std::move(arenas[0]));
    }
    const Array copy = arrays[2], moved = std::move(arrays[3]);
    run_tasks(200, 3, [&](int64_t, int64_t i) { arrays[2 * i] = {}; });
    for (int64_t i = 1; i < std::ssize(arrays); i += 2)
        check(std::ranges::count(arrays[i], i) == std::ssize(arrays[i]), "what was written");
    check(std::ranges::count(copy, 2) == 5'200 && std::ssize(moved) == 5'300, "copied and moved");
}

}  // namespace

void test_platform() {
    test_thread_pool();
    test_slabs();
}

}  // namespace polysparse::tests
