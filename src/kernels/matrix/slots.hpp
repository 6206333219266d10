// Two parallel arrays: keys, which are columns or hashes, and values.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

namespace polysparse {

template <class Key, class Value>
class SlotArrays;

/// A place in both arrays.
template <class Key, class Value>
struct Slots {
    using Arrays = SlotArrays<Key, Value>;
    Key* columns;
    Value* values;
    Slots operator+(int64_t n) const { return {columns + n, values + n}; }
    Slots operator-(int64_t n) const { return {columns - n, values - n}; }
    operator Slots<const Key, const Value>() const { return {columns, values}; }
};

template <class Key, class Value>
using ConstSlots = Slots<const Key, const Value>;

/// The arrays themselves, uninitialised. Throws bad_alloc.
template <class Key, class Value>
class SlotArrays {
  public:
    explicit SlotArrays(int64_t size)
        : keys_(std::make_unique_for_overwrite<Key[]>(size)),
          values_(std::make_unique_for_overwrite<Value[]>(size)) {}

    static uint64_t bytes(int64_t size) {
        return static_cast<uint64_t>(size) * (sizeof(Key) + sizeof(Value));
    }

    void clear(int64_t size) {
        std::fill_n(keys_.get(), size, Key(0));
        std::fill_n(values_.get(), size, Value(0));
    }
    Slots<Key, Value> slots() const { return {keys_.get(), values_.get()}; }

  private:
    std::unique_ptr<Key[]> keys_;
    std::unique_ptr<Value[]> values_;
};

}  // namespace polysparse
