// Rows to be observed: where values are stored.
#pragma once

#include <cstdint>

#include "matrix/csr_view.hpp"

namespace polysparse {

/// Rows whose values do not matter. Columns are read from row_offsets[0] on.
struct CsrPattern {
    Indices row_offsets;
    int64_t n_rows;
    Indices columns;

    /// Whether the offsets are within n_columns columns, and few enough to be counted. Assumes that
    /// they rise.
    bool can_be_observed(int64_t n_columns) const {
        const int64_t begin = row_offsets[0], end = row_offsets[n_rows];
        constexpr int64_t limit = int64_t{1} << 32;
        return 0 <= begin && begin <= end && end <= n_columns && n_rows < limit &&
               end - begin < limit;
    }
};

}  // namespace polysparse
