// Counting, for every monomial, the rows that have it, without making the expansion.
//
// All monomials that begin with the same columns are counted together: the rows that have those
// columns are known, each by what is left of it behind them, and every column in what is left makes
// a monomial of one degree more. A row's rest is a span of the stored values, so a degree is one
// pass over spans that adds to a counter for each column. Monomials come out in the order of their
// columns, one degree beside the other, and nothing is sorted but the stored values once.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

#include "basis/simplex.hpp"
#include "observe/number_set.hpp"
#include "observe/tally.hpp"
#include "observe/transpose.hpp"
#include "platform/processors.hpp"
#include "platform/threads.hpp"

namespace polysparse {

/// How much all workers have found, and whether they are to stop: looked at from time to time.
class Watch {
  public:
    explicit Watch(int64_t most) : most_(most) {}

    void add(int64_t n_found) {
        if ((n_found_ += n_found) > most_) is_full_ = true;
    }
    void stop() { is_stopped_ = true; }
    void fill_up() { is_full_ = true; }
    bool is_over() const { return is_full_ || is_stopped_; }
    bool is_full() const { return is_full_; }

  private:
    int64_t most_;
    std::atomic<int64_t> n_found_{0};
    std::atomic<bool> is_full_{false}, is_stopped_{false};
};

/// What one worker needs to count: a counter for each column that occurs, and for each degree but
/// the first and the highest the spans that the next one is made from.
template <class Column, class Index, class Count, class Stop>
class MonomialCounter {
  public:
    struct Over {};  // is thrown when the watch says so

    /// `should_stop` is asked by this worker, if it is not null.
    MonomialCounter(const Basis& basis, const Transposed<Column>& x, const Index* columns,
                    Watch& watch, Stop* should_stop)
        : basis_(&basis),
          x_(&x),
          columns_(columns),
          watch_(&watch),
          should_stop_(should_stop),
          n_rows_with_(x.n_columns()),
          seen_(x.n_columns()),
          prefix_(basis.highest + 1),
          levels_(basis.highest + 1),
          found_(basis.highest + 1) {}

    /// All monomials that begin with column number `first`.
    void count_led_by(int64_t first) {
        const auto* const begin = &x_->tails[x_->first[first]];
        const int64_t n = x_->first[first + 1] - x_->first[first];
        if (basis_->lowest <= 1)
            found_[1].append(static_cast<int64_t>(base_of(1) + begin->column),
                             static_cast<Count>(n));
        if (basis_->highest < 2) return;
        prefix_[0] = static_cast<int64_t>(begin->column);
        extend(2, begin, n);
    }

    /// What was found of a degree since it was last asked for.
    Chunk<Count> take(int64_t degree) {
        Chunk<Count> all{{found_[degree].columns.begin(), found_[degree].columns.end()},
                         {found_[degree].counts.begin(), found_[degree].counts.end()}};
        found_[degree].clear();
        n_reported_ -= std::ssize(all.columns);
        return all;
    }

    /// Tells the watch what was found.
    void report() {
        int64_t n_found = 0;
        for (const Chunk<Count>& found : found_) n_found += std::ssize(found.columns);
        watch_->add(n_found - std::exchange(n_reported_, n_found));
        n_steps_ = 0;
        if (should_stop_ != nullptr && (*should_stop_)()) watch_->stop();
        if (watch_->is_over()) throw Over{};
    }

  private:
    struct Span {
        uint32_t begin, end;
    };
    struct Level {
        std::vector<uint32_t> numbers;  // of the columns that were found
        std::vector<uint32_t> starts;   // of their spans
        std::vector<Span> spans;        // by column
    };

    /// The output column of a monomial of degree k is this plus its last input column.
    uint64_t base_of(int64_t k) const {
        uint64_t base = basis_->degree_end[k] - static_cast<uint64_t>(basis_->n_features);
        for (int64_t m = 0; m < k - 1; ++m) base -= basis_->depth(k - m, prefix_[m]);
        return base;
    }

    /// Monomials of degree k and more that go on from the prefix, of degree k - 1. A span begins
    /// with the prefix's last column.
    template <class AnySpan>
    POLYSPARSE_INLINE void extend(int64_t k, const AnySpan* spans, int64_t n) {
        look_up(n);
        if (n == 1)
            extend_row(k, spans->begin, spans->end);
        else if (k == basis_->highest)
            extend_last(k, spans, n);
        else
            extend_further(k, spans, n);
    }

    /// Reports every so many spans, or stored values of a row.
    POLYSPARSE_INLINE void look_up(int64_t n_steps) {
        n_steps_ += n_steps;
        if (n_steps_ > reporting_interval) report();
    }

    template <class AnySpan, class F>
    POLYSPARSE_INLINE void for_each_stored(const AnySpan* spans, int64_t n, const F& f) const {
        constexpr int64_t ahead = 8;
        const auto gap = static_cast<uint32_t>(basis_->interaction_only);
        const uint32_t* const numbers = x_->numbers.get();
        for (int64_t s = 0; s < n; ++s) {
            if (s + ahead < n) prefetch(numbers + spans[s + ahead].begin);
            const uint32_t end = spans[s].end;
            for (uint32_t t = spans[s].begin + gap; t < end; ++t) f(numbers[t], t, end);
        }
    }

