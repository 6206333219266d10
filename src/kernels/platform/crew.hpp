// Threads that wait for more work.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

namespace polysparse {

/// Threads that are started when they are needed, wait some time between one piece of work and the
/// next, and end with the crew. After a fork the child has none of them, and starts its own.
class Crew {
  public:
    Crew();
    ~Crew();
    Crew(const Crew&) = delete;
    Crew& operator=(const Crew&) = delete;

    /// Calls work(0) on this thread and, on others, work(1) to work(n_workers - 1) at most: whoever
    /// comes when work(0) is done comes too late, and is not waited for. `work` must not throw.
    /// False, and nothing is called, if the crew is at work already.
    bool work(int64_t n_workers, const std::function<void(int64_t worker)>& work);

    /// Ends the threads. Those of a crew at work end with it.
    void end();

    /// The crew that is on duty for the calling thread, or null.
    static Crew* on_duty();

  private:
    struct Threads;

    void forget_those_of_a_parent();

    std::unique_ptr<Threads> threads_;
    std::atomic<bool> at_work_{false};
};

/// Puts a crew on duty for the calling thread, as long as this lives.
class OnDuty {
  public:
    explicit OnDuty(Crew& crew);
    ~OnDuty();
    OnDuty(const OnDuty&) = delete;
    OnDuty& operator=(const OnDuty&) = delete;

  private:
    Crew* before_;
};

/// Keeps the threads of the calls of run_tasks that this thread makes, as long as this lives. If a
/// crew is on duty already, that keeps them.
class KeptThreads {
  public:
    KeptThreads() {
        if (Crew::on_duty() == nullptr) on_duty_.emplace(crew_);
    }

  private:
    Crew crew_;
    std::optional<OnDuty> on_duty_;
};

}  // namespace polysparse
