// Sinks of the walk that keep nothing of a run: outputs are multiplied with vectors and summed.
//
// The products of a run with its lead are made last, or first, for all of its outputs: a run costs
// one multiplication and one addition for each output and vector, and its tuples are written only
// if longer ones are made from them.
#pragma once

#include <array>
#include <cstdint>
#include <iterator>
#include <type_traits>
#include <utility>

#include "apply/apply.hpp"
#include "expand/row_shape.hpp"
#include "expand/to_slots.hpp"
#include "matrix/slots.hpp"
#include "platform/processors.hpp"

namespace polysparse {

/// Calls step(i) for every i below count. The compiler knows i.
template <int64_t count, class Step>
POLYSPARSE_INLINE void unrolled(const Step& step) {
    [&]<int64_t... i>(std::integer_sequence<int64_t, i...>) POLYSPARSE_INLINE_LAMBDA {
        (step(std::integral_constant<int64_t, i>{}), ...);
    }(std::make_integer_sequence<int64_t, count>{});
}

/// Calls step(i, value, column) for every tuple of the tail of run a + i, i below count. The tails
/// share their end, so that a tuple is loaded once for all runs that have it: the first few tuples
/// are of the first run alone, the next of two, and so on.
template <int64_t count, class Tail, class Degree, class Step>
POLYSPARSE_INLINE void for_tails(Tail end, int64_t a, const Runs<Degree>& runs, const Step& step) {
    constexpr bool is_pairs = std::is_same_v<Degree, std::integral_constant<int64_t, 2>>;
    int64_t left = runs.length(a);
    Tail tail = end - left;
    unrolled<count>([&](auto last) POLYSPARSE_INLINE_LAMBDA {
        int64_t n = left;
        if constexpr (last + 1 < count) n = is_pairs ? 1 : left - runs.length(a + last + 1);
        for (int64_t t = 0; t < n; ++t) {
            const auto column = tail.columns[t];
            const auto value = tail.values[t];
            unrolled<last + 1>([&](auto i) POLYSPARSE_INLINE_LAMBDA { step(i, value, column); });
        }
        tail = tail + n;
        left -= n;
    });
}

/// Calls group(count, a) for the runs from a on, `count` of them, until all before `last` are done.
/// The compiler knows count: n_together, then what is left.
template <int64_t n_together, class Group>
POLYSPARSE_INLINE void for_groups(int64_t a, int64_t last, const Group& group) {
    for (; a + n_together <= last; a += n_together)
        group(std::integral_constant<int64_t, n_together>{}, a);
    if constexpr (n_together > 1) for_groups<n_together / 2>(a, last, group);
}

/// Writes runs [a, last) as tails, one behind the other. Returns where they end.
template <class Tail, class Degree, class Leads, class Row, class Place>
POLYSPARSE_INLINE Place store_runs(Tail end, int64_t a, int64_t last, const Runs<Degree>& runs,
                                   const Leads& leads, const Row& row, Place to) {
    for (; a < last; ++a) {
        const int64_t n = runs.length(a);
        scale_shift<true>(end - n, n, leads(a), row.scale(a), to);
        to = to + n;
    }
    return to;
}

/// Runs that are read together, if there is one vector. Each stored value is then loaded once for
/// all of them, and a loop ends less often, which is what short runs wait for: four make rows of 14
/// values a third faster.
constexpr int64_t runs_together = 4;

/// Vectors that are multiplied together with a run, if there are several: what registers hold. The
/// run is read again for the next ones, while their numbers are in cache.
constexpr int64_t vectors_together = 8;

/// `count` numbers side by side, in registers.
template <class Value, int64_t count>
class Numbers {
    static constexpr bool is_packed = count % Pack<Value>::size == 0;
    using Part = std::conditional_t<is_packed, Pack<Value>, Value>;
    static constexpr int64_t size = is_packed ? Pack<Value>::size : 1, n_parts = count / size;
    std::array<Part, n_parts> parts_{};

