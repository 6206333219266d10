// Vectors to multiply with: a table with a row for each column of an expansion, or for each of its
// rows, of which a few neighbouring columns are taken at a time.
#pragma once

#include <array>
#include <cstdint>

#include "platform/processors.hpp"

namespace polysparse {

/// `width` columns of a table. A single column is a table of its own.
template <class Value, int64_t width>
struct Vectors {
    Value* values;
    int64_t row_length;

    POLYSPARSE_INLINE int64_t stride() const { return width == 1 ? 1 : row_length; }
    POLYSPARSE_INLINE Value* operator[](int64_t i) const { return values + i * stride(); }

    /// What begins n rows on.
    POLYSPARSE_INLINE Vectors from(int64_t n) const { return {(*this)[n], row_length}; }
};

/// One number for each of `width` vectors.
template <class Value, int64_t width>
struct Numbers {
    std::array<Value, width> of{};

    POLYSPARSE_INLINE void add(Value scale, const Value* numbers) {
        for (int64_t c = 0; c < width; ++c) of[c] += scale * numbers[c];
    }
    POLYSPARSE_INLINE void add(Value scale, const Numbers& numbers) {
        add(scale, numbers.of.data());
    }
    POLYSPARSE_INLINE Numbers times(Value scale) const {
        Numbers product;
        for (int64_t c = 0; c < width; ++c) product.of[c] = scale * of[c];
        return product;
    }
    POLYSPARSE_INLINE void add_to(Value scale, Value* numbers) const {
        for (int64_t c = 0; c < width; ++c) numbers[c] += scale * of[c];
    }
};

}  // namespace polysparse
