// Scores of all pairs, by passes over the rows.
//
// Each pair of columns has a place for its sums, to which every row that has both columns adds. If
// rows have more pairs of values than there are places, this takes a fraction of the time of a walk
// by prefixes, and rows need not be sorted by column. The leads, the first columns of pairs, are
// divided into strips whose places stay in a cache: one pass over the rows for each. Threads share
// the strips, so every sum goes through the rows in their order.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <new>
#include <numeric>
#include <utility>
#include <vector>

#include "basis/basis.hpp"
#include "observe/prefix_walk.hpp"
#include "platform/huge_array.hpp"
#include "platform/processors.hpp"
#include "platform/stretches.hpp"
#include "platform/threads.hpp"
#include "search/ordered_rows.hpp"
#include "search/prepared_rows.hpp"
#include "search/visit.hpp"

namespace polysparse {

/// Rows with the columns that may be used and are in at least `least` rows, numbered by feature.
class RowsOfPairs {
  public:
    /// References must outlive it. Needs: degree 2. Throws bad_alloc and Stopped.
    RowsOfPairs(const Basis& basis, const SearchedColumns& columns, const SearchedRows& x,
                const OwnRows& own, int64_t least, const StopRequest& should_stop)
        : gap_(basis.interaction_only ? 1 : 0),
          numbers_(own.columns.data()),
          values_(x.values == nullptr ? nullptr : x.values + x.row_offsets[0]) {
        const std::vector<int32_t> number_of = order_columns(
            basis, columns, own.n_rows_with, least, Numbering::by_feature, should_stop, order_);
        std::vector<int64_t>& offsets = order_.row_offsets;
        offsets.resize(x.n + 1);
        for (int64_t r = 0; r <= x.n; ++r) offsets[r] = x.row_offsets[r] - x.row_offsets[0];
        if (order_.n_columns() < columns.n) drop_others(number_of, should_stop);
        work_.resize(order_.n_columns());
        equal_stretches(x.n, 1).run(should_stop, [&](int64_t, int64_t begin, int64_t end) {
            for (int64_t r = begin; r < end; ++r) n_pairs_ += n_pairs_of(r, begin_of(r));
            for (int64_t r = begin; r < end; r += sampled)
                for (int64_t t = begin_of(r); t < end_of(r); ++t)
                    work_[numbers_[t]] += static_cast<double>(end_of(r) - t);
        });
    }

    const OrderedRows& order() const { return order_; }
    int64_t n_rows() const { return order_.n_rows(); }
    int64_t n_columns() const { return order_.n_columns(); }
    int64_t gap() const { return gap_; }
    int64_t begin_of(int64_t r) const { return order_.row_offsets[r]; }
    int64_t end_of(int64_t r) const { return order_.row_offsets[r + 1]; }
    const int32_t* numbers() const { return numbers_; }
    const double* values() const { return values_; }
    /// Pairs of values within rows.
    int64_t n_pairs() const { return n_pairs_; }
    /// About how long a pass takes for each lead, relative to others.
    const std::vector<double>& work() const { return work_; }

  private:
    static constexpr int64_t sampled = 8;  // work is estimated from one row in this many

    int64_t n_pairs_of(int64_t r, int64_t begin) const {
        const int64_t n = end_of(r) - begin - gap_;
        return n > 0 ? n * (n + 1) / 2 : 0;
    }

    void drop_others(const std::vector<int32_t>& number_of, const StopRequest& should_stop) {
        std::vector<int64_t>& offsets = order_.row_offsets;
        kept_ = HugeArray<int32_t>(offsets.back());
        if (values_ != nullptr) kept_values_ = HugeArray<double>(offsets.back());
        int64_t n = 0, begin = 0;
        equal_stretches(n_rows(), 1).run(should_stop, [&](int64_t, int64_t first, int64_t last) {
            for (int64_t r = first; r < last; ++r) {
                const int64_t end = offsets[r + 1];
                for (int64_t t = begin; t < end; ++t) {
                    const int32_t number = number_of[numbers_[t]];
                    if (number < 0) continue;
                    if (values_ != nullptr) kept_values_[n] = values_[t];
                    kept_[n++] = number;
                }
                begin = end;
                offsets[r + 1] = n;
            }
        });
        numbers_ = kept_.data();
        if (values_ != nullptr) values_ = kept_values_.data();
    }

    OrderedRows order_;  // the columns, and the offsets of rows
    int64_t gap_;
    const int32_t* numbers_;
    const double* values_;
    HugeArray<int32_t> kept_{0};
    HugeArray<double> kept_values_{0};
    int64_t n_pairs_ = 0;
    std::vector<double> work_;  // [number]
};

/// Leads [first, last), with a place for each of their pairs.
struct Strip {
    int64_t first, last;
    double share;  // of the work

