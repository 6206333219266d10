// Counting, for every monomial, the rows that have it, without making the expansion.
//
// All monomials that begin with the same columns, a prefix, are counted together. The rows that
// have the prefix are known, each by what follows the prefix in it: a span of the stored values.
// Every column in a span makes a monomial of one degree more. So a degree is one pass over spans
// that adds to a counter for each column. Monomials of one degree come out in order, and nothing is
// sorted but the stored values, once.
//
// A monomial is in no more rows than its prefixes are. So if only those in at least so many rows
// are wanted, a prefix in fewer rows is not extended, and its continuations take neither time nor
// room.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "basis/basis.hpp"
#include "observe/number_set.hpp"
#include "observe/runs.hpp"
#include "observe/transposed.hpp"
#include "platform/processors.hpp"
#include "platform/slabs.hpp"
#include "platform/threads.hpp"

namespace polysparse {

/// How much all workers have found, and whether they should stop. They check from time to time.
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

/// Columns and counts as they are found. One check for both arrays: this is the innermost loop.
template <class Count>
class FoundColumns {
  public:
    int64_t size() const { return static_cast<int64_t>(size_); }

    POLYSPARSE_INLINE void append(int64_t column, Count count) {
        if (size_ == counts_.size()) grow();
        columns_[size_] = column;
        counts_[size_++] = count;
    }

    /// Takes all of them, to memory of an arena. Throws bad_alloc.
    Chunk<Count> take(SlabArena& arena) {
        Chunk<Count> all = Chunk<Count>::copy(columns_.data(), counts_.data(), size(), arena);
        size_ = 0;
        return all;
    }

  private:
    POLYSPARSE_APART void grow() {
        const size_t size = std::max<size_t>(2 * size_, 64);
        columns_.resize(size);
        counts_.resize(size);  // the last, because its size is that of both
    }

    std::vector<int64_t> columns_;
    std::vector<Count> counts_;
    size_t size_ = 0;  // how many are in use
};

// *Followers* are the stored values that may follow value t in its row, which ends at row_end:
//     followers.first(t), followers.end(t, row_end)
//     followers.base_of(basis, k, prefix)    the output column of a monomial of degree k is this
//                                            plus its last input column; others are in the prefix

/// Without groups: those from t + gap on. The base is found by the counter.
struct PlainFollowers {
    uint32_t gap;

    uint32_t first(uint32_t t) const { return t + gap; }
    uint32_t end(uint32_t, uint32_t row_end) const { return row_end; }
    void prefetch_first(uint32_t) const {}
};

/// The same with groups: those from next[t] on.
struct GroupedFollowers {
    const uint32_t* next;

    uint32_t first(uint32_t t) const { return next[t]; }
    uint32_t end(uint32_t, uint32_t row_end) const { return row_end; }
    void prefetch_first(uint32_t t) const { prefetch(next + t); }

    uint64_t base_of(const Basis& basis, int64_t k, const int64_t* prefix) const {
        uint64_t base = basis.degree_end[k] - static_cast<uint64_t>(basis.n_features);
        for (int64_t m = 0; m < k - 1; ++m) base -= basis.groups->depth(k - m, prefix[m]);
        return base;
    }
};

/// What one worker needs to count: a counter for each column that occurs and, for each degree but
/// the first and the highest, the spans that the next degree is made from.
template <class Column, class Count, class Followers>
class MonomialCounter {
  public:
    struct Over {};  // thrown when the watch says so

    /// Only monomials in at least `least` rows are found. This worker calls `should_stop`, unless
    /// it is null. The arena holds what is taken. All references must outlive the counter.
    MonomialCounter(const Basis& basis, const Transposed<Column>& x, Followers followers,
                    int64_t least, Watch& watch, const StopRequest* should_stop, SlabArena& arena)
        : basis_(&basis),
          x_(&x),
          followers_(followers),
          least_(least),
          watch_(&watch),
          should_stop_(should_stop),
          n_rows_with_(x.n_columns()),
          seen_(x.n_columns()),
          prefix_(basis.highest + 1),
          first_equal_(basis.highest + 1),
          levels_(basis.highest + 1),
          next_in_row_(basis.highest + 1),
          end_in_row_(basis.highest + 1),
          found_(basis.highest + 1),
          arena_(&arena) {}

