// The hash function: every monomial goes to one of n_columns buckets, with a sign. It is frozen:
// models depend on it.
//
// A monomial is its increasing tuple of columns, read from the last to the first. On 64-bit
// unsigned integers, modulo 2^64:
//
//     mix(z)     = z ^= z >> 30, z *= 0xBF58476D1CE4E5B9, z ^= z >> 27, z *= 0x94D049BB133111EB,
//                  z ^= z >> 31 (the finaliser of splitmix64)
//     salt       = mix(seed + 0x9E3779B97F4A7C15)
//     h(())      = salt
//     h(j, tail) = (h(tail) ^ mix(salt + j)) * 0xD1342543DE82EF95
//     bucket     = ((h >> 32) * n_columns) >> 32
//     negative   = bit 31 of h ^ (h >> 16), if signs alternate
//
// So h follows the recurrence of the walk, at one multiplication per output. A bit of a product
// does not depend on higher bits of its factors, and bit 0 is just a sum of the columns' bits, so
// low bits must not be used. The products of signs s(a,b) s(a,b') s(a',b) s(a',b') average 7e-5 for
// bit 31 alone, and less than 1e-6 together with bit 47.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "basis/basis.hpp"
#include "platform/processors.hpp"

namespace polysparse {

/// The function above. Needs: 1 <= n_columns < 2^31.
struct Hasher {
    Hasher(int64_t n_columns, bool alternate_sign, uint64_t seed)
        : n_columns(static_cast<uint64_t>(n_columns)),
          sign_bit(alternate_sign ? uint64_t{1} << 31 : 0),
          salt(mix_bits(seed + 0x9E3779B97F4A7C15)) {}

    static constexpr uint64_t mix_bits(uint64_t z) {
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
        return z ^ (z >> 31);
    }
    static constexpr uint64_t lead(uint64_t mixed, uint64_t tail) {
        return (tail ^ mixed) * 0xD1342543DE82EF95;
    }
    uint64_t mix(uint64_t column) const { return mix_bits(salt + column); }
    int32_t bucket(uint64_t h) const { return static_cast<int32_t>(((h >> 32) * n_columns) >> 32); }
    uint64_t sign_of(uint64_t h) const { return (h ^ (h >> 16)) & sign_bit; }
    bool is_negative(uint64_t h) const { return sign_of(h) != 0; }

    /// h of a increasing tuple of k columns.
    uint64_t operator()(const int64_t* tuple, int64_t k) const {
        uint64_t h = salt;
        while (k > 0) h = lead(mix(static_cast<uint64_t>(tuple[--k])), h);
        return h;
    }

    /// The value, negated if h is negative: its sign bit is flipped.
    template <class Value>
    POLYSPARSE_INLINE Value with_sign(uint64_t h, Value value) const {
        using Bits = std::conditional_t<sizeof(Value) == 8, uint64_t, uint32_t>;
        const uint64_t flip = sign_of(h) << (8 * sizeof(Value) - 32);
        return std::bit_cast<Value>(std::bit_cast<Bits>(value) ^ static_cast<Bits>(flip));
    }

    uint64_t n_columns, sign_bit, salt;
};

/// Writes the bucket and the sign, 1 or -1, of every tuple.
inline void hash_all(const Hasher& hasher, TupleTable tuples, int64_t* buckets, int64_t* signs) {
    for (int64_t i = 0; i < tuples.n; ++i) {
        const uint64_t h = hasher(tuples[i], tuples.degree(i));
        buckets[i] = hasher.bucket(h);
        signs[i] = hasher.is_negative(h) ? -1 : 1;
    }
}

}  // namespace polysparse
