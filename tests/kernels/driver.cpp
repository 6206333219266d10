// Every kernel, without Python, on random small matrices, judged by brute force. It is meant for
// the sanitizers, see sanitize.sh, and for make kernel-test. Stops at the first failure.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <new>

#include "checks.hpp"
#include "platform/thread_pool.hpp"

namespace {

std::atomic<int64_t> n_bytes = 0;
long long n_passed = 0;

}  // namespace

// Compilers that see into one of a pair alone take the other for a mismatch.
__attribute__((noinline)) void* operator new(size_t n) {
    n_bytes += static_cast<int64_t>(n);
    if (void* const memory = std::malloc(n)) return memory;
    throw std::bad_alloc();
}
void* operator new[](size_t n) {
    return operator new(n);
}
__attribute__((noinline)) void operator delete(void* memory) noexcept {
    std::free(memory);
}
__attribute__((noinline)) void operator delete(void* memory, size_t) noexcept {
    std::free(memory);
}
__attribute__((noinline)) void operator delete[](void* memory) noexcept {
    std::free(memory);
}
__attribute__((noinline)) void operator delete[](void* memory, size_t) noexcept {
    std::free(memory);
}

namespace polysparse::tests {

std::mt19937_64 random_bits(1);
std::string subject;

void check(bool holds, const char* what) {
    if (!holds) {
        std::fprintf(stderr, "FAILED: %s: %s\n", subject.c_str(), what);
        std::printf("%lld passed, 1 failed\n", n_passed);
        std::exit(1);
    }
    ++n_passed;
}

int64_t n_bytes_requested() {
    return n_bytes;
}

}  // namespace polysparse::tests

int main() {
    using namespace polysparse;
    tests::test_platform();
    ThreadPool pool;  // for all that follows: qemu keeps some memory of every thread that has ended
    const UsePool use(pool);
    tests::test_basis();
    tests::test_matrix();
    tests::test_expand();
    tests::test_select();
    tests::test_observe();
    tests::test_search();
    tests::test_apply();
    tests::test_losses();
    tests::test_online();
    std::printf("%lld passed, 0 failed\n", n_passed);
}
