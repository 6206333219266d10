// One row of the hashed expansion.
//
// Its outputs are listed in the order of the basis and sorted by bucket; those of one bucket are
// summed up in the order they had, so that the result is the same to the bit wherever it is made. A
// row with more than an eighth as many outputs as there are buckets is not listed: it is summed up
// in place, in memory for all buckets.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

#include "basis/simplex.hpp"
#include "expand/sizes.hpp"
#include "expand/walk.hpp"
#include "platform/processors.hpp"
#include "select/bucket_sort.hpp"
#include "select/hash.hpp"

namespace polysparse {

/// step(u) for every lane, in a loop that is not unrolled before it is vectorised: GCC would
/// multiply lane by lane.
template <class Step>
POLYSPARSE_INLINE void for_lanes(Step step) {
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC unroll 1
#endif
    for (int64_t u = 0; u < lanes; ++u) step(u);
}

/// Outputs in the order of the basis. A whole group of lanes is written for `count` of them.
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

/// Outputs summed up bucket by bucket. A sum begins as -0, which leaves what is added as it is.
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

    void clear(uint64_t n_columns) {
        std::fill_n(sums, n_columns, Value(-0.0));
        std::fill_n(seen, n_columns / 64 + 1, 0);
    }

    /// Writes the sums of n_columns buckets that were put to, in order, and clears them.
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

/// Room for one worker to expand rows of up to `longest` stored values, one after the other. The
/// basis, of which only the degrees and flags matter, must outlive it. Throws bad_alloc: it takes
/// 16 bytes for each tuple of a degree below the highest, 34 for each output that is listed, and,
/// if the longest row is not listed, 8 for each bucket.
template <class Value>
class HashedRow {
  public:
    HashedRow(const Basis& basis, const Hasher& hasher, int64_t longest)
        : basis_(&basis), hasher_(hasher) {
        int64_t n_tails = longest + lanes;
        for (int64_t d = 2; d < basis.highest; ++d) n_tails += block_size(basis, d, longest);
        const int64_t n_outputs = row_size(basis, longest);
        const int64_t n_listed = std::min(n_outputs, most_listed()) + sort_spill;
        const int64_t n_bins = std::min<int64_t>(2 * n_listed, int64_t{1} << most_bin_bits);
        mixed_ = std::make_unique<uint64_t[]>(longest + lanes);
        tails_ = std::make_unique<uint64_t[]>(n_tails);
        tail_values_ = std::make_unique<Value[]>(n_tails);
        buckets_ = std::make_unique_for_overwrite<int32_t[]>(n_listed);
        values_ = std::make_unique_for_overwrite<Value[]>(n_listed);
        sorted_ = std::make_unique_for_overwrite<int64_t[]>(n_listed);
        short_sorted_ = std::make_unique_for_overwrite<int32_t[]>(n_listed);
        bins_ = std::make_unique_for_overwrite<uint16_t[]>(n_listed);
        starts_ = std::make_unique_for_overwrite<uint32_t[]>(n_bins);
        if (n_listed > many_buckets) {
            parts_ = std::make_unique_for_overwrite<int32_t[]>(n_listed);
            part_values_ = std::make_unique_for_overwrite<Value[]>(n_listed);
            part_ends_ = std::make_unique_for_overwrite<uint32_t[]>(int64_t{1} << most_part_bits);
        }
        if (n_outputs > most_listed()) {
            sums_ = std::make_unique_for_overwrite<Value[]>(hasher.n_columns);
            seen_ = std::make_unique_for_overwrite<uint64_t[]>(hasher.n_columns / 64 + 1);
        }
    }

    static constexpr bool divides_rows = false;  // what falls together is all over the row

    int64_t n_columns() const { return static_cast<int64_t>(hasher_.n_columns); }
    int64_t n_parts(int64_t, int64_t) const { return 1; }

    /// As fill_selected asks for a row, which is one part.
    template <class Index>
    int64_t fill(Row<Index, Value> row, int64_t, int64_t, Slots<int32_t, Value> out) {
        return fill(row, out);
    }

