// Decimal numbers as doubles, correctly rounded, whatever the locale: std::from_chars, or what
// stands in for it where the standard library reads only integers, as libc++ does before
// version 20.
#pragma once

#include <charconv>
#include <system_error>

#if !defined(__cpp_lib_to_chars) || defined(POLYSPARSE_WITHOUT_FROM_CHARS)
#define POLYSPARSE_STRTOD

#include <clocale>
#include <cmath>
#include <cstdlib>
#if defined(__APPLE__)
#include <xlocale.h>
#elif !defined(_WIN32)
#include <locale.h>
#endif

#include "text/words.hpp"
#endif

namespace polysparse {

#if defined(POLYSPARSE_STRTOD)

inline bool is_letter(char c, char letter) {
    return c == letter || c == letter - 'a' + 'A';
}

/// strtod, in the locale "C".
inline double strtod_in_c(const char* p, char** stop) {
#if defined(_WIN32)
    static const _locale_t locale = _create_locale(LC_ALL, "C");
    return _strtod_l(p, stop, locale);
#else
    static const locale_t locale = newlocale(LC_ALL_MASK, "C", locale_t{});
    return strtod_l(p, stop, locale);
#endif
}

/// As std::from_chars, for a word. A number that is too small is not an error, but zero. strtod
/// would also read blanks, a plus sign and hexadecimal digits: these are refused.
inline std::from_chars_result read_decimal(const char* p, const char*, double& out) {
    const char* const digits = p + (*p == '-');
    const bool is_number = is_digit(*digits) || *digits == '.';
    const bool is_word = is_letter(*digits, 'i') || is_letter(*digits, 'n');
    if (!(is_number || is_word) || (*digits == '0' && is_letter(digits[1], 'x')))
        return {p, std::errc::invalid_argument};
    char* stop;
    out = strtod_in_c(p, &stop);
    const bool too_large = is_number && std::isinf(out);
    return {stop, too_large ? std::errc::result_out_of_range : std::errc()};
}

#else

inline std::from_chars_result read_decimal(const char* p, const char* end, double& out) {
    return std::from_chars(p, end, out);
}

#endif

}  // namespace polysparse
