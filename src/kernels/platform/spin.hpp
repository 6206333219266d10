// A moment of waiting without sleep.
#pragma once

#include <chrono>
#include <thread>

namespace polysparse {

/// Spins for a moment until a condition holds: sleeping and waking up takes longer.
template <class Condition>
void spin_until(const Condition& condition) {
    using Clock = std::chrono::steady_clock;
    const auto end = Clock::now() + std::chrono::microseconds(50);
    while (!condition() && Clock::now() < end) std::this_thread::yield();
}

}  // namespace polysparse
