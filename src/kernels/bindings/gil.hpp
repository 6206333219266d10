// The GIL, given up and taken back.
//
// Once the interpreter has begun to end, a daemon thread that requests the GIL never gets it.
// Python before 3.14 ends such a thread by unwinding its stack, which ends the process if a
// destructor or a handler of all exceptions is on the way. Here it waits for the end of the
// process, as Python 3.14 lets it.
#pragma once

#include <nanobind/nanobind.h>

#include <chrono>
#include <exception>
#include <thread>

namespace polysparse {

/// Returns take(), which acquires the GIL; waits for ever if the thread is to be ended.
template <class Take>
auto take_gil(const Take& take) {
    try {
        return take();
    } catch (const std::exception&) {
        throw;
    } catch (...) {  // no code throws anything else: the stack is being unwound
        while (true) std::this_thread::sleep_for(std::chrono::hours(1));
    }
}

/// As long as there is one, this thread does not hold the GIL.
class WithoutGil {
  public:
    WithoutGil() : thread_(PyEval_SaveThread()) {}
    ~WithoutGil() {
        take_gil([&] { PyEval_RestoreThread(thread_); });
    }
    WithoutGil(const WithoutGil&) = delete;
    WithoutGil& operator=(const WithoutGil&) = delete;

  private:
    PyThreadState* thread_;
};

/// As long as there is one, this thread holds the GIL.
class WithGil {
  public:
    WithGil() : state_(take_gil([] { return PyGILState_Ensure(); })) {}
    ~WithGil() { PyGILState_Release(state_); }
    WithGil(const WithGil&) = delete;
    WithGil& operator=(const WithGil&) = delete;

  private:
    PyGILState_STATE state_;
};

}  // namespace polysparse