    /// Counts all monomials that begin with column number `first`.
    void count_led_by(int64_t first) {
        const auto* const begin = &x_->tails[x_->first[first]];
        const int64_t n = x_->first[first + 1] - x_->first[first];
        if (n < least_) return;
        if (basis_->lowest <= 1)
            found_[1].append(static_cast<int64_t>(base_of(1) + begin->column),
                             static_cast<Count>(n));
        if (basis_->highest < 2) return;
        set_prefix(0, static_cast<int64_t>(begin->column));
        if (!extend(2, begin, n)) return;
        // Goes through the levels without recursion: degrees may be more than a stack is deep.
        for (int64_t k = 2; k >= 2;) {
            Level& level = levels_[k];
            if (level.next == level.numbers.size()) {
                --k;
                continue;
            }
            const size_t i = level.next++;
            set_prefix(k - 1, static_cast<int64_t>(x_->names[level.numbers[i]]));
            const uint32_t start = level.starts[i];
            if (extend(k + 1, level.spans.data() + start, level.starts[i + 1] - start)) ++k;
        }
    }

    /// Goes on with another basis and other followers. Needs: no higher degree, and that everything
    /// was taken.
    void set_followers(const Basis& basis, Followers followers) {
        basis_ = &basis;
        followers_ = followers;
    }

    /// Takes what was found of a degree since the last time.
    Chunk<Count> take(int64_t degree) {
        Chunk<Count> all = found_[degree].take(*arena_);
        n_reported_ -= std::ssize(all.columns);
        return all;
    }

    /// Tells the watch what was found. Throws Over.
    void report() {
        int64_t n_found = 0;
        for (const FoundColumns<Count>& found : found_) n_found += found.size();
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
        std::vector<uint32_t> starts;   // where their spans begin, and the end
        std::vector<Span> spans;        // by column
        size_t next = 0;                // the first number that has not been extended
    };

    /// The output column of a monomial of degree k is this plus its last input column. The depths
    /// of equal members of the prefix add up in one step: T_lo(n) + ... + T_hi(n) is
    /// T_hi(n + 1) - T_{lo-1}(n + 1). So the cost does not grow with the degree alone. With
    /// groups there is no such step, but degrees are limited.
    uint64_t base_of(int64_t k) const {
        if constexpr (!std::is_same_v<Followers, PlainFollowers>)
            return followers_.base_of(*basis_, k, prefix_.data());
        uint64_t base = basis_->degree_end[k] - static_cast<uint64_t>(basis_->n_features);
        for (int64_t m = k - 2; m >= 0;) {
            const int64_t first = first_equal_[m];
            if (first == m) {
                base -= basis_->depth(k - m, prefix_[m]);
            } else {  // no gaps: interactions have no equal members
                const int64_t n = basis_->n_features - prefix_[m];
                base -= simplex(k - first, n) - simplex(k - m - 1, n);
            }
            m = first - 1;
        }
        return base;
    }

    /// Makes a column the last of a prefix of m + 1.
    void set_prefix(int64_t m, int64_t column) {
        prefix_[m] = column;
        first_equal_[m] = m > 0 && prefix_[m - 1] == column ? first_equal_[m - 1] : m;
    }

    /// Counts monomials of degree k that extend the prefix, of degree k - 1. A span begins with the
    /// prefix's last column. Returns whether a level was opened that says how to extend them.
    template <class AnySpan>
    POLYSPARSE_INLINE bool extend(int64_t k, const AnySpan* spans, int64_t n) {
        note_steps(n);
        if (n == 1)
            extend_row(k, spans->begin, spans->end);
        else if (k == basis_->highest)
            extend_last(k, spans, n);
        else
            open_level(k, spans, n);
        return n > 1 && k < basis_->highest;
    }

    /// Reports every so many steps: spans, or stored values of a row.
    POLYSPARSE_INLINE void note_steps(int64_t n_steps) {
        n_steps_ += n_steps;
        if (n_steps_ > reporting_interval) report();
    }

    template <class AnySpan, class F>
    POLYSPARSE_INLINE void for_each_stored(const AnySpan* spans, int64_t n, const F& f) const {
        constexpr int64_t ahead = 8;
        const Followers followers = followers_;
        const uint32_t* const numbers = &x_->numbers[0];
        for (int64_t s = 0; s < n; ++s) {
            if (s + ahead < n) {
                prefetch(numbers + spans[s + ahead].begin);
                followers.prefetch_first(spans[s + ahead].begin);
            }
            const uint32_t row_end = spans[s].end, end = followers.end(spans[s].begin, row_end);
            for (uint32_t t = followers.first(spans[s].begin); t < end; ++t)
                f(numbers[t], t, row_end);
        }
    }

