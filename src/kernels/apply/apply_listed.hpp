// Products for chosen and hashed columns: rows are listed, a few at a time, in memory that stays in
// cache, and what is listed is multiplied.
#pragma once

#include <cstdint>

#include "apply/apply.hpp"
#include "select/hash.hpp"
#include "select/lookup.hpp"

namespace polysparse {

/// As `apply` and `apply_transposed` of apply.hpp. Columns are chosen by a Lookup, or hashed by a
/// Hasher. Throws bad_alloc, while no thread runs.
template <class Value, class By>
bool apply(const Basis& basis, const By& by, const CsrView<Value>& x,
           VectorTable<const Value> coefficients, VectorTable<Value> out, Effort effort,
           const StopRequest& should_stop);
template <class Value, class By>
bool apply_transposed(const Basis& basis, const By& by, const CsrView<Value>& x,
                      VectorTable<const Value> weights, VectorTable<Value> out, Effort effort,
                      const StopRequest& should_stop);

}  // namespace polysparse
