// Scoring all monomials against targets, and pruning prefixes whose extensions cannot be among the
// best: a visitor of the walk by prefixes.
//
// For a monomial q, z_q is its column, g_i = w_i r_i the target of row i times the row's weight,
// and <z, g> the sum over rows of z_i g_i. The scores are |<z_q, g>| and, divided by the norm
// sqrt(sum of w_i z_qi^2) or by the standard deviation of z_q, the others.
//
// Bounds, for all extensions q of a prefix p by up to m more features. S is the set of rows that
// have p; z_qi = 0 outside of it. M_i is the most that m features can multiply a value of row i by:
// with the largest size t_i of its values, max(t_i, t_i^m).
// - dot: |z_qi| <= |z_pi| M_i. So |<z_q, g>| is at most the sum over S of |z_pi g_i| M_i. If no
//   value of X is negative, rows with g_i > 0 only raise the sum and others only lower it: the
//   larger of both parts is a bound.
// - normalized: by Cauchy and Schwarz, the sum over S of (sqrt(w_i) z_qi) (g_i / sqrt(w_i)) is at
//   most the norm of z_q times sqrt(sum over S of g_i^2 / w_i). If no value is negative, again the
//   larger part: the sum over rows with g_i > 0 is at most norm times the root of that part alone.
// - correlation: targets are centred and have sum of g_i^2 / w_i = 1. With the mean m of z_q, the
//   sum of w_i (z_qi - m)^2 is Q - (sum of w_i z_qi)^2 / W for Q = sum of w_i z_qi^2 and the sum W
//   of all weights. By Cauchy and Schwarz (sum of w_i z_qi)^2 <= W_S Q, with the weight W_S of S.
//   So it is at least Q (1 - W_S / W), and the bound is that of `normalized` divided by
//   sqrt(1 - W_S / W); and at most 1.
// All are sums of numbers that are not negative, so rounding changes them by a factor of at most
// 1 + n epsilon; they are made larger by more than that.
//
// If all stored values are 1, a sum has the same bits whatever the order of features is: it goes
// through the rows in their order. Otherwise the last bits of a score depend on the order of its
// products, and a candidate has limits of its size.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "basis/basis.hpp"
#include "observe/transposed.hpp"
#include "platform/processors.hpp"
#include "search/best.hpp"
#include "search/ordered_rows.hpp"

namespace polysparse {

enum class Score : int64_t { dot, normalized, correlation };

/// What columns are scored against.
struct ScoredTargets {
    Score score;
    int64_t n;              // targets
    const double* values;   // [row][target], times weights
    const double* weights;  // [row], positive; null if all are 1
    double total_weight, largest_weight;
    bool is_signed;  // whether some value of X is negative
};

/// `is_unit`: all stored values are 1. `is_plain`: there is one target, and a score depends on its
/// sum and on the number of rows only.
template <bool is_unit, bool is_plain>
class Scorer {
  public:
    struct UnitSpan {
        uint32_t begin, end, row;
    };
    struct ValueSpan {
        uint32_t begin, end, row;
        double product;
    };
    using Span = std::conditional_t<is_unit, UnitSpan, ValueSpan>;

    /// All references must outlive it. `basis` has the columns; `needs_among`: only monomials with
    /// a feature that is among are candidates.
    Scorer(const Basis& basis, const OrderedRows& x, const ScoredTargets& targets, bool needs_among,
           Best& best)
        : basis_(&basis),
          x_(&x),
          targets_(targets),
          needs_among_(needs_among),
          best_(&best),
          n_sums_(targets.n + n_moments(targets)),
          sums_(x.n_columns() * n_sums_),
          of_row_(n_sums_),
          halves_(2 * x.n_columns() * targets.n),
          bounds_(basis.highest + 1),
          products_(basis.highest + 1),
          prefix_(basis.highest + 1),
          has_among_(basis.highest + 1),
          tuple_(basis.highest + 1) {}

    /// Sums besides those of targets: of w z^2 and, for correlations, of w z.
    static int64_t n_moments(const ScoredTargets& targets) {
        if (targets.score == Score::dot || (is_unit && targets.weights == nullptr)) return 0;
        return targets.score == Score::correlation && !is_unit ? 2 : 1;
    }

