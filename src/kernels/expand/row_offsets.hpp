// Outputs per row: the sizes that the fill must meet exactly.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "basis/basis.hpp"
#include "matrix/csr_view.hpp"

namespace polysparse {

/// The distinct row lengths and how often each occurs, in increasing order. A plan needs no more of
/// the data, because a RowShape is a length; unless features are in groups.
std::vector<std::pair<int64_t, int64_t>> count_row_lengths(const Indices& row_offsets,
                                                           int64_t n_rows);

/// out_offsets[r] = outputs of all rows before r. They never fall. False if the total does not fit
/// the type of out_offsets. The columns are read only if features are in groups, and rows are not
/// known to be alike.
bool fill_row_offsets(const Basis& basis, const Indices& row_offsets, int64_t n_rows,
                      const Indices& columns, const OutIndices& out_offsets, int64_t n_threads);

/// Outputs of rows whose features are in groups. More than `most` are not counted.
struct OutputCounts {
    static constexpr int64_t most = int64_t{1} << 60;

    std::vector<int64_t> by_degree;  // of all rows; element 0 is the bias
    int64_t largest_row = 0;
};
OutputCounts count_outputs(const Basis& basis, const Indices& row_offsets, int64_t n_rows,
                           const Indices& columns, int64_t n_threads);

}  // namespace polysparse
