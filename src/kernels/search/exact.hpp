// The scores of a few columns, each computed by itself in one order of sums and products.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "basis/basis.hpp"
#include "observe/transposed.hpp"
#include "search/best.hpp"
#include "search/ordered_rows.hpp"
#include "search/scorer.hpp"

namespace polysparse {

/// A product of values is x_i * (x_j * x_k) for features i < j < k, as in an expansion, and sums go
/// through the rows in their order. So a score does not depend on the order of the search.
class ExactScores {
  public:
    /// References must outlive it. Throws bad_alloc.
    ExactScores(const Basis& basis, const OrderedRows& rows, const Transposed<uint32_t>& x,
                const ScoredTargets& targets)
        : basis_(&basis), rows_(&rows), x_(&x), targets_(targets) {
        for (int64_t number = 0; number < rows.n_columns(); ++number)
            number_of_.emplace_back(rows.features[number], number);
        std::ranges::sort(number_of_);
    }

    /// What one worker needs.
    struct Worker {
        std::vector<int64_t> tuple, members;
        std::vector<double> products;
        std::vector<uint32_t> rows;
    };
    /// For columns in at most so many rows. Throws bad_alloc.
    Worker worker(int64_t most_rows) const {
        Worker worker;
        worker.tuple.resize(basis_->highest);
        worker.members.resize(basis_->highest);
        worker.products.reserve(most_rows);
        worker.rows.reserve(most_rows);
        return worker;
    }

    /// Replaces the score of a column that was found, and its target.
    void rescore(Candidate& one, Worker& worker) const {
        list_products(one.column, worker);
        const double scale = scale_of(worker);
        one.score = 0;
        one.target = 0;
        for (int64_t i = 0; i < targets_.n; ++i) {
            const double score = scale == 0 ? 0 : sum_of(i, worker) / scale;
            if (!(std::abs(score) > std::abs(one.score))) continue;
            one.score = score;
            one.target = i;
        }
        one.low = one.high = std::abs(one.score);
    }

  private:
    /// Lists the rows that have a column, and the products of their values.
    void list_products(int64_t column, Worker& worker) const {
        worker.products.clear();
        worker.rows.clear();
        const int64_t degree = basis_->unrank(column, worker.tuple.data());
        for (int64_t m = 0; m < degree; ++m) {
            const auto feature = std::pair(worker.tuple[m], int64_t{0});
            worker.members[m] = std::ranges::lower_bound(number_of_, feature)->second;
        }
        const int64_t lead =
            *std::min_element(worker.members.begin(), worker.members.begin() + degree);
        for (int64_t s = x_->first[lead]; s < x_->first[lead + 1]; ++s)
            add_row(x_->tails[s], degree, worker);
    }

    void add_row(const Tail<uint32_t>& tail, int64_t degree, Worker& worker) const {
        const uint32_t* const begin = &x_->numbers[0] + tail.begin;
        const uint32_t* const end = &x_->numbers[0] + tail.end;
        double product = 1;
        for (int64_t m = degree; m-- > 0;) {
            const auto number = static_cast<uint32_t>(worker.members[m]);
            const uint32_t* const found = std::lower_bound(begin, end, number);
            if (found == end || *found != number) return;
            product = rows_->values[tail.begin + (found - begin)] * product;
        }
        worker.products.push_back(product);
        worker.rows.push_back(rows_->rows[tail.begin]);
    }

    double weight(uint32_t row) const { return weight_of(targets_.weights, row); }

    /// Of a column in one row, only the sign of the product matters, unless the score is its sum.
    bool is_of_sign(const Worker& worker) const {
        return worker.rows.size() == 1 && targets_.score != Score::dot;
    }

    double sum_of(int64_t target, const Worker& worker) const {
        double sum = 0;
        for (size_t i = 0; i < worker.rows.size(); ++i) {
            const double value = targets_.values[worker.rows[i] * targets_.n + target];
            sum += is_of_sign(worker) ? std::copysign(value, value * worker.products[i])
                                      : worker.products[i] * value;
        }
        return sum;
    }

    /// What a sum is divided by; 0 if the score is 0.
    double scale_of(const Worker& worker) const {
        if (targets_.score == Score::dot) return 1;
        if (is_of_sign(worker)) {
            const double w = weight(worker.rows[0]), all = targets_.total_weight;
            return std::sqrt(targets_.score == Score::normalized ? w : w * (all - w) / all);
        }
        double squares = 0, sum = 0, weights = 0;
        for (size_t i = 0; i < worker.rows.size(); ++i) {
            const double product = worker.products[i], w = weight(worker.rows[i]);
            squares += product * product * w;
            sum += product * w;
            weights += w;
        }
        if (targets_.score == Score::normalized) return std::sqrt(squares);
        const double mean = sum / targets_.total_weight;
        double variance = std::max(targets_.total_weight - weights, 0.0) * mean * mean;
        for (size_t i = 0; i < worker.rows.size(); ++i) {
            const double difference = worker.products[i] - mean;
            variance += difference * difference * weight(worker.rows[i]);
        }
        // The mean of equal numbers may be off by rounding, and so are their differences to it.
        const double off =
            std::numeric_limits<double>::epsilon() * static_cast<double>(worker.rows.size() + 8);
        return variance > off * off * squares ? std::sqrt(variance) : 0;
    }

    const Basis* basis_;
    const OrderedRows* rows_;
    const Transposed<uint32_t>* x_;
    ScoredTargets targets_;
    std::vector<std::pair<int64_t, int64_t>> number_of_;  // features and their numbers
};

}  // namespace polysparse
