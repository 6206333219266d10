// Visiting all monomials that occur in some rows by their prefixes, without making the expansion.
//
// All monomials that begin with the same columns, a prefix, are visited together. The rows that
// have the prefix are known, each by what follows the prefix in it: a span of the stored values.
// Every column in a span makes a monomial of one degree more. So a degree is one pass over spans
// that adds to a counter for each column. Monomials of one degree come out in order, and nothing is
// sorted but the stored values, once.
//
// A monomial is in no more rows than its prefixes are. So if only those in at least so many rows
// are wanted, a prefix in fewer rows is not extended, and its continuations take neither time nor
// room. A visitor may reject more prefixes.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "basis/basis.hpp"
#include "observe/number_set.hpp"
#include "observe/transposed.hpp"
#include "platform/processors.hpp"
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

// *Followers* are the stored values that may follow value t in its row, which ends at row_end:
//     followers.first(t), followers.end(t, row_end)

/// Without groups: those from t + gap on.
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
};

/// Where a prefix ends in a row: at stored value `begin`, of a row that ends before value `end`.
struct Span {
    uint32_t begin, end;
};

// A *visitor* has a number for each column, besides the walk's counter of rows:
//     Visitor::Span                      at least begin and end
//     start_lead(basis, followers, number, tails, n)
//                                        reports degree 1; whether to extend it
//     set_prefix(m, column)              makes a column the last of a prefix of m + 1
//     enters(k, i)                       whether to extend the i-th prefix that was accepted
//     row_of(span)                       what `add` and `next` need of a row
//     add<is_last>(number, t, row)       for stored value t, which makes a monomial; is_last: of
//                                        the highest degree
//     next(row, t, end)                  the span of a prefix that ends at t
//     results<is_last>(basis, followers, k, n)
//                                        an object for the monomials of degree k that extend a
//                                        prefix in n rows:
//         .accept(number, n_rows)        reports one; whether to extend it; clears its numbers
//         .drop(number)                  one in too few rows: only clears its numbers
//     enter_row(k, span)                 only this row has the prefix, of degree k - 1
//     enters_row(k, t)                   whether to extend it by t, a prefix of degree k
//     found_in_row(basis, followers, k, begin, end)
//                                        reports monomials of degree k, which end at these values
//     n_found()                          since the last call, for the watch
// It may also have places, each with n_numbers() numbers, of which the last counts rows:
//     extended(row, t)                   what a row adds for a prefix that ends at t
//     add_to_place(place, extended, u)   adds it for stored value u
//     report_place(number, place)        for a monomial of the highest degree

/// What one worker needs to visit monomials: a counter for each column that occurs and, for each
/// degree but the first and the highest, the spans that the next degree is made from.
template <class Column, class Count, class Followers, class Visitor>
class PrefixWalk {
  public:
    using VisitorType = Visitor;
    struct Over {};  // thrown when the watch says so

    /// Only monomials in at least `least` rows are visited. This worker calls `should_stop`, unless
    /// it is null. All references must outlive the walk.
    PrefixWalk(const Basis& basis, const Transposed<Column>& x, Followers followers, int64_t least,
               Watch& watch, const StopRequest* should_stop, Visitor&& visitor)
        : basis_(&basis),
          x_(&x),
          followers_(followers),
          least_(least),
          watch_(&watch),
          should_stop_(should_stop),
          n_rows_with_(x.n_columns()),
          seen_(x.n_columns()),
          levels_(basis.highest + 1),
          next_in_row_(basis.highest + 1),
          end_in_row_(basis.highest + 1),
          visitor_(std::move(visitor)) {}

    Visitor& visitor() { return visitor_; }

    /// Visits all monomials that begin with column number `first`. Adds `share` to `done`, of which
    /// some with every report.
    void visit_led_by(int64_t first, double share, std::atomic<double>& done) {
        if (basis_->highest > 2) levels_[2].numbers.clear();
        share_ = share;
        added_ = 0;
        done_ = &done;
        visit_led_by(first);
        add_share(1);
        done_ = nullptr;
    }

    /// Visits all monomials that begin with column number `first`.
    void visit_led_by(int64_t first) {
        const auto* const begin = &x_->tails[x_->first[first]];
        const int64_t n = x_->first[first + 1] - x_->first[first];
        if (n < least_) return;
        const bool is_extended = visitor_.start_lead(*basis_, followers_, first, begin, n);
        if (basis_->highest < 2 || !is_extended) return;
        visitor_.set_prefix(0, static_cast<int64_t>(begin->column));
        if (!extend(2, begin, n)) return;
        // Goes through the levels without recursion: degrees may be more than a stack is deep.
        for (int64_t k = 2; k >= 2;) {
            Level& level = levels_[k];
            if (level.next == level.numbers.size()) {
                --k;
                continue;
            }
            const size_t i = level.next++;
            if (!visitor_.enters(k, i)) continue;
            visitor_.set_prefix(k - 1, static_cast<int64_t>(x_->names[level.numbers[i]]));
            const uint32_t start = level.starts[i];
            if (extend(k + 1, level.spans.data() + start, level.starts[i + 1] - start)) ++k;
        }
    }

