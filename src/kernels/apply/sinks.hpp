// What becomes of a run of outputs that is not kept: it is multiplied with vectors, and summed.
//
// A run is the outputs that differ in their last value alone: the tail of a row, all of it times
// one scale, its columns all shifted by one number. The scale multiplies a run's sum, or what the
// run is multiplied with, so that an output costs one multiplication and one addition for each
// vector.
//
// *Sinks* have
//     sink.bias()                                     the row's output of degree 0
//     sink.run(tail, n, shift, scale)                 one run
//     sink.pairs(row, n_leads, gap, shift_of, scale)  a run for each of a row's first n_leads
//                                                     values: its tail begins `gap` values after
//                                                     its lead, its shift is shift_of(lead)
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "apply/apply.hpp"
#include "matrix/csr_view.hpp"
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

/// Calls step(i, value, column) for every output of `count` runs, i below count, each of whose
/// tails is one value shorter than the one before and ends where that ends; the first is the n
/// values at `tail`. Each stored value is loaded once for all runs that have it.
template <int64_t count, class Tail, class Step>
POLYSPARSE_INLINE void for_tails(Tail tail, int64_t n, const Step& step) {
    unrolled<count - 1>([&](auto t) POLYSPARSE_INLINE_LAMBDA {
        const int64_t column = tail.columns[t];
        const auto value = tail.values[t];
        unrolled<t + 1>([&](auto i) POLYSPARSE_INLINE_LAMBDA { step(i, value, column); });
    });
    for (int64_t t = count - 1; t < n; ++t) {
        const int64_t column = out_of_lanes(tail.columns[t]);  // numbers are gathered one by one
        const auto value = tail.values[t];
        unrolled<count>([&](auto i) POLYSPARSE_INLINE_LAMBDA { step(i, value, column); });
    }
}

/// Calls group(count, a) for the things from a on, `count` of them, until all before `last` are
/// done. The compiler knows count: n_together, then what is left, or the halves that it consists
/// of.
template <int64_t n_together, class Group>
POLYSPARSE_INLINE void for_groups(int64_t a, int64_t last, const Group& group) {
    for (; a + n_together <= last; a += n_together)
        group(std::integral_constant<int64_t, n_together>{}, a);
    if constexpr (n_together == 4) {  // few enough for a group of any size
        if (a + 3 == last) return group(std::integral_constant<int64_t, 3>{}, a);
    }
    if constexpr (n_together > 1) for_groups<n_together / 2>(a, last, group);
}

/// Runs that are read together, if there is one vector. Each stored value is then loaded once for
/// all of them, and a loop ends less often, which is what short runs wait for.
constexpr int64_t runs_together = 4;

/// Vectors that are multiplied together with a run, if there are several: what registers hold. The
/// run is read again for the next ones, while their numbers are in cache.
constexpr int64_t vectors_together = 8;