    POLYSPARSE_INLINE static Part load(const Value* from) {
        if constexpr (is_packed)
            return Part::load(from);
        else
            return *from;
    }
    POLYSPARSE_INLINE static void store(Part part, Value* to) {
        if constexpr (is_packed)
            part.store(to);
        else
            *to = part;
    }
    POLYSPARSE_INLINE static Part all(Value value) {
        if constexpr (is_packed)
            return Part::of(value);
        else
            return value;
    }

  public:
    /// Adds scale times other numbers.
    POLYSPARSE_INLINE void add(Value scale, const Value* others) {
        const Part scales = all(scale);
        unrolled<n_parts>([&](auto i) POLYSPARSE_INLINE_LAMBDA {
            parts_[i] = parts_[i] + scales * load(others + i * size);
        });
    }
    /// Adds scale times these numbers to others.
    POLYSPARSE_INLINE void add_to(Value scale, Value* others) const {
        const Part scales = all(scale);
        unrolled<n_parts>([&](auto i) POLYSPARSE_INLINE_LAMBDA {
            Value* const other = others + i * size;
            store(load(other) + scales * parts_[i], other);
        });
    }
};

/// Reads each output's row of a table: a row of the expansion times vectors. Sums are made in an
/// order that depends on the row alone.
template <class Value, bool is_one>
struct ToDot {
    using Place = Slots<int64_t, Value>;

    VectorTable<const Value> coefficients;
    bool has_bias;
    Value* sums;  // of each vector

    static constexpr bool holds_blocks = false;
    static constexpr bool takes_runs = true;

    POLYSPARSE_INLINE void bias() const {
        if (!has_bias) return;
        for (int64_t c = 0; c < coefficients.n_vectors; ++c) sums[c] += coefficients.values[c];
    }
    template <class Block, class Row, class Keys>
    POLYSPARSE_INLINE void first(Block block, const Row& row, const Keys& keys, int64_t,
                                 Place) const {
        if (!block.is_output) return;
        const auto shift = static_cast<int64_t>(keys.first_shift());
        if constexpr (is_one) {
            const Value* const shifted = coefficients.values + shift;
            Value sum = 0;
            for (int64_t t = 0; t < row.n_leads(); ++t)
                sum += row.begin.values[t] * shifted[row.begin.columns[t]];
            *sums += sum;
        } else {
            sum_run(coefficients, row.begin, row.n_leads(), shift, 1, sums);
        }
    }
    template <class Block, class Tail, class Runs, class Leads, class Row>
    POLYSPARSE_INLINE Place runs(Block block, Tail end, int64_t a, int64_t last, const Runs& runs,
                                 const Leads& leads, const Row& row, Place to) const {
        if (block.is_output) sum_runs(coefficients, end, a, last, runs, leads, row, sums);
        return block.is_tail ? store_runs(end, a, last, runs, leads, row, to) : to;
    }

  private:
    /// A function of its own, so that its loops have all registers.
    template <class Tail, class Runs, class Leads, class Row>
    POLYSPARSE_APART static void sum_runs(VectorTable<const Value> coefficients, Tail end,
                                          int64_t a, int64_t last, Runs runs, Leads leads, Row row,
                                          Value* sums) {
        if constexpr (is_one) {
            Value sum = 0;
            for_groups<runs_together>(a, last, [&](auto count, int64_t b) POLYSPARSE_INLINE_LAMBDA {
                std::array<const Value*, count> shifted;
                std::array<Value, count> of_run{};
                unrolled<count>([&](auto i) POLYSPARSE_INLINE_LAMBDA {
                    shifted[i] = coefficients.values + static_cast<int64_t>(leads(b + i));
                });
                for_tails<count>(end, b, runs,
                                 [&](auto i, Value value, int64_t column) POLYSPARSE_INLINE_LAMBDA {
                                     of_run[i] += value * shifted[i][column];
                                 });
                unrolled<count>(
                    [&](auto i) POLYSPARSE_INLINE_LAMBDA { sum += row.scale(b + i) * of_run[i]; });
            });
            *sums += sum;
        } else {
            for (; a < last; ++a) {
                const int64_t n = runs.length(a);
                sum_run(coefficients, end - n, n, static_cast<int64_t>(leads(a)), row.scale(a),
                        sums);
            }
        }
    }

