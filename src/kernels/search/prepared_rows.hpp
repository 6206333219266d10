// Rows that are ready to be searched: ordered, and by column.
#pragma once

#include <cstdint>
#include <utility>

#include "basis/basis.hpp"
#include "matrix/csr_view.hpp"
#include "observe/transposed.hpp"
#include "platform/threads.hpp"
#include "search/ordered_rows.hpp"

namespace polysparse {

/// Rows to be searched. Values are null if all are 1.
struct SearchedRows {
    int64_t n;
    Indices row_offsets;
    Indices columns;
    const double* values;

    /// Throws bad_alloc and Stopped.
    OwnRows copy(int64_t n_columns, int64_t n_threads, const StopRequest& should_stop) const {
        return {n_columns, n, row_offsets, columns, n_threads, should_stop};
    }
};

/// Columns that may be used and are in at least `least` rows.
struct PreparedRows {
    OrderedRows rows;
    Transposed<uint32_t> by_column;

    /// Needs: rows inspected and increasing, fewer than 2^31 stored values and columns; no terms.
    /// Throws bad_alloc and Stopped.
    PreparedRows(const Basis& basis, const SearchedColumns& columns, const SearchedRows& x,
                 int64_t least, int64_t n_threads, const StopRequest& should_stop)
        : PreparedRows(basis, columns, x, x.copy(columns.n, n_threads, should_stop), least,
                       n_threads, should_stop) {}

    /// The same with a copy that was made before, and is freed.
    PreparedRows(const Basis& basis, const SearchedColumns& columns, const SearchedRows& x,
                 OwnRows own, int64_t least, int64_t n_threads, const StopRequest& should_stop)
        : rows(order_rows(basis, columns, x.n, x.row_offsets, std::move(own), x.values, least,
                          n_threads, should_stop)) {
        if (rows.row_offsets.back() == 0) return;
        const Indices row_offsets(rows.row_offsets.data());
        by_column = transpose<int32_t>(row_offsets, x.n, rows.numbers.data(), rows.n_columns(),
                                       nullptr, n_threads, should_stop);
        if (basis.groups)
            list_followers(by_column, rows.groups, row_offsets, x.n, n_threads, should_stop);
    }
};

}  // namespace polysparse