    int64_t n_places(int64_t n_columns) const {
        return (last - first) * (2 * n_columns - first - last + 1) / 2;
    }
};

/// The leads in strips.
class Strips {
  public:
    /// For places of so many bytes. Throws bad_alloc.
    Strips(const RowsOfPairs& rows, int64_t place_bytes, int64_t n_threads)
        : n_columns_(rows.n_columns()) {
        const auto n = static_cast<double>(n_columns_);
        const auto n_rows = static_cast<double>(rows.n_rows());
        const auto n_pairs = static_cast<double>(rows.n_pairs());
        const double n_places = n * (n + 1) / 2;
        // Visiting a row takes as long as adding a few pairs.
        const double most =
            std::clamp(8 * n_rows / n_pairs * n_places, cached / static_cast<double>(place_bytes),
                       largest / static_cast<double>(place_bytes));
        are_worth_it_ = n_places <= n_pairs && 2 * n_rows * (n_places / most) <= n_pairs;
        if (are_worth_it_) divide(rows.work(), most, n_threads);
    }

    /// Whether passes take less time than a walk by prefixes.
    bool are_worth_it() const { return are_worth_it_; }

    const Strip& operator[](int64_t i) const { return strips_[i]; }
    int64_t size() const { return std::ssize(strips_); }
    int64_t n_columns() const { return n_columns_; }
    int64_t most_places() const {
        int64_t most = n_columns_;  // which are enough for single columns, too
        for (const Strip& strip : strips_) most = std::max(most, strip.n_places(n_columns_));
        return most;
    }

  private:
    // Bytes of a strip that stays in a cache, and of the largest.
    static constexpr double cached = 1 << 21, largest = 1 << 24;

    /// Into strips of `most` places, or one lead that has more, with equal work for each thread:
    /// more strips would read the rows more often.
    void divide(const std::vector<double>& work, double most, int64_t n_threads) {
        const double all = std::max(std::accumulate(work.begin(), work.end(), 0.0), 1.0);
        const double share = all / static_cast<double>(n_threads);
        double places = 0, here = 0;
        for (int64_t number = 0; number < n_columns_; ++number) {
            const auto more = static_cast<double>(n_columns_ - number);
            if (number == 0 || places + more > most || here + work[number] / 2 > share) {
                strips_.push_back({number, number, 0});
                places = here = 0;
            }
            places += more;
            here += work[number];
            strips_.back().last = number + 1;
            strips_.back().share += work[number] / all;
        }
    }

    int64_t n_columns_;
    bool are_worth_it_;
    std::vector<Strip> strips_;
};

/// What one worker needs to score pairs: the places of a strip, and a scorer, which has
///     n_numbers()                          of a place
///     start_pairs()                        called once
///     prefix_row(row, value)               what `add_value` needs of a row and a lead's value
///     add_value(place, row, value)         adds the product with another value
///     report_pair(lead, number, place)     for a pair that occurs often enough
///     report_single(number, place)         the same for one column
template <bool is_unit, class Scorer>
class PairPass {
  public:
    /// References must outlive it. Throws bad_alloc.
    PairPass(const RowsOfPairs& rows, const Strips& strips, const Visiting& how, Watch& watch,
             bool may_stop, Scorer&& scorer)
        : rows_(&rows),
          how_(&how),
          watch_(&watch),
          may_stop_(may_stop),
          scorer_(std::move(scorer)),
          n_(scorer_.n_numbers()),
          numbers_(strips.most_places() * n_) {
        scorer_.start_pairs();
    }

    /// Scores columns by themselves. Throws bad_alloc.
    void score_singles() {
        std::fill_n(numbers_.data(), rows_->n_columns() * n_, 0.0);
        const bool is_whole = for_each_row([&](int64_t r) {
            const auto row = scorer_.prefix_row(static_cast<uint32_t>(r), 1.0);
            for (int64_t t = rows_->begin_of(r); t < rows_->end_of(r); ++t)
                scorer_.add_value(place(rows_->numbers()[t]), row, value(t));
            return rows_->end_of(r) - rows_->begin_of(r);
        });
        if (!is_whole) return;
        for (int64_t number = 0; number < rows_->n_columns(); ++number)
            if (occurs(place(number))) scorer_.report_single(number, place(number));
    }

