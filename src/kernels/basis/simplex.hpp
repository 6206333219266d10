// K-simplex numbers, exact on 64-bit unsigned integers.
//
// T_k(n) = C(n + k - 1, k): T_1 counts a line, T_2 a triangle, T_3 a tetrahedron. No floating point
// and no 128-bit type is needed.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <tuple>
#include <utility>

#include "platform/processors.hpp"

namespace polysparse {

/// The inverse of an odd number modulo 2^64. Each of Newton's steps doubles the number of correct
/// bits, starting from three: an odd number is its own inverse modulo 8.
constexpr uint64_t inverse_of_odd(uint64_t odd) {
    uint64_t inverse = odd;
    for (int step = 0; step < 5; ++step) inverse *= 2 - odd * inverse;
    return inverse;
}

/// [i]: the inverse of 2 i + 1.
inline constexpr auto small_inverses = [] {
    std::array<uint64_t, 32> table{};
    for (uint64_t i = 0; i < table.size(); ++i) table[i] = inverse_of_odd(2 * i + 1);
    return table;
}();

/// value * factor / divisor. Exact if the divisor divides the product and the quotient is below
/// 2^64, even if the product is not: powers of two are shifted out of the factors first, and
/// dividing by the odd rest is multiplying by its inverse.
constexpr uint64_t multiply_divide(uint64_t value, uint64_t factor, uint64_t divisor) {
    const int twos = std::countr_zero(divisor);
    const int from_value = std::min(std::countr_zero(value), twos);
    const uint64_t odd = divisor >> twos;
    const uint64_t inverse = odd < 64 ? small_inverses[odd / 2] : inverse_of_odd(odd);
    return (value >> from_value) * (factor >> (twos - from_value)) * inverse;
}

/// T_2(n). Needs: n >= -1.
constexpr uint64_t triangle(int64_t n) {
    return static_cast<uint64_t>(n | 1) * ((static_cast<uint64_t>(n) + 1) / 2);
}

/// simplex, below, for any k.
constexpr uint64_t simplex_of_any(int64_t k, int64_t n) {
    if (n <= 0) return 0;
    if (k == 1) return static_cast<uint64_t>(n);
    if (n - 1 < k) std::tie(k, n) = std::pair{n - 1, k + 1};  // C(n+k-1, k) = C(n+k-1, n-1)
    uint64_t value = 1;
    for (int64_t i = 1; i <= k; ++i) value = multiply_divide(value, n + i - 1, i);
    return value;
}

/// T_k(n), and 0 for n <= 0. Needs: k >= 1. Exact if it is below 2^64, otherwise meaningless. What
/// short rows need is inlined: a call would take them as long as a run.
POLYSPARSE_INLINE constexpr uint64_t simplex(int64_t k, int64_t n) {
    if (k == 2 && n >= -1) return triangle(n);
    return simplex_of_any(k, n);
}

/// The largest number in [low, high] for which `holds`. Needs: it holds for low, and whenever it
/// holds for a number, for all smaller ones.
template <class Condition>
constexpr int64_t largest_where(int64_t low, int64_t high, const Condition& holds) {
    while (low < high) {
        const int64_t middle = high - (high - low) / 2;
        if (holds(middle))
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

}  // namespace polysparse
