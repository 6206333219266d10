// Exponentials and logarithms within three units in the last place, in the few operations that
// every processor has lanes for: the same bits on each of them. What is not a number stays so.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "platform/processors.hpp"

namespace polysparse {

/// condition ? yes : no, which compilers might make a jump of.
POLYSPARSE_INLINE double select(bool condition, double yes, double no) {
    const uint64_t mask = -static_cast<uint64_t>(condition);
    return std::bit_cast<double>((std::bit_cast<uint64_t>(yes) & mask) |
                                 (std::bit_cast<uint64_t>(no) & ~mask));
}

namespace exponentials {

constexpr double log_2 = 0x1.62e42fefa39efp-1;
constexpr double log_2_high = 0x1.62e42fee00000p-1;  // times 2^10 and less, exact
constexpr double log_2_low = 0x1.a39ef35793c76p-33;
constexpr double per_log_2 = 0x1.71547652b82fep+0;

// Added to a number of at most 2^51, it leaves the nearest integer in the lowest bits.
constexpr double to_integer = 0x1.8p52;

/// 1 / k! for k = 13, 12, ..., 2.
constexpr auto inverse_factorials = [] {
    std::array<double, 12> found{};
    double factorial = 1;
    for (int k = 2; k <= 13; ++k) {
        factorial *= k;
        found[13 - k] = 1 / factorial;
    }
    return found;
}();

/// 2 / k for k = 23, 21, ..., 3.
constexpr auto twice_inverse_odds = [] {
    std::array<double, 11> found{};
    for (int k = 3; k <= 23; k += 2) found[(23 - k) / 2] = 2.0 / k;
    return found;
}();

template <size_t n>
POLYSPARSE_INLINE double polynomial(const std::array<double, n>& coefficients, double x) {
    double value = coefficients[0];
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC unroll 16
#endif
    for (size_t i = 1; i < n; ++i) value = value * x + coefficients[i];
    return value;
}

/// 2^k, of k + to_integer.
POLYSPARSE_INLINE double power_of_2(double k) {
    return std::bit_cast<double>((std::bit_cast<uint64_t>(k) << 52) + std::bit_cast<uint64_t>(1.0));
}

/// x * 2^k, in two steps, because 2^k may be less than the least normal number.
POLYSPARSE_INLINE double times_power_of_2(double x, double k) {
    const double half = k * 0.5 + to_integer, other = k - (half - to_integer) + to_integer;
    return x * power_of_2(half) * power_of_2(other);
}

/// log((1 + u) / (1 - u)) for |u| <= 0.172.
POLYSPARSE_INLINE double log_of_ratio(double u) {
    const double square = u * u;
    return 2 * u + u * square * polynomial(twice_inverse_odds, square);
}

}  // namespace exponentials

/// exp(-x) for x >= 0.
POLYSPARSE_INLINE double exp_of_minus(double x) {
    using namespace exponentials;
    x = select(x > 746, 746, x);  // 0, from there on
    const double k = (to_integer - x * per_log_2) - to_integer;
    const double rest = (-x - k * log_2_high) - k * log_2_low;
    const double value = 1 + (rest + rest * rest * polynomial(inverse_factorials, rest));
    return times_power_of_2(value, k);
}

/// exp(x), exp(x) - 1 and exp(x) - 1 - x, each with a small relative error. From 709 on the
/// exponential stays where it is, so that it is finite.
struct Exponential {
    double value, minus_1, above_tangent;

    POLYSPARSE_INLINE explicit Exponential(double x) {
        using namespace exponentials;
        const double own = select(x < -746, -746, select(x > 709, 709, x));
        const double k = (to_integer + own * per_log_2) - to_integer;
        const double rest = (own - k * log_2_high) - k * log_2_low;
        const double curved = rest * rest * polynomial(inverse_factorials, rest);
        value = times_power_of_2(1 + (rest + curved), k);
        // If k is 0, the rest is x, and is not lost by subtracting it again.
        minus_1 = select(k == 0, rest + curved, value - 1);
        above_tangent = select(k == 0, curved, value - 1 - x);
    }
};

/// log(1 + x) for 0 <= x <= 1.
POLYSPARSE_INLINE double log_1_plus(double x) {
    using namespace exponentials;
    const double is_half = select(x > 0.4142, 1, 0);  // of half of 1 + x
    return log_of_ratio((x - is_half) / (x + (2 + is_half))) + is_half * log_2;
}

/// log(x) for 1 <= x < 2^51.
POLYSPARSE_INLINE double log_of(double x) {
    using namespace exponentials;
    const auto bits = std::bit_cast<uint64_t>(x);
    // x is 2^k times a number between about the roots of 1/2 and of 2
    const uint64_t k = (bits - std::bit_cast<uint64_t>(0.7071)) >> 52;
    const double rest = std::bit_cast<double>(bits - (k << 52));
    const double power = std::bit_cast<double>(std::bit_cast<uint64_t>(0x1p52) + k) - 0x1p52;
    const double fraction = log_of_ratio((rest - 1) / (rest + 1));
    return power * log_2_high + (fraction + power * log_2_low) + (x - x);
}

/// log(x) for any positive x that is finite.
POLYSPARSE_INLINE double log_of_positive(double x) {
    using namespace exponentials;
    const bool is_tiny = x < 0x1p-1000;  // times 2^60, so that it is a normal number
    const auto bits = std::bit_cast<uint64_t>(select(is_tiny, x * 0x1p60, x));
    // k is counted from -1023, so that it is not negative.
    const uint64_t k = (bits - std::bit_cast<uint64_t>(0.7071) + (uint64_t{1023} << 52)) >> 52;
    const double rest = std::bit_cast<double>(bits - ((k - 1023) << 52));
    const double power = std::bit_cast<double>(std::bit_cast<uint64_t>(0x1p52) + k) -
                         (0x1p52 + 1023) - select(is_tiny, 60, 0);
    const double fraction = log_of_ratio((rest - 1) / (rest + 1));
    return power * log_2_high + (fraction + power * log_2_low) + (x - x);
}

}  // namespace polysparse
