// The expansion of a CSR matrix with only the columns that the caller has chosen.
#pragma once

#include <cstdint>

#include "basis/basis.hpp"
#include "matrix/csr_view.hpp"
#include "platform/threads.hpp"
#include "select/append_rows.hpp"
#include "select/lookup.hpp"

namespace polysparse {

/// Appends the chosen outputs of all rows, at their new columns, sorted. Needs: x inspected and
/// rising, a lookup for this basis. See append_rows.
template <class Value>
Appending fill_chosen(const Basis& basis, const Lookup& lookup, const CsrView<Value>& x,
                      const AppendTo<Value>& out, int64_t n_threads, int64_t wanted,
                      const StopRequest& should_stop);

}  // namespace polysparse
