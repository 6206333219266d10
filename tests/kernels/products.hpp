#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <type_traits>
#include <vector>

#include "apply/apply.hpp"
#include "apply/apply_listed.hpp"
#include "brute_force.hpp"
#include "checks.hpp"

namespace polysparse::tests {

/// Products with an expansion, and with its transpose, of one vector and of several: right, and the
/// same bits for any number of threads. `by`: which columns there are, the basis for all.
template <class X, class Index, class Value, class By>
void check_products(const Basis& basis, const By& by, const X& x,
                    const Matrix<int64_t, Index, Value>& expanded) {
    const int64_t n_outputs = std::ssize(expanded.values);
    std::uniform_real_distribution<Value> any(-2, 2);
    for (const int64_t k : {1, 11}) {
        std::vector<Value> coefficients(expanded.n_columns * k), weights(x.n_rows() * k);
        for (auto* vectors : {&coefficients, &weights})
            for (Value& number : *vectors) number = any(random_bits);
        // What each number should be, and the size of what is summed for it.
        std::vector<double> sums(weights.size()), sizes(weights.size(), 1e-30);
        std::vector<double> back_sums(coefficients.size()), back_sizes(coefficients.size(), 1e-30);
        for (int64_t r = 0; r < x.n_rows(); ++r)
            for (int64_t t = expanded.row_offsets[r]; t < expanded.row_offsets[r + 1]; ++t)
                for (int64_t c = 0; c < k; ++c) {
                    const int64_t i = r * k + c, j = expanded.columns[t] * k + c;
                    const double value = expanded.values[t];
                    sums[i] += value * coefficients[j];
                    sizes[i] += std::abs(value * coefficients[j]);
                    back_sums[j] += value * weights[i];
                    back_sizes[j] += std::abs(value * weights[i]);
                }
        const auto is_right = [](const auto& found, const auto& wanted, const auto& size) {
            for (size_t i = 0; i < found.size(); ++i)
                if (std::abs(found[i] - wanted[i]) > (sizeof(Value) == 4 ? 1e-4 : 1e-12) * size[i])
                    return false;
            return true;
        };
        const auto multiply = [&](int64_t n_threads, int64_t task, StopAt stop, auto& out,
                                  auto& back) {
            const Effort effort{n_outputs, n_threads, task};
            const VectorTable<const Value> from{coefficients.data(), k},
                from_rows{weights.data(), k};
            const auto both = [&](const auto&... by) {
                return apply<Value>(basis, by..., x.view(), from, {out.data(), k}, effort, stop) &&
                       apply_transposed<Value>(basis, by..., x.view(), from_rows, {back.data(), k},
                                               effort, stop);
            };
            if constexpr (std::is_same_v<decltype(by), const Basis&>)
                return both();
            else
                return both(by);
        };
        std::vector<Value> out(weights.size(), -7), back(coefficients.size());
        check(multiply(1, 0, {-1}, out, back), "products: not stopped");
        check(is_right(out, sums, sizes), "product");
        check(is_right(back, back_sums, back_sizes), "transposed product");
        for (const int64_t task : {int64_t{0}, small_task(20, n_outputs)}) {
            std::vector<Value> first, first_back;
            for (const int64_t n_threads : {1, 3}) {
                std::vector<Value> again(weights.size(), -7), back_again(coefficients.size());
                check(multiply(n_threads, task, {-1}, again, back_again), "products: threads");
                if (n_threads == 1) first = again, first_back = back_again;
                check(is_right(again, sums, sizes) && is_right(back_again, back_sums, back_sizes),
                      "products of threads");
                check(again == first && back_again == first_back, "products: same bits");
            }
        }
        check(n_outputs == 0 || !multiply(1, 1, {1}, out, back), "products: stopped");
    }
}

/// Products with rows whose columns have changed: any numbers, but nothing outside of the arrays.
///
/// Transposed products of a basis without groups do not check that columns increase. Workers own
/// ranges of leads, so if columns do not increase, two workers may add to the same number, which is
/// then as wrong as the row. ThreadSanitizer would report it: there, one thread computes them.
/// check_products has rows whose columns increase, and several threads for every sanitizer.
template <class X, class By>
void check_changed_products(const Basis& basis, const By& by, const X& x, int64_t n_columns) {
    using Value = typename decltype(x.values)::value_type;
    for_each_change(x, [&](const X& changed) {
        for (const int64_t k : {1, 11})
            for (const int64_t task : {0, 20}) {
                const int64_t n_rows = x.n_rows(), n_outputs = 50 * n_rows;
                const std::vector<Value> coefficients(n_columns * k, 1), weights(n_rows * k, 1);
                Guarded<Value> out(n_rows * k, 0), back(n_columns * k, 0);
                constexpr bool is_whole = std::is_same_v<By, Basis>;
                const bool may_share = is_whole && !basis.groups;
                const Effort effort{n_outputs, 2, task};
                const Effort back_effort{n_outputs, finds_races && may_share ? 1 : 2, task};
                const auto both = [&](const auto&... by) {
                    const StopAt never{-1};
                    return apply<Value>(basis, by..., changed.view(), {coefficients.data(), k},
                                        {out.data(), k}, effort, never) &&
                           apply_transposed<Value>(basis, by..., changed.view(),
                                                   {weights.data(), k}, {back.data(), k},
                                                   back_effort, never);
                };
                if constexpr (is_whole)
                    check(both(), "products");
                else
                    check(both(by), "products");
            }
    });
}

}  // namespace polysparse::tests
