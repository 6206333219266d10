// Outputs that one worker lists and others add: distributed by ranges of columns.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "matrix/slots.hpp"
#include "platform/processors.hpp"
#include "select/bucket_sort.hpp"

namespace polysparse {

/// Equal ranges of columns, told apart by the bits of a column from `shift` up.
struct ColumnRanges {
    int bits, shift;

    /// Up to 64 ranges of n columns, each of 64 columns or more.
    explicit ColumnRanges(int64_t n_columns)
        : bits(std::clamp(bit_width(n_columns - 1) - 6, 0, 6)),
          shift(bit_width(n_columns - 1) - bits) {}

    int64_t count() const { return int64_t{1} << bits; }
};

/// Outputs one behind the other, then distributed by ranges.
template <class Value>
class OutputPiece {
  public:
    /// For up to n outputs. Throws bad_alloc.
    OutputPiece(int64_t n, ColumnRanges ranges)
        : ranges_(ranges),
          list_(n + lanes),
          by_range_(n),
          range_of_(std::make_unique_for_overwrite<uint16_t[]>(n)),
          ends_(std::max(ranges.count(), lanes)) {}

    static uint64_t bytes(int64_t n, ColumnRanges ranges) {
        return SlotArrays<int32_t, Value>::bytes(2 * n + lanes) + sizeof(uint16_t) * n +
               sizeof(uint32_t) * std::max(ranges.count(), lanes);
    }

    /// Where they are listed.
    Slots<int32_t, Value> list() const { return list_.slots(); }

    /// Distributes the n outputs of the list.
    POLYSPARSE_INLINE void distribute(int64_t n) {
        const uint16_t* __restrict range_of = range_of_.get();
        uint32_t* __restrict places = ends_.data();
        const ConstSlots<int32_t, Value> from = list_.slots();
        const Slots<int32_t, Value> to = by_range_.slots();
        find_bins(from.columns, n, ranges_.shift, ranges_.bits, range_of_.get(), places);
        for (int64_t i = 0; i < n; ++i) {
            const uint32_t place = places[range_of[i]]++;
            to.columns[place] = from.columns[i];
            to.values[place] = from.values[i];
        }
    }

    /// Calls put(columns, values, count) with the outputs of a range, in the order of the list.
    template <class Put>
    void give(int64_t range, const Put& put) const {
        const int64_t begin = range == 0 ? 0 : ends_[range - 1];
        const ConstSlots<int32_t, Value> outputs = by_range_.slots() + begin;
        put(outputs.columns, outputs.values, ends_[range] - begin);
    }

  private:
    ColumnRanges ranges_;
    SlotArrays<int32_t, Value> list_, by_range_;
    std::unique_ptr<uint16_t[]> range_of_;
    std::vector<uint32_t> ends_;  // of the ranges
};

}  // namespace polysparse
