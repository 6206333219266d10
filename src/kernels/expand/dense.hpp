// Algorithm 1 of the paper, on dense rows, by the recurrence of expand.hpp: P_d is, for each
// feature a in turn, the tail of P_{d-1} led by a (after a, for interactions) times feature a.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "basis/simplex.hpp"
#include "expand/sizes.hpp"
#include "platform/processors.hpp"
#include "platform/threads.hpp"

namespace polysparse {

/// Element (r, c) stands at values[r * row_stride + c * column_stride].
template <class Value>
struct DenseView {
    Value* values;
    int64_t row_stride, column_stride;
    Value* at(int64_t r, int64_t c) const { return values + r * row_stride + c * column_stride; }
};

/// The columns of a panel of rows, one after the other: either in the output or in scratch, whose
/// halves take the degrees below the lowest in turn. Calls copy(feature, column) for P_1 and
/// multiply(from, n, feature, to) for every run of P_2 on, where columns below zero stand for
/// scratch: column -1 is its last.
template <class Copy, class Multiply>
POLYSPARSE_INLINE void walk_dense(const Basis& basis, int64_t n_scratch, const Copy& copy,
                                  const Multiply& multiply) {
    const int64_t n = basis.n_features;
    if (basis.highest < basis.lowest) return;
    int64_t end = 0;  // of the last filled block
    const auto place = [&](int64_t d) {
        if (d < basis.lowest) return d % 2 == 0 ? -n_scratch : -n_scratch / 2;
        return d == basis.lowest ? int64_t{basis.include_bias} : end;
    };
    end = place(1);
    for (int64_t j = skipped(basis, 1); j < n; ++j) copy(j, end++);
    for (int64_t d = 2; d <= basis.highest; ++d) {
        const int64_t tail_end = end;
        end = place(d);
        const int64_t leads = n - basis.gap(d);
        for (int64_t a = skipped(basis, d); a < leads; ++a) {
            const auto size = static_cast<int64_t>(simplex(d - 1, leads - a));
            multiply(tail_end - size, size, a, end);
            end += size;
        }
    }
}

/// Rows [first, last) of an output whose rows are contiguous. `scratch`: n_scratch values.
template <class Value>
POLYSPARSE_TARGETS void fill_dense_rows(const Basis& basis, DenseView<const Value> x,
                                        DenseView<Value> out, int64_t first, int64_t last,
                                        Value* scratch, int64_t n_scratch) {
    for (int64_t r = first; r < last; ++r) {
        Value* const row = out.at(r, 0);
        const auto place = [&](int64_t c) { return c < 0 ? scratch + n_scratch + c : row + c; };
        if (basis.include_bias) *row = 1;
        walk_dense(
            basis, n_scratch, [&](int64_t j, int64_t c) { *place(c) = *x.at(r, j); },
            [&](int64_t from, int64_t n, int64_t a, int64_t to) {
                const Value scale = *x.at(r, a);
                const Value* __restrict tail = place(from);
                Value* __restrict run = place(to);
                for (int64_t t = 0; t < n; ++t) run[t] = tail[t] * scale;
            });
    }
}

/// Rows [first, last) of an output whose columns are contiguous. `scratch`: n_scratch columns of
/// last - first values.
template <class Value>
POLYSPARSE_TARGETS void fill_dense_columns(const Basis& basis, DenseView<const Value> x,
                                           DenseView<Value> out, int64_t first, int64_t last,
                                           Value* scratch, int64_t n_scratch) {
    const int64_t height = last - first;
    const auto place = [&](int64_t c) {
        return c < 0 ? scratch + (n_scratch + c) * height : out.at(first, c);
    };
    if (basis.include_bias) std::fill_n(place(0), height, Value(1));
    walk_dense(
        basis, n_scratch,
        [&](int64_t j, int64_t c) {
            Value* to = place(c);
            for (int64_t r = 0; r < height; ++r) to[r] = *x.at(first + r, j);
        },
        [&](int64_t from, int64_t n, int64_t a, int64_t to) {
            for (int64_t t = 0; t < n; ++t) {
                const Value* __restrict tail = place(from + t);
                Value* __restrict run = place(to + t);
                for (int64_t r = 0; r < height; ++r) run[r] = tail[r] * *x.at(first + r, a);
            }
        });
}

/// Every element of `out`, n_rows by the basis's columns, one of whose strides is 1. False if
/// stopped. Throws bad_alloc, before any thread starts, if there is no room for the scratch.
template <class Value, class Stop>
bool fill_dense(const Basis& basis, DenseView<const Value> x, DenseView<Value> out, int64_t n_rows,
                int64_t n_columns, int64_t n_threads, Stop& should_stop) {
    const bool by_rows = out.column_stride == 1;
    constexpr int64_t share = int64_t{1} << 18;  // values that one task fills, about
    const int64_t rows_of_a_share = share / std::max<int64_t>(n_columns, 1) + 1;
    const int64_t height = by_rows ? rows_of_a_share : std::clamp<int64_t>(rows_of_a_share, 8, 512);
    const int64_t n_scratch = 2 * largest_below_lowest(basis, 1, basis.n_features);
    const int64_t scratch_rows = by_rows ? 1 : std::min(height, n_rows);
    std::vector<std::vector<Value>> scratch(n_threads);
    for (auto& one : scratch) one.resize(n_scratch * scratch_rows);

    const auto fill_task = [&](int64_t worker, int64_t task) {
        const int64_t first = task * height, last = std::min(first + height, n_rows);
        const auto fill_panel = by_rows ? &fill_dense_rows<Value> : &fill_dense_columns<Value>;
        fill_panel(basis, x, out, first, last, scratch[worker].data(), n_scratch);
    };
    return run_tasks((n_rows + height - 1) / height, n_threads, fill_task, should_stop);
}

}  // namespace polysparse
