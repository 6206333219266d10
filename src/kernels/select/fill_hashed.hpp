// The expansion of a CSR matrix with hashed columns.
#pragma once

#include <cstdint>
#include <span>

#include "basis/basis.hpp"
#include "matrix/csr_view.hpp"
#include "platform/threads.hpp"
#include "select/append_rows.hpp"
#include "select/hash.hpp"

namespace polysparse {

/// Appends the hashed rows of x: sorted, unique buckets and summed values. Needs: x inspected and
/// increasing. See append_rows.
template <class Value>
Appending fill_hashed(const Basis& basis, const Hasher& hasher, const CsrView<Value>& x,
                      const AppendTo<Value>& out, int64_t n_threads, int64_t wanted,
                      const StopRequest& should_stop);

/// The memory that fill_hashed takes, besides where it appends, for any rows of which no more have
/// a shape than are given. Needs: fewer than 2^58 outputs.
template <class Value>
int64_t hashing_bytes(const Basis& basis, const Hasher& hasher, std::span<const RowsOfShape> rows,
                      int64_t n_threads, int64_t wanted);

}  // namespace polysparse