    /// Sorted, unique buckets and summed values of one row, at `out`. Returns how many; no slot
    /// behind them is written. They are at most row_size(basis, row.n), and at most n_columns.
    template <class Index>
    POLYSPARSE_TARGETS int64_t fill(Row<Index, Value> row, Slots<int32_t, Value> out) {
        if (row_size(*basis_, row.n) > most_listed()) {
            HashedSums<Value> sums{sums_.get(), seen_.get()};
            if (!std::exchange(has_sums_, true)) sums.clear(hasher_.n_columns);
            expand(row, sums);
            return sums.take(static_cast<int64_t>(hasher_.n_columns), out);
        }
        HashedList<Value> list{{buckets_.get(), values_.get()}};
        expand(row, list);
        return sum_up(list.n, out);
    }

  private:
    static constexpr int most_part_bits = 12;

    /// A row with more outputs is summed up in place.
    int64_t most_listed() const { return static_cast<int64_t>(hasher_.n_columns / 8); }

    /// Puts all outputs of a row, in the order of the basis.
    template <class Index, class Outputs>
    POLYSPARSE_INLINE void expand(Row<Index, Value> row, Outputs& outputs) {
        const Basis& basis = *basis_;
        const Hasher hasher = hasher_;  // a copy, which no store can change
        uint64_t h[lanes];
        Value values[lanes];
        const auto put = [&](int64_t count) POLYSPARSE_INLINE_LAMBDA {
            int32_t buckets[lanes];
            Value with_sign[lanes];
            for_lanes([&](int64_t u)
                          POLYSPARSE_INLINE_LAMBDA { buckets[u] = hasher.bucket(h[u]); });
            for_lanes([&](int64_t u) POLYSPARSE_INLINE_LAMBDA {
                with_sign[u] = hasher.with_sign(h[u], values[u]);
            });
            outputs.put(buckets, with_sign, std::min(lanes, count));
        };
        if (basis.include_bias) {
            std::fill_n(h, lanes, hasher.salt);
            std::fill_n(values, lanes, Value(1));
            put(1);
        }
        if (row.n == 0 || basis.highest < basis.lowest) return;

        uint64_t* const mixed = mixed_.get();
        Slots<uint64_t, Value> end{tails_.get(), tail_values_.get()};  // of P_{d-1}
        for (int64_t a = 0; a < row.n; ++a) mixed[a] = static_cast<uint64_t>(row.begin.columns[a]);
        for (int64_t a = 0; a < row.n; ++a) end.values[a] = row.begin.values[a];
        for (int64_t a = 0; a < row.n; a += lanes) {
            for_lanes([&](int64_t u)
                          POLYSPARSE_INLINE_LAMBDA { mixed[a + u] = hasher.mix(mixed[a + u]); });
            for_lanes([&](int64_t u) POLYSPARSE_INLINE_LAMBDA {
                h[u] = Hasher::lead(mixed[a + u], hasher.salt);
            });
            std::copy_n(h, lanes, end.columns + a);
            std::copy_n(end.values + a, lanes, values);
            if (basis.lowest == 1) put(row.n - a);
        }
        end = end + row.n;

        const auto next = [&](auto d) POLYSPARSE_INLINE_LAMBDA {
            const ConstSlots<uint64_t, Value> tail_end = end;
            const int64_t last = row.n - basis.gap(d);
            for (int64_t a = skipped(basis, d); a < last; ++a) {
                const auto n = static_cast<int64_t>(simplex(d - 1, last - a));
                const ConstSlots<uint64_t, Value> tail = tail_end - n;
                const uint64_t lead = mixed[a];
                const Value scale = row.begin.values[a];
                for (int64_t t = 0; t < n; t += lanes) {
                    for_lanes([&](int64_t u) POLYSPARSE_INLINE_LAMBDA {
                        h[u] = Hasher::lead(lead, tail.columns[t + u]);
                    });
                    for_lanes([&](int64_t u) POLYSPARSE_INLINE_LAMBDA {
                        values[u] = tail.values[t + u] * scale;
                    });
                    if (d < basis.highest) {
                        std::copy_n(h, lanes, end.columns + t);
                        std::copy_n(values, lanes, end.values + t);
                    }
                    if (d >= basis.lowest) put(n - t);
                }
                if (d < basis.highest) end = end + n;
            }
        };
        if (basis.highest >= 2) next(std::integral_constant<int64_t, 2>{});
        if (basis.highest >= 3) next(std::integral_constant<int64_t, 3>{});
        for (int64_t d = 4; d <= basis.highest; ++d) next(d);
    }