    template <class Followers>
    bool start_lead(const Basis& basis, const Followers&, int64_t number,
                    const Tail<uint32_t>* tails, int64_t n) {
        if (needs_among_ && number >= x_->end_of_among && !may_precede_among(number)) return false;
        left_ = basis.highest - 1;
        const bool is_dot = targets_.score == Score::dot;
        double size = 0;  // of the terms of a sum
        for (int64_t s = 0; s < n; ++s) {
            const uint32_t t = tails[s].begin;
            const Row row = row_with(x_->rows[t], 1);
            add<false>(static_cast<uint32_t>(number), t, row);
            if constexpr (!is_unit)
                size += largest_of(row) * (is_dot ? std::abs(x_->values[t]) : 1 / row.weight);
        }
        set_slack(n, is_dot ? size : std::sqrt(size));
        has_among_[0] = false;
        prefix_size_ = 0;
        double bound = 0;
        const double least = best_->threshold();
        if (basis.lowest <= 1) report(number, n, least);
        if (left_ > 0) bound = bound_of(number, n);
        clear<false>(number);
        if (left_ > 0) set_slack(n, bound);
        return bound >= least;
    }

    POLYSPARSE_INLINE void set_prefix(int64_t m, int64_t number) {
        prefix_[m] = number;
        prefix_size_ = m + 1;
        has_among_[m + 1] = has_among_[m] || x_->is_among[number];
        left_ = basis_->highest - m - 2;
    }

    /// The bound was good enough when the prefix was accepted; the threshold may have risen.
    POLYSPARSE_INLINE bool enters(int64_t k, size_t i) {
        const Accepted& one = bounds_[k][i];
        if (one.bound < best_->threshold()) return false;
        set_slack(one.n_rows, one.bound);
        return true;
    }

    /// A row that has a prefix: its targets, its weight, the product of the prefix's values, and
    /// what that is multiplied by for a bound.
    struct Row {
        uint32_t row;
        double product;
        const double* targets;
        double target;  // the first
        double weight;
        double factor;
    };
    POLYSPARSE_INLINE Row row_of(const Tail<uint32_t>& tail) const {
        return row_with(x_->rows[tail.begin], is_unit ? 1.0 : x_->values[tail.begin]);
    }
    POLYSPARSE_INLINE Row row_of(const Span& span) const {
        if constexpr (is_unit)
            return row_with(span.row, 1);
        else
            return row_with(span.row, span.product);
    }
    POLYSPARSE_INLINE Span next(const Row& row, uint32_t t, uint32_t end) const {
        if constexpr (is_unit)
            return {t, end, row.row};
        else
            return {t, end, row.row, row.product * x_->values[t]};
    }

    template <bool is_last>
    POLYSPARSE_INLINE void add(uint32_t number, uint32_t t, const Row& row) {
        const double product = is_unit ? 1.0 : row.product * x_->values[t];
        add_to(sums_of(number), product, row);
        if constexpr (is_last) return;
        double* const halves = &halves_[2 * number * n_targets()];
        const double scale = scale_of_bound(row, product);
        for (int64_t i = 0; i < n_targets(); ++i) {
            const double target = is_plain ? row.target : row.targets[i];
            const double size = targets_.score == Score::dot ? std::abs(target) : target * target;
            halves[2 * i + (target < 0)] += size * scale;
        }
    }

    template <bool is_last>
    struct Results {
        Scorer* scorer;
        int64_t k;
        double least;  // the threshold
        bool are_wanted;

        POLYSPARSE_INLINE bool accept(uint32_t number, uint32_t n_rows) {
            return scorer->template accept<is_last>(*this, number, n_rows);
        }
        POLYSPARSE_INLINE void drop(uint32_t number) { scorer->template clear<is_last>(number); }
    };
    template <bool is_last, class Followers>
    POLYSPARSE_INLINE Results<is_last> results(const Basis& basis, const Followers&, int64_t k,
                                               int64_t) {
        if constexpr (!is_last) bounds_[k].clear();
        return {this, k, best_->threshold(), is_last || k >= basis.lowest};
    }

    template <class AnySpan>
    void enter_row(int64_t k, const AnySpan& span) {
        const Row row = row_of(span);
        row_ = row.row;
        products_[k - 1] = row.product;
    }