    template <class AnySpan>
    POLYSPARSE_INLINE void count(const AnySpan* spans, int64_t n) {
        for_each_stored(spans, n, [&](uint32_t number, uint32_t, uint32_t) {
            if (n_rows_with_[number]++ == 0) seen_.insert(number);
        });
    }

    template <class AnySpan>
    POLYSPARSE_APART void extend_last(int64_t k, const AnySpan* spans, int64_t n) {
        count(spans, n);
        const uint64_t base = base_of(k);
        FoundColumns<Count>& found = found_[k];
        seen_.drain([&](uint32_t number) {
            const Count n_rows = std::exchange(n_rows_with_[number], 0);
            if (n_rows >= least_)
                found.append(static_cast<int64_t>(base + x_->names[number]), n_rows);
        });
    }

    template <class AnySpan>
    POLYSPARSE_APART void open_level(int64_t k, const AnySpan* spans, int64_t n) {
        count(spans, n);
        const uint64_t base = base_of(k);
        const bool wanted = k >= basis_->lowest;
        Level& level = levels_[k];
        level.numbers.clear();
        level.starts.assign(1, 0);
        rejected_.clear();
        seen_.drain([&](uint32_t number) {
            const uint32_t start = level.starts.back();
            if (n_rows_with_[number] < least_) {
                n_rows_with_[number] = no_place;
                rejected_.push_back(number);
                return;
            }
            const Count n_rows = std::exchange(n_rows_with_[number], start);
            if (wanted) found_[k].append(static_cast<int64_t>(base + x_->names[number]), n_rows);
            level.numbers.push_back(number);
            level.starts.push_back(start + n_rows);
        });
        level.spans.resize(level.starts.back());
        for_each_stored(spans, n, [&](uint32_t number, uint32_t t, uint32_t end) {
            if (n_rows_with_[number] != no_place) level.spans[n_rows_with_[number]++] = {t, end};
        });
        for (const uint32_t number : level.numbers) n_rows_with_[number] = 0;
        for (const uint32_t number : rejected_) n_rows_with_[number] = 0;
        level.next = 0;
    }

    /// Counts all monomials of degree `lowest` and above that extend a prefix which only the row of
    /// this span has: each is in one row.
    void extend_row(int64_t lowest, uint32_t begin, uint32_t row_end) {
        count_in_row(lowest, followers_.first(begin), followers_.end(begin, row_end));
        for (int64_t k = lowest; k >= lowest && k < basis_->highest;) {
            const uint32_t t = next_in_row_[k];
            if (t >= end_in_row_[k]) {
                --k;
                continue;
            }
            ++next_in_row_[k];
            set_prefix(k - 1, static_cast<int64_t>(x_->columns[t]));
            count_in_row(++k, followers_.first(t), followers_.end(t, row_end));
            if (k == basis_->highest) --k;
        }
    }

    /// Counts the monomials of degree k that extend the prefix by a stored value in [begin, end).
    void count_in_row(int64_t k, uint32_t begin, uint32_t end) {
        next_in_row_[k] = begin;
        end_in_row_[k] = end;
        if (begin >= end) return;
        note_steps(end - begin);
        if (k < basis_->lowest) return;
        const uint64_t base = base_of(k);
        const Column* const columns = &x_->columns[0];
        FoundColumns<Count>& found = found_[k];
        for (uint32_t t = begin; t < end; ++t)
            found.append(static_cast<int64_t>(base + columns[t]), 1);
    }

    static constexpr int64_t reporting_interval = int64_t{1} << 16;
    static constexpr Count no_place = std::numeric_limits<Count>::max();

    const Basis* basis_;
    const Transposed<Column>* x_;
    Followers followers_;
    int64_t least_;
    Watch* watch_;
    const StopRequest* should_stop_;
    int64_t n_steps_ = 0;             // since the last report
    int64_t n_reported_ = 0;          // how much of found_ the watch knows of
    std::vector<Count> n_rows_with_;  // [number]
    NumberSet seen_;                  // numbers whose counter is not zero
    std::vector<int64_t> prefix_;
    std::vector<int64_t> first_equal_;  // [m]: the first member of the prefix that equals member m
    std::vector<Level> levels_;
    std::vector<uint32_t> rejected_;          // numbers of columns that are not extended
    std::vector<uint32_t> next_in_row_;       // [degree]: the stored value to extend with next
    std::vector<uint32_t> end_in_row_;        // [degree]: one past the last of them
    std::vector<FoundColumns<Count>> found_;  // [degree]
    SlabArena* arena_;                        // for what is taken
};

}  // namespace polysparse
