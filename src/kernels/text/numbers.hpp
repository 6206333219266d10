// Reading numbers, each a word of text that ends in '\n'.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <system_error>

#include "platform/processors.hpp"
#include "text/decimals.hpp"
#include "text/words.hpp"

namespace polysparse {

/// Whether the decimal number [p, end) is less than 1. Needs: it is well-formed and not zero.
inline bool is_below_one(const char* p, const char* end) {
    p += *p == '-';
    while (*p == '0') ++p;
    const char* const first = p;
    while (p != end && is_digit(*p)) ++p;
    int64_t power = p - first;  // the number is 0.ddd times ten to this
    if (power == 0)
        for (++p; p != end && *p == '0'; ++p) --power;
    p = std::find_if(p, end, [](char c) { return c == 'e' || c == 'E'; });
    if (p == end) return power <= 0;
    const bool negative = *++p == '-';
    p += negative || *p == '+';
    int64_t exponent = 0;
    if (std::from_chars(p, end, exponent).ec != std::errc()) return negative;
    return negative ? power <= exponent : power <= -exponent;
}

/// Reads any number that from_chars accepts, correctly rounded, with or without a plus sign. One
/// too small for a double is zero. Returns its end, or null if the word is not a number or is too
/// large.
inline const char* read_any_number(const char* p, double& out) {
    const char* const end = skip_word(p);
    if (*p == '+' && p[1] != '-') ++p;
    const auto [stop, error] = read_decimal(p, end, out);
    if (stop != end || p == end) return nullptr;
    if (error == std::errc::result_out_of_range && is_below_one(p, end))
        out = *p == '-' ? -0.0 : 0.0;
    else if (error != std::errc())
        return nullptr;
    return end;
}

/// As read_any_number, but fast for most numbers in files: an integer up to 2^53 over a power of
/// ten up to 10^22. Both are exact, so the division rounds once, and correctly.
POLYSPARSE_INLINE const char* read_number(const char* p, double& out) {
    static constexpr double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,
                                        1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19};
    const char* const word = p;
    const bool negative = *p == '-';
    p += negative || *p == '+';
    const char* const digits = p;
    uint64_t integer = 0;
    for (; is_digit(*p); ++p) integer = 10 * integer + static_cast<uint64_t>(*p - '0');
    int64_t n_digits = p - digits;
    int64_t n_decimals = 0;
    if (*p == '.') {
        const char* const decimals = ++p;
        for (; is_digit(*p); ++p) integer = 10 * integer + static_cast<uint64_t>(*p - '0');
        n_decimals = p - decimals;
        n_digits += n_decimals;
    }
    const bool exact = n_digits >= 1 && n_digits <= 19 && integer <= uint64_t{1} << 53;
    if (!exact || !at_word_end(p)) return read_any_number(word, out);
    const double magnitude = static_cast<double>(integer) / powers[n_decimals];
    out = negative ? -magnitude : magnitude;
    return p;
}

/// Reads a non-negative integer and the colon behind it. Returns what follows, or null.
POLYSPARSE_INLINE const char* read_index(const char* p, int64_t& out) {
    const char* const word = p;
    int64_t index = 0;
    for (; is_digit(*p) && p - word < 18; ++p) index = 10 * index + (*p - '0');
    if (*p == ':' && p != word) {
        out = index;
        return p + 1;
    }
    const auto [stop, error] = std::from_chars(word, skip_word(word), out);
    return error == std::errc() && *word != '-' && *stop == ':' ? stop + 1 : nullptr;
}

/// Reads a word that is an integer. Returns its end, or null.
inline const char* read_integer(const char* p, int64_t& out) {
    const char* const end = skip_word(p);
    const auto [stop, error] = std::from_chars(p, end, out);
    return error == std::errc() && stop == end ? end : nullptr;
}

}  // namespace polysparse