    bool enters_row(int64_t k, uint32_t t) {
        products_[k] = is_unit ? 1.0 : products_[k - 1] * x_->values[t];
        left_ = basis_->highest - k;
        const Row row = row_with(row_, products_[k]);
        const double bound = as_bound(largest_of(row) * scale_of_bound(row, row.product), 1);
        set_slack(1, bound);
        return bound >= best_->threshold();
    }

    template <class Followers>
    void found_in_row(const Basis&, const Followers&, int64_t k, uint32_t begin, uint32_t end) {
        const Row row = row_with(row_, products_[k - 1]);
        for (uint32_t t = begin; t < end; ++t) {
            const double least = best_->threshold();
            std::ranges::fill(of_row_, 0.0);
            add_to(of_row_.data(), is_unit ? 1.0 : row.product * x_->values[t], row);
            report_sums(of_row_.data(), x_->numbers[t], 1, least);
        }
    }

    int64_t n_found() const { return 0; }  // what is kept is bounded by itself

    // For passes over all pairs, whose places have the sums and the number of rows. Scores of pairs
    // by `dot` have the order of sums and products that all results have.

    POLYSPARSE_INLINE int64_t n_numbers() const { return is_plain ? 2 : n_sums_ + 1; }

    /// Begins a search of pairs.
    void start_pairs() {
        left_ = 0;
        if (is_unit || targets_.score != Score::normalized) return;
        double size = 0;  // of the terms of a score
        for (uint32_t row = 0; row < static_cast<uint32_t>(x_->n_rows()); ++row)
            size += largest_of(row_with(row, 1)) / weight_of(targets_.weights, row);
        set_slack(x_->n_rows(), std::sqrt(size));
    }

    /// A row and the product of a prefix's values.
    struct PrefixRow {
        Row row;
        Pack<double> plain;  // what is added to a place, if all stored values are 1
    };
    POLYSPARSE_INLINE PrefixRow prefix_row(uint32_t row, double product) const {
        const Row with = row_with(row, product);
        return {with, Pack<double>::of(with.target, 1)};
    }

    POLYSPARSE_INLINE void add_value(double* place, const PrefixRow& prefix, double value) const {
        if constexpr (is_unit && is_plain) {
            (Pack<double>::load(place) + prefix.plain).store(place);
        } else {
            add_to(place, is_unit ? 1.0 : prefix.row.product * value, prefix.row);
            place[is_plain ? 1 : n_sums_] += 1;
        }
    }

    POLYSPARSE_INLINE PrefixRow extended(const Row& row, uint32_t t) const {
        return prefix_row(row.row, is_unit ? 1.0 : row.product * x_->values[t]);
    }
    POLYSPARSE_INLINE void add_to_place(double* place, const PrefixRow& prefix, uint32_t u) const {
        add_value(place, prefix, is_unit ? 1.0 : x_->values[u]);
    }
    POLYSPARSE_INLINE void report_place(int64_t number, const double* place) {
        report_sums(place, number, static_cast<int64_t>(place[n_numbers() - 1]),
                    best_->threshold());
    }

    POLYSPARSE_INLINE void report_pair(int64_t lead, int64_t number, const double* place) {
        if (!x_->groups.groups.empty() && !may_be_pair(lead, number)) return;
        if (prefix_size_ == 0 || prefix_[0] != lead) set_prefix(0, lead);
        report_place(number, place);
    }

    void report_single(int64_t number, const double* place) {
        has_among_[0] = false;
        prefix_size_ = 0;
        report_place(number, place);
    }

  private:
    struct Accepted {
        double bound;
        uint32_t n_rows;
    };
    struct Scored {
        double score;
        int64_t target;
        double low, high;
    };

    POLYSPARSE_INLINE int64_t n_targets() const { return is_plain ? 1 : targets_.n; }
    POLYSPARSE_INLINE double* sums_of(int64_t number) {
        return &sums_[number * (is_plain ? 1 : n_sums_)];
    }

    static constexpr double epsilon = std::numeric_limits<double>::epsilon();

    /// By how much, relative to the sum of the sizes of its terms, a sum over n rows of products of
    /// so many factors may differ from another with the same terms, both rounded.
    double rounding(int64_t n) const {
        return epsilon * static_cast<double>(n + 2 * basis_->highest + 8);
    }

