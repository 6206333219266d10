// What the kernels use of CUDA, for the processor. A block is as many fibers as it has threads. One
// runs until it waits for others or ends, then the next one does; blocks run one after the other.
// What would not end, or is not defined, on a device stops the process here.
#pragma once
#include <ucontext.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <type_traits>
#include <utility>
#include <vector>

#define __CUDACC__ 1
#define __device__
#define __global__ static
#define __shared__ static
#define __forceinline__ inline
#define __noinline__
#define __restrict__
#define __launch_bounds__(...)

using std::fma;
using std::isfinite;
using std::isnan;

struct Dimension {
    unsigned x = 0;
};
static Dimension threadIdx, blockIdx, blockDim, gridDim;

namespace emulator {

constexpr int warp_size = 32;
constexpr unsigned whole_warp = 0xffffffffu;

static char* dynamic_memory = nullptr;  // of the block, as large as the launch says
static const char* kernel_name = "";

[[noreturn]] static void stop(const char* why) {
    std::fprintf(stderr, "%s, block %u, thread %u: %s\n", kernel_name, blockIdx.x, threadIdx.x,
                 why);
    std::abort();
}

template <class To, class From>
static To bits_of(const From& from) {
    static_assert(sizeof(To) == sizeof(From));
    To to;
    std::memcpy(&to, &from, sizeof(To));
    return to;
}

// ------------------------------------------------------------------------------------------ fibers

enum class State { ready, at_barrier, in_warp, ended };

/// What lanes of a warp do together.
enum class Meeting { sync, shuffle, shuffle_down, shuffle_up, shuffle_xor, ballot };

struct Fiber {
    ucontext_t context;
    std::vector<char> stack = std::vector<char>(96 * 1024);
    State state;
    unsigned mask;  // of the lanes it meets
    Meeting meeting;
    uint64_t given;             // to the others
    uint64_t taken[warp_size];  // from the lanes of the mask
};

static std::vector<Fiber> fibers;
static ucontext_t scheduler;
static std::function<void()> body;

static Fiber& current() {
    return fibers[threadIdx.x];
}

static int lane() {
    return static_cast<int>(threadIdx.x) % warp_size;
}

static void wait_as(State state) {
    current().state = state;
    swapcontext(&current().context, &scheduler);
}

static void run_fiber() {
    body();
    wait_as(State::ended);
}

/// Gives a number to the lanes of a mask, and waits for theirs.
template <class T>
static void meet(unsigned mask, Meeting meeting, T given) {
    static_assert(sizeof(T) <= sizeof(uint64_t));
    if ((mask >> lane() & 1) == 0) stop("a lane is not in its own mask");
    Fiber& fiber = current();
    fiber.mask = mask;
    fiber.meeting = meeting;
    std::memcpy(&fiber.given, &given, sizeof(T));
    wait_as(State::in_warp);
}

template <class T>
static T taken_from(int other) {
    if ((current().mask >> other & 1) == 0) stop("a lane reads from one that is not in the mask");
    T taken;
    std::memcpy(&taken, &current().taken[other], sizeof(T));
    return taken;
}

// --------------------------------------------------------------------------------------- scheduler

/// The order in which fibers have their turns.
enum class Order { forwards, backwards, random };

static std::vector<int> first_turns(int n, Order order) {
    std::vector<int> turns;
    for (int t = 0; t < n; ++t) turns.push_back(order == Order::backwards ? n - 1 - t : t);
    return turns;
}

static void shuffle_turns(std::vector<int>& turns) {
    static uint32_t state = 12345;
    for (size_t t = turns.size() - 1; t > 0; --t) {
        state = state * 1664525u + 1013904223u;
        std::swap(turns[t], turns[(state >> 8) % (t + 1)]);
    }
}

/// Whether all lanes that one waits for wait for the same.
static bool have_met(const Fiber* warp, const Fiber& one) {
    for (int l = 0; l < warp_size; ++l) {
        if ((one.mask >> l & 1) == 0) continue;
        if (warp[l].state == State::ended) stop("a warp waits for a lane that has ended");
        if (warp[l].state != State::in_warp || warp[l].mask != one.mask) return false;
        if (warp[l].meeting != one.meeting) stop("lanes of a mask meet in different functions");
    }
    return true;
}

/// Lets lanes go on that have met. Returns whether there are any.
static bool let_warp_go(Fiber* warp) {
    bool is_any = false;
    for (int l = 0; l < warp_size; ++l) {
        if (warp[l].state != State::in_warp || !have_met(warp, warp[l])) continue;
        for (int to = 0; to < warp_size; ++to) {
            if ((warp[l].mask >> to & 1) == 0) continue;
            for (int from = 0; from < warp_size; ++from) warp[to].taken[from] = warp[from].given;
            warp[to].state = State::ready;
        }
        is_any = true;
    }
    return is_any;
}

static size_t count(State state) {
    size_t n = 0;
    for (const Fiber& fiber : fibers) n += fiber.state == state;
    return n;
}

static void run_block(int n, Order order) {
    if (n % warp_size != 0) stop("a block has no whole number of warps");
    fibers.resize(n);
    for (Fiber& fiber : fibers) {
        getcontext(&fiber.context);
        fiber.context.uc_stack.ss_sp = fiber.stack.data();
        fiber.context.uc_stack.ss_size = fiber.stack.size();
        fiber.context.uc_link = nullptr;
        makecontext(&fiber.context, run_fiber, 0);
        fiber.state = State::ready;
    }
    std::vector<int> turns = first_turns(n, order);
    while (count(State::ended) < fibers.size()) {
        if (order == Order::random) shuffle_turns(turns);
        for (const int t : turns) {
            if (fibers[t].state != State::ready) continue;
            threadIdx.x = t;
            swapcontext(&scheduler, &fibers[t].context);
        }
        bool is_any = false;
        for (int first = 0; first < n; first += warp_size) is_any |= let_warp_go(&fibers[first]);
        if (is_any || count(State::ended) == fibers.size()) continue;
        if (count(State::in_warp) > 0) stop("lanes wait for others that are elsewhere");
        if (count(State::ended) > 0) stop("threads wait at a barrier for others that have ended");
        for (Fiber& fiber : fibers) fiber.state = State::ready;
    }
}

template <class... Arguments, size_t... i>
static void call(void (*kernel)(Arguments...), void** arguments, std::index_sequence<i...>) {
    kernel(*static_cast<std::remove_cv_t<Arguments>*>(arguments[i])...);
}

/// Starts a kernel, as cuLaunchKernel does, and waits for its end.
template <class... Arguments>
static void launch(const char* name, void (*kernel)(Arguments...), void** arguments,
                   int n_arguments, unsigned n_blocks, unsigned n_threads, size_t shared_bytes,
                   int order) {
    kernel_name = name;
    gridDim.x = n_blocks;
    blockDim.x = n_threads;
    if (n_arguments != int(sizeof...(Arguments))) stop("the number of arguments is wrong");
    body = [=] { call(kernel, arguments, std::index_sequence_for<Arguments...>{}); };
    for (blockIdx.x = 0; blockIdx.x < n_blocks; ++blockIdx.x) {
        void* memory = nullptr;
        if (posix_memalign(&memory, 16, shared_bytes) != 0) stop("there is no memory");
        std::memset(memory, 0xa5, shared_bytes);
        dynamic_memory = static_cast<char*>(memory);
        run_block(static_cast<int>(n_threads), static_cast<Order>(order));
        std::free(memory);
    }
}

}  // namespace emulator

