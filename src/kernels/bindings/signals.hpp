// Kernels run without the GIL, and stop when a signal handler raises.
#pragma once

#include <nanobind/nanobind.h>

#include <chrono>

#include "bindings/gil.hpp"
#include "platform/crew.hpp"
#include "platform/threads.hpp"

namespace polysparse {

namespace nb = nanobind;

/// Asks Python, a few times a second, whether a signal handler raised. Call it without the GIL, on
/// the thread that entered the kernel.
class Signals {
  public:
    bool operator()() {
        const auto now = std::chrono::steady_clock::now();
        if (raised_ || now - asked_ < std::chrono::milliseconds(50)) return raised_;
        asked_ = now;
        const WithGil gil;
        raised_ = PyErr_CheckSignals() != 0;
        return raised_;
    }

  private:
    std::chrono::steady_clock::time_point asked_ = std::chrono::steady_clock::now();
    bool raised_ = false;
};

/// Returns work(should_stop), made without the GIL and by the crew that is on duty, or by the one
/// that is given. If that is `stopped`, raises what the signal handler raised.
template <class Result, class Work>
Result run_without_gil(Result stopped, Crew& crew, const Work& work) {
    const Result result = [&] {
        const StopRequest should_stop = Signals();
        const OnDuty duty(Crew::on_duty() != nullptr ? *Crew::on_duty() : crew);
        const WithoutGil released;
        return work(should_stop);
    }();
    if (result == stopped) throw nb::python_error();
    return result;
}

/// The same with a crew for this call.
template <class Result, class Work>
Result run_without_gil(Result stopped, const Work& work) {
    Crew crew;
    return run_without_gil(stopped, crew, work);
}

}  // namespace polysparse