    POLYSPARSE_INLINE Row row_with(uint32_t row, double product) const {
        const double* const targets = targets_.values + row * n_targets();
        return {row,
                product,
                targets,
                *targets,
                weight_of(targets_.weights, row),
                is_unit ? 1.0 : factor_of(row)};
    }

    /// What the size of a target, or its square, is multiplied by for a bound.
    POLYSPARSE_INLINE double scale_of_bound(const Row& row, double product) const {
        return targets_.score == Score::dot ? std::abs(product) * row.factor : 1 / row.weight;
    }

    /// The most that the degrees that are left can multiply a value of a row by.
    POLYSPARSE_INLINE double factor_of(uint32_t row) const {
        if (targets_.score != Score::dot || left_ < 1) return 1;
        const double largest = x_->largest[row];
        double factor = largest;
        for (int64_t i = 1; largest > 1 && i < left_; ++i) factor *= largest;
        return factor;
    }

    /// The size of the largest target of a row, or its square, as bounds use it.
    double largest_of(const Row& row) const {
        double largest = 0;
        for (int64_t i = 0; i < targets_.n; ++i)
            largest = std::max(largest, std::abs(row.targets[i]));
        return targets_.score == Score::dot ? largest : largest * largest;
    }

    POLYSPARSE_INLINE void add_to(double* sums, double product, const Row& row) const {
        if constexpr (is_plain) {
            sums[0] += is_unit ? row.target : product * row.target;
            return;
        }
        const int64_t n = targets_.n;
        for (int64_t i = 0; i < n; ++i) sums[i] += product * row.targets[i];
        if (n_sums_ > n) sums[n] += product * product * row.weight;
        if (n_sums_ > n + 1) sums[n + 1] += product * row.weight;
    }

    template <bool is_last>
    POLYSPARSE_INLINE void clear(int64_t number) {
        std::fill_n(sums_of(number), is_plain ? 1 : n_sums_, 0.0);
        if constexpr (is_last) return;
        const int64_t n = 2 * n_targets();
        std::fill_n(&halves_[number * n], n, 0.0);
    }

    template <bool is_last>
    POLYSPARSE_INLINE bool accept(const Results<is_last>& results, uint32_t number,
                                  uint32_t n_rows) {
        if (results.are_wanted) report(number, n_rows, results.least);
        double bound = 0;
        if constexpr (!is_last) bound = bound_of(number, n_rows);
        clear<is_last>(number);
        if (is_last || bound < results.least) return false;
        bounds_[results.k].push_back({bound, n_rows});
        return true;
    }

    POLYSPARSE_INLINE void report(int64_t number, int64_t n_rows, double least) {
        report_sums(sums_of(number), number, n_rows, least);
    }

    POLYSPARSE_INLINE void report_sums(const double* sums, int64_t number, int64_t n_rows,
                                       double least) {
        if (is_plain && targets_.score == Score::dot && std::abs(sums[0]) + slack_ < least) return;
        offer(sums, number, n_rows, least);
    }

    POLYSPARSE_APART void offer(const double* sums, int64_t number, int64_t n_rows, double least) {
        if (needs_among_ && !has_among_[prefix_size_] && !x_->is_among[number]) return;
        const Scored scored = score(sums, n_rows);
        if (!(scored.high >= least)) return;
        best_->offer({x_->rank(*basis_, prefix_, prefix_size_, number, tuple_), n_rows,
                      scored.target, scored.score, scored.low, scored.high});
    }

    Scored score(const double* sums, int64_t n_rows) const {
        Scored best{0, 0, 0, 0};
        const double norm_factor = scale_of(sums, n_rows);
        for (int64_t i = 0; i < targets_.n; ++i) {
            const double score = norm_factor == 0 ? 0 : sums[i] / norm_factor;
            if (!(std::abs(score) > std::abs(best.score))) continue;
            best.score = score;
            best.target = i;
        }
        best.low = best.high = std::abs(best.score);
        if constexpr (is_unit) return best;
        if (targets_.score != Score::correlation) {
            best.low -= slack_;
            best.high += slack_;
            return best;
        }
        return with_limits_of_correlation(sums, best);
    }

