// The hashed expansion: every monomial to one of n_columns buckets, whatever the number of features.
//
// All arithmetic is modulo 2^64, on unsigned integers. A monomial is its rising tuple of columns,
// read from the last to the first:
//
//     mix(z)      = z ^= z >> 30; z *= 0xBF58476D1CE4E5B9; z ^= z >> 27; z *= 0x94D049BB133111EB;
//                   z ^= z >> 31, which is splitmix64's finaliser
//     salt        = mix(seed + 0x9E3779B97F4A7C15)
//     h(())       = mix(salt)
//     h(j, tail)  = (h(tail) ^ mix(salt + j)) * 0xD1342543DE82EF95
//     bucket      = ((h >> 32) * n_columns) >> 32
//     negative    = signs alternate, and bit 31 of h is set
//
// So h follows the recurrence of expand.hpp, one multiplication for each output. The low bits of h
// are of no use (bit 0 is a parity of the columns'), the bucket and the sign are made from the rest.
//
// The outputs of a row are sorted by bucket, those of one bucket in the order of the basis, in
// which they are summed: the result is the same to the bit wherever it is made. Buckets are evenly
// spread, so one distribution into about as many bins as outputs all but sorts them. A row with
// about as many outputs as there are columns is summed up in place instead.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <memory>
#include <type_traits>

#include "count.hpp"
#include "expand.hpp"
#include "simplex.hpp"
#include "targets.hpp"

namespace polysparse {

constexpr uint64_t mix_bits(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
}

/// The hash function above. Needs: 1 <= n_columns < 2^31.
struct Hasher {
    Hasher(int64_t n_columns, bool alternate_sign, uint64_t seed)
        : n_columns(static_cast<uint64_t>(n_columns)),
          sign_bit(alternate_sign ? uint64_t{1} << 31 : 0),
          salt(mix_bits(seed + 0x9E3779B97F4A7C15)),
          empty(mix_bits(salt)) {}

    uint64_t mix(int64_t column) const { return mix_bits(salt + static_cast<uint64_t>(column)); }
    static uint64_t lead(uint64_t mixed, uint64_t tail) {
        return (mixed ^ tail) * 0xD1342543DE82EF95;
    }
    uint64_t bucket(uint64_t h) const { return ((h >> 32) * n_columns) >> 32; }
    bool is_negative(uint64_t h) const { return (h & sign_bit) != 0; }

    /// The value with the sign of h: bit 31 moved to where the value has its sign.
    template <class Value>
    POLYSPARSE_INLINE Value with_sign(uint64_t h, Value value) const {
        using Bits = std::conditional_t<sizeof(Value) == 8, uint64_t, uint32_t>;
        const uint64_t flip = (h & sign_bit) << (8 * sizeof(Value) - 32);
        return std::bit_cast<Value>(std::bit_cast<Bits>(value) ^ static_cast<Bits>(flip));
    }

    /// h of a rising tuple of k columns.
    uint64_t operator()(const int64_t* tuple, int64_t k) const {
        uint64_t h = empty;
        while (k > 0) h = lead(mix(tuple[--k]), h);
        return h;
    }

    uint64_t n_columns, sign_bit, salt;
    uint64_t empty;  // h of ()
};

/// A place in two parallel arrays: states h, and the values beside them.
template <class Value>
using States = Slots<uint64_t, Value>;

/// Outputs to be sorted. A key is a bucket, and below it a place, which is the order of the basis.
template <class Value>
struct KeySink {
    const Hasher& hasher;
    Slots<int64_t, Value> out;
    int64_t n = 0;

    /// Outputs lead(h), scale * value for `count` states. Whole groups of lanes are read and written.
    template <class Lead>
    POLYSPARSE_INLINE void put(States<Value> from, int64_t count, Lead lead, Value scale) {
        for (int64_t t = 0; t < count; t += lanes) {
            uint64_t h[lanes];
            int64_t keys[lanes];
            Value values[lanes];
            for (int64_t u = 0; u < lanes; ++u) h[u] = lead(from.columns[t + u]);
            for (int64_t u = 0; u < lanes; ++u)
                keys[u] = static_cast<int64_t>(hasher.bucket(h[u]) << 32) | (n + t + u);
            for (int64_t u = 0; u < lanes; ++u)
                values[u] = hasher.with_sign(h[u], from.values[t + u] * scale);
            std::copy_n(keys, lanes, out.columns + n + t);
            std::copy_n(values, lanes, out.values + n + t);
        }
        n += count;
    }
};

/// Outputs summed up where they fall. Sums begin with -0, which added to any value gives the value.
template <class Value>
struct SumSink {
    const Hasher& hasher;
    Value* sums;
    uint64_t* seen;  // a bit for every bucket

