// Score tests of all interactions of some rows, for as many draws of residuals as are needed.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "basis/basis.hpp"
#include "search/best.hpp"
#include "search/column_sums.hpp"
#include "search/information.hpp"
#include "search/prepared_rows.hpp"
#include "search/residual_scorer.hpp"
#include "search/search.hpp"
#include "search/visit.hpp"

namespace polysparse {

/// Has its own copy of the rows and of what information depends on, which all draws share.
class ScoreTest {
  public:
    /// Weights are those of the information, copied; null if all are 1. Needs: as PreparedRows, at
    /// least two rows of each column, and at most `most_members` degrees. Throws bad_alloc and
    /// Stopped.
    ScoreTest(const Basis& basis, const SearchedColumns& columns, const SearchedRows& x,
              const double* weights, double least_information, int64_t least, int64_t n_threads,
              const StopRequest& should_stop)
        : basis_(basis),
          prepared_(basis, columns, x, least, n_threads, should_stop),
          is_unit_(x.values == nullptr),
          least_(least),
          least_information_(least_information) {
        if (weights != nullptr) weights_.assign(weights, weights + x.n);
        if (is_unit_)
            sums_.add_up<true>(prepared_, rows(), n_threads, should_stop);
        else
            sums_.add_up<false>(prepared_, rows(), n_threads, should_stop);
    }

    /// Adds up products of pairs. Must be called once.
    Searched add_pairs(int64_t n_threads, const StopRequest& should_stop) try {
        pairs_.resize(n_columns());
        if (basis_.highest < 3 || is_empty()) return Searched::all;
        Basis of_pairs = basis_;
        of_pairs.lowest = of_pairs.highest = 2;
        std::atomic<double> done{0};
        const auto add = [&]<bool is_unit>() {
            return visit_by_followers(
                of_pairs, prepared_.by_column, {least_, n_threads, &should_stop, &done},
                [&](int64_t) { return PairAdder<is_unit>(rows(), n_columns(), pairs_); });
        };
        const bool is_whole =
            is_unit_ ? add.template operator()<true>() : add.template operator()<false>();
        return is_whole ? Searched::all : Searched::stopped;
    } catch (const std::bad_alloc&) {
        return Searched::full;
    }

    /// Finds the k largest statistics of the one draw, and any that may be as large but for
    /// rounding, of which there may be `most`; and how many interactions are tested.
    Searched find_leaders(const Residuals& residuals, int64_t k, int64_t most, int64_t n_threads,
                          const StopRequest& should_stop, std::atomic<double>& done,
                          std::vector<Candidate>& found, int64_t& n_tested) const try {
        Best best(k, most);
        std::vector<int64_t> n_of_worker(n_threads);
        const auto make_sink = [&](int64_t worker) { return Leaders(best, n_of_worker[worker]); };
        if (!score(residuals, {least_, n_threads, &should_stop, &done}, make_sink))
            return Searched::stopped;
        found = best.take();
        n_tested = 0;
        for (const int64_t n : n_of_worker) n_tested += n;
        return Searched::all;
    } catch (const std::bad_alloc&) {
        return Searched::full;
    }

    /// Writes the largest statistic of each draw, but for those of excluded columns, which are
    /// sorted; 0 if there is no other.
    Searched find_maxima(const Residuals& residuals, const std::vector<int64_t>& excluded,
                         int64_t n_threads, const StopRequest& should_stop,
                         std::atomic<double>& done, double* maxima) const try {
        std::vector<std::vector<double>> of_worker(n_threads, std::vector<double>(residuals.n));
        const auto make_sink = [&](int64_t worker) { return Maxima(excluded, of_worker[worker]); };
        if (!score(residuals, {least_, n_threads, &should_stop, &done}, make_sink))
            return Searched::stopped;
        std::fill_n(maxima, residuals.n, 0.0);
        for (const std::vector<double>& own : of_worker)
            for (int64_t i = 0; i < residuals.n; ++i) maxima[i] = std::max(maxima[i], own[i]);
        return Searched::all;
    } catch (const std::bad_alloc&) {
        return Searched::full;
    }

    int64_t n_rows() const { return prepared_.rows.n_rows(); }
    int64_t n_columns() const { return prepared_.by_column.n_columns(); }

  private:
    bool is_empty() const { return n_columns() == 0 || basis_.highest < basis_.lowest; }
    WeightedRows rows() const {
        return {&prepared_.rows, weights_.empty() ? nullptr : weights_.data()};
    }

    /// Visits all interactions, each worker with the sink that make_sink(worker) returns. False if
    /// stopped. Throws bad_alloc.
    template <class MakeSink>
    bool score(const Residuals& residuals, const Visiting& how, const MakeSink& make_sink) const {
        if (is_empty()) return true;
        const auto visit = [&]<bool is_unit>() {
            using Visitor = ResidualScorer<is_unit, decltype(make_sink(int64_t{}))>;
            return visit_by_followers(basis_, prepared_.by_column, how, [&](int64_t worker) {
                return Visitor(basis_, rows(), residuals, Information(sums_, pairs_),
                               least_information_, make_sink(worker));
            });
        };
        return is_unit_ ? visit.template operator()<true>() : visit.template operator()<false>();
    }

    Basis basis_;
    PreparedRows prepared_;
    bool is_unit_;
    int64_t least_;
    double least_information_;
    std::vector<double> weights_;
    ColumnSums sums_;
    PairSums pairs_;
};

}  // namespace polysparse
