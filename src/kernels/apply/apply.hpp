// Products of an expansion, and of its transpose, with vectors. The expansion is never stored.
#pragma once

#include <cstdint>

#include "basis/basis.hpp"
#include "matrix/csr_view.hpp"
#include "platform/threads.hpp"

namespace polysparse {

/// Numbers for each row or column of an expansion, one for each of n_vectors, side by side.
template <class Value>
struct VectorTable {
    Value* values;
    int64_t n_vectors;

    Value* operator[](int64_t i) const { return values + i * n_vectors; }
};

/// How much work there is, and how it is divided.
struct Effort {
    int64_t n_outputs;  // of the whole expansion, about
    int64_t n_threads;
    int64_t task;  // outputs of a task; 0 for what suits
};

/// out = expansion of x, times coefficients. Needs: x inspected, with increasing columns; a number
/// for each column of the basis. The result does not depend on the number of threads. False if
/// stopped. Throws bad_alloc, while no thread runs.
template <class Value>
bool apply(const Basis& basis, const CsrView<Value>& x, VectorTable<const Value> coefficients,
           VectorTable<Value> out, Effort effort, const StopRequest& should_stop);

/// Adds the transposed expansion of x, times weights of its rows, to `out`. The rest as above.
template <class Value>
bool apply_transposed(const Basis& basis, const CsrView<Value>& x, VectorTable<const Value> weights,
                      VectorTable<Value> out, Effort effort, const StopRequest& should_stop);

}  // namespace polysparse
