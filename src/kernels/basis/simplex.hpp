// K-simplex numbers and the bijection they give between tuples of input columns and output columns.
//
// T_k(n) = C(n + k - 1, k): T_1 counts a line, T_2 a triangle, T_3 a tetrahedron. Everything below
// is exact on 64-bit unsigned integers: no floating point, no 128-bit type.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

namespace polysparse {

/// The inverse of an odd number modulo 2^64. Newton's step doubles the number of right bits;
/// the number itself is its own inverse modulo 8.
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

/// value * factor / divisor, exact if the divisor divides the product and the quotient is below
/// 2^64, even where the product is not: the powers of two are shifted out of the factors first,
/// and dividing by the odd rest is multiplying by its inverse.
constexpr uint64_t multiply_divide(uint64_t value, uint64_t factor, uint64_t divisor) {
    const int twos = std::countr_zero(divisor);
    const int from_value = std::min(std::countr_zero(value), twos);
    const uint64_t odd = divisor >> twos;
    const uint64_t inverse = odd < 64 ? small_inverses[odd / 2] : inverse_of_odd(odd);
    return (value >> from_value) * (factor >> (twos - from_value)) * inverse;
}

/// T_k(n), and 0 for n <= 0 (k >= 1). Exact if it is below 2^64; else of no meaning.
constexpr uint64_t simplex(int64_t k, int64_t n) {
    if (n <= 0) return 0;
    if (k == 1) return static_cast<uint64_t>(n);
    if (k == 2) return static_cast<uint64_t>(n | 1) * ((static_cast<uint64_t>(n) + 1) / 2);
    if (n - 1 < k) std::tie(k, n) = std::pair{n - 1, k + 1};  // C(n+k-1, k) = C(n+k-1, n-1)
    uint64_t value = 1;
    for (int64_t i = 1; i <= k; ++i) value = multiply_divide(value, n + i - 1, i);
    return value;
}

/// The largest number in [low, high] for which `holds`, which must hold for low and, where it
/// holds, for everything below.
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

/// The monomials of an expansion and their order, as the kernels see them.
///
/// Interactions are polynomials with a gap: a strictly rising k-tuple below n is a weakly rising
/// one below n - (k - 1). So one set of formulas serves both, with gap(k) taken off.
struct Basis {
    int64_t n_features;
    int64_t lowest;   // lowest degree in the output, at least 1
    int64_t highest;  // highest degree in the output; below `lowest` if there is none
    bool interaction_only;
    bool include_bias;
    /// [d]: one past the last output column of degree d, modulo 2^64. For a degree below `lowest`,
    /// which has no output columns, the number of its monomials.
    std::vector<uint64_t> degree_end;

    int64_t gap(int64_t k) const { return interaction_only ? k - 1 : 0; }

    /// How far a tuple whose first column is j stands from the end of its degree's columns, as far
    /// as j decides it.
    uint64_t depth(int64_t k, int64_t j) const { return simplex(k, n_features - 1 - j - gap(k)); }

    /// The output column of a rising tuple of k >= 1 columns. Needs: lowest <= k <= highest.
    int64_t rank(const int64_t* tuple, int64_t k) const {
        uint64_t column = degree_end[k] - 1;
        for (int64_t m = 0; m < k; ++m) column -= depth(k - m, tuple[m]);
        return static_cast<int64_t>(column);
    }

    /// Writes the tuple of an output column and returns its degree. Needs: column is a column.
    int64_t unrank(int64_t column, int64_t* tuple) const {
        if (include_bias && column == 0) return 0;
        int64_t degree = lowest;
        while (static_cast<uint64_t>(column) >= degree_end[degree]) ++degree;
        uint64_t rest = degree_end[degree] - 1 - static_cast<uint64_t>(column);
        int64_t most = n_features - gap(degree);  // each term's argument is at most the one before
        for (int64_t m = 0; m < degree; ++m) {
            const int64_t k = degree - m;
            most = largest_where(0, most, [&](int64_t n) { return simplex(k, n) <= rest; });
            rest -= simplex(k, most);
            tuple[m] = n_features - 1 - gap(k) - most;
        }
        return degree;
    }
};

}  // namespace polysparse
