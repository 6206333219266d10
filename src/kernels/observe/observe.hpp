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
#include "observe/csr_pattern.hpp"
#include "observe/monomial_counter.hpp"
#include "observe/prefix_walk.hpp"
#include "observe/runs.hpp"
#include "observe/tally.hpp"
#include "observe/term_followers.hpp"
#include "observe/transposed.hpp"
#include "platform/slabs.hpp"
#include "platform/threads.hpp"

namespace polysparse {

/// Bytes that `observe` may need per stored value, and per column that is stored, apart from what
/// it finds.
inline std::pair<int64_t, int64_t> observing_bytes(const Basis& basis, int64_t index_size,
                                                   int64_t n_threads) {
    const int64_t sorting = 2 * (index_size + 8) + index_size;
    const int64_t of_terms = basis.terms ? term_index_bytes : 0;
    const int64_t levels = n_threads * 8 * std::max<int64_t>(basis.highest - 2, 0);
    return {sorting + of_terms + levels, n_threads * 8};
}

/// How to observe, besides what.
struct Observing {
    int64_t least;  // rows that a column must be in
    int64_t most;   // columns that may be found
    int64_t n_threads;
    int64_t wanted;  // stored values per task; 0 for what suits
    const StopRequest* should_stop;
};

/// Numbers [begin, end) of columns that occur.
struct Leads {
    int64_t begin, end;
};

template <class Column, class Count, class Followers>
using CountingWalk = PrefixWalk<Column, Count, Followers, MonomialCounter<Column, Count>>;

/// A walk for each worker. There is an arena for each, too.
template <class Walk, class Column, class Followers>
std::vector<Walk> walks_for(const Basis& basis, const Transposed<Column>& x, Followers followers,
                            const Observing& how, Watch& watch, std::vector<SlabArena>& arenas) {
    std::vector<Walk> walks;
    for (int64_t worker = 0; worker < how.n_threads; ++worker)
        walks.emplace_back(basis, x, followers, how.least, watch,
                           worker == 0 ? how.should_stop : nullptr,
                           typename Walk::VisitorType(basis, x, arenas[worker]));
    return walks;
}

/// Appends the monomials of degree 1 and above that some columns of x lead to a run. False if
/// stopped.
template <class Count, class Walk, class Column>
bool count_monomials(const Basis& basis, const Transposed<Column>& x, Leads leads,
                     std::vector<Walk>& walks, Watch& watch, const Observing& how,
                     Run<Count>& run) {
    // A task is so many stored values that lead, about.
    const int64_t start = x.first[leads.begin], n_stored = x.first[leads.end] - start;
    const int64_t share = how.wanted > 0
                              ? how.wanted
                              : std::clamp<int64_t>(n_stored / (64 * how.n_threads), 256, 1 << 14);
    const int64_t n_tasks = n_stored / share + 1;
    const auto first_of = [&](int64_t task) -> int64_t {
        if (task == n_tasks) return leads.end;
        const auto place = static_cast<uint32_t>(start + std::min(task * share, n_stored));
        return std::lower_bound(x.first.begin() + leads.begin, x.first.begin() + leads.end, place) -
               x.first.begin();
    };
    std::vector<std::vector<Chunk<Count>>> found(n_tasks);
    const auto count_task = [&](int64_t worker, int64_t task) {
        if (watch.is_over()) return;
        try {
            Walk& walk = walks[worker];
            for (int64_t i = first_of(task); i < first_of(task + 1); ++i) walk.visit_led_by(i);
            walk.report();
            for (int64_t d = basis.lowest; d <= basis.highest; ++d)
                found[task].push_back(walk.visitor().take(d));
        } catch (const typename Walk::Over&) {
        } catch (const std::bad_alloc&) {
            watch.fill_up();
        }
    };
    if (!run_tasks(n_tasks, how.n_threads, count_task, *how.should_stop)) return false;
    if (watch.is_full()) throw std::bad_alloc();
    if (watch.is_over()) return false;
    for (int64_t d = basis.lowest; d <= basis.highest; ++d)
        for (auto& chunks : found) run.push_back(std::move(chunks[d - basis.lowest]));
    return true;
}

/// The same of rows. Needs: no terms.
template <class Count, class Index>
bool observe_monomials(const Basis& basis, const CsrPattern& rows, const Index* columns,
                       const Observing& how, std::vector<SlabArena>& arenas, Run<Count>& run) {
    const auto x = transpose(rows.row_offsets, rows.n_rows, columns, basis.n_features,
                             basis.groups.get(), how.n_threads, *how.should_stop);
    const auto count = [&]<class Followers>(Followers followers) {
        using Walk = CountingWalk<std::make_unsigned_t<Index>, Count, Followers>;
        Watch watch(how.most);
        auto walks = walks_for<Walk>(basis, x, followers, how, watch, arenas);
        return count_monomials(basis, x, {0, x.n_columns()}, walks, watch, how, run);
    };
    if (basis.groups) return count(GroupedFollowers{x.next.data()});
    return count(PlainFollowers{static_cast<uint32_t>(basis.interaction_only)});
}

/// The same of a basis with terms, one after the other: their columns are.
template <class Count, class Index>
bool observe_terms(const Basis& basis, const CsrPattern& rows, const Index* columns,
                   const Observing& how, std::vector<SlabArena>& arenas, Run<Count>& run) {
    using Column = std::make_unsigned_t<Index>;
    using Walk = CountingWalk<Column, Count, TermFollowers>;
    const auto x = transpose(rows.row_offsets, rows.n_rows, columns, basis.n_features, nullptr,
                             how.n_threads, *how.should_stop);
    TermIndex<Column> index(basis, rows, x, how.n_threads);
    Watch watch(how.most);
    Basis of_term{basis.n_features, basis.highest, basis.highest, true, false, {}};
    auto walks = walks_for<Walk>(of_term, x, TermFollowers{}, how, watch, arenas);
    for (const Term& term : basis.terms->terms()) {
        if ((*how.should_stop)()) return false;
        if (index.most_rows(term) < how.least) continue;
        of_term.lowest = of_term.highest = std::ssize(term.members);
        const TermFollowers followers = index.followers(term);
        for (Walk& walk : walks) walk.set_followers(of_term, followers);
        const int64_t start = term.members[0].start,
                      size = basis.groups->size(term.members[0].group);
        const Leads leads{x.number_from(start), x.number_from(start + size)};
        Run<Count> found;
        if (!count_monomials(of_term, x, leads, walks, watch, how, found)) return false;
        for (Chunk<Count>& chunk : found)
            if (!chunk.columns.empty()) run.push_back(std::move(chunk));
    }
    return true;
}

/// A run of all columns that at least `least` of the rows' expansions have. `wanted`: stored values
/// per task; 0 for what suits. False if stopped. Throws bad_alloc, while no thread runs, also if
/// more than `most` columns are found. Needs: rows inspected and increasing, and that they
/// can_be_observed; columns that int64 can number.
template <class Count>
bool observe(const Basis& basis, const CsrPattern& rows, int64_t least, int64_t most,
             int64_t n_threads, int64_t wanted, const StopRequest& should_stop,
             Run<Count>& run) try {
    const int64_t n_rows = rows.n_rows;
    if (basis.include_bias && n_rows >= least) run.push_back({{0}, {static_cast<Count>(n_rows)}});
    if (rows.row_offsets[n_rows] == rows.row_offsets[0] || basis.highest < basis.lowest)
        return true;
    const Observing how{least, most, n_threads, wanted, &should_stop};
    std::vector<SlabArena> arenas(n_threads);
    return rows.columns.visit([&](const auto* columns) {
        return basis.terms ? observe_terms(basis, rows, columns, how, arenas, run)
                           : observe_monomials(basis, rows, columns, how, arenas, run);
    });
} catch (const Stopped&) {
    return false;
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
