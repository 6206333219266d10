// The one pass that decides whether a CSR matrix can be trusted. All other kernels rely on what it
// found of row offsets. Columns may have changed since then: see column_range.hpp.
#pragma once

#include <cstdint>

#include "matrix/csr_view.hpp"

namespace polysparse {

enum class CsrFault { none, first_offset, falling_offset, last_offset, column_range };

struct CsrReport {
    CsrFault fault;
    int64_t where;         // the row or the stored value at fault
    bool increasing;       // columns strictly increase within every row: sorted and unique; and no
                           // row stores more values than there are columns, whatever has changed
    int64_t stored_zeros;  // stored values that are zero
    bool finite;           // no stored value is infinite or NaN
};

/// Checks everything that the other kernels rely on. `n_stored` is the length of columns and
/// values; nothing past it is read. Cost: one vectorised pass over each array, shared out.
template <class Value>
CsrReport inspect(const CsrView<Value>& x, int64_t n_stored, int64_t n_threads);

}  // namespace polysparse