    template <class Lead>
    POLYSPARSE_INLINE void put(States<Value> from, int64_t count, Lead lead, Value scale) {
        for (int64_t t = 0; t < count; t += lanes) {
            uint64_t h[lanes], buckets[lanes];
            Value values[lanes];
            for (int64_t u = 0; u < lanes; ++u) h[u] = lead(from.columns[t + u]);
            for (int64_t u = 0; u < lanes; ++u) buckets[u] = hasher.bucket(h[u]);
            for (int64_t u = 0; u < lanes; ++u)
                values[u] = hasher.with_sign(h[u], from.values[t + u] * scale);
            const int64_t here = std::min(lanes, count - t);
            for (int64_t u = 0; u < here; ++u) {
                sums[buckets[u]] += values[u];
                seen[buckets[u] / 64] |= uint64_t{1} << (buckets[u] % 64);
            }
        }
    }

    /// Writes what was summed up, and forgets it.
    POLYSPARSE_INLINE int64_t take(Slots<int32_t, Value> out) {
        int64_t n = 0;
        for (uint64_t word = 0; word * 64 < hasher.n_columns; ++word) {
            for (uint64_t left = seen[word]; left != 0; left &= left - 1) {
                const uint64_t bucket = word * 64 + std::countr_zero(left);
                out.columns[n] = static_cast<int32_t>(bucket);
                out.values[n++] = sums[bucket];
                sums[bucket] = Value(-0.0);
            }
            seen[word] = 0;
        }
        return n;
    }
};

/// One step of odd-even transposition: every second key and the one behind it in order.
POLYSPARSE_INLINE void order_pairs(int64_t* __restrict keys, int64_t n) {
    for (int64_t i = 0; i < n; i += 2) {
        const int64_t a = keys[i], b = keys[i + 1];
        keys[i] = a < b ? a : b;
        keys[i + 1] = a < b ? b : a;
    }
}

constexpr int64_t few_keys = 40;        // so many are sorted by counting who is smaller
constexpr int64_t many_keys = 1 << 14;  // more are shared out first
constexpr int most_bin_bits = 16;
constexpr int64_t key_spill = 32;       // slots behind the keys that may be written

/// Sorts n keys into `sorted`. Their buckets are evenly spread over 2^bucket_bits.
POLYSPARSE_INLINE void sort_keys(const int64_t* __restrict keys, int64_t n, int bucket_bits,
                                 uint32_t* __restrict counts, int64_t* __restrict sorted) {
    if (n <= few_keys) {
        for (int64_t i = 0; i < n; i += lanes) {
            int64_t ranks[lanes] = {};
            for (int64_t j = 0; j < n; ++j)
                for (int64_t u = 0; u < lanes; ++u) ranks[u] += keys[j] < keys[i + u];
            for (int64_t u = 0; u < std::min(lanes, n - i); ++u) sorted[ranks[u]] = keys[i + u];
        }
        return;
    }
    const int bits = std::min({static_cast<int>(std::bit_width(static_cast<uint64_t>(n))),
                               bucket_bits, most_bin_bits});
    const int64_t n_bins = int64_t{1} << bits;
    const int shift = 32 + bucket_bits - bits;
    const auto bin = [&](int64_t key) POLYSPARSE_INLINE_LAMBDA {
        return static_cast<uint64_t>(key) >> shift & (n_bins - 1);
    };
    std::fill_n(counts, n_bins, 0);
    for (int64_t i = 0; i < n; ++i) ++counts[bin(keys[i])];
    uint32_t start = 0;
    for (int64_t b = 0; b < n_bins; ++b) {
        const uint32_t count = counts[b];
        counts[b] = start;
        start += count;
    }
    for (int64_t i = 0; i < n; ++i) sorted[counts[bin(keys[i])]++] = keys[i];
    std::fill_n(sorted + n, key_spill / 2, std::numeric_limits<int64_t>::max());
    const int64_t padded = (n + 15) / 16 * 16;
    for (int64_t step = 0; step < 5; ++step) order_pairs(sorted + step % 2, padded);
    bool falls = false;
    for (int64_t i = 0; i + 1 < n; ++i) falls |= sorted[i] > sorted[i + 1];
    if (!falls) return;
    for (int64_t i = 1; i < n; ++i) {
        const int64_t key = sorted[i];
        int64_t place = i;
        for (; place > 0 && sorted[place - 1] > key; --place) sorted[place] = sorted[place - 1];
        sorted[place] = key;
    }
}

/// The values of sorted keys, those of one bucket summed up. Returns how many there are.
template <class Value>
POLYSPARSE_INLINE int64_t gather(const int64_t* __restrict keys, int64_t n,
                                 const Value* __restrict values, Slots<int32_t, Value> out) {
    int32_t* __restrict columns = out.columns;
    Value* __restrict sums = out.values;
    bool repeats = false;
    for (int64_t i = 0; i + 1 < n; ++i) repeats |= keys[i] >> 32 == keys[i + 1] >> 32;
    if (!repeats) {
        for (int64_t i = 0; i < n; ++i) columns[i] = static_cast<int32_t>(keys[i] >> 32);
        for (int64_t i = 0; i < n; ++i) sums[i] = values[static_cast<uint32_t>(keys[i])];
        return n;
    }
    int64_t last = -1;
    for (int64_t i = 0; i < n; ++i) {
        const auto bucket = static_cast<int32_t>(keys[i] >> 32);
        const Value value = values[static_cast<uint32_t>(keys[i])];
        if (last >= 0 && columns[last] == bucket) {
            sums[last] += value;
        } else {
            columns[++last] = bucket;
            sums[last] = value;
        }
    }
    return last + 1;
}

/// Room for one worker to expand rows of up to `longest` stored values.
template <class Value>
class HashedRow {
  public:
    HashedRow(const Basis& basis, const Hasher& hasher, int64_t longest)
        : basis_(basis), hasher_(hasher) {
        int64_t n_tails = 2 * lanes;
        for (int64_t d = 1; d < std::max<int64_t>(basis.highest, 2); ++d)
            n_tails += block_size(basis, d, longest);
        const int64_t n_outputs = row_size(basis, longest);
        const int64_t n_keys = std::min(n_outputs, most_keys()) + key_spill;
        mixed_ = std::make_unique<uint64_t[]>(longest + lanes);
        tails_ = std::make_unique<uint64_t[]>(n_tails);
        tail_values_ = std::make_unique<Value[]>(n_tails);
        keys_ = std::make_unique<int64_t[]>(n_keys);
        sorted_ = std::make_unique<int64_t[]>(n_keys);
        values_ = std::make_unique<Value[]>(n_keys);
        counts_ = std::make_unique<uint32_t[]>(
            std::min<int64_t>(2 * n_keys, int64_t{1} << most_bin_bits));
        if (n_keys > many_keys) {
            parted_ = std::make_unique<int64_t[]>(n_keys);
            parted_values_ = std::make_unique<Value[]>(n_keys);
            part_ends_ = std::make_unique<uint32_t[]>(int64_t{1} << most_part_bits);
        }
        if (n_outputs > most_keys()) {
            sums_ = std::make_unique_for_overwrite<Value[]>(hasher.n_columns);
            std::fill_n(sums_.get(), hasher.n_columns, Value(-0.0));
            seen_ = std::make_unique<uint64_t[]>(hasher.n_columns / 64 + 1);
        }
    }

