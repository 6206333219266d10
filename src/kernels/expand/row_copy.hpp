// A checked copy of a row whose columns are int64, with room behind it for groups of lanes that go
// past its end.
#pragma once

#include <algorithm>
#include <cstdint>

#include "expand/row_shape.hpp"
#include "matrix/csr_view.hpp"
#include "matrix/own_columns.hpp"
#include "matrix/slots.hpp"
#include "platform/processors.hpp"

namespace polysparse {

template <class Value>
class RowCopy {
  public:
    /// For rows up to a shape. Throws bad_alloc.
    explicit RowCopy(RowShape largest) : slots_(n_stored(largest) + lanes) {
        slots_.clear(n_stored(largest) + lanes);
    }

    static uint64_t bytes(RowShape largest) {
        return SlotArrays<int64_t, Value>::bytes(n_stored(largest) + lanes);
    }

    /// Row r. It is valid until the next copy.
    Row<int64_t, Value> copy(const CsrView<Value>& x, int64_t r) const {
        const int64_t begin = x.row_offsets[r], n = x.row_offsets[r + 1] - begin;
        const Slots<int64_t, Value> to = slots_.slots();
        x.columns.visit([&](const auto* columns) {
            copy_increasing(columns + begin, n, x.n_columns, to.columns);
        });
        std::copy_n(x.values + begin, n, to.values);
        return {to, n};
    }

  private:
    SlotArrays<int64_t, Value> slots_;
};

}  // namespace polysparse
