// Sinks of the walk that keep nothing of a run: outputs are multiplied with vectors and summed.
//
// The products of a run with its lead are made last, or first, for all of its outputs: a run costs
// one multiplication and one addition for each output, and its tuples are written only if longer
// ones are made from them.
#pragma once

#include <array>
#include <cstdint>
#include <iterator>
#include <type_traits>
#include <utility>

#include "apply/vectors.hpp"
#include "expand/row_shape.hpp"
#include "expand/to_slots.hpp"
#include "matrix/slots.hpp"
#include "platform/processors.hpp"

namespace polysparse {

/// Neighbouring runs that are read together. Each stored value is then loaded once for all of them,
/// and a loop ends less often, which is what short runs wait for: four make rows of 14 values a
/// third faster. Wide vectors need their registers.
template <int64_t width>
constexpr int64_t runs_together = width <= 2 ? 4 : 1;

/// Calls step(i) for every i below count. The compiler knows i.
template <int64_t count, class Step>
POLYSPARSE_INLINE void unrolled(const Step& step) {
    [&]<int64_t... i>(std::integer_sequence<int64_t, i...>) POLYSPARSE_INLINE_LAMBDA {
        (step(std::integral_constant<int64_t, i>{}), ...);
    }(std::make_integer_sequence<int64_t, count>{});
}

/// Calls step(i, value, column) for every tuple of the tail of run a + i, i below count. The tails
/// share their end; what the longer ones have before it comes first.
template <int64_t count, class Tail, class Degree, class Step>
POLYSPARSE_INLINE void for_tails(Tail end, int64_t a, const Runs<Degree>& runs, const Step& step) {
    constexpr bool is_pairs = std::is_same_v<Degree, std::integral_constant<int64_t, 2>>;
    const int64_t shared = runs.length(a + count - 1);
    unrolled<count>([&](auto i) POLYSPARSE_INLINE_LAMBDA {
        const int64_t n = runs.length(a + i);
        const Tail tail = end - n;
        const int64_t head = is_pairs ? count - 1 - i : n - shared;  // the compiler knows the first
        for (int64_t t = 0; t < head; ++t) step(i, tail.values[t], tail.columns[t]);
    });
    const Tail tail = end - shared;
    for (int64_t t = 0; t < shared; ++t) {
        const auto column = tail.columns[t];
        const auto value = tail.values[t];
        unrolled<count>([&](auto i) POLYSPARSE_INLINE_LAMBDA { step(i, value, column); });
    }
}

/// Writes `count` runs from a on as tails, one behind the other. Returns where they end.
template <int64_t count, class Tail, class Degree, class Leads, class Row, class Place>
POLYSPARSE_INLINE Place store_runs(Tail end, int64_t a, const Runs<Degree>& runs,
                                   const Leads& leads, const Row& row, Place to) {
    for (int64_t i = a; i < a + count; ++i) {
        const int64_t n = runs.length(i);
        scale_shift<true>(end - n, n, leads(i), row.scale(i), to);
        to = to + n;
    }
    return to;
}

/// Reads each output's row of a table: a row of the expansion times vectors. Sums are made in an
/// order that depends on the row alone.
template <class Value, int64_t width>
struct ToDot {
    using Place = Slots<int64_t, Value>;

    Vectors<const Value, width> coefficients;
    bool has_bias;
    Numbers<Value, width> sums{};

    static constexpr bool holds_blocks = false;
    static constexpr int64_t n_together = runs_together<width>;

    POLYSPARSE_INLINE void bias() {
        if (has_bias) sums.add(1, coefficients[0]);
    }
    template <class Block, class Row, class Keys>
    POLYSPARSE_INLINE void first(Block block, const Row& row, const Keys& keys, int64_t, Place) {
        if (block.is_output) sum(row.begin, row.n_leads(), keys.first_shift(), 1);
    }
    template <class Block, class Tail>
    POLYSPARSE_INLINE void run(Block block, Tail tail, int64_t n, uint64_t shift, Value scale,
                               Place to) {
        if (block.is_output) sum(tail, n, shift, scale);
        if (block.is_tail) scale_shift<true>(tail, n, shift, scale, to);
    }
    template <class Block, class Tail, class Runs, class Leads, class Row>
    POLYSPARSE_INLINE Place runs(Block block, Tail end, int64_t a, const Runs& runs,
                                 const Leads& leads, const Row& row, Place to) {
        if (block.is_output) sums.add(1, sum_of(coefficients, end, a, runs, leads, row));
        return block.is_tail ? store_runs<n_together>(end, a, runs, leads, row, to) : to;
    }

