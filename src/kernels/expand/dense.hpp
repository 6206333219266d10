// The expansion of dense rows: Algorithm 1 of the paper, by the same walk.
#pragma once

#include <cstdint>

#include "basis/basis.hpp"
#include "platform/threads.hpp"

namespace polysparse {

/// Element (r, c) is values[r * row_stride + c * column_stride].
template <class Value>
struct DenseView {
    Value* values;
    int64_t row_stride, column_stride;
    Value* at(int64_t r, int64_t c) const { return values + r * row_stride + c * column_stride; }
};

/// Fills every element of `out`, n_rows by the columns of the basis. Needs: one of out's strides is
/// 1. False if stopped. Throws bad_alloc, before any thread starts, if the buffers cannot be
/// allocated.
template <class Value>
bool fill_dense(const Basis& basis, DenseView<const Value> x, DenseView<Value> out, int64_t n_rows,
                int64_t n_threads, const StopRequest& should_stop);

}  // namespace polysparse