    /// Scores the pairs of a strip. Throws bad_alloc.
    void score(const Strip& strip) {
        const int64_t n_columns = rows_->n_columns();
        std::fill_n(numbers_.data(), strip.n_places(n_columns) * n_, 0.0);
        // The pairs of lead j and number k are at starts_[j - first] + k.
        starts_.clear();
        for (int64_t j = strip.first, start = -j; j < strip.last; start += n_columns - ++j)
            starts_.push_back(start);
        if (!for_each_row([&](int64_t r) { return add_row(strip, r); })) return;
        for (int64_t j = strip.first; j < strip.last; ++j)
            for (int64_t k = j + rows_->gap(); k < n_columns; ++k) {
                double* const pair = place(starts_[j - strip.first] + k);
                if (occurs(pair)) scorer_.report_pair(j, k, pair);
            }
        how_->done->fetch_add(strip.share, std::memory_order_relaxed);
    }

  private:
    static constexpr int64_t reporting_interval = int64_t{1} << 18;

    POLYSPARSE_INLINE double* place(int64_t i) { return numbers_.data() + i * n_; }
    POLYSPARSE_INLINE double value(int64_t t) const { return is_unit ? 1.0 : rows_->values()[t]; }
    /// The last number of a place is how many rows it has.
    bool occurs(const double* place) const {
        return place[n_ - 1] >= static_cast<double>(how_->least);
    }

    /// Calls f for every row, which returns how long it took. False if stopped.
    template <class F>
    POLYSPARSE_INLINE bool for_each_row(const F& f) {
        int64_t n_steps = 0;
        for (int64_t r = 0; r < rows_->n_rows(); ++r) {
            n_steps += f(r) + 4;
            if (n_steps < reporting_interval) continue;
            n_steps = 0;
            if (may_stop_ && (*how_->should_stop)()) watch_->stop();
            if (watch_->is_over()) return false;
        }
        return true;
    }

    /// Adds the pairs of row r whose lead is in the strip. Returns how many.
    POLYSPARSE_INLINE int64_t add_row(const Strip& strip, int64_t r) {
        const int32_t* const numbers = rows_->numbers();
        const int64_t end = rows_->end_of(r), gap = rows_->gap(), n = scorer_.n_numbers();
        int64_t t = first_from(strip.first, rows_->begin_of(r), end), n_added = 0;
        for (; t < end && numbers[t] < strip.last; ++t) {
            double* const places = numbers_.data();
            const int64_t start = starts_[numbers[t] - strip.first];
            const auto row = scorer_.prefix_row(static_cast<uint32_t>(r), value(t));
            for (int64_t u = t + gap; u < end; ++u)
                scorer_.add_value(places + (start + numbers[u]) * n, row, value(u));
            n_added += end - t;
        }
        return n_added;
    }

    /// The first of stored values [begin, end) of a row whose number is not below another.
    POLYSPARSE_INLINE int64_t first_from(int64_t number, int64_t begin, int64_t end) const {
        const int32_t* const numbers = rows_->numbers();
        if (number == 0) return begin;
        if (end - begin > 64)
            return std::lower_bound(numbers + begin, numbers + end, number) - numbers;
        int32_t n_below = 0;
        for (int64_t t = begin; t < end; ++t) n_below += numbers[t] < static_cast<int32_t>(number);
        return begin + n_below;
    }

    const RowsOfPairs* rows_;
    const Visiting* how_;
    Watch* watch_;
    bool may_stop_;
    Scorer scorer_;
    int64_t n_;
    std::vector<double> numbers_;  // [place]: sums, and the number of rows
    std::vector<int64_t> starts_;  // [lead of the strip]
};

/// Scores all pairs, and columns by themselves if the basis has them, each worker with the scorer
/// that make_scorer(worker) returns. False if stopped. Throws bad_alloc.
template <bool is_unit, class MakeScorer>
bool score_pairs(const Basis& basis, const RowsOfPairs& rows, const Strips& strips,
                 const Visiting& how, const MakeScorer& make_scorer) {
    Watch watch(INT64_MAX);
    std::vector<PairPass<is_unit, decltype(make_scorer(int64_t{}))>> passes;
    for (int64_t worker = 0; worker < how.n_threads; ++worker)
        passes.emplace_back(rows, strips, how, watch, worker == 0, make_scorer(worker));
    const bool has_singles = basis.lowest < 2;
    const auto pass_once = [&](int64_t worker, int64_t task) {
        if (watch.is_over()) return;
        try {
            if (task < strips.size())
                passes[worker].score(strips[task]);
            else
                passes[worker].score_singles();
        } catch (const std::bad_alloc&) {
            watch.fill_up();
        }
    };
    const bool ends_well = run_tasks(strips.size() + has_singles, how.n_threads, pass_once,
                                     *how.should_stop, Order::in_order);
    if (watch.is_full()) throw std::bad_alloc();
    return ends_well && !watch.is_over();
}

}  // namespace polysparse
