// Rows whose values are in the same groups, as those of one-hot tables are. What depends on groups
// alone is then known for all of them before any is read.
#pragma once

#include <cstdint>
#include <vector>

#include "basis/basis.hpp"
#include "matrix/csr_view.hpp"

namespace polysparse {

/// What some rows have in common.
struct RowsInCommon {
    bool are_distinct;                // every row has at most one value of each group
    std::vector<int32_t> row_groups;  // of the values of every row; empty if rows differ
};

/// Needs: groups, and increasing columns. Rows of more than 1024 values are not compared. Cost: one
/// vectorised pass over the columns, or two if rows differ, shared out.
RowsInCommon compare_groups(const Basis& basis, const Indices& row_offsets, int64_t n_rows,
                            const Indices& columns, int64_t n_threads);

}  // namespace polysparse
