// A CSR matrix that somebody else owns, and the one pass that decides whether it can be trusted.
#pragma once

#include <cstdint>
#include <limits>

namespace polysparse {

/// Row r holds columns[row_offsets[r] .. row_offsets[r + 1]) and the values beside them.
template <class Offset, class Index, class Value>
struct CsrView {
    int64_t n_rows;
    int64_t n_columns;
    const Offset* row_offsets;
    const Index* columns;
    const Value* values;
};

enum class CsrFault { none, first_offset, falling_offset, last_offset, column_range };

struct CsrReport {
    CsrFault fault;
    int64_t where;         // the row or the stored value that is at fault
    bool rising;           // columns strictly rise within every row: sorted, and none twice
    int64_t stored_zeros;  // how many stored values are zero
};

/// Checks everything that the other kernels rely on. `n_stored` is the length of columns and
/// values; no element past it is read. Cost: one vectorised pass over each array.
template <class Offset, class Index, class Value>
CsrReport inspect(const CsrView<Offset, Index, Value>& x, int64_t n_stored) {
    CsrReport report{CsrFault::none, 0, true, 0};
    const auto fail = [&](CsrFault fault, int64_t where) {
        report.fault = fault;
        report.where = where;
        return report;
    };
    if (x.row_offsets[0] != 0) return fail(CsrFault::first_offset, 0);
    for (int64_t r = 0; r < x.n_rows; ++r)
        if (x.row_offsets[r + 1] < x.row_offsets[r]) return fail(CsrFault::falling_offset, r);
    const int64_t stored = x.row_offsets[x.n_rows];
    if (stored > n_stored) return fail(CsrFault::last_offset, x.n_rows);

    using Unsigned = std::make_unsigned_t<Index>;
    const uint64_t most = std::numeric_limits<Index>::max();
    const auto last = static_cast<Unsigned>(std::min<uint64_t>(most, x.n_columns - 1));
    bool outside = x.n_columns == 0 && stored > 0;
    for (int64_t t = 0; t < stored; ++t) outside |= static_cast<Unsigned>(x.columns[t]) > last;
    if (outside) {
        int64_t t = 0;
        while (x.n_columns > 0 && static_cast<Unsigned>(x.columns[t]) <= last) ++t;
        return fail(CsrFault::column_range, t);
    }

    // Steps down are allowed where a row begins and nowhere else: count both, and compare.
    int64_t steps_down = 0, at_row_starts = 0;
    for (int64_t t = 1; t < stored; ++t) steps_down += x.columns[t] <= x.columns[t - 1];
    for (int64_t r = 1; r < x.n_rows; ++r) {
        const int64_t t = x.row_offsets[r];
        if (t > 0 && t < x.row_offsets[r + 1]) at_row_starts += x.columns[t] <= x.columns[t - 1];
    }
    report.rising = steps_down == at_row_starts;
    for (int64_t t = 0; t < stored; ++t) report.stored_zeros += x.values[t] == Value(0);
    return report;
}

}  // namespace polysparse
