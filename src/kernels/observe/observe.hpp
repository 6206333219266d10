// Which columns of an expansion occur in some rows, and in how many.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

#include "basis/basis.hpp"
#include "matrix/csr_view.hpp"
#include "observe/monomial_counter.hpp"
#include "observe/runs.hpp"
#include "observe/tally.hpp"
#include "observe/transposed.hpp"
#include "platform/threads.hpp"

namespace polysparse {

/// Bytes that `observe` may need per stored value, and per column that is stored, apart from what
/// it finds.
inline std::pair<int64_t, int64_t> observing_bytes(const Basis& basis, int64_t index_size,
                                                   int64_t n_threads) {
    const int64_t sorting = 2 * (index_size + 8) + index_size;
    return {sorting + n_threads * 8 * std::max<int64_t>(basis.highest - 2, 0), n_threads * 8};
}

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

/// The monomials of degree 1 and above, in a run. False if stopped.
template <class Count, class Index>
bool observe_monomials(const Basis& basis, const CsrPattern& rows, const Index* columns,
                       int64_t least, int64_t most, int64_t n_threads, int64_t wanted,
                       const StopRequest& should_stop, Run<Count>& run) {
    const auto x = transpose(rows.row_offsets, rows.n_rows, columns, basis.n_features, n_threads);
    using Counter = MonomialCounter<std::make_unsigned_t<Index>, Count>;
    Watch watch(most);
    std::vector<Counter> counters;
    for (int64_t worker = 0; worker < n_threads; ++worker)
        counters.emplace_back(basis, x, least, watch, worker == 0 ? &should_stop : nullptr);

    // A task is so many stored values that lead, about.
    const int64_t n_stored = x.first.back();
    const int64_t share =
        wanted > 0 ? wanted : std::clamp<int64_t>(n_stored / (64 * n_threads), 256, 1 << 14);
    const int64_t n_tasks = n_stored / share + 1;
    const auto first_of = [&](int64_t task) -> int64_t {
        if (task == n_tasks) return x.n_columns();
        const auto place = static_cast<uint32_t>(std::min(task * share, n_stored));
        return std::lower_bound(x.first.begin(), x.first.end() - 1, place) - x.first.begin();
    };
    std::vector<std::vector<Chunk<Count>>> found(n_tasks);
    const auto count_task = [&](int64_t worker, int64_t task) {
        if (watch.is_over()) return;
        try {
            Counter& counter = counters[worker];
            for (int64_t i = first_of(task); i < first_of(task + 1); ++i) counter.count_led_by(i);
            counter.report();
            for (int64_t d = basis.lowest; d <= basis.highest; ++d)
                found[task].push_back(counter.take(d));
        } catch (const typename Counter::Over&) {
        } catch (const std::bad_alloc&) {
            watch.fill_up();
        }
    };
    if (!run_tasks(n_tasks, n_threads, count_task, should_stop)) return false;
    if (watch.is_full()) throw std::bad_alloc();
    if (watch.is_over()) return false;
    for (int64_t d = basis.lowest; d <= basis.highest; ++d)
        for (auto& chunks : found) run.push_back(std::move(chunks[d - basis.lowest]));
    return true;
}

/// A run of all columns that at least `least` of the rows' expansions have. `wanted`: stored values
/// per task; 0 for what suits. False if stopped. Throws bad_alloc, while no thread runs, also if
/// more than `most` columns are found. Needs: rows inspected and increasing, and that they
/// can_be_observed; columns that int64 can number.
template <class Count>
bool observe(const Basis& basis, const CsrPattern& rows, int64_t least, int64_t most,
             int64_t n_threads, int64_t wanted, const StopRequest& should_stop, Run<Count>& run) {
    const int64_t n_rows = rows.n_rows;
    if (basis.include_bias && n_rows >= least) run.push_back({{0}, {static_cast<Count>(n_rows)}});
    if (rows.row_offsets[n_rows] == rows.row_offsets[0] || basis.highest < basis.lowest)
        return true;
    return rows.columns.visit([&](const auto* columns) {
        return observe_monomials(basis, rows, columns, least, most, n_threads, wanted, should_stop,
                                 run);
    });
}

enum class Observed { all, stopped, full };

/// Adds the columns that at least `least` of the rows' expansions have to a tally. `full`: there
/// were more than `most`, or memory ran out. Unless all were added the tally is as it was.
inline Observed observe_into(Tally<>& tally, const Basis& basis, const CsrPattern& rows,
                             int64_t least, int64_t most, int64_t n_threads, int64_t wanted,
                             const StopRequest& should_stop) {
    try {
        Run<uint32_t> run;
        if (!observe(basis, rows, least, most, n_threads, wanted, should_stop, run))
            return Observed::stopped;
        tally.add(std::move(run));
    } catch (const std::bad_alloc&) {
        return Observed::full;
    }
    return Observed::all;
}

}  // namespace polysparse
