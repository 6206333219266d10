// Sorts the outputs of a row by bucket. Buckets are evenly spread, so distributing the outputs to
// about as many bins nearly sorts them.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

#include "matrix/slots.hpp"
#include "platform/processors.hpp"

namespace polysparse {

constexpr int64_t few_buckets = 40;        // up to so many, each is compared with each
constexpr int64_t many_buckets = 1 << 16;  // more are first distributed to parts that fit caches
constexpr int most_bin_bits = 16;          // a bin is a uint16_t
constexpr int64_t sort_spill = 48;         // slots behind list and keys that are written

/// A key is a bucket with, in its low bits, its place in the list. Shorter keys sort faster.
template <class Key>
constexpr Key last_key = std::numeric_limits<Key>::max();

constexpr int bit_width(int64_t n) {
    return static_cast<int>(std::bit_width(static_cast<uint64_t>(n)));
}

/// Turns n counts into the sum of all counts before each. Several are in a word: the word times
/// ones adds each of them to those above it. Needs: a Count can hold the sum of all; n is a power
/// of two; the memory of whole words.
template <class Count>
POLYSPARSE_INLINE void sum_before(Count* __restrict counts, int64_t n) {
    uint64_t before = 0;
    if constexpr (std::endian::native == std::endian::little) {
        constexpr int bits = 8 * sizeof(Count);
        constexpr uint64_t ones = ~uint64_t{0} / static_cast<Count>(~Count{0});
        for (int64_t i = 0; i < n; i += 64 / bits) {
            uint64_t word;
            std::memcpy(&word, counts + i, sizeof word);
            const uint64_t sums = word * ones;
            word = (sums << bits) + before * ones;
            std::memcpy(counts + i, &word, sizeof word);
            before += sums >> (64 - bits);
        }
    } else {
        for (int64_t i = 0; i < n; ++i)
            before += std::exchange(counts[i], static_cast<Count>(before));
    }
}

/// Finds the bin of every bucket, its bits [shift, shift + bin_bits), and where each bin begins.
/// Needs: n < 2^(bits of a Count).
template <class Count>
POLYSPARSE_INLINE void find_bins(const int32_t* __restrict buckets, int64_t n, int shift,
                                 int bin_bits, uint16_t* __restrict bins,
                                 Count* __restrict starts) {
    const int64_t n_bins = int64_t{1} << bin_bits;
    for (int64_t i = 0; i < n; ++i)
        bins[i] = static_cast<uint16_t>(buckets[i] >> shift & (n_bins - 1));
    std::fill_n(starts, std::max(n_bins, lanes), Count(0));
    for (int64_t i = 0; i < n; ++i) ++starts[bins[i]];
    sum_before(starts, n_bins);
}

/// Sorts up to few_buckets keys. Needs: `lanes` copies of last_key follow them. The place of a key
/// is the number of smaller keys; a negative difference shifted down to its sign is -1.
template <class Key>
POLYSPARSE_INLINE void sort_few(const Key* __restrict keys, int64_t n, Key* __restrict sorted) {
    constexpr int sign = 8 * sizeof(Key) - 1;
    Key places[few_buckets + lanes];
    const int64_t padded = (n + lanes - 1) / lanes * lanes;
    std::fill_n(places, padded, 0);
    for (int64_t j = 0; j < n; j += 4) {
        const Key a = keys[j], b = keys[j + 1], c = keys[j + 2], d = keys[j + 3];
        for (int64_t i = 0; i < padded; ++i) {
            const Key key = keys[i];
            places[i] -= ((a - key) >> sign) + ((b - key) >> sign) + ((c - key) >> sign) +
                         ((d - key) >> sign);
        }
    }
    for (int64_t i = 0; i < n; ++i) sorted[places[i]] = keys[i];
}

/// Sorts keys that are nearly sorted: a few rounds of odd-even transposition, which vectorise, then
/// insertion sort if that was not enough. Writes up to sort_spill slots behind them.
template <class Key>
POLYSPARSE_INLINE void finish_sorting(Key* __restrict keys, int64_t n) {
    constexpr int64_t step = 128 / sizeof(Key);  // whole vectors of pairs
    std::fill_n(keys + n, step + 1, last_key<Key>);
    const auto order_pairs = [](Key* __restrict pairs, int64_t end) POLYSPARSE_INLINE_LAMBDA {
        for (int64_t i = 0; i < end; i += 2) {
            const Key a = pairs[i], b = pairs[i + 1];
            pairs[i] = a < b ? a : b;
            pairs[i + 1] = a < b ? b : a;
        }
    };
    for (int64_t round = 0; round < 5; ++round)
        order_pairs(keys + round % 2, (n + step - 1) / step * step);
    Key falls = 0;
    for (int64_t i = 0; i + 1 < n; ++i) falls |= keys[i] > keys[i + 1];
    for (int64_t i = 1; falls != 0 && i < n; ++i) {
        const Key key = keys[i];
        int64_t place = i;
        for (; place > 0 && keys[place - 1] > key; --place) keys[place] = keys[place - 1];
        keys[place] = key;
    }
}

/// Sorts n buckets that differ in their low `bits` bits. A key is a bucket and, in place_bits below
/// it, its place in the list. `bins` and `starts` are scratch, the latter for counts of any type:
/// short ones are summed sooner.
template <class Key>
POLYSPARSE_INLINE void sort_buckets(const int32_t* __restrict buckets, int64_t n, int bits,
                                    int place_bits, uint16_t* __restrict bins, std::byte* starts,
                                    Key* __restrict sorted) {
    const auto key = [=](int64_t i) POLYSPARSE_INLINE_LAMBDA {
        return static_cast<Key>(Key{buckets[i]} << place_bits | static_cast<Key>(i));
    };
    if (n <= few_buckets) {
        Key keys[few_buckets + lanes];
        for (int64_t i = 0; i < n; ++i) keys[i] = key(i);
        std::fill_n(keys + n, lanes, last_key<Key>);
        return sort_few<Key>(keys, n, sorted);
    }
    const int bin_bits = std::min({bit_width(n), bits, most_bin_bits});
    const auto to_bins = [&]<class Count>(Count) POLYSPARSE_INLINE_LAMBDA {
        Count* __restrict places = reinterpret_cast<Count*>(starts);
        find_bins(buckets, n, bits - bin_bits, bin_bits, bins, places);
        for (int64_t i = 0; i < n; ++i) sorted[places[bins[i]]++] = key(i);
    };
    if (n < 1 << 8)
        to_bins(uint8_t{});
    else if (n < 1 << 16)
        to_bins(uint16_t{});
    else
        to_bins(uint32_t{});
    finish_sorting(sorted, n);
}

/// Writes the buckets of sorted keys and their values, those of one bucket summed. Returns how many
/// buckets there are.
template <class Key, class Value>
POLYSPARSE_INLINE int64_t gather(const Key* __restrict keys, int64_t n, int place_bits,
                                 const Value* __restrict values, Slots<int32_t, Value> out) {
    int32_t* __restrict columns = out.columns;
    Value* __restrict sums = out.values;
    const auto places = static_cast<Key>((uint64_t{1} << place_bits) - 1);
    const auto bucket = [=](int64_t i) POLYSPARSE_INLINE_LAMBDA { return keys[i] >> place_bits; };
    Key repeats = 0;
    for (int64_t i = 0; i + 1 < n; ++i) repeats |= bucket(i) == bucket(i + 1);
    if (repeats == 0) {
        for (int64_t i = 0; i < n; ++i) columns[i] = static_cast<int32_t>(bucket(i));
        for (int64_t i = 0; i < n; ++i) sums[i] = values[keys[i] & places];
        return n;
    }
    int64_t last = -1;
    for (int64_t i = 0; i < n; ++i) {
        const auto column = static_cast<int32_t>(bucket(i));
        const Value value = values[keys[i] & places];
        if (last >= 0 && columns[last] == column) {
            sums[last] += value;
        } else {
            columns[++last] = column;
            sums[last] = value;
        }
    }
    return last + 1;
}

}  // namespace polysparse
