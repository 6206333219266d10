// Kernels run without the GIL, and stop when a signal handler raises.
#pragma once

#include <nanobind/nanobind.h>

#include <chrono>

#include "bindings/gil.hpp"
#include "platform/thread_pool.hpp"
#include "platform/threads.hpp"

namespace polysparse {

namespace nb = nanobind;

/// Checks with Python, a few times a second, whether a signal handler raised. Call it without the
/// GIL, on the thread that entered the kernel.
class Signals {
  public:
    bool operator()() {
        const auto now = std::chrono::steady_clock::now();
        if (raised_ || now - checked_ < std::chrono::milliseconds(50)) return raised_;
        checked_ = now;
        const WithGil gil;
        raised_ = PyErr_CheckSignals() != 0;
        return raised_;
    }

  private:
    std::chrono::steady_clock::time_point checked_ = std::chrono::steady_clock::now();
    bool raised_ = false;
};

/// Returns work(should_stop), run without the GIL and on the current thread pool, or on the given
/// one if there is none. Raises what a signal handler raised, which is so if the result is
/// `stopped`; a kernel may have ended otherwise after that, for example because memory ran out.
template <class Result, class Work>
Result run_without_gil(Result stopped, ThreadPool& pool, const Work& work,
                       const StopRequest& should_stop = Signals()) {
    const Result result = [&] {
        const UsePool use(ThreadPool::current() != nullptr ? *ThreadPool::current() : pool);
        const WithoutGil released;
        return work(should_stop);
    }();
    if (result == stopped || PyErr_Occurred() != nullptr) throw nb::python_error();
    return result;
}

/// The same with a thread pool for this call.
template <class Result, class Work>
Result run_without_gil(Result stopped, const Work& work) {
    ThreadPool pool;
    return run_without_gil(stopped, pool, work);
}

}  // namespace polysparse
