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
#include "expand/to_slots.hpp"
#include "matrix/slots.hpp"
#include "platform/processors.hpp"

namespace polysparse {

/// Neighbouring runs that are read together. Each stored value is then loaded once for all of them,
/// and a loop ends less often, which is what short runs wait for: four make rows of 14 values a
/// third faster. Wide vectors need their registers.
template <int64_t width>
constexpr int64_t runs_together = width <= 2 ? 4 : 1;

/// How many tuples run i of several has before those that it shares with all. For degree 2 it is
/// known to the compiler.
template <class Block, class Runs>
POLYSPARSE_INLINE int64_t head_length(Block block, const Runs& runs, int64_t i) {
    if constexpr (std::is_same_v<decltype(block.d), std::integral_constant<int64_t, 2>>)
        return std::ssize(runs.lengths) - 1 - i;
    return runs.lengths[i] - runs.lengths.back();
}

/// Calls step(i) for every i below count. The compiler knows i.
template <int64_t count, class Step>
POLYSPARSE_INLINE void unrolled(const Step& step) {
    [&]<int64_t... i>(std::integer_sequence<int64_t, i...>) POLYSPARSE_INLINE_LAMBDA {
        (step(std::integral_constant<int64_t, i>{}), ...);
    }(std::make_integer_sequence<int64_t, count>{});
}

/// Writes several runs as tails, one behind the other. Returns where they end.
template <class Tail, class Runs, class Place>
POLYSPARSE_INLINE Place store_together(Tail end, const Runs& runs, Place to) {
    for (int64_t i = 0; i < std::ssize(runs.lengths); ++i) {
        const int64_t n = runs.lengths[i];
        scale_shift<true>(end - n, n, runs.leads[i], runs.scales[i], to);
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
    template <class Block, class Tail, class Runs>
    POLYSPARSE_INLINE Place runs(Block block, Tail end, const Runs& runs, Place to) {
        if (block.is_output) sum_together(block, end, runs);
        return block.is_tail ? store_together(end, runs, to) : to;
    }

  private:
    template <class Tail>
    POLYSPARSE_INLINE void sum(Tail tail, int64_t n, uint64_t shift, Value scale) {
        const auto shifted = coefficients.from(static_cast<int64_t>(shift));
        Numbers<Value, width> of_run{};
        for (int64_t t = 0; t < n; ++t) of_run.add(tail.values[t], shifted[tail.columns[t]]);
        sums.add(scale, of_run);
    }

    using Several = std::array<Numbers<Value, width>, n_together>;
    using Strips = std::array<Vectors<const Value, width>, n_together>;

    template <class Block, class Tail, class Runs>
    POLYSPARSE_INLINE void sum_together(Block block, Tail end, const Runs& runs) {
        Strips shifted;
        Several of_run{};
        unrolled<n_together>([&](auto i) POLYSPARSE_INLINE_LAMBDA {
            shifted[i] = coefficients.from(static_cast<int64_t>(runs.leads[i]));
            const Tail tail = end - runs.lengths[i];
            for (int64_t t = 0; t < head_length(block, runs, i); ++t)
                of_run[i].add(tail.values[t], shifted[i][tail.columns[t]]);
        });
        sum_shared(end - runs.lengths.back(), runs.lengths.back(), shifted, of_run);
        unrolled<n_together>([&](auto i)
                                 POLYSPARSE_INLINE_LAMBDA { sums.add(runs.scales[i], of_run[i]); });
    }

    /// A function of its own: the registers are needed in this loop.
    template <class Tail>
    POLYSPARSE_APART static void sum_shared(Tail tail, int64_t n, const Strips& shifted,
                                            Several& of_run) {
        const Strips strips = shifted;
        Several sums = of_run;
        for (int64_t t = 0; t < n; ++t) {
            const int64_t column = tail.columns[t];
            const Value value = tail.values[t];
            unrolled<n_together>(
                [&](auto i) POLYSPARSE_INLINE_LAMBDA { sums[i].add(value, strips[i][column]); });
        }
        of_run = sums;
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
    template <class Block, class Tail, class Runs>
    POLYSPARSE_INLINE Place runs(Block block, Tail end, const Runs& runs, Place to) const {
        if (block.is_output) add_together(block, end, runs);
        return block.is_tail ? store_together(end, runs, to) : to;
    }

  private:
    POLYSPARSE_INLINE Numbers<Value, width> scaled(Value scale) const {
        Numbers<Value, width> numbers{};
        numbers.add(scale, weights);
        return numbers;
    }

    template <class Tail>
    POLYSPARSE_INLINE void add(Tail tail, int64_t n, uint64_t shift, Value scale) const {
        const auto shifted = out.from(static_cast<int64_t>(shift));
        const Numbers<Value, width> of_run = scaled(scale);
        for (int64_t t = 0; t < n; ++t) of_run.add_to(tail.values[t], shifted[tail.columns[t]]);
    }

    using Several = std::array<Numbers<Value, width>, n_together>;
    using Strips = std::array<Vectors<Value, width>, n_together>;

    template <class Block, class Tail, class Runs>
    POLYSPARSE_INLINE void add_together(Block block, Tail end, const Runs& runs) const {
        Strips shifted;
        Several of_run;
        unrolled<n_together>([&](auto i) POLYSPARSE_INLINE_LAMBDA {
            shifted[i] = out.from(static_cast<int64_t>(runs.leads[i]));
            of_run[i] = scaled(runs.scales[i]);
            const Tail tail = end - runs.lengths[i];
            for (int64_t t = 0; t < head_length(block, runs, i); ++t)
                of_run[i].add_to(tail.values[t], shifted[i][tail.columns[t]]);
        });
        add_shared(end - runs.lengths.back(), runs.lengths.back(), shifted, of_run);
    }

    template <class Tail>
    POLYSPARSE_APART static void add_shared(Tail tail, int64_t n, const Strips& shifted,
                                            const Several& of_run) {
        const Strips strips = shifted;
        const Several scales = of_run;
        for (int64_t t = 0; t < n; ++t) {
            const int64_t column = tail.columns[t];
            const Value value = tail.values[t];
            unrolled<n_together>([&](auto i) POLYSPARSE_INLINE_LAMBDA {
                scales[i].add_to(value, strips[i][column]);
            });
        }
    }
};

}  // namespace polysparse
