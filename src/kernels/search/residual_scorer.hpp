// Scores of interactions against residuals, many draws of them at a time: a visitor of the walk by
// prefixes.
//
// The statistic of an interaction with column z, for residuals r, is (sum of z r)^2 divided by its
// information: see information.hpp. Interactions are left out that too few rows tell about for
// their statistic to be about chi-squared. If all |z| are equal or 0, the information must be at
// least `least_information` times z^2. Of other columns, the same must hold for the sum of w z^2
// and the mean of z^2 with weights w z^2: what is left of them does not depend on few rows only
// because a regression on their members explains most of them.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "basis/basis.hpp"
#include "observe/transposed.hpp"
#include "platform/processors.hpp"
#include "search/best.hpp"
#include "search/column_sums.hpp"
#include "search/information.hpp"
#include "search/visit.hpp"

namespace polysparse {

/// Residuals of rows, from which main effects were projected: [row][draw].
struct Residuals {
    const double* values;
    int64_t n;  // draws
};

// A *sink* receives scores:
//     take(sums, information, n_rows, column)
//                                        the sum for each draw; `column()` returns the column

/// Keeps the largest statistics of the one draw, and counts the interactions.
class Leaders {
  public:
    Leaders(Best& best, int64_t& n_tested) : best_(&best), n_tested_(&n_tested) {}

    template <class Column>
    void take(const double* sums, double information, int64_t n_rows, const Column& column) {
        constexpr double rounding = 1e-9;
        ++*n_tested_;
        const double score = sums[0] / std::sqrt(information), size = std::abs(score);
        if (size * (1 + rounding) < best_->threshold()) return;
        best_->offer({column(), n_rows, 0, score, size * (1 - rounding), size * (1 + rounding)});
    }

  private:
    Best* best_;
    int64_t* n_tested_;
};

/// Keeps the largest statistic of each draw, but for those of some columns.
class Maxima {
  public:
    /// `excluded` is sorted.
    Maxima(const std::vector<int64_t>& excluded, std::vector<double>& maxima)
        : excluded_(&excluded), maxima_(&maxima) {}

    template <class Column>
    POLYSPARSE_INLINE void take(const double* sums, double information, int64_t,
                                const Column& column) {
        const double factor = 1 / information;
        double* const maxima = maxima_->data();
        const int64_t n = std::ssize(*maxima_);
        bool is_larger = false;
        for (int64_t i = 0; i < n; ++i) is_larger |= sums[i] * sums[i] * factor > maxima[i];
        if (!is_larger || std::ranges::binary_search(*excluded_, column())) return;
        for (int64_t i = 0; i < n; ++i) maxima[i] = std::max(maxima[i], sums[i] * sums[i] * factor);
    }

  private:
    const std::vector<int64_t>* excluded_;
    std::vector<double>* maxima_;
};

/// `is_unit`: all stored values are 1.
template <bool is_unit, class Sink>
class ResidualScorer : public OnlyManyRows {
  public:
    /// Values of the members of a prefix in a row; the last place is never needed.
    using Values = std::array<double, most_members - 1>;
    struct UnitSpan {
        uint32_t begin, end, row;
    };
    struct ValueSpan {
        uint32_t begin, end, row;
        double product;
        Values values;
    };
    using Span = std::conditional_t<is_unit, UnitSpan, ValueSpan>;

    /// References must outlive it. Needs: at least two rows of each column.
    ResidualScorer(const Basis& basis, const WeightedRows& rows, const Residuals& residuals,
                   const Information& information, double least_information, Sink sink)
        : basis_(&basis),
          rows_(rows),
          residuals_(residuals),
          information_(information),
          least_information_(least_information),
          sink_(sink),
          n_moments_(is_unit ? 1 : with_prefix + basis.highest),
          moments_(rows.x->n_columns() * n_moments_),
          sums_(rows.x->n_columns() * residuals.n),
          prefix_(basis.highest + 1),
          tuple_(basis.highest + 1) {}

    template <class Followers>
    bool start_lead(const Basis&, const Followers&, int64_t, const Tail<uint32_t>*, int64_t) {
        return true;
    }
    POLYSPARSE_INLINE void set_prefix(int64_t m, int64_t number) {
        prefix_[m] = number;
        prefix_size_ = m + 1;
    }
    POLYSPARSE_INLINE bool enters(int64_t, size_t) const { return true; }

