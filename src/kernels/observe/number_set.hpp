// A set of small numbers that returns them in order, without sorting.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "platform/processors.hpp"

namespace polysparse {

/// Three levels of bits: a bit of a higher level says that 64 bits of the level below are not all
/// zero. So a few numbers among millions are found in a few steps each.
class NumberSet {
  public:
    explicit NumberSet(int64_t limit)
        : low_(limit / 64 + 1), middle_(low_.size() / 64 + 1), high_(middle_.size() / 64 + 1) {}

    POLYSPARSE_INLINE void insert(uint32_t number) {
        low_[number >> 6] |= uint64_t{1} << (number & 63);
        middle_[number >> 12] |= uint64_t{1} << ((number >> 6) & 63);
        high_[number >> 18] |= uint64_t{1} << ((number >> 12) & 63);
    }

    /// Calls f with every number, in order, and removes it.
    template <class F>
    void drain(const F& f) {
        for (size_t h = 0; h < high_.size(); ++h)
            drain_word(high_[h], h, [&](size_t m) {
                drain_word(middle_[m], m, [&](size_t l) {
                    drain_word(low_[l], l, [&](size_t n) { f(static_cast<uint32_t>(n)); });
                });
            });
    }

  private:
    template <class F>
    static void drain_word(uint64_t& word, size_t place, const F& f) {
        for (uint64_t rest = word; rest != 0; rest &= rest - 1)
            f(64 * place + static_cast<size_t>(std::countr_zero(rest)));
        word = 0;
    }

    std::vector<uint64_t> low_, middle_, high_;
};

}  // namespace polysparse
