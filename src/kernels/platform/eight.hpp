// Eight numbers in one register, any of which can be picked for any place. Only AVX-512 can; where
// POLYSPARSE_AVX512 is not defined, nothing is here.
#pragma once

#include "platform/processors.hpp"

#if defined(POLYSPARSE_AVX512)

#include <immintrin.h>

#include <cstdint>
#include <cstring>
#include <type_traits>

namespace polysparse {

/// Says which of eight numbers to pick: an integer as wide as they are.
template <class Number>
using Pick = std::conditional_t<sizeof(Number) == 8, int64_t, int32_t>;

/// Eight numbers. To be used only in functions that are POLYSPARSE_AVX512.
template <class Number>
struct Eight {
    using Lanes [[gnu::vector_size(8 * sizeof(Number))]] = Number;

    POLYSPARSE_AVX512 POLYSPARSE_INLINE static Lanes all(Number number) { return number - Lanes{}; }

    /// Numbers of any type, modulo 2^(bits of a Number) if both are integers.
    template <class Other>
    POLYSPARSE_AVX512 POLYSPARSE_INLINE static Lanes load(const Other* from) {
        typename Eight<Other>::Lanes eight;
        std::memcpy(&eight, from, sizeof eight);
        return __builtin_convertvector(eight, Lanes);
    }
    template <class Other>
    POLYSPARSE_AVX512 POLYSPARSE_INLINE static void store(const Lanes& eight, Other* to) {
        static_assert(sizeof(Other) == sizeof(Number));
        std::memcpy(to, &eight, sizeof eight);
    }

    /// from[picks[u]] for every u.
    POLYSPARSE_AVX512 POLYSPARSE_INLINE static Lanes pick(const Lanes& from,
                                                          const Pick<Number>* picks) {
        return pick(from, picks, 255, from);
    }

    /// from[picks[u]] for every u whose bit is set, otherwise[u] for the others.
    POLYSPARSE_AVX512 POLYSPARSE_INLINE static Lanes pick(const Lanes& from,
                                                          const Pick<Number>* picks, uint8_t bits,
                                                          const Lanes& otherwise) {
        if constexpr (sizeof(Number) == 8) {
            return (Lanes)_mm512_mask_permutexvar_epi64((__m512i)otherwise, bits,
                                                        _mm512_loadu_si512(picks), (__m512i)from);
        } else {
            const __m256i places = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(picks));
            return (Lanes)_mm256_mask_permutexvar_epi32((__m256i)otherwise, bits, places,
                                                        (__m256i)from);
        }
    }
};

}  // namespace polysparse

#endif
