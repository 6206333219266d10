// Numbers for the distinct values of an array, in order of first appearance.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace polysparse {

/// A hash table of values and their numbers, which doubles before it is three quarters full.
class Numbering {
  public:
    Numbering() : places_(64) {}

    int32_t size() const { return size_; }

    /// Returns the number of a value, which is that of the first equal one.
    int32_t number_of(uint64_t value) {
        Place* place = find(value);
        if (place->number >= 0) return place->number;
        if (4 * (static_cast<size_t>(size_) + 1) > 3 * places_.size()) {
            grow();
            place = find(value);
        }
        *place = {value, size_};
        return size_++;
    }

  private:
    struct Place {
        uint64_t value = 0;
        int32_t number = -1;  // if the place is empty
    };

    /// The place of a value, or the empty one where it belongs.
    Place* find(uint64_t value) {
        // The high bits of the product: the low bits of addresses are alike.
        const int shift = 64 - std::countr_zero(places_.size());
        size_t i = (value * 0x9E3779B97F4A7C15u) >> shift;
        while (places_[i].number >= 0 && places_[i].value != value)
            i = (i + 1) & (places_.size() - 1);
        return &places_[i];
    }

    void grow() {
        std::vector<Place> old(2 * places_.size());
        old.swap(places_);
        for (const Place& each : old)
            if (each.number >= 0) *find(each.value) = each;
    }

    std::vector<Place> places_;
    int32_t size_ = 0;
};

/// Writes the number of each value, and where the value of each number comes first. Returns how
/// many distinct values there are, or -1 if they are more than `most`: then the rest is not read.
/// Needs: `most` < 2^31; there is room for as many in `firsts`.
inline int64_t number_distinct(const uint64_t* values, int64_t n, int64_t most, int32_t* numbers,
                               int64_t* firsts) {
    Numbering numbering;
    for (int64_t i = 0; i < n; ++i) {
        const uint64_t value = values[i];  // which may change at any time
        const int32_t size = numbering.size(), number = numbering.number_of(value);
        if (number == size) {
            if (size == most) return -1;
            firsts[size] = i;
        }
        numbers[i] = number;
    }
    return numbering.size();
}

}  // namespace polysparse