  private:
    template <class Tail>
    POLYSPARSE_INLINE void sum(Tail tail, int64_t n, uint64_t shift, Value scale) {
        const auto shifted = coefficients.from(static_cast<int64_t>(shift));
        Numbers<Value, width> of_run{};
        for (int64_t t = 0; t < n; ++t) of_run.add(tail.values[t], shifted[tail.columns[t]]);
        sums.add(scale, of_run);
    }

    /// What the runs from a on add to the sums. A function of its own, so that its loop has all
    /// registers.
    template <class Tail, class Runs, class Leads, class Row>
    POLYSPARSE_APART static Numbers<Value, width> sum_of(Vectors<const Value, width> coefficients,
                                                         Tail end, int64_t a, const Runs& runs,
                                                         const Leads& leads, const Row& row) {
        std::array<Vectors<const Value, width>, n_together> shifted;
        std::array<Numbers<Value, width>, n_together> of_run{};
        unrolled<n_together>([&](auto i) POLYSPARSE_INLINE_LAMBDA {
            shifted[i] = coefficients.from(static_cast<int64_t>(leads(a + i)));
        });
        for_tails<n_together>(end, a, runs,
                              [&](auto i, Value value, int64_t column) POLYSPARSE_INLINE_LAMBDA {
                                  of_run[i].add(value, shifted[i][column]);
                              });
        Numbers<Value, width> sum{};
        unrolled<n_together>(
            [&](auto i) POLYSPARSE_INLINE_LAMBDA { sum.add(row.scale(a + i), of_run[i]); });
        return sum;
    }
};

/// Adds to each output's row of a table: the transposed expansion times vectors, of which `weights`
/// has this row's numbers.
template <class Value, int64_t width>
struct ToScatter {
    using Place = Slots<int64_t, Value>;

    Vectors<Value, width> out;
    bool has_bias;
    Numbers<Value, width> weights;

    static constexpr bool holds_blocks = false;
    static constexpr int64_t n_together = runs_together<width>;

    POLYSPARSE_INLINE void bias() const {
        if (has_bias) weights.add_to(1, out[0]);
    }
    template <class Block, class Row, class Keys>
    POLYSPARSE_INLINE void first(Block block, const Row& row, const Keys& keys, int64_t,
                                 Place) const {
        if (block.is_output) add(row.begin, row.n_leads(), keys.first_shift(), 1);
    }
    template <class Block, class Tail>
    POLYSPARSE_INLINE void run(Block block, Tail tail, int64_t n, uint64_t shift, Value scale,
                               Place to) const {
        if (block.is_output) add(tail, n, shift, scale);
        if (block.is_tail) scale_shift<true>(tail, n, shift, scale, to);
    }
    template <class Block, class Tail, class Runs, class Leads, class Row>
    POLYSPARSE_INLINE Place runs(Block block, Tail end, int64_t a, const Runs& runs,
                                 const Leads& leads, const Row& row, Place to) const {
        if (block.is_output) add_runs(out, weights, end, a, runs, leads, row);
        return block.is_tail ? store_runs<n_together>(end, a, runs, leads, row, to) : to;
    }

  private:
    template <class Tail>
    POLYSPARSE_INLINE void add(Tail tail, int64_t n, uint64_t shift, Value scale) const {
        const auto shifted = out.from(static_cast<int64_t>(shift));
        const Numbers<Value, width> of_run = weights.times(scale);
        for (int64_t t = 0; t < n; ++t) of_run.add_to(tail.values[t], shifted[tail.columns[t]]);
    }

    template <class Tail, class Runs, class Leads, class Row>
    POLYSPARSE_APART static void add_runs(Vectors<Value, width> out, Numbers<Value, width> weights,
                                          Tail end, int64_t a, const Runs& runs, const Leads& leads,
                                          const Row& row) {
        std::array<Vectors<Value, width>, n_together> shifted;
        std::array<Numbers<Value, width>, n_together> of_run;
        unrolled<n_together>([&](auto i) POLYSPARSE_INLINE_LAMBDA {
            shifted[i] = out.from(static_cast<int64_t>(leads(a + i)));
            of_run[i] = weights.times(row.scale(a + i));
        });
        for_tails<n_together>(end, a, runs,
                              [&](auto i, Value value, int64_t column) POLYSPARSE_INLINE_LAMBDA {
                                  of_run[i].add_to(value, shifted[i][column]);
                              });
    }
};

}  // namespace polysparse
