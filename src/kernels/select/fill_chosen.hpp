// The expansion of a CSR matrix with only the columns that the caller has chosen.
#pragma once

#include <cstdint>
#include <span>

#include "basis/basis.hpp"
#include "matrix/csr_view.hpp"
#include "platform/threads.hpp"
#include "select/append_rows.hpp"
#include "select/lookup.hpp"

namespace polysparse {

/// Appends the chosen outputs of all rows, at their new columns, sorted. Needs: x inspected and
/// increasing, a lookup for this basis. See append_rows.
template <class Value>
Appending fill_chosen(const Basis& basis, const Lookup& lookup, const CsrView<Value>& x,
                      const AppendTo<Value>& out, int64_t n_threads, int64_t wanted,
                      const StopRequest& should_stop);

/// The memory that fill_chosen takes, besides where it appends, for any rows of which no more have
/// a shape than are given. Needs: fewer than 2^58 outputs.
template <class Value>
int64_t choosing_bytes(const Basis& basis, int64_t n_columns, std::span<const RowsOfShape> rows,
                       int64_t n_threads, int64_t wanted);

}  // namespace polysparse
