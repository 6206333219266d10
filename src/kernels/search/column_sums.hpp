// Weighted sums of products of columns: of each with 1 and with itself, and of pairs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "basis/basis.hpp"
#include "observe/transposed.hpp"
#include "search/ordered_rows.hpp"
#include "search/prepared_rows.hpp"
#include "search/visit.hpp"

namespace polysparse {

/// Rows with a weight each; all weights are 1 if null.
struct WeightedRows {
    const OrderedRows* x;
    const double* weights;

    double weight(uint32_t row) const { return weight_of(weights, row); }
    /// Of a stored value. `is_unit`: all are 1.
    template <bool is_unit>
    POLYSPARSE_INLINE double value(uint32_t t) const {
        return is_unit ? 1.0 : x->values[t];
    }
};

/// Sums over rows of w x_j and w x_j^2 for each column number j.
struct ColumnSums {
    double total = 0;  // of w
    std::vector<double> sums, squares;

    /// Throws bad_alloc and Stopped.
    template <bool is_unit>
    void add_up(const PreparedRows& prepared, const WeightedRows& rows, int64_t n_threads,
                const StopRequest& should_stop) {
        const Transposed<uint32_t>& by_column = prepared.by_column;
        const int64_t n_rows = prepared.rows.n_rows();
        equal_stretches(n_rows, 1).run(should_stop, [&](int64_t, int64_t begin, int64_t end) {
            for (int64_t r = begin; r < end; ++r) total += rows.weight(static_cast<uint32_t>(r));
        });
        sums.assign(by_column.n_columns(), 0);
        squares = sums;
        const auto add_columns = [&](int64_t, int64_t begin, int64_t end) {
            for (int64_t number = begin; number < end; ++number)
                for (int64_t s = by_column.first[number]; s < by_column.first[number + 1]; ++s) {
                    const uint32_t t = by_column.tails[s].begin;
                    const double value = rows.value<is_unit>(t);
                    const double product = rows.weight(prepared.rows.rows[t]) * value;
                    sums[number] += product;
                    squares[number] += product * value;
                }
        };
        stretches_of_columns(by_column, n_threads).run(should_stop, add_columns);
    }
};

/// The sum over rows of w x_i x_j for a column i and one that may follow it.
struct PairSum {
    uint32_t number;  // j
    double sum;
};

/// Of each column, those of all pairs that it begins and that occur often enough, by number.
using PairSums = std::vector<std::vector<PairSum>>;

/// Adds up those of pairs: a visitor of the walk. Needs: degree 2, and at least two rows of each.
template <bool is_unit>
class PairAdder : public OnlyManyRows {
  public:
    using Span = Tail<uint32_t>;

    PairAdder(const WeightedRows& rows, int64_t n_columns, PairSums& pairs)
        : rows_(rows), sums_(n_columns), pairs_(&pairs) {}

    template <class Followers>
    bool start_lead(const Basis&, const Followers&, int64_t number, const Tail<uint32_t>*,
                    int64_t) {
        found_ = &(*pairs_)[number];
        return true;
    }
    void set_prefix(int64_t, int64_t) {}
    bool enters(int64_t, size_t) const { return false; }

    /// The weight of a row times the lead's value.
    POLYSPARSE_INLINE double row_of(const Tail<uint32_t>& tail) const {
        return rows_.weight(rows_.x->rows[tail.begin]) * rows_.value<is_unit>(tail.begin);
    }
    POLYSPARSE_INLINE Span next(double, uint32_t t, uint32_t end) const { return {0, t, end}; }
    template <bool is_last>
    POLYSPARSE_INLINE void add(uint32_t number, uint32_t t, double product) {
        sums_[number] += product * rows_.value<is_unit>(t);
    }

    struct Results {
        PairAdder* adder;

        bool accept(uint32_t number, uint32_t) {
            adder->found_->push_back({number, adder->sums_[number]});
            drop(number);
            return false;
        }
        void drop(uint32_t number) { adder->sums_[number] = 0; }
    };
    template <bool is_last, class Followers>
    Results results(const Basis&, const Followers&, int64_t, int64_t) {
        return {this};
    }

  private:
    WeightedRows rows_;
    std::vector<double> sums_;  // [number]
    PairSums* pairs_;
    std::vector<PairSum>* found_ = nullptr;  // of the lead
};

}  // namespace polysparse
