// The outputs of a hashed row as a list, to be sorted and summed by bucket.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "matrix/slots.hpp"
#include "platform/processors.hpp"
#include "select/bucket_sort.hpp"

namespace polysparse {

/// Up to n outputs, and the memory for sorting and summing them. Throws bad_alloc.
template <class Value>
class OutputList {
  public:
    explicit OutputList(int64_t n)
        : buckets_(std::make_unique_for_overwrite<int32_t[]>(n + sort_spill)),
          values_(std::make_unique_for_overwrite<Value[]>(n + sort_spill)),
          sorted_(std::make_unique_for_overwrite<int64_t[]>(n + sort_spill)),
          short_sorted_(std::make_unique_for_overwrite<int32_t[]>(n + sort_spill)),
          bins_(std::make_unique_for_overwrite<uint16_t[]>(n + sort_spill)),
          starts_(std::make_unique_for_overwrite<std::byte[]>(bytes_of_starts(n))) {
        if (n <= many_buckets) return;
        parts_ = std::make_unique_for_overwrite<int32_t[]>(n);
        part_values_ = std::make_unique_for_overwrite<Value[]>(n);
        part_ends_ = std::make_unique_for_overwrite<uint32_t[]>(int64_t{1} << most_part_bits);
    }

    static uint64_t bytes(int64_t n) {
        constexpr uint64_t listed = sizeof(int32_t) + sizeof(Value);
        constexpr uint64_t sorted = sizeof(int64_t) + sizeof(int32_t) + sizeof(uint16_t);
        const uint64_t distributed =
            n <= many_buckets ? 0 : listed * n + (sizeof(uint32_t) << most_part_bits);
        return (listed + sorted) * (n + sort_spill) + bytes_of_starts(n) + distributed;
    }

    Slots<int32_t, Value> list() const { return {buckets_.get(), values_.get()}; }

    /// The first n outputs of the list, sorted and summed, at `out`. Returns how many are left.
    /// Needs: buckets below 2^bits.
    POLYSPARSE_INLINE int64_t sum(int64_t n, int bits, Slots<int32_t, Value> out) {
        const int place_bits = bit_width(n);
        if (bits + place_bits < 32)
            return sort_and_sum(list(), n, bits, place_bits, short_sorted_.get(), out);
        if (n <= many_buckets) return sort_and_sum(list(), n, bits, 32, sorted_.get(), out);
        const int part_bits = std::min(place_bits - 12, most_part_bits);
        bits -= part_bits;
        distribute(n, bits, part_bits);
        const ConstSlots<int32_t, Value> parts{parts_.get(), part_values_.get()};
        int64_t begin = 0, written = 0;
        for (int64_t p = 0; p < int64_t{1} << part_bits; ++p) {
            const int64_t end = part_ends_[p];
            written +=
                sort_and_sum(parts + begin, end - begin, bits, 32, sorted_.get(), out + written);
            begin = end;
        }
        return written;
    }

  private:
    static constexpr int most_part_bits = 12;

    static int64_t bytes_of_starts(int64_t n) {
        return sizeof(uint32_t) *
               std::min<int64_t>(2 * (n + sort_spill), int64_t{1} << most_bin_bits);
    }

    template <class Key>
    POLYSPARSE_INLINE int64_t sort_and_sum(ConstSlots<int32_t, Value> list, int64_t n, int bits,
                                           int place_bits, Key* sorted, Slots<int32_t, Value> out) {
        sort_buckets(list.columns, n, bits, place_bits, bins_.get(), starts_.get(), sorted);
        return gather(sorted, n, place_bits, list.values, out);
    }

    /// Distributes the list to 2^part_bits parts, by the bits of the buckets from `shift` up.
    POLYSPARSE_INLINE void distribute(int64_t n, int shift, int part_bits) {
        const uint16_t* __restrict part = bins_.get();
        uint32_t* __restrict places = part_ends_.get();
        const ConstSlots<int32_t, Value> from = list();
        int32_t* __restrict buckets = parts_.get();
        Value* __restrict values = part_values_.get();
        find_bins(from.columns, n, shift, part_bits, bins_.get(), places);
        for (int64_t i = 0; i < n; ++i) {
            const uint32_t place = places[part[i]]++;
            buckets[place] = from.columns[i];
            values[place] = from.values[i];
        }
    }

    // In the order of allocation, which decides which arrays share cache sets: with bins_ and
    // starts_ before sorted_, rows of some thousand outputs took 12 % longer.
    std::unique_ptr<int32_t[]> buckets_;
    std::unique_ptr<Value[]> values_;
    std::unique_ptr<int64_t[]> sorted_;  // keys; short ones are faster, where they are enough
    std::unique_ptr<int32_t[]> short_sorted_;
    std::unique_ptr<uint16_t[]> bins_;
    std::unique_ptr<std::byte[]> starts_;
    std::unique_ptr<int32_t[]> parts_;  // the list, distributed
    std::unique_ptr<Value[]> part_values_;
    std::unique_ptr<uint32_t[]> part_ends_;
};

}  // namespace polysparse