    /// The n listed outputs, sorted and summed up.
    POLYSPARSE_INLINE int64_t sum_up(int64_t n, Slots<int32_t, Value> out) {
        int bits = bit_width(static_cast<int64_t>(hasher_.n_columns) - 1);
        ConstSlots<int32_t, Value> list{buckets_.get(), values_.get()};
        const int place_bits = bit_width(n);
        if (bits + place_bits < 32)
            return sort_and_sum(list, n, bits, place_bits, short_sorted_.get(), out);
        int part_bits = 0;
        if (n > many_buckets) {
            part_bits = std::min(bit_width(n) - 12, most_part_bits);
            bits -= part_bits;
            share_out(n, bits, part_bits);
            list = {parts_.get(), part_values_.get()};
        }
        int64_t begin = 0, written = 0;
        for (int64_t p = 0; p < int64_t{1} << part_bits; ++p) {
            const int64_t end = part_bits == 0 ? n : part_ends_[p];
            written +=
                sort_and_sum(list + begin, end - begin, bits, 32, sorted_.get(), out + written);
            begin = end;
        }
        return written;
    }

    template <class Key>
    POLYSPARSE_INLINE int64_t sort_and_sum(ConstSlots<int32_t, Value> list, int64_t n, int bits,
                                           int place_bits, Key* sorted, Slots<int32_t, Value> out) {
        sort_buckets(list.columns, n, bits, place_bits, bins_.get(), starts_.get(), sorted);
        return gather(sorted, n, place_bits, list.values, out);
    }

    /// Shares out the list to 2^part_bits parts, by the bits of the buckets from `shift` up.
    POLYSPARSE_INLINE void share_out(int64_t n, int shift, int part_bits) {
        const uint16_t* __restrict part = bins_.get();
        uint32_t* __restrict places = part_ends_.get();
        const ConstSlots<int32_t, Value> from{buckets_.get(), values_.get()};
        int32_t* __restrict buckets = parts_.get();
        Value* __restrict values = part_values_.get();
        find_bins(from.columns, n, shift, part_bits, bins_.get(), places);
        for (int64_t i = 0; i < n; ++i) {
            const uint32_t place = places[part[i]]++;
            buckets[place] = from.columns[i];
            values[place] = from.values[i];
        }
    }

    const Basis* basis_;
    Hasher hasher_;
    std::unique_ptr<uint64_t[]> mixed_;  // mix of the stored values' columns
    std::unique_ptr<uint64_t[]> tails_;  // h of all tuples below the highest degree
    std::unique_ptr<Value[]> tail_values_;
    std::unique_ptr<int32_t[]> buckets_, parts_;  // the list, and the list shared out
    std::unique_ptr<Value[]> values_, part_values_;
    std::unique_ptr<uint16_t[]> bins_;
    std::unique_ptr<uint32_t[]> starts_, part_ends_;
    std::unique_ptr<int64_t[]> sorted_;
    std::unique_ptr<int32_t[]> short_sorted_;
    std::unique_ptr<Value[]> sums_;
    std::unique_ptr<uint64_t[]> seen_;
    bool has_sums_ = false;  // whether they were cleared: many workers never see such a row
};

}  // namespace polysparse
