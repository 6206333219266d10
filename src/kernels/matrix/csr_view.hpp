// A CSR matrix that somebody else owns, and the one pass that decides whether it can be trusted.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "platform/processors.hpp"
#include "platform/threads.hpp"

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

/// What a stretch of stored values shows. Counts add up, and so do stretches.
struct StretchReport {
    bool outside = false;       // a column is not in the matrix
    int64_t steps_down = 0;     // columns that do not rise on the one before, rows aside
    int64_t at_row_starts = 0;  // those of them that begin a row, where they may
    int64_t stored_zeros = 0;

    void operator+=(const StretchReport& other) {
        outside |= other.outside;
        steps_down += other.steps_down;
        at_row_starts += other.at_row_starts;
        stored_zeros += other.stored_zeros;
    }
};

/// Stored values [begin, end), at most 2^30 of them. `last` is the last column there is.
template <class Offset, class Index, class Value>
POLYSPARSE_TARGETS StretchReport inspect_stretch(const CsrView<Offset, Index, Value>& x,
                                                 std::make_unsigned_t<Index> last, int64_t begin,
                                                 int64_t end) {
    // Counters as wide as what they count, so that the loops vectorise without widening.
    using Unsigned = std::make_unsigned_t<Index>;
    using Counter = std::conditional_t<sizeof(Value) == 8, int64_t, int32_t>;
    Unsigned outside = 0;
    Index steps_down = 0;
    Counter stored_zeros = 0;
    const Index* __restrict columns = x.columns;
    for (int64_t t = begin; t < end; ++t) outside |= static_cast<Unsigned>(columns[t]) > last;
    for (int64_t t = std::max<int64_t>(begin, 1); t < end; ++t)
        steps_down += columns[t] <= columns[t - 1];
    for (int64_t t = begin; t < end; ++t) stored_zeros += x.values[t] == Value(0);

    int64_t at_row_starts = 0;
    const Offset* const rows_end = x.row_offsets + x.n_rows;
    const Offset* row = std::lower_bound(x.row_offsets, rows_end, std::max<int64_t>(begin, 1));
    for (; row != rows_end && *row < end; ++row)
        if (*row < row[1]) at_row_starts += columns[*row] <= columns[*row - 1];
    return {outside != 0, steps_down, at_row_starts, stored_zeros};
}

/// Checks everything that the other kernels rely on. `n_stored` is the length of columns and
/// values; no element past it is read. Cost: one vectorised pass over each array, shared out.
template <class Offset, class Index, class Value>
CsrReport inspect(const CsrView<Offset, Index, Value>& x, int64_t n_stored, int64_t n_threads) {
    const auto fault = [](CsrFault kind, int64_t where) {
        return CsrReport{kind, where, false, 0};
    };
    if (x.row_offsets[0] != 0) return fault(CsrFault::first_offset, 0);
    for (int64_t r = 0; r < x.n_rows; ++r)
        if (x.row_offsets[r + 1] < x.row_offsets[r]) return fault(CsrFault::falling_offset, r);
    const int64_t stored = x.row_offsets[x.n_rows];
    if (stored > n_stored) return fault(CsrFault::last_offset, x.n_rows);
    if (x.n_columns == 0 && stored > 0) return fault(CsrFault::column_range, 0);

    using Unsigned = std::make_unsigned_t<Index>;
    const int64_t most = std::numeric_limits<Index>::max();
    const auto last = static_cast<Unsigned>(std::min<int64_t>(most, x.n_columns - 1));
    constexpr int64_t stretch = int64_t{1} << 14;  // its arrays stay in cache from loop to loop
    const int64_t n_tasks = (stored + stretch - 1) / stretch;
    std::vector<StretchReport> sums(n_threads);
    auto never = [] { return false; };
    const auto look = [&](int64_t worker, int64_t task) {
        const int64_t begin = task * stretch, end = std::min(begin + stretch, stored);
        sums[worker] += inspect_stretch(x, last, begin, end);
    };
    run_tasks(n_tasks, n_threads, look, never);

    StretchReport all;
    for (const StretchReport& sum : sums) all += sum;
    if (all.outside) {
        int64_t t = 0;
        while (static_cast<Unsigned>(x.columns[t]) <= last) ++t;
        return fault(CsrFault::column_range, t);
    }
    return {CsrFault::none, 0, all.steps_down == all.at_row_starts, all.stored_zeros};
}

}  // namespace polysparse
