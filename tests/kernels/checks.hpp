// What the tests of all packages share: a check, random bits, guarded arrays.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#if defined(__has_feature)  // Clang, and GCC since 14
#if __has_feature(thread_sanitizer)
#define POLYSPARSE_FINDS_RACES true
#endif
#elif defined(__SANITIZE_THREAD__)
#define POLYSPARSE_FINDS_RACES true
#endif
#ifndef POLYSPARSE_FINDS_RACES
#define POLYSPARSE_FINDS_RACES false
#endif

namespace polysparse::tests {

/// Whether this is compiled for ThreadSanitizer.
constexpr bool finds_races = POLYSPARSE_FINDS_RACES;

extern std::mt19937_64 random_bits;
extern std::string subject;  // of the checks, for their message

/// Counts what holds; ends the program otherwise.
void check(bool holds, const char* what);

/// Of new, since the program began.
int64_t n_bytes_requested();

/// A poisoned output array between two guard zones that must stay unwritten. Without guard zones it
/// lies between the sanitizer's own, which notice reads as well.
template <class T>
class Guarded {
  public:
    Guarded(int64_t n, int64_t n_guards) : n_guards_(n_guards), all_(n + 2 * n_guards, poison) {}
    T* data() { return all_.data() + n_guards_; }

    /// Checks that the guard zones are untouched and, if `filled`, the rest bit for bit.
    void check_against(const std::vector<T>& expected, bool filled, const char* what) const {
        std::vector<T> whole = all_;
        std::fill_n(whole.begin(), n_guards_, poison);
        std::fill_n(whole.rbegin(), n_guards_, poison);
        if (filled) std::ranges::copy(expected, whole.begin() + n_guards_);
        const auto same = [](const T& a, const T& b) { return !std::memcmp(&a, &b, sizeof a); };
        check(std::ranges::equal(whole, all_, same), what);
    }
    static constexpr T poison = -77;

  private:
    int64_t n_guards_;
    std::vector<T> all_;
};

/// The size of a task that divides rows: a few outputs, but not thousands of tasks. Each of them
/// computes the lower degrees of its row again.
inline int64_t small_task(int64_t least, int64_t n_outputs) {
    return std::max(least, n_outputs / 500);
}

/// Is true at the n-th call.
struct StopAt {
    int64_t n;
    int64_t n_calls = 0;
    bool operator()() { return ++n_calls == n; }
};

// One for each package, in a file of its name.
void test_platform();
void test_basis();
void test_matrix();
void test_expand();
void test_select();
void test_observe();
void test_search();
void test_apply();
void test_losses();
void test_online();

}  // namespace polysparse::tests
