// Products for chosen and hashed columns: rows are listed, a few at a time, in memory that stays in
// cache, and what is listed is multiplied.
#pragma once

#include <cstdint>

#include "apply/apply.hpp"
#include "select/hash.hpp"
#include "select/lookup.hpp"

namespace polysparse {

/// As `apply`, and `apply_transposed`, for chosen columns and for hashed ones. Throws bad_alloc,
/// while no thread runs.
template <class Value>
bool apply(const Basis& basis, const Lookup& lookup, const CsrView<Value>& x,
           VectorTable<const Value> coefficients, VectorTable<Value> out, Effort effort,
           const StopRequest& should_stop);
template <class Value>
bool apply(const Basis& basis, const Hasher& hasher, const CsrView<Value>& x,
           VectorTable<const Value> coefficients, VectorTable<Value> out, Effort effort,
           const StopRequest& should_stop);
template <class Value>
bool apply_transposed(const Basis& basis, const Lookup& lookup, const CsrView<Value>& x,
                      VectorTable<const Value> weights, VectorTable<Value> out, Effort effort,
                      const StopRequest& should_stop);
template <class Value>
bool apply_transposed(const Basis& basis, const Hasher& hasher, const CsrView<Value>& x,
                      VectorTable<const Value> weights, VectorTable<Value> out, Effort effort,
                      const StopRequest& should_stop);

}  // namespace polysparse