    template <class Tail>
    POLYSPARSE_INLINE static void sum_run(VectorTable<const Value> coefficients, Tail tail,
                                          int64_t n, int64_t shift, Value scale, Value* sums) {
        const Value* const shifted = coefficients[shift];
        const int64_t k = coefficients.n_vectors;
        for_groups<vectors_together>(0, k, [&](auto count, int64_t c) POLYSPARSE_INLINE_LAMBDA {
            Numbers<Value, count> of_run;
            for (int64_t t = 0; t < n; ++t)
                of_run.add(tail.values[t], shifted + tail.columns[t] * k + c);
            of_run.add_to(scale, sums + c);
        });
    }
};

/// Adds to each output's row of a table: the transposed expansion times vectors, of which `weights`
/// has this row's numbers.
template <class Value, bool is_one>
struct ToScatter {
    using Place = Slots<int64_t, Value>;

    VectorTable<Value> out;
    bool has_bias;
    const Value* weights;  // of each vector

    static constexpr bool holds_blocks = false;
    static constexpr bool takes_runs = true;

    POLYSPARSE_INLINE void bias() const {
        if (!has_bias) return;
        for (int64_t c = 0; c < out.n_vectors; ++c) out.values[c] += weights[c];
    }
    template <class Block, class Row, class Keys>
    POLYSPARSE_INLINE void first(Block block, const Row& row, const Keys& keys, int64_t,
                                 Place) const {
        if (!block.is_output) return;
        const auto shift = static_cast<int64_t>(keys.first_shift());
        if constexpr (is_one) {
            Value* const shifted = out.values + shift;
            const Value weight = *weights;
            for (int64_t t = 0; t < row.n_leads(); ++t)
                shifted[row.begin.columns[t]] += row.begin.values[t] * weight;
        } else {
            add_run(out, row.begin, row.n_leads(), shift, 1, weights);
        }
    }
    template <class Block, class Tail, class Runs, class Leads, class Row>
    POLYSPARSE_INLINE Place runs(Block block, Tail end, int64_t a, int64_t last, const Runs& runs,
                                 const Leads& leads, const Row& row, Place to) const {
        if (block.is_output) add_runs(out, end, a, last, runs, leads, row, weights);
        return block.is_tail ? store_runs(end, a, last, runs, leads, row, to) : to;
    }

  private:
    template <class Tail, class Runs, class Leads, class Row>
    POLYSPARSE_APART static void add_runs(VectorTable<Value> out, Tail end, int64_t a, int64_t last,
                                          Runs runs, Leads leads, Row row, const Value* weights) {
        if constexpr (is_one) {
            const Value weight = *weights;
            for_groups<runs_together>(a, last, [&](auto count, int64_t b) POLYSPARSE_INLINE_LAMBDA {
                std::array<Value*, count> shifted;
                std::array<Value, count> of_run;
                unrolled<count>([&](auto i) POLYSPARSE_INLINE_LAMBDA {
                    shifted[i] = out.values + static_cast<int64_t>(leads(b + i));
                    of_run[i] = row.scale(b + i) * weight;
                });
                for_tails<count>(end, b, runs,
                                 [&](auto i, Value value, int64_t column) POLYSPARSE_INLINE_LAMBDA {
                                     shifted[i][column] += value * of_run[i];
                                 });
            });
        } else {
            for (; a < last; ++a) {
                const int64_t n = runs.length(a);
                add_run(out, end - n, n, static_cast<int64_t>(leads(a)), row.scale(a), weights);
            }
        }
    }

    template <class Tail>
    POLYSPARSE_INLINE static void add_run(VectorTable<Value> out, Tail tail, int64_t n,
                                          int64_t shift, Value scale, const Value* weights) {
        Value* const shifted = out[shift];
        const int64_t k = out.n_vectors;
        for_groups<vectors_together>(0, k, [&](auto count, int64_t c) POLYSPARSE_INLINE_LAMBDA {
            Numbers<Value, count> of_run;
            of_run.add(scale, weights + c);
            for (int64_t t = 0; t < n; ++t)
                of_run.add_to(tail.values[t], shifted + tail.columns[t] * k + c);
        });
    }
};

}  // namespace polysparse
