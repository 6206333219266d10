// The k columns of an expansion with the largest scores, without making the expansion.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <iterator>
#include <new>
#include <utility>
#include <vector>

#include "basis/basis.hpp"
#include "matrix/csr_view.hpp"
#include "observe/prefix_walk.hpp"
#include "observe/transposed.hpp"
#include "platform/threads.hpp"
#include "search/best.hpp"
#include "search/exact.hpp"
#include "search/ordered_rows.hpp"
#include "search/scorer.hpp"

namespace polysparse {

/// Rows to be searched. Values are null if all are 1.
struct SearchedRows {
    int64_t n;
    Indices row_offsets;
    Indices columns;
    const double* values;
};

/// How to search, besides what for.
struct Searching {
    int64_t k;
    int64_t least;     // rows that a column must be in
    int64_t most;      // columns that cannot be told from the k-th best
    bool needs_among;  // only monomials with a feature that is among are candidates
    int64_t n_threads;
    const StopRequest* should_stop;
    std::atomic<double>* done;  // the share of the work that is done, about
};

/// About how long it takes to visit what each column leads to, without pruning: for each of its
/// rows, the tuples of values that follow it, of all degrees but the highest.
inline std::vector<double> work_of_leads(const Transposed<uint32_t>& x, int64_t highest) {
    std::vector<double> work(x.n_columns());
    for (int64_t number = 0; number < x.n_columns(); ++number)
        for (int64_t s = x.first[number]; s < x.first[number + 1]; ++s) {
            const auto n = static_cast<double>(x.tails[s].end - x.tails[s].begin);
            double tuples = 1;
            for (int64_t d = 1; d < highest && d <= n; ++d) {
                tuples *= (n - static_cast<double>(d) + 1) / static_cast<double>(d);
                work[number] += tuples;
            }
            work[number] += 1;
        }
    return work;
}

/// Stretches of leads, the last first: frequent columns have few followers and large scores, which
/// raise the threshold. A stretch is at most about a 500th of the work, or one lead.
inline std::vector<int64_t> divide_leads(const std::vector<double>& work, double all,
                                         int64_t n_threads) {
    const double share = all / static_cast<double>(256 * n_threads);
    std::vector<int64_t> ends{std::ssize(work)};
    double here = 0;
    for (int64_t number = std::ssize(work) - 1; number >= 0; --number) {
        here += work[number];
        if (here < share && number > 0) continue;
        ends.push_back(number);
        here = 0;
    }
    return ends;
}

/// Visits all monomials of ordered rows. False if stopped. Throws bad_alloc.
template <class Visitor, class Followers>
bool visit_all(const Basis& basis, const OrderedRows& rows, const Transposed<uint32_t>& x,
               Followers followers, const ScoredTargets& targets, const Searching& how,
               Best& best) {
    using Walk = PrefixWalk<uint32_t, uint32_t, Followers, Visitor>;
    Watch watch(INT64_MAX);
    std::vector<Walk> walks;
    for (int64_t worker = 0; worker < how.n_threads; ++worker)
        walks.emplace_back(basis, x, followers, how.least, watch,
                           worker == 0 ? how.should_stop : nullptr,
                           Visitor(basis, rows, targets, how.needs_among, best));
    const std::vector<double> work = work_of_leads(x, basis.highest);
    double all = 0;
    for (const double one : work) all += one;
    const std::vector<int64_t> ends = divide_leads(work, all, how.n_threads);
    const auto search_task = [&](int64_t worker, int64_t task) {
        if (watch.is_over()) return;
        try {
            for (int64_t number = ends[task]; number-- > ends[task + 1];) {
                walks[worker].visit_led_by(number);
                how.done->fetch_add(work[number] / all, std::memory_order_relaxed);
            }
            walks[worker].report();
        } catch (const typename Walk::Over&) {
        } catch (const std::bad_alloc&) {
            watch.fill_up();
        }
    };
    const bool ends_well = run_tasks(std::ssize(ends) - 1, how.n_threads, search_task,
                                     *how.should_stop, Order::in_order);
    if (watch.is_full()) throw std::bad_alloc();
    return ends_well && !watch.is_over();
}

/// Computes the scores of candidates by themselves. False if stopped. Throws bad_alloc.
inline bool rescore_all(const Basis& basis, const OrderedRows& rows, const Transposed<uint32_t>& x,
                        const ScoredTargets& targets, const Searching& how,
                        std::vector<Candidate>& found) {
    const ExactScores scores(basis, rows, x, targets);
    int64_t most_rows = 0;
    for (const Candidate& one : found) most_rows = std::max(most_rows, one.n_rows);
    std::vector<ExactScores::Worker> workers;
    for (int64_t worker = 0; worker < how.n_threads; ++worker)
        workers.push_back(scores.worker(most_rows));
    return run_tasks(
        std::ssize(found), how.n_threads,
        [&](int64_t worker, int64_t i) { scores.rescore(found[i], workers[worker]); },
        *how.should_stop);
}

/// Keeps the k best, the best first; of equal ones the first columns.
inline void keep_best(int64_t k, std::vector<Candidate>& found) {
    std::ranges::sort(found, [](const Candidate& a, const Candidate& b) {
        return a.high != b.high ? a.high > b.high : a.column < b.column;
    });
    if (std::ssize(found) > k) found.resize(k);
}

enum class Searched { all, stopped, full };

/// Finds the columns of a basis with the largest scores, the best first. `full`: too many cannot be
/// told from the k-th best, or memory ran out. Needs: rows inspected and increasing, fewer than
/// 2^31 stored values and columns; no terms; columns that int64 can number.
inline Searched search(const Basis& basis, const SearchedColumns& columns, const SearchedRows& x,
                       const ScoredTargets& targets, const Searching& how,
                       std::vector<Candidate>& found) try {
    const OrderedRows rows = order_rows(basis, columns, x.n, x.row_offsets, x.columns, x.values,
                                        how.least, how.n_threads);
    if (rows.row_offsets.back() == 0 || basis.highest < basis.lowest) return Searched::all;
    const Indices row_offsets(rows.row_offsets.data());
    auto transposed = transpose<int32_t>(row_offsets, x.n, rows.numbers.data(), rows.n_columns(),
                                         nullptr, how.n_threads);
    if (basis.groups) list_followers(transposed, rows.groups, row_offsets, x.n, how.n_threads);
    Best best(how.k, how.most);
    const auto visit = [&]<bool is_unit, bool is_plain>() {
        using Visitor = Scorer<is_unit, is_plain>;
        if (basis.groups)
            return visit_all<Visitor>(basis, rows, transposed,
                                      GroupedFollowers{transposed.next.data()}, targets, how, best);
        const PlainFollowers followers{static_cast<uint32_t>(basis.interaction_only)};
        return visit_all<Visitor>(basis, rows, transposed, followers, targets, how, best);
    };
    const auto visit_values = [&]<bool is_unit>() {
        const bool is_plain = targets.n == 1 && Scorer<is_unit, false>::n_moments(targets) == 0;
        return is_plain ? visit.template operator()<is_unit, true>()
                        : visit.template operator()<is_unit, false>();
    };
    const bool is_whole = x.values == nullptr ? visit_values.template operator()<true>()
                                              : visit_values.template operator()<false>();
    if (!is_whole) return Searched::stopped;
    std::vector<Candidate> candidates = best.take();
    if (x.values != nullptr && !rescore_all(basis, rows, transposed, targets, how, candidates))
        return Searched::stopped;
    keep_best(how.k, candidates);
    found = std::move(candidates);
    return Searched::all;
} catch (const std::bad_alloc&) {
    return Searched::full;
}

}  // namespace polysparse