// ------------------------------------------------------------------------------- threads and warps

static void __syncthreads() {
    emulator::wait_as(emulator::State::at_barrier);
}
static void __syncwarp(unsigned mask = emulator::whole_warp) {
    emulator::meet(mask, emulator::Meeting::sync, 0);
}
template <class T>
static T __shfl_sync(unsigned mask, T mine, int from, int width = emulator::warp_size) {
    emulator::meet(mask, emulator::Meeting::shuffle, mine);
    return emulator::taken_from<T>(emulator::lane() / width * width + from % width);
}
template <class T>
static T __shfl_down_sync(unsigned mask, T mine, int step, int width = emulator::warp_size) {
    emulator::meet(mask, emulator::Meeting::shuffle_down, mine);
    const int lane = emulator::lane();
    return lane % width + step < width ? emulator::taken_from<T>(lane + step) : mine;
}
template <class T>
static T __shfl_up_sync(unsigned mask, T mine, int step, int width = emulator::warp_size) {
    emulator::meet(mask, emulator::Meeting::shuffle_up, mine);
    const int lane = emulator::lane();
    return lane % width >= step ? emulator::taken_from<T>(lane - step) : mine;
}
template <class T>
static T __shfl_xor_sync(unsigned mask, T mine, int bits) {
    emulator::meet(mask, emulator::Meeting::shuffle_xor, mine);
    return emulator::taken_from<T>(emulator::lane() ^ bits);
}
static unsigned __ballot_sync(unsigned mask, bool mine) {
    emulator::meet(mask, emulator::Meeting::ballot, mine);
    unsigned ballot = 0;
    for (int l = 0; l < emulator::warp_size; ++l)
        if ((mask >> l & 1) != 0 && emulator::taken_from<bool>(l)) ballot |= 1u << l;
    return ballot;
}