    /// Sorted, unique buckets and summed values of one row, at `out`, which has room for
    /// row_size(basis, row.n) slots. Returns how many. Values are summed in the order of the basis.
    template <class Index>
    POLYSPARSE_TARGETS int64_t fill(Row<Index, Value> row, Slots<int32_t, Value> out) {
        if (row_size(basis_, row.n) > most_keys()) {
            SumSink<Value> sink{hasher_, sums_.get(), seen_.get()};
            expand(row, sink);
            return sink.take(out);
        }
        KeySink<Value> sink{hasher_, {keys_.get(), values_.get()}};
        expand(row, sink);
        return sort(sink.n, out);
    }

  private:
    static constexpr int most_part_bits = 12;

    /// A row of more outputs is summed up in place.
    int64_t most_keys() const { return static_cast<int64_t>(hasher_.n_columns / 8); }

    template <class Index, class Sink>
    POLYSPARSE_INLINE void expand(Row<Index, Value> row, Sink& sink) {
        const auto as_is = [](uint64_t h) POLYSPARSE_INLINE_LAMBDA { return h; };
        if (basis_.include_bias) {
            uint64_t states[lanes] = {hasher_.empty};
            Value values[lanes] = {1};
            sink.put(States<Value>{states, values}, 1, as_is, Value(1));
        }
        const int64_t n = row.n;
        if (n == 0 || basis_.highest < basis_.lowest) return;
        uint64_t* const mixed = mixed_.get();
        for (int64_t a = 0; a < n; ++a) mixed[a] = static_cast<uint64_t>(row.begin.columns[a]);
        for (int64_t a = 0; a < n; a += lanes)
            for (int64_t u = 0; u < lanes; ++u) mixed[a + u] = mix_bits(hasher_.salt + mixed[a + u]);

        States<Value> end{tails_.get(), tail_values_.get()};
        const int64_t first = std::min(skipped(basis_, 1), n);
        for (int64_t t = 0; t < n - first; ++t) {
            end.columns[t] = Hasher::lead(mixed[first + t], hasher_.empty);
            end.values[t] = row.begin.values[first + t];
        }
        end = end + (n - first);
        if (basis_.lowest == 1) sink.put(end - n, n, as_is, Value(1));

        const auto next = [&](auto d) POLYSPARSE_INLINE_LAMBDA {
            const States<Value> tail_end = end;
            const int64_t last = n - basis_.gap(d);
            for (int64_t a = skipped(basis_, d); a < last; ++a) {
                const auto length = static_cast<int64_t>(simplex(d - 1, last - a));
                const uint64_t m = mixed[a];
                const Value scale = row.begin.values[a];
                const auto lead = [m](uint64_t h) POLYSPARSE_INLINE_LAMBDA {
                    return Hasher::lead(m, h);
                };
                if (d == basis_.highest) {
                    sink.put(tail_end - length, length, lead, scale);
                } else {
                    lead_tails(tail_end - length, length, lead, scale, end);
                    end = end + length;
                }
            }
            if (d < basis_.highest && d >= basis_.lowest) {
                const int64_t size = end.columns - tail_end.columns;
                sink.put(end - size, size, as_is, Value(1));
            }
        };
        if (basis_.highest >= 2) next(std::integral_constant<int64_t, 2>{});
        if (basis_.highest >= 3) next(std::integral_constant<int64_t, 3>{});
        for (int64_t d = 4; d <= basis_.highest; ++d) next(d);
    }