/// Runs that are read together with so many vectors.
constexpr int64_t runs_beside(int64_t n_vectors) {
    return n_vectors > 4 ? 1 : n_vectors > 2 ? 2 : runs_together;
}

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
    POLYSPARSE_INLINE void add(Value scale, const Numbers& others) {
        const Part scales = all(scale);
        unrolled<n_parts>([&](auto i) POLYSPARSE_INLINE_LAMBDA {
            parts_[i] = parts_[i] + scales * others.parts_[i];
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
    VectorTable<const Value> coefficients;
    Value* sums;  // of each vector

    POLYSPARSE_INLINE void bias() const {
        for (int64_t c = 0; c < coefficients.n_vectors; ++c) sums[c] += coefficients.values[c];
    }

    template <class Tail>
    POLYSPARSE_INLINE void run(Tail tail, int64_t n, int64_t shift, Value scale) const {
        const Value* const shifted = coefficients[shift];
        if constexpr (is_one) {
            Value sum = 0;
            for (int64_t t = 0; t < n; ++t)
                sum += tail.values[t] * shifted[out_of_lanes(tail.columns[t])];
            *sums += scale * sum;
        } else {
            const int64_t k = coefficients.n_vectors;
            for_groups<vectors_together>(0, k, [&](auto count, int64_t c) POLYSPARSE_INLINE_LAMBDA {
                Numbers<Value, count> of_run;
                for (int64_t t = 0; t < n; ++t)
                    of_run.add(tail.values[t], shifted + tail.columns[t] * k + c);
                of_run.add_to(scale, sums + c);
            });
        }
    }

    template <class AnyRow, class ShiftOf>
    POLYSPARSE_INLINE void pairs(const AnyRow& row, int64_t n_leads, int64_t gap,
                                 const ShiftOf& shift_of, Value scale) const {
        if constexpr (is_one) {
            Value sum = 0;
            const auto group = [&](auto count, int64_t a) POLYSPARSE_INLINE_LAMBDA {
                std::array<const Value*, count> shifted;
                std::array<Value, count> of_run{};
                unrolled<count>([&](auto i) POLYSPARSE_INLINE_LAMBDA {
                    shifted[i] = coefficients.values + shift_of(a + i);
                });
                for_tails<count>(row.begin + (a + gap), row.n - (a + gap),
                                 [&](auto i, Value value, int64_t column) POLYSPARSE_INLINE_LAMBDA {
                                     of_run[i] += value * shifted[i][column];
                                 });
                unrolled<count>(
                    [&](auto i) POLYSPARSE_INLINE_LAMBDA { sum += row.scale(a + i) * of_run[i]; });
            };
            for_groups<runs_together>(0, n_leads, group);
            *sums += scale * sum;
        } else {
            const int64_t k = coefficients.n_vectors;
            for_groups<vectors_together>(0, k, [&](auto width, int64_t c) POLYSPARSE_INLINE_LAMBDA {
                using Sums = Numbers<Value, width>;
                Sums sum;
                const auto group = [&](auto count, int64_t a) POLYSPARSE_INLINE_LAMBDA {
                    std::array<const Value*, count> shifted;
                    std::array<Sums, count> of_run;
                    unrolled<count>([&](auto i) POLYSPARSE_INLINE_LAMBDA {
                        shifted[i] = coefficients[shift_of(a + i)] + c;
                    });
                    for_tails<count>(row.begin + (a + gap), row.n - (a + gap),
                                     [&](auto i, Value value, int64_t column)
                                         POLYSPARSE_INLINE_LAMBDA {
                                             of_run[i].add(value, shifted[i] + column * k);
                                         });
                    unrolled<count>([&](auto i) POLYSPARSE_INLINE_LAMBDA {
                        sum.add(row.scale(a + i), of_run[i]);
                    });
                };
                for_groups<runs_beside(width)>(0, n_leads, group);
                sum.add_to(scale, sums + c);
            });
        }
    }
};

/// Adds to each output's row of a table: the transposed expansion times vectors, of which `weights`
/// has this row's numbers.
template <class Value, bool is_one>
struct ToScatter {
    VectorTable<Value> out;
    const Value* weights;  // of each vector

    POLYSPARSE_INLINE void bias() const {
        for (int64_t c = 0; c < out.n_vectors; ++c) out.values[c] += weights[c];
    }

    template <class Tail>
    POLYSPARSE_INLINE void run(Tail tail, int64_t n, int64_t shift, Value scale) const {
        Value* const shifted = out[shift];
        if constexpr (is_one) {
            const Value of_run = scale * *weights;
            for (int64_t t = 0; t < n; ++t) shifted[tail.columns[t]] += tail.values[t] * of_run;
        } else {
            const int64_t k = out.n_vectors;
            for_groups<vectors_together>(0, k, [&](auto count, int64_t c) POLYSPARSE_INLINE_LAMBDA {
                Numbers<Value, count> of_run;
                of_run.add(scale, weights + c);
                for (int64_t t = 0; t < n; ++t)
                    of_run.add_to(tail.values[t], shifted + tail.columns[t] * k + c);
            });
        }
    }

    template <class AnyRow, class ShiftOf>
    POLYSPARSE_INLINE void pairs(const AnyRow& row, int64_t n_leads, int64_t gap,
                                 const ShiftOf& shift_of, Value scale) const {
        if constexpr (is_one) {
            const Value weight = scale * *weights;
            const auto group = [&](auto count, int64_t a) POLYSPARSE_INLINE_LAMBDA {
                std::array<Value*, count> shifted;
                std::array<Value, count> of_run;
                unrolled<count>([&](auto i) POLYSPARSE_INLINE_LAMBDA {
                    shifted[i] = out.values + shift_of(a + i);
                    of_run[i] = row.scale(a + i) * weight;
                });
                for_tails<count>(row.begin + (a + gap), row.n - (a + gap),
                                 [&](auto i, Value value, int64_t column) POLYSPARSE_INLINE_LAMBDA {
                                     shifted[i][column] += value * of_run[i];
                                 });
            };
            for_groups<runs_together>(0, n_leads, group);
        } else {
            for (int64_t a = 0; a < n_leads; ++a)
                run(row.begin + (a + gap), row.n - (a + gap), shift_of(a), scale * row.scale(a));
        }
    }
};

}  // namespace polysparse