    /// Goes on with another basis and other followers. Needs: no higher degree.
    void set_followers(const Basis& basis, Followers followers) {
        basis_ = &basis;
        followers_ = followers;
    }

    /// Tells the watch what was found. Throws Over.
    void report() {
        watch_->add(visitor_.n_found());
        n_steps_ = 0;
        if (done_ != nullptr && basis_->highest > 2 && !levels_[2].numbers.empty())
            add_share(static_cast<double>(levels_[2].next) /
                      static_cast<double>(levels_[2].numbers.size() + 1));
        if (should_stop_ != nullptr && (*should_stop_)()) watch_->stop();
        if (watch_->is_over()) throw Over{};
    }

  private:
    struct Level {
        std::vector<uint32_t> numbers;              // of the columns that were found
        std::vector<uint32_t> starts;               // where their spans begin, and the end
        std::vector<typename Visitor::Span> spans;  // by column
        size_t next = 0;                            // the first number that has not been extended
    };

    /// Adds what is new of this part of the column's share: of the pairs that begin with it.
    void add_share(double part) {
        done_->fetch_add(share_ * part - added_, std::memory_order_relaxed);
        added_ = share_ * part;
    }

    /// Visits monomials of degree k that extend the prefix, of degree k - 1. A span begins with the
    /// prefix's last column. Returns whether a level was opened that says how to extend them.
    template <class AnySpan>
    POLYSPARSE_INLINE bool extend(int64_t k, const AnySpan* spans, int64_t n) {
        note_steps(n);
        if (n == 1)
            extend_row(k, *spans);
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
            const auto row = visitor_.row_of(spans[s]);
            for (uint32_t t = followers.first(spans[s].begin); t < end; ++t)
                f(numbers[t], t, row_end, row);
        }
    }

    template <bool is_last, class AnySpan>
    POLYSPARSE_INLINE void count(const AnySpan* spans, int64_t n) {
        for_each_stored(spans, n, [&](uint32_t number, uint32_t t, uint32_t, const auto& row) {
            if (n_rows_with_[number]++ == 0) seen_.insert(number);
            visitor_.template add<is_last>(number, t, row);
        });
    }

    template <class AnySpan>
    POLYSPARSE_APART void extend_last(int64_t k, const AnySpan* spans, int64_t n) {
        count<true>(spans, n);
        auto results = visitor_.template results<true>(*basis_, followers_, k, n);
        seen_.drain([&](uint32_t number) {
            const Count n_rows = std::exchange(n_rows_with_[number], 0);
            if (n_rows >= least_)
                results.accept(number, n_rows);
            else
                results.drop(number);
        });
    }

    template <class AnySpan>
    POLYSPARSE_APART void open_level(int64_t k, const AnySpan* spans, int64_t n) {
        count<false>(spans, n);
        auto results = visitor_.template results<false>(*basis_, followers_, k, n);
        Level& level = levels_[k];
        level.numbers.clear();
        level.starts.assign(1, 0);
        rejected_.clear();
        const auto reject = [&](uint32_t number) {
            n_rows_with_[number] = no_place;
            rejected_.push_back(number);
        };
        seen_.drain([&](uint32_t number) {
            if (n_rows_with_[number] < least_) {
                results.drop(number);
                return reject(number);
            }
            const Count n_rows = n_rows_with_[number];
            if (!results.accept(number, n_rows)) return reject(number);
            const uint32_t start = level.starts.back();
            n_rows_with_[number] = start;
            level.numbers.push_back(number);
            level.starts.push_back(start + n_rows);
        });
        const bool are_scored = score_extensions(k, spans, n, level);
        if (!are_scored) list_spans(spans, n, level);
        for (const uint32_t number : level.numbers) n_rows_with_[number] = 0;
        for (const uint32_t number : rejected_) n_rows_with_[number] = 0;
        if (are_scored) level.numbers.clear();
        level.next = 0;
    }

    /// Lists the spans of all columns of a level, from their starts on.
    template <class AnySpan>
    POLYSPARSE_INLINE void list_spans(const AnySpan* spans, int64_t n, Level& level) {
        level.spans.resize(level.starts.back());
        if (level.numbers.empty()) return;
        for_each_stored(spans, n, [&](uint32_t number, uint32_t t, uint32_t end, const auto& row) {
            if (n_rows_with_[number] != no_place)
                level.spans[n_rows_with_[number]++] = visitor_.next(row, t, end);
        });
    }

    /// Visits what the columns of a level of degree k lead to, if that is of the highest degree and
    /// the columns are frequent: one pass over the rows for all of them, with a place for every
    /// pair of columns. Returns whether it was done.
    template <class AnySpan>
    POLYSPARSE_INLINE bool score_extensions(int64_t k, const AnySpan* spans, int64_t n,
                                            const Level& level) {
        if constexpr (requires { visitor_.n_numbers(); }) {
            if (k + 1 != basis_->highest || level.numbers.empty()) return false;
            int64_t n_places = 0;
            const int64_t n_columns = x_->n_columns(), size = visitor_.n_numbers();
            for (const uint32_t number : level.numbers) n_places += n_columns - number;
            if (n_places > level.starts.back() || n_places * size > most_numbers) return false;
            places_.assign(n_places * size, 0);
            first_places_.clear();
            int64_t place = 0;
            for (const uint32_t number : level.numbers) {
                n_rows_with_[number] = static_cast<Count>(first_places_.size());
                first_places_.push_back(place - number);
                place += n_columns - number;
            }
            add_extensions(spans, n);
            for (size_t i = 0; i < level.numbers.size(); ++i) {
                const uint32_t lead = level.numbers[i];
                if (!visitor_.enters(k, i)) continue;
                visitor_.set_prefix(k - 1, static_cast<int64_t>(x_->names[lead]));
                for (int64_t number = lead; number < n_columns; ++number) {
                    const double* const of = &places_[(first_places_[i] + number) * size];
                    if (of[size - 1] >= static_cast<double>(least_))
                        visitor_.report_place(number, of);
                }
            }
            return true;
        }
        return false;
    }

    template <class AnySpan>
    POLYSPARSE_INLINE void add_extensions(const AnySpan* spans, int64_t n) {
        const Followers followers = followers_;
        const uint32_t* const numbers = &x_->numbers[0];
        double* const places = places_.data();
        const int64_t size = visitor_.n_numbers();
        int64_t n_steps = 0;
        for_each_stored(
            spans, n, [&](uint32_t lead, uint32_t t, uint32_t row_end, const auto& row) {
                if (n_rows_with_[lead] == no_place) return;
                const int64_t first = first_places_[n_rows_with_[lead]];
                const auto of_lead = visitor_.extended(row, t);
                const uint32_t end = followers.end(t, row_end);
                for (uint32_t u = followers.first(t); u < end; ++u)
                    visitor_.add_to_place(places + (first + numbers[u]) * size, of_lead, u);
                n_steps += end - t;
            });
        note_steps(n_steps);
    }

    /// Visits all monomials of degree `lowest` and above that extend a prefix which only the row of
    /// this span has: each is in one row.
    template <class AnySpan>
    void extend_row(int64_t lowest, const AnySpan& span) {
        visitor_.enter_row(lowest, span);
        visit_in_row(lowest, followers_.first(span.begin), followers_.end(span.begin, span.end));
        for (int64_t k = lowest; k >= lowest && k < basis_->highest;) {
            const uint32_t t = next_in_row_[k];
            if (t >= end_in_row_[k]) {
                --k;
                continue;
            }
            ++next_in_row_[k];
            if (!visitor_.enters_row(k, t)) continue;
            visitor_.set_prefix(k - 1, static_cast<int64_t>(x_->columns[t]));
            visit_in_row(++k, followers_.first(t), followers_.end(t, span.end));
            if (k == basis_->highest) --k;
        }
    }

    /// Visits the monomials of degree k that extend the prefix by a stored value in [begin, end).
    void visit_in_row(int64_t k, uint32_t begin, uint32_t end) {
        next_in_row_[k] = begin;
        end_in_row_[k] = end;
        if (begin >= end) return;
        note_steps(end - begin);
        if (k >= basis_->lowest) visitor_.found_in_row(*basis_, followers_, k, begin, end);
    }

    static constexpr int64_t reporting_interval = int64_t{1} << 16;
    static constexpr int64_t most_numbers = int64_t{1} << 18;  // of places
    static constexpr Count no_place = std::numeric_limits<Count>::max();

    const Basis* basis_;
    const Transposed<Column>* x_;
    Followers followers_;
    int64_t least_;
    Watch* watch_;
    const StopRequest* should_stop_;
    int64_t n_steps_ = 0;           // since the last report
    double share_ = 0, added_ = 0;  // of all work: of the column that is visited, and of it done
    std::atomic<double>* done_ = nullptr;
    std::vector<Count> n_rows_with_;  // [number]
    NumberSet seen_;                  // numbers whose counter is not zero
    std::vector<Level> levels_;
    std::vector<uint32_t> rejected_;     // numbers of columns that are not extended
    std::vector<double> places_;         // of pairs of columns that extend a prefix
    std::vector<int64_t> first_places_;  // of each first column, less its number
    std::vector<uint32_t> next_in_row_;  // [degree]: the stored value to extend with next
    std::vector<uint32_t> end_in_row_;   // [degree]: one past the last of them
    Visitor visitor_;
};

}  // namespace polysparse