    template <class Lead>
    POLYSPARSE_INLINE static void lead_tails(States<Value> from, int64_t count, Lead lead,
                                             Value scale, States<Value> out) {
        for (int64_t t = 0; t < count; t += lanes) {
            uint64_t h[lanes];
            Value values[lanes];
            for (int64_t u = 0; u < lanes; ++u) h[u] = lead(from.columns[t + u]);
            for (int64_t u = 0; u < lanes; ++u) values[u] = from.values[t + u] * scale;
            std::copy_n(h, lanes, out.columns + t);
            std::copy_n(values, lanes, out.values + t);
        }
    }

    POLYSPARSE_INLINE int64_t sort(int64_t n, Slots<int32_t, Value> out) {
        int bits = std::bit_width(hasher_.n_columns - 1);
        const int64_t* keys = keys_.get();
        const Value* values = values_.get();
        int64_t n_parts = 1;
        if (n > many_keys) {
            const int part_bits = std::min<int>(std::bit_width(static_cast<uint64_t>(n)) - 12, most_part_bits);
            n_parts = int64_t{1} << part_bits;
            bits -= part_bits;
            part(n, 32 + bits, n_parts);
            keys = parted_.get();
            values = parted_values_.get();
        }
        int64_t begin = 0, written = 0;
        for (int64_t p = 0; p < n_parts; ++p) {
            const int64_t end = n_parts == 1 ? n : part_ends_[p];
            sort_keys(keys + begin, end - begin, bits, counts_.get(), sorted_.get());
            written += gather(sorted_.get(), end - begin, values, out + written);
            begin = end;
        }
        return written;
    }

    /// Shares out keys and values by the bits of the key from `shift` up, and gives keys new places.
    POLYSPARSE_INLINE void part(int64_t n, int shift, int64_t n_parts) {
        uint32_t* __restrict ends = part_ends_.get();
        const int64_t* __restrict keys = keys_.get();
        const Value* __restrict values = values_.get();
        int64_t* __restrict to = parted_.get();
        Value* __restrict to_values = parted_values_.get();
        std::fill_n(ends, n_parts, 0);
        for (int64_t i = 0; i < n; ++i) ++ends[keys[i] >> shift];
        uint32_t start = 0;
        for (int64_t p = 0; p < n_parts; ++p) {
            const uint32_t count = ends[p];
            ends[p] = start;
            start += count;
        }
        for (int64_t i = 0; i < n; ++i) {
            const uint32_t place = ends[keys[i] >> shift]++;
            to[place] = (keys[i] >> 32 << 32) | place;
            to_values[place] = values[i];
        }
    }

    const Basis& basis_;
    const Hasher hasher_;
    std::unique_ptr<uint64_t[]> mixed_, tails_, seen_;
    std::unique_ptr<int64_t[]> keys_, sorted_, parted_;
    std::unique_ptr<Value[]> tail_values_, values_, parted_values_, sums_;
    std::unique_ptr<uint32_t[]> counts_, part_ends_;
};

}  // namespace polysparse