// ------------------------------------------------------------------------------------------ memory

struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
struct alignas(8) int2 {
    int x, y;
};
struct alignas(16) longlong2 {
    long long x, y;
};
struct alignas(8) float2 {
    float x, y;
};
struct alignas(16) double2 {
    double x, y;
};
static uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) {
    return {x, y, z, w};
}
static int2 make_int2(int x, int y) {
    return {x, y};
}
static longlong2 make_longlong2(long long x, long long y) {
    return {x, y};
}
static float2 make_float2(float x, float y) {
    return {x, y};
}
static double2 make_double2(double x, double y) {
    return {x, y};
}

template <class T>
static T __ldg(const T* from) {
    return *from;
}
template <class T>
static T __ldcg(const T* from) {
    return *from;
}
template <class T>
static void __stcs(T* to, std::type_identity_t<T> value) {
    *to = value;
}
static void __threadfence() {}

template <class T>
static T atomicAdd(T* to, std::type_identity_t<T> value) {
    return std::exchange(*to, *to + value);
}
template <class T>
static T atomicExch(T* to, std::type_identity_t<T> value) {
    return std::exchange(*to, value);
}
template <class T>
static T atomicMax(T* to, std::type_identity_t<T> value) {
    return std::exchange(*to, *to < value ? value : *to);
}
template <class T>
static T atomicOr(T* to, std::type_identity_t<T> value) {
    return std::exchange(*to, *to | value);
}

// ----------------------------------------------------------------------------------------- numbers

template <class T>
static T min(T a, T b) {
    return b < a ? b : a;
}
template <class T>
static T max(T a, T b) {
    return a < b ? b : a;
}
static int __popc(unsigned n) {
    return __builtin_popcount(n);
}
static int __ffs(int n) {
    return __builtin_ffs(n);
}
static int __ffsll(long long n) {
    return __builtin_ffsll(n);
}
static int __double2hiint(double a) {
    return static_cast<int>(emulator::bits_of<int64_t>(a) >> 32);
}
static long long __double2ll_rn(double a) {
    return static_cast<long long>(std::nearbyint(a));
}
static long long __double_as_longlong(double a) {
    return emulator::bits_of<long long>(a);
}
static double __longlong_as_double(long long a) {
    return emulator::bits_of<double>(a);
}
static unsigned __float_as_uint(float a) {
    return emulator::bits_of<unsigned>(a);
}
static float __uint_as_float(unsigned a) {
    return emulator::bits_of<float>(a);
}