    template <class AnySpan>
    POLYSPARSE_INLINE void count(const AnySpan* spans, int64_t n) {
        for_each_stored(spans, n, [&](uint32_t number, uint32_t, uint32_t) {
            if (n_rows_with_[number]++ == 0) seen_.insert(number);
        });
    }

    template <class AnySpan>
    void extend_last(int64_t k, const AnySpan* spans, int64_t n) {
        count(spans, n);
        const uint64_t base = base_of(k);
        Chunk<Count>& found = found_[k];
        seen_.drain([&](uint32_t number) {
            found.append(static_cast<int64_t>(base + x_->names[number]),
                         std::exchange(n_rows_with_[number], 0));
        });
    }

    template <class AnySpan>
    void extend_further(int64_t k, const AnySpan* spans, int64_t n) {
        count(spans, n);
        const uint64_t base = base_of(k);
        const bool wanted = k >= basis_->lowest;
        Level& level = levels_[k];
        level.numbers.clear();
        level.starts.assign(1, 0);
        seen_.drain([&](uint32_t number) {
            const uint32_t start = level.starts.back();
            const Count n_rows = std::exchange(n_rows_with_[number], start);
            if (wanted) found_[k].append(static_cast<int64_t>(base + x_->names[number]), n_rows);
            level.numbers.push_back(number);
            level.starts.push_back(start + n_rows);
        });
        level.spans.resize(level.starts.back());
        for_each_stored(spans, n, [&](uint32_t number, uint32_t t, uint32_t end) {
            level.spans[n_rows_with_[number]++] = {t, end};
        });
        for (const uint32_t number : level.numbers) n_rows_with_[number] = 0;
        for (size_t i = 0; i < level.numbers.size(); ++i) {
            prefix_[k - 1] = static_cast<int64_t>(x_->names[level.numbers[i]]);
            const uint32_t start = level.starts[i];
            extend(k + 1, level.spans.data() + start, level.starts[i + 1] - start);
        }
    }

    /// The same if one row alone has the prefix: so every monomial is in one row.
    void extend_row(int64_t k, uint32_t begin, uint32_t end) {
        begin += static_cast<uint32_t>(basis_->interaction_only);
        look_up(end - begin);
        if (k >= basis_->lowest) {
            const uint64_t base = base_of(k);
            for (uint32_t t = begin; t < end; ++t)
                found_[k].append(static_cast<int64_t>(base + static_cast<uint64_t>(columns_[t])),
                                 1);
        }
        if (k == basis_->highest) return;
        for (uint32_t t = begin; t < end; ++t) {
            prefix_[k - 1] = columns_[t];
            extend_row(k + 1, t, end);
        }
    }

    const Basis* basis_;
    const Transposed<Column>* x_;
    static constexpr int64_t reporting_interval = int64_t{1} << 16;

    const Index* columns_;
    Watch* watch_;
    Stop* should_stop_;
    int64_t n_steps_ = 0;             // since the last report
    int64_t n_reported_ = 0;          // of what is in found_
    std::vector<Count> n_rows_with_;  // [number]
    NumberSet seen_;                  // numbers whose counter is not zero
    std::vector<int64_t> prefix_;
    std::vector<Level> levels_;
    std::vector<Chunk<Count>> found_;  // [degree]
};

/// Bytes that `observe` may need for each stored value, beside what it finds.
inline int64_t observing_bytes(const Basis& basis, int64_t index_size, int64_t n_threads) {
    const int64_t sorting = 2 * (index_size + 8) + 4;
    return sorting + n_threads * (8 + 8 * std::max<int64_t>(basis.highest - 2, 0));
}

/// A run of all columns that the rows' expansion has. `stored` arrays are read from row_offsets[0]
/// on. Stops, with false, when should_stop says so. Throws bad_alloc, when no thread runs, also if
/// more than `most` columns are found. Needs: rows inspected and rising, fewer than 2^32 rows and
/// stored values, columns that int64 can number.
template <class Count, class Offset, class Index, class Stop>
bool observe(const Basis& basis, const Offset* row_offsets, int64_t n_rows, const Index* columns,
             int64_t most, int64_t n_threads, int64_t wanted, Stop& should_stop, Run<Count>& run) {
    if (basis.include_bias && n_rows > 0) run.push_back({{0}, {static_cast<Count>(n_rows)}});
    if (row_offsets[n_rows] == row_offsets[0] || basis.highest < basis.lowest) return true;
    const auto x = transpose(row_offsets, n_rows, columns, n_threads);
    using Column = std::make_unsigned_t<Index>;
    using Counter = MonomialCounter<Column, Index, Count, Stop>;
    Watch watch(most);
    std::vector<Counter> counters;
    for (int64_t worker = 0; worker < n_threads; ++worker)
        counters.emplace_back(basis, x, columns + row_offsets[0], watch,
                              worker == 0 ? &should_stop : nullptr);

    // A task has about so many stored values that lead.
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

}  // namespace polysparse
