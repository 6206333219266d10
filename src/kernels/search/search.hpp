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
#include "search/pairs.hpp"
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

/// One search, in steps. All return false if stopped, and throw bad_alloc and Stopped.
class Search {
  public:
    /// References must outlive it. Throws bad_alloc and Stopped.
    Search(const Basis& basis, const SearchedColumns& columns, const SearchedRows& x,
           const ScoredTargets& targets, const Searching& how)
        : basis_(&basis),
          columns_(columns),
          x_(x),
          targets_(targets),
          how_(how),
          own_(x.copy(columns.n, how.visiting.n_threads, *how.visiting.should_stop)),
          best_(how.k, how.most) {}

    /// Finds candidates and computes their scores.
    bool run(std::vector<Candidate>& found) {
        if (basis_->highest == 2) {
            const RowsOfPairs rows(*basis_, columns_, x_, own_, how_.visiting.least, should_stop());
            const int64_t place_bytes = (targets_.n + 1) * int64_t{sizeof(double)};
            const Strips strips(rows, place_bytes, how_.visiting.n_threads);
            if (strips.are_worth_it()) {
                const auto score = [&]<bool is_unit>(const auto& make_scorer) {
                    return score_pairs<is_unit>(*basis_, rows, strips, how_.visiting, make_scorer);
                };
                if (!with_scorers(rows.order(), score)) return false;
                found = best_.take();
                return is_unit() || targets_.score == Score::dot || rescore(prepare(), found);
            }
        }
        const PreparedRows prepared = prepare();
        if (prepared.by_column.n_columns() == 0) return true;
        const auto visit = [&]<bool>(const auto& make_scorer) {
            return visit_by_followers(*basis_, prepared.by_column, how_.visiting, make_scorer);
        };
        if (!with_scorers(prepared.rows, visit)) return false;
        found = best_.take();
        return is_unit() || rescore(prepared, found);
    }

  private:
    bool is_unit() const { return x_.values == nullptr; }
    const StopRequest& should_stop() const { return *how_.visiting.should_stop; }

    PreparedRows prepare() {
        return {*basis_,
                columns_,
                x_,
                std::move(own_),
                how_.visiting.least,
                how_.visiting.n_threads,
                should_stop()};
    }

    /// Calls work<is_unit>(make_scorer) with what makes a scorer of such rows for each worker.
    template <class Work>
    bool with_scorers(const OrderedRows& rows, const Work& work) {
        const auto with = [&]<bool is_unit, bool is_plain>() {
            return work.template operator()<is_unit>([&](int64_t) {
                return Scorer<is_unit, is_plain>(*basis_, rows, targets_, how_.needs_among, best_);
            });
        };
        const auto with_values = [&]<bool is_unit>() {
            const bool is_plain =
                targets_.n == 1 && Scorer<is_unit, false>::n_moments(targets_) == 0;
            return is_plain ? with.template operator()<is_unit, true>()
                            : with.template operator()<is_unit, false>();
        };
        return is_unit() ? with_values.template operator()<true>()
                         : with_values.template operator()<false>();
    }

    bool rescore(const PreparedRows& prepared, std::vector<Candidate>& found) const {
        return rescore_all(*basis_, prepared.rows, prepared.by_column, targets_, how_, found);
    }

    const Basis* basis_;
    SearchedColumns columns_;
    SearchedRows x_;
    ScoredTargets targets_;
    Searching how_;
    OwnRows own_;
    Best best_;
};

/// Finds the columns of a basis with the largest scores, the best first. `full`: too many cannot be
/// told from the k-th best, or memory ran out. Needs: rows inspected and increasing, fewer than
/// 2^31 stored values and columns; no terms; columns that int64 can number.
inline Searched search(const Basis& basis, const SearchedColumns& columns, const SearchedRows& x,
                       const ScoredTargets& targets, const Searching& how,
                       std::vector<Candidate>& found) try {
    found.clear();
    if (basis.highest < basis.lowest) return Searched::all;
    std::vector<Candidate> candidates;
    if (!Search(basis, columns, x, targets, how).run(candidates)) return Searched::stopped;
    keep_best(how.k, candidates);
    found = std::move(candidates);
    return Searched::all;
} catch (const Stopped&) {
    return Searched::stopped;
} catch (const std::bad_alloc&) {
    return Searched::full;
}

}  // namespace polysparse
