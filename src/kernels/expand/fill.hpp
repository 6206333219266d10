// The expansion of a CSR matrix, straight to its final place.
#pragma once

#include <cstdint>

#include "basis/basis.hpp"
#include "matrix/csr_view.hpp"
#include "platform/threads.hpp"

namespace polysparse {

/// Fills every slot that out_offsets counts. `wanted` is the number of outputs per task, 0 for what
/// suits the number of threads. Needs: x inspected and increasing, out_offsets from
/// fill_row_offsets, OutIndex wide enough for the basis. The result does not depend on n_threads.
/// False if stopped. Throws bad_alloc, while no thread runs, if the buffers cannot be allocated: at
/// most twice the largest degree below the lowest one, for each thread.
template <class Value, class OutIndex>
bool fill(const Basis& basis, const CsrView<Value>& x, const OutIndex* out_offsets,
          Slots<OutIndex, Value> out, int64_t n_threads, int64_t wanted,
          const StopRequest& should_stop);

}  // namespace polysparse
