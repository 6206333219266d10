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
#include "observe/transposed.hpp"
#include "platform/stretches.hpp"
#include "platform/threads.hpp"
#include "search/best.hpp"
#include "search/exact.hpp"
#include "search/ordered_rows.hpp"
#include "search/prepared_rows.hpp"
#include "search/scorer.hpp"
#include "search/visit.hpp"

namespace polysparse {

/// How to search, besides what for.
struct Searching {
    int64_t k;
    int64_t most;      // columns that cannot be told from the k-th best
    bool needs_among;  // only monomials with a feature that is among are candidates
    Visiting visiting;
};

/// Computes the scores of candidates by themselves. False if stopped. Throws bad_alloc.
inline bool rescore_all(const Basis& basis, const OrderedRows& rows, const Transposed<uint32_t>& x,
                        const ScoredTargets& targets, const Searching& how,
                        std::vector<Candidate>& found) {
    const ExactScores scores(basis, rows, x, targets);
    int64_t most_rows = 0;
    for (const Candidate& one : found) most_rows = std::max(most_rows, one.n_rows);
    const int64_t n_threads = how.visiting.n_threads;
    std::vector<ExactScores::Worker> workers;
    for (int64_t worker = 0; worker < n_threads; ++worker)
        workers.push_back(scores.worker(most_rows));
    return run_tasks(
        std::ssize(found), n_threads,
        [&](int64_t worker, int64_t i) { scores.rescore(found[i], workers[worker]); },
        *how.visiting.should_stop);
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
    const int64_t n_threads = how.visiting.n_threads;
    const PreparedRows prepared(basis, columns, x, how.visiting.least, n_threads,
                                *how.visiting.should_stop);
    if (prepared.by_column.n_columns() == 0 || basis.highest < basis.lowest) return Searched::all;
    const OrderedRows& rows = prepared.rows;
    const Transposed<uint32_t>& transposed = prepared.by_column;
    Best best(how.k, how.most);
    const auto visit = [&]<bool is_unit, bool is_plain>() {
        const auto make_scorer = [&](int64_t) {
            return Scorer<is_unit, is_plain>(basis, rows, targets, how.needs_among, best);
        };
        return visit_by_followers(basis, transposed, how.visiting, make_scorer);
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
} catch (const Stopped&) {
    return Searched::stopped;
} catch (const std::bad_alloc&) {
    return Searched::full;
}

}  // namespace polysparse
