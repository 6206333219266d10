#include "matrix/inspect.hpp"

#include <algorithm>
#include <limits>
#include <type_traits>
#include <vector>

#include "platform/processors.hpp"
#include "platform/threads.hpp"

namespace polysparse {
namespace {

/// What a stretch of stored values shows. Reports of stretches add up to that of the whole.
struct StretchReport {
    bool outside = false;       // a column is not in the matrix
    int64_t steps_down = 0;     // columns not above the one before, across rows, too
    int64_t at_row_starts = 0;  // those of them that start a row, where they are allowed
    int64_t stored_zeros = 0;
    int64_t not_finite = 0;

    void operator+=(const StretchReport& other) {
        outside |= other.outside;
        steps_down += other.steps_down;
        at_row_starts += other.at_row_starts;
        stored_zeros += other.stored_zeros;
        not_finite += other.not_finite;
    }
};

constexpr int64_t stretch = int64_t{1} << 14;  // short enough for counters of 32 bits

template <class Offset>
POLYSPARSE_PER_PROCESSOR bool has_fall(const Offset* __restrict row_offsets, int64_t begin,
                                       int64_t end) {
    Offset falls = 0;
    for (int64_t r = begin; r < end; ++r) falls |= row_offsets[r + 1] < row_offsets[r];
    return falls != 0;
}

/// Stored values [begin, end), a stretch at most. `last` is the last column of the matrix.
template <class Index>
POLYSPARSE_PER_PROCESSOR void inspect_columns(const Index* __restrict columns,
                                              std::make_unsigned_t<Index> last, int64_t begin,
                                              int64_t end, StretchReport& report) {
    // Counters as wide as what they count, so that the loops vectorise without widening.
    using Unsigned = std::make_unsigned_t<Index>;
    Unsigned outside = 0;
    Index steps_down = 0;
    for (int64_t t = begin; t < end; ++t) outside |= static_cast<Unsigned>(columns[t]) > last;
    for (int64_t t = std::max<int64_t>(begin, 1); t < end; ++t)
        steps_down += columns[t] <= columns[t - 1];
    report.outside = outside != 0;
    report.steps_down = steps_down;
}

template <class Value>
POLYSPARSE_PER_PROCESSOR void inspect_values(const Value* __restrict values, int64_t begin,
                                             int64_t end, StretchReport& report) {
    using Counter = std::conditional_t<sizeof(Value) == 8, int64_t, int32_t>;
    Counter zeros = 0, not_finite = 0;
    for (int64_t t = begin; t < end; ++t) {
        zeros += values[t] == Value(0);
        not_finite += !(values[t] - values[t] == Value(0));
    }
    report.stored_zeros = zeros;
    report.not_finite = not_finite;
}

/// Steps down in [begin, end) that start a row.
template <class Offset, class Index>
POLYSPARSE_PER_PROCESSOR int64_t count_at_row_starts(const Offset* row_offsets, int64_t n_rows,
                                                     const Index* columns, int64_t begin,
                                                     int64_t end) {
    int64_t n = 0;
    const Offset* const rows_end = row_offsets + n_rows;
    const Offset* row = std::lower_bound(row_offsets, rows_end, std::max<int64_t>(begin, 1));
    for (; row != rows_end && *row < end; ++row)
        if (*row < row[1]) n += columns[*row] <= columns[*row - 1];
    return n;
}

/// The first row whose end is before its beginning; n_rows if there is none.
template <class Offset>
int64_t first_fall(const Offset* row_offsets, int64_t n_rows, int64_t n_threads) {
    const EqualRanges ranges(n_rows, n_threads);
    std::vector<int64_t> first(ranges.size(), n_rows);
    ranges.run([&](int64_t i, int64_t begin, int64_t end) {
        if (has_fall(row_offsets, begin, end))
            for (first[i] = begin; row_offsets[first[i]] <= row_offsets[first[i] + 1];) ++first[i];
    });
    return *std::min_element(first.begin(), first.end());
}

/// Whether no row stores more values than there are columns. Needs: row offsets that were checked.
template <class Offset>
POLYSPARSE_PER_PROCESSOR bool are_short_enough(const Offset* __restrict row_offsets, int64_t n_rows,
                                               int64_t n_columns) {
    Offset longest = 0;
    for (int64_t r = 0; r < n_rows; ++r)
        longest = std::max<Offset>(longest, row_offsets[r + 1] - row_offsets[r]);
    return longest <= n_columns;
}

/// Needs: row offsets that were checked.
template <class Offset, class Index, class Value>
CsrReport inspect_stored(const Offset* row_offsets, const Index* columns, const CsrView<Value>& x,
                         int64_t n_threads) {
    const int64_t stored = row_offsets[x.n_rows];
    using Unsigned = std::make_unsigned_t<Index>;
    const int64_t most = std::numeric_limits<Index>::max();
    const auto last = static_cast<Unsigned>(std::min<int64_t>(most, x.n_columns - 1));
    std::vector<StretchReport> sums(n_threads);
    run_tasks((stored + stretch - 1) / stretch, n_threads, [&](int64_t worker, int64_t task) {
        const int64_t begin = task * stretch, end = std::min(begin + stretch, stored);
        StretchReport report;
        inspect_columns(columns, last, begin, end, report);
        report.at_row_starts = count_at_row_starts(row_offsets, x.n_rows, columns, begin, end);
        inspect_values(x.values, begin, end, report);
        sums[worker] += report;
    });
    StretchReport all;
    for (const StretchReport& sum : sums) all += sum;
    if (all.outside) {
        int64_t t = 0;  // or the last, if another thread has changed them again
        while (t + 1 < stored && static_cast<Unsigned>(columns[t]) <= last) ++t;
        return {CsrFault::column_range, t, false, 0, false};
    }
    // Increasing columns are few enough, unless another thread has changed them in between.
    const bool increasing =
        all.steps_down == all.at_row_starts && are_short_enough(row_offsets, x.n_rows, x.n_columns);
    return {CsrFault::none, 0, increasing, all.stored_zeros, all.not_finite == 0};
}

}  // namespace

template <class Value>
CsrReport inspect(const CsrView<Value>& x, int64_t n_stored, int64_t n_threads) {
    const auto fault = [](CsrFault kind, int64_t where) {
        return CsrReport{kind, where, false, 0, false};
    };
    return x.row_offsets.visit([&](const auto* row_offsets) {
        if (row_offsets[0] != 0) return fault(CsrFault::first_offset, 0);
        const int64_t falling = first_fall(row_offsets, x.n_rows, n_threads);
        if (falling < x.n_rows) return fault(CsrFault::falling_offset, falling);
        const int64_t stored = row_offsets[x.n_rows];
        if (stored > n_stored) return fault(CsrFault::last_offset, x.n_rows);
        if (x.n_columns == 0 && stored > 0) return fault(CsrFault::column_range, 0);
        return x.columns.visit([&](const auto* columns) {
            return inspect_stored(row_offsets, columns, x, n_threads);
        });
    });
}

template CsrReport inspect(const CsrView<float>&, int64_t, int64_t);
template CsrReport inspect(const CsrView<double>&, int64_t, int64_t);

}  // namespace polysparse