    /// A row that has a prefix: its residuals, its weight, and the values of the prefix.
    struct Row {
        uint32_t row;
        const double* residuals;
        double weight, product;
        Values values;
    };
    POLYSPARSE_INLINE Row row_of(const Tail<uint32_t>& tail) const {
        const double value = rows_.template value<is_unit>(tail.begin);
        return row_with(rows_.x->rows[tail.begin], value, {value});
    }
    POLYSPARSE_INLINE Row row_of(const Span& span) const {
        if constexpr (is_unit)
            return row_with(span.row, 1, {});
        else
            return row_with(span.row, span.product, span.values);
    }
    POLYSPARSE_INLINE Span next(const Row& row, uint32_t t, uint32_t end) const {
        if constexpr (is_unit) {
            return {t, end, row.row};
        } else {
            Span span{t, end, row.row, row.product * rows_.x->values[t], row.values};
            span.values[prefix_size_] = rows_.x->values[t];
            return span;
        }
    }

    template <bool is_last>
    POLYSPARSE_INLINE void add(uint32_t number, uint32_t t, const Row& row) {
        if (!is_last && prefix_size_ + 1 < basis_->lowest) return;
        const double value = rows_.template value<is_unit>(t), z = row.product * value;
        const double product = row.weight * z;
        double* const moments = &moments_[number * n_moments_];
        moments[0] += product;
        if constexpr (!is_unit) {
            moments[square] += product * z;
            moments[fourth] += product * z * z * z;
            moments[support] += row.weight;
            moments[with_last] += product * value;
            for (int64_t i = 0; i < prefix_size_; ++i)
                moments[with_prefix + i] += product * row.values[i];
        }
        double* const sums = &sums_[number * residuals_.n];
        for (int64_t i = 0; i < residuals_.n; ++i) sums[i] += z * row.residuals[i];
    }

    struct Results {
        ResidualScorer* scorer;
        bool are_wanted;

        bool accept(uint32_t number, uint32_t n_rows) {
            if (are_wanted) scorer->report(number, n_rows);
            return true;
        }
        void drop(uint32_t number) {
            if (are_wanted) scorer->clear(number);
        }
    };
    template <bool is_last, class Followers>
    Results results(const Basis& basis, const Followers&, int64_t k, int64_t) {
        const bool are_wanted = is_last || k >= basis.lowest;
        if (are_wanted) information_.set_prefix(prefix_.data(), prefix_size_);
        return {this, are_wanted};
    }

  private:
    // Places among the moments: the sum of w z comes first.
    static constexpr int64_t square = 1, fourth = 2, support = 3, with_last = 4, with_prefix = 5;

    POLYSPARSE_INLINE Row row_with(uint32_t row, double product, const Values& values) const {
        return {row, residuals_.values + row * residuals_.n, rows_.weight(row), product, values};
    }

    void report(uint32_t number, int64_t n_rows) {
        const double information = information_of(number);
        if (information > 0)
            sink_.take(&sums_[number * residuals_.n], information, n_rows, [&] {
                return rows_.x->rank(*basis_, prefix_, prefix_size_, number, tuple_);
            });
        clear(number);
    }

    /// 0 if it is too little.
    double information_of(uint32_t number) {
        const double* const m = &moments_[number * n_moments_];
        std::array<double, most_members> all_alike;
        Information::Sums sums{m[0], m[0], m[0], all_alike.data()};
        double least = least_information_;
        bool is_alike = true;
        if constexpr (is_unit) {
            all_alike.fill(m[0]);
        } else {
            constexpr double rounding = 1e-9;
            sums = {m[0], m[square], m[with_last], m + with_prefix};
            if (!(m[square] > 0)) return 0;
            least *= m[fourth] / m[square];
            is_alike = m[square] * m[square] >= (1 - rounding) * m[support] * m[fourth];
        }
        if (sums.square < least) return 0;
        const double information = information_.of(number, sums);
        return is_alike && information < least ? 0 : information;
    }

    void clear(uint32_t number) {
        std::fill_n(&moments_[number * n_moments_], n_moments_, 0.0);
        std::fill_n(&sums_[number * residuals_.n], residuals_.n, 0.0);
    }

    const Basis* basis_;
    WeightedRows rows_;
    Residuals residuals_;
    Information information_;
    double least_information_;
    Sink sink_;
    int64_t n_moments_;
    std::vector<double> moments_;  // [number]
    std::vector<double> sums_;     // [number][draw]
    std::vector<int64_t> prefix_;
    int64_t prefix_size_ = 0;
    std::vector<int64_t> tuple_;
};

}  // namespace polysparse