    /// What a sum is divided by; 0 if the score is 0.
    double scale_of(const double* sums, int64_t n_rows) const {
        if (targets_.score == Score::dot) return 1;
        const double squares =
            n_sums_ > targets_.n ? sums[targets_.n] : static_cast<double>(n_rows);
        if (targets_.score == Score::normalized) return std::sqrt(squares);
        const double all = targets_.total_weight;
        double variance = 0;
        if constexpr (is_unit) {
            variance = squares * (all - squares) / all;
        } else {
            const double sum = sums[targets_.n + 1];
            variance = squares - sum * sum / all;
        }
        return variance > 0 ? std::sqrt(variance) : 0;
    }

    /// A sum is off by at most `rounding` times the norm of the column, as the targets have norm 1;
    /// the variance by four times `rounding` of the squares.
    Scored with_limits_of_correlation(const double* sums, Scored one) const {
        const double error = 4 * rounding(x_->n_rows()), squares = sums[targets_.n];
        const double sum = sums[targets_.n + 1];
        const double variance = squares - sum * sum / targets_.total_weight;
        double largest = 0;
        for (int64_t i = 0; i < targets_.n; ++i) largest = std::max(largest, std::abs(sums[i]));
        const double off = error * std::sqrt(squares), least = variance - error * squares;
        one.high = least > 0 ? std::min((largest + off) / std::sqrt(least), 2.0) : 2.0;
        const double most = variance + error * squares;
        one.low = most > 0 && least > 0 ? std::max(largest - off, 0.0) / std::sqrt(most) : 0.0;
        return one;
    }

    double bound_of(int64_t number, int64_t n_rows) const {
        const double* const halves = &halves_[2 * number * n_targets()];
        double largest = 0;
        for (int64_t i = 0; i < n_targets(); ++i) {
            const double a = halves[2 * i], b = halves[2 * i + 1];
            largest = std::max(largest, targets_.is_signed ? a + b : std::max(a, b));
        }
        return as_bound(largest, n_rows);
    }

    /// The bound of a score, from the larger half for a target: see above.
    double as_bound(double half, int64_t n_rows) const {
        const double safe = 1 + 4 * rounding(n_rows);
        if (targets_.score == Score::dot) return half * safe;
        const double of_norm = std::sqrt(half) * safe;
        if (targets_.score == Score::normalized) return of_norm;
        const double share =
            static_cast<double>(n_rows) * targets_.largest_weight / targets_.total_weight * safe;
        return share < 1 ? std::min(of_norm / std::sqrt(1 - share), safe) : safe;
    }

    void set_slack(int64_t n_rows, double bound) {
        if constexpr (!is_unit) slack_ = 4 * rounding(n_rows) * bound;
    }

    /// Whether the groups of two columns allow it.
    bool may_be_pair(int64_t lead, int64_t number) const {
        const ColumnGroups& groups = x_->groups;
        const int64_t group = groups.group_of(lead);
        return group != groups.group_of(number) || (lead == number && groups.has_powers(group));
    }

    /// Whether a column that is among may follow one that is not, whose group has others.
    bool may_precede_among(int64_t number) const {
        return !x_->groups.groups.empty() && x_->end_of_among > number;
    }

    const Basis* basis_;
    const OrderedRows* x_;
    ScoredTargets targets_;
    bool needs_among_;
    Best* best_;
    int64_t n_sums_;
    std::vector<double> sums_;    // [number]: a sum for each target, then the moments
    std::vector<double> of_row_;  // the same of a monomial in one row
    std::vector<double> halves_;  // [number][target]: of rows with targets >= 0, and < 0
    std::vector<std::vector<Accepted>> bounds_;  // [degree]: of prefixes that were accepted
    std::vector<double> products_;               // [degree]: of a prefix in the row below
    uint32_t row_ = 0;
    std::vector<int64_t> prefix_;
    int64_t prefix_size_ = 0;
    std::vector<uint8_t> has_among_;  // [m]: whether one of the first m members is among
    std::vector<int64_t> tuple_;
    int64_t left_ = 0;  // degrees that may follow the monomials that are being scored
    double slack_ = 0;  // by how much the size of a score may be off
};

}  // namespace polysparse
