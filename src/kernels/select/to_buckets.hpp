// Keys and sinks of the walk for hashed rows: a tuple is known by its hash.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "basis/groups.hpp"
#include "matrix/slots.hpp"
#include "platform/processors.hpp"
#include "select/hash.hpp"

namespace polysparse {

/// A lead hashes the keys of its tails further.
struct HashKeys {
    const uint64_t* mixed;  // mix of the columns of the row

    static constexpr int64_t first_stored = 1;

    template <class Degree>
    POLYSPARSE_INLINE auto leads(Degree) const {
        return [mixed = mixed](int64_t a) POLYSPARSE_INLINE_LAMBDA { return mixed[a]; };
    }
    template <class Row, class Place>
    POLYSPARSE_INLINE Place first_end(const Row&, Place to, int64_t n) const {
        return to + n;
    }
};

/// The same for terms, which are made from P_1 wherever it is stored.
template <class Value>
struct HashTermKeys {
    const uint64_t* mixed;          // mix of the columns of the row
    Slots<uint64_t, Value> hashed;  // P_1

    static constexpr int64_t first_stored = 2;

    POLYSPARSE_INLINE uint64_t lead(const Term&, int64_t, int64_t a) const { return mixed[a]; }
    POLYSPARSE_INLINE uint64_t last_shift(const Term&) const { return 0; }
    template <class Row, class Place>
    POLYSPARSE_INLINE Place stored(const Row&, Place) const {
        return hashed;
    }
};

/// Lists outputs in the order of the basis. Always writes a whole group of lanes.
template <class Value>
struct HashedList {
    Slots<int32_t, Value> out;
    int64_t n = 0;

    POLYSPARSE_INLINE void put(const int32_t* buckets, const Value* values, int64_t count) {
        std::copy_n(buckets, lanes, out.columns + n);
        std::copy_n(values, lanes, out.values + n);
        n += count;
    }
};

/// Sums outputs by bucket. A sum starts as -0, which leaves the first value added as it is.
template <class Value>
struct HashedSums {
    Value* sums;
    uint64_t* seen;  // a bit for every bucket

    POLYSPARSE_INLINE void put(const int32_t* buckets, const Value* values, int64_t count) {
        for (int64_t u = 0; u < count; ++u) {
            sums[buckets[u]] += values[u];
            seen[buckets[u] / 64] |= uint64_t{1} << (buckets[u] % 64);
        }
    }

    static uint64_t bytes(uint64_t n_columns) {
        return n_columns * sizeof(Value) + (n_columns / 64 + 1) * sizeof(uint64_t);
    }

    void clear(uint64_t n_columns) {
        std::fill_n(sums, n_columns, Value(-0.0));
        std::fill_n(seen, n_columns / 64 + 1, 0);
    }

    /// How many buckets were put to.
    int64_t count(int64_t n_columns) const {
        int64_t n = 0;
        for (int64_t word = 0; word * 64 < n_columns; ++word) n += std::popcount(seen[word]);
        return n;
    }

    /// Writes the sums of buckets that were put to, in order, and clears them.
    POLYSPARSE_INLINE int64_t take(int64_t n_columns, Slots<int32_t, Value> out) {
        int64_t n = 0;
        for (int64_t word = 0; word * 64 < n_columns; ++word) {
            for (uint64_t left = seen[word]; left != 0; left &= left - 1) {
                const int64_t bucket = word * 64 + std::countr_zero(left);
                out.columns[n] = static_cast<int32_t>(bucket);
                out.values[n++] = sums[bucket];
                sums[bucket] = Value(-0.0);
            }
            seen[word] = 0;
        }
        return n;
    }
};

/// Sink: outputs are put to their buckets, in the order of the basis; hashes are kept as tails.
/// Reads and writes whole groups of lanes. Outputs: HashedList or HashedSums.
template <class Value, class Outputs>
struct ToBuckets {
    using Place = Slots<uint64_t, Value>;

    Hasher hasher;  // a copy, which no store can change
    Outputs outputs;

    static constexpr bool holds_degrees = false;

    POLYSPARSE_INLINE void bias() {
        uint64_t h[lanes];
        Value values[lanes];
        std::fill_n(h, lanes, hasher.salt);
        std::fill_n(values, lanes, Value(1));
        put(h, values, 1);
    }

    template <class Role, class Row>
    POLYSPARSE_INLINE void first(Role role, const Row& row, HashKeys keys, int64_t from, Place to) {
        const int64_t n = row.n - from, n_outputs = row.n_leads() - from;
        const uint64_t* const mixed = keys.mixed + from;
        for (int64_t a = 0; a < n; ++a) to.values[a] = row.begin.values[from + a];
        for (int64_t a = 0; a < n; a += lanes) {
            uint64_t h[lanes];
            Value values[lanes];
            for_lanes([&](int64_t u) POLYSPARSE_INLINE_LAMBDA {
                h[u] = Hasher::lead(mixed[a + u], hasher.salt);
            });
            std::copy_n(h, lanes, to.columns + a);
            std::copy_n(to.values + a, lanes, values);
            if (role.is_output && a < n_outputs) put(h, values, n_outputs - a);
        }
    }

    template <class Role>
    POLYSPARSE_INLINE void run(Role role, Place tail, int64_t n, uint64_t lead, Value scale,
                               Place to) {
        for (int64_t t = 0; t < n; t += lanes) {
            uint64_t h[lanes];
            Value values[lanes];
            for_lanes([&](int64_t u) POLYSPARSE_INLINE_LAMBDA {
                h[u] = Hasher::lead(lead, tail.columns[t + u]);
            });
            for_lanes([&](int64_t u)
                          POLYSPARSE_INLINE_LAMBDA { values[u] = tail.values[t + u] * scale; });
            if (role.is_tail) {
                std::copy_n(h, lanes, to.columns + t);
                std::copy_n(values, lanes, to.values + t);
            }
            if (role.is_output) put(h, values, n - t);
        }
    }

    POLYSPARSE_INLINE void single(Place tail, int64_t n, uint64_t, Place) {
        for (int64_t t = 0; t < n; t += lanes) put(tail.columns + t, tail.values + t, n - t);
    }

    /// Puts the first `count` outputs of a group, or all if it has fewer.
    POLYSPARSE_INLINE void put(const uint64_t* h, const Value* values, int64_t count) {
        int32_t buckets[lanes];
        Value with_sign[lanes];
        for_lanes([&](int64_t u) POLYSPARSE_INLINE_LAMBDA { buckets[u] = hasher.bucket(h[u]); });
        for_lanes([&](int64_t u) POLYSPARSE_INLINE_LAMBDA {
            with_sign[u] = hasher.with_sign(h[u], values[u]);
        });
        outputs.put(buckets, with_sign, std::min(lanes, count));
    }
};

}  // namespace polysparse
