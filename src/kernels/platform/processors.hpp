// What the kernels need of the compiler: inlining, vector lanes, and one copy of a function for
// each generation of processors. Compiler extensions are used here and nowhere else.
#pragma once

#include <cfloat>
#include <cstdint>
#include <cstring>

#if defined(__GNUC__) || defined(__clang__)
#define POLYSPARSE_INLINE inline __attribute__((always_inline))
#define POLYSPARSE_INLINE_LAMBDA __attribute__((always_inline))
#define POLYSPARSE_APART __attribute__((noinline))
#define POLYSPARSE_ASSUME(condition) \
    if (!(condition)) __builtin_unreachable()
#else
#define POLYSPARSE_INLINE __forceinline
#define POLYSPARSE_INLINE_LAMBDA
#define POLYSPARSE_APART __declspec(noinline)
#define POLYSPARSE_ASSUME(condition) __assume(condition)
#endif

// Compiles a function once per processor generation; the loader picks the best copy. Whatever the
// function calls must be inlined into it to benefit, lambdas included. CMakeLists.txt finds out
// whether the compiler can. The loader's part (ifunc) does not work under sanitizers.
#if defined(POLYSPARSE_HAS_CLONES) && !defined(POLYSPARSE_SANITIZED)
#define POLYSPARSE_PER_PROCESSOR \
    __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#elif defined(POLYSPARSE_HAS_TARGETS) && !defined(POLYSPARSE_SANITIZED)
#define POLYSPARSE_PER_PROCESSOR inline __attribute__((always_inline))
#define POLYSPARSE_DISPATCHES
#else
#define POLYSPARSE_PER_PROCESSOR
#endif

// Compiles a function for processors that have AVX-512; has_avx512() says whether this one has.
// CMakeLists.txt defines POLYSPARSE_ONE_TARGET if the compiler's runtime cannot tell, as zig's.
#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__)) && \
    !defined(POLYSPARSE_ONE_TARGET)
#define POLYSPARSE_AVX512 \
    __attribute__((target("avx2,bmi,bmi2,avx512f,avx512bw,avx512cd,avx512dq,avx512vl")))
#endif

namespace polysparse {

// Results have the same bits everywhere because every product and every sum is rounded to its type.
static_assert(FLT_EVAL_METHOD == 0, "for 32-bit x86, compile with -msse2 -mfpmath=sse");

#if defined(POLYSPARSE_AVX512)
inline bool has_avx512() {
    static const bool has = [] {
        __builtin_cpu_init();
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
               __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("avx512f") &&
               __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    }();
    return has;
}
#endif

#if defined(POLYSPARSE_DISPATCHES)
template <class Work>
POLYSPARSE_AVX512 POLYSPARSE_APART auto with_avx512(const Work& work) {
    return work();
}
#endif

/// Returns work(). Compilers that cannot clone templates, as Clang, compile it twice here, and it
/// is chosen at run time. It is worth it where 64-bit integers are multiplied, for which AVX-512
/// has an instruction. What `work` calls must be inlined.
template <class Work>
POLYSPARSE_INLINE auto on_this_processor(const Work& work) {
#if defined(POLYSPARSE_DISPATCHES)
    if (has_avx512()) return with_avx512(work);
#endif
    return work();
}

/// Slots that are read and written as one group. A loop that may write past its end works in whole
/// groups.
constexpr int64_t lanes = 8;

/// Calls step(u) for every lane. GCC must not unroll the loop before vectorising it: it would
/// multiply 64-bit integers lane by lane.
template <class Step>
POLYSPARSE_INLINE void for_lanes(Step step) {
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC unroll 1
#endif
    for (int64_t u = 0; u < lanes; ++u) step(u);
}

/// Returns n. The compiler does not put what is computed from it into lanes with its neighbours:
/// most processors multiply 64-bit integers much faster one by one.
POLYSPARSE_INLINE int64_t out_of_lanes(int64_t n) {
#if defined(__GNUC__) || defined(__clang__)
    asm("" : "+r"(n));
#endif
    return n;
}

/// Neighbouring numbers in one register: 16 bytes, which every processor has. Compilers find loops
/// over two or four numbers too short to use such a register by themselves.
template <class Value>
struct Pack {
    static constexpr int64_t size = 16 / sizeof(Value);
#if defined(__GNUC__) || defined(__clang__)
    using Numbers [[gnu::vector_size(16)]] = Value;
    Numbers numbers;

    POLYSPARSE_INLINE static Pack of(Value value) { return {value - Numbers{}}; }
    /// Needs: a size of two.
    POLYSPARSE_INLINE static Pack of(Value one, Value other) { return {Numbers{one, other}}; }
    POLYSPARSE_INLINE Pack operator+(Pack other) const { return {numbers + other.numbers}; }
    POLYSPARSE_INLINE Pack operator*(Pack other) const { return {numbers * other.numbers}; }
#else
    Value numbers[size];

    static Pack of(Value value) {
        Pack pack;
        for (Value& number : pack.numbers) number = value;
        return pack;
    }
    static Pack of(Value one, Value other) { return {{one, other}}; }
    Pack operator+(Pack other) const {
        for (int64_t i = 0; i < size; ++i) other.numbers[i] += numbers[i];
        return other;
    }
    Pack operator*(Pack other) const {
        for (int64_t i = 0; i < size; ++i) other.numbers[i] *= numbers[i];
        return other;
    }
#endif
    POLYSPARSE_INLINE static Pack load(const Value* from) {
        Pack pack;
        std::memcpy(&pack, from, sizeof pack);
        return pack;
    }
    POLYSPARSE_INLINE void store(Value* to) const { std::memcpy(to, this, sizeof *this); }
};

/// Starts loading a cache line that will be read soon.
POLYSPARSE_INLINE void prefetch([[maybe_unused]] const void* address) {
#if defined(__GNUC__) || defined(__clang__)
    __builtin_prefetch(address);
#endif
}

}  // namespace polysparse
