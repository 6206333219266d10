// Outputs per row: the sizes that the fill must meet exactly.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "basis/basis.hpp"
#include "matrix/csr_view.hpp"

namespace polysparse {

/// The distinct row lengths and how often each occurs, in increasing order. A plan needs no more of
/// the data, because a RowShape is a length.
std::vector<std::pair<int64_t, int64_t>> count_row_lengths(const Indices& row_offsets,
                                                           int64_t n_rows);

/// out_offsets[r] = outputs of all rows before r. Needs: the total fits the type of out_offsets.
/// Every part of the rows is summed by itself, and then written.
void fill_row_offsets(const Basis& basis, const Indices& row_offsets, int64_t n_rows,
                      const OutIndices& out_offsets, int64_t n_threads);

}  // namespace polysparse
