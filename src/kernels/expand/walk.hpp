// The recurrence that every expansion follows, once.
//
// P_d is a row's tuples of degree d, in order; P_1 is the row itself. P_d is, for each stored value
// a of the row in turn, a run: the tail of P_{d-1} that begins at the first tuple led by a (after
// a, for interactions), with every value times a's value, and every key changed in one way that
// depends on a alone. So a degree is a handful of long, uniform runs. Tuples come in lexicographic
// order, and products associate to the right, x_i * (x_j * x_k), as in scikit-learn's dense
// expansion.
//
// Two parameters say what is made of a row.
//
// *Keys* say what a tuple is known by, and how a lead changes the key of a tail:
//     keys.leads(d)              made once per degree; leads(a) is what run a does to keys
//     keys.first_end(row, to, n) where the tuples end that P_2 is made from: those of the row as
//                                it is stored, or those of P_1, n tuples at `to`
//     Keys::first_stored         the lowest degree whose tuples must be stored to serve as tails
//
// A *sink* decides what becomes of a run, and has the inner loop over its tuples:
//     sink.bias()                                called first, if the basis has a bias
//     sink.first(role, row, keys, from, to)     P_1, without the stored values before `from`
//     sink.run(role, tail, n, lead, scale, to)  a run, or part of one: the n tuples at `tail`
//                                                with this lead in front
//     Sink::holds_degrees         true: it writes every degree at `to`, where it stays. False: it
//                                writes a degree at `to` only if it is_tail, and it does not stay
//
// *Rows* have shape_of(row) and row.scale(a), what the values of run a are multiplied with. Unless
// Row::all_lead, only the tuples led by one of the first row.n_leads() values are outputs; the
// others are made where they serve as tails. *Places* (of tails, and to write to) only need + and -
// int64. Where degrees are stored: layout.hpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "basis/basis.hpp"
#include "expand/layout.hpp"
#include "expand/row_shape.hpp"
#include "platform/processors.hpp"

namespace polysparse {

/// What the degree that a run belongs to is made for.
template <class Degree>
struct DegreeRole {
    Degree d;
    bool is_output;  // the basis has this degree, and the row wants what this value leads
    bool is_tail;    // a higher degree is made from it
};

template <class Degree>
POLYSPARSE_INLINE DegreeRole<Degree> role_of(const Basis& basis, Degree d) {
    return {d, d >= basis.lowest, d < basis.highest};
}

/// The bias and P_1.
template <class Row, class Keys, class Place, class Sink>
POLYSPARSE_INLINE void walk_first(const Basis& basis, const Row& row, const Keys& keys,
                                  const Layout<Place>& layout, Sink& sink) {
    if (basis.include_bias) sink.bias();
    if (is_empty(shape_of(row)) || basis.highest < 1) return;
    const std::integral_constant<int64_t, 1> one{};
    sink.first(role_of(basis, one), row, keys, skipped(basis, 1, shape_of(row)), layout.first());
}

/// P_d, at `to`, from what ends at `tail_end`. Returns where it ends.
template <class Degree, class Row, class Keys, class Tail, class Place, class Sink>
POLYSPARSE_INLINE Place walk_degree(const Basis& basis, Degree d, const Row& row, const Keys& keys,
                                    Tail tail_end, Place to, Sink& sink) {
    const DegreeRole<Degree> of_leads = role_of(basis, d), of_others{d, false, of_leads.is_tail};
    const auto runs = runs_of(basis, d, shape_of(row));
    const auto leads = keys.leads(d);
    const auto walk = [&](DegreeRole<Degree> role, int64_t a, int64_t last)
                          POLYSPARSE_INLINE_LAMBDA {
                              for (; a < last; ++a) {
                                  const int64_t n = runs.length(a);
                                  sink.run(role, tail_end - n, n, leads(a), row.scale(a), to);
                                  if (Sink::holds_degrees || role.is_tail) to = to + n;
                              }
                          };
    if constexpr (Row::all_lead) {
        walk(of_leads, runs.first, runs.last);
    } else {
        walk(of_leads, runs.first, std::min(runs.last, row.n_leads()));
        if (of_leads.is_tail) walk(of_others, std::max(runs.first, row.n_leads()), runs.last);
    }
    return to;
}

/// All of one row.
template <class Row, class Keys, class Place, class Sink>
POLYSPARSE_INLINE void walk_row(const Basis& basis, const Row& row, const Keys& keys,
                                const Layout<Place>& layout, Sink& sink) {
    walk_first(basis, row, keys, layout, sink);
    const auto shape = shape_of(row);
    if (is_empty(shape) || basis.highest < 2) return;
    const Place first = layout.first();
    const int64_t n_first = degree_size(basis, 1, shape);
    const auto first_end = keys.first_end(row, first, n_first);
    Place end =
        layout.first_held == 1 ? first + n_first : first;  // of the last degree that is held
    const std::integral_constant<int64_t, 2> two{};
    end = walk_degree(basis, two, row, keys, first_end, layout.next(2, end), sink);
    const auto next = [&](auto d) POLYSPARSE_INLINE_LAMBDA {
        end = walk_degree(basis, d, row, keys, end, layout.next(d, end), sink);
    };
    if (basis.highest >= 3) next(std::integral_constant<int64_t, 3>{});
    for (int64_t d = 4; d <= basis.highest; ++d) next(d);
}

/// All of one row but its highest degree, which is at least 2. Returns where the tuples end that it
/// is made from. Needs: keys that store P_1, a sink that does not hold degrees.
template <class Row, class Keys, class Place, class Sink>
POLYSPARSE_INLINE Place walk_lower(const Basis& basis, const Row& row, const Keys& keys,
                                   const Layout<Place>& layout, Sink& sink) {
    walk_first(basis, row, keys, layout, sink);
    Place end = keys.first_end(row, layout.first(), degree_size(basis, 1, shape_of(row)));
    for (int64_t d = 2; d < basis.highest; ++d)
        end = walk_degree(basis, d, row, keys, end, layout.next(d, end), sink);
    return end;
}

/// Tuples [begin, end) of P_d, d >= 2, at `to`. P_{d-1} must be whole, and ends at `tail_end`; keys
/// that do not store P_1 need no such end for P_2.
template <class Row, class Keys, class Tail, class Place, class Sink>
POLYSPARSE_INLINE void walk_part(const Basis& basis, int64_t d, const Row& row, const Keys& keys,
                                 Tail tail_end, int64_t begin, int64_t end, Place to, Sink& sink) {
    const DegreeRole<int64_t> role = role_of(basis, d);
    const auto runs = runs_of(basis, d, shape_of(row));
    const auto leads = keys.leads(d);
    const auto walk = [&](auto tails) POLYSPARSE_INLINE_LAMBDA {
        for (int64_t a = runs.holding(begin); begin < end; ++a) {
            const int64_t n = runs.length(a), done = begin - runs.start(a);
            const int64_t here = std::min(n - done, end - begin);
            sink.run(role, tails - (n - done), here, leads(a), row.scale(a), to);
            to = to + here;
            begin += here;
        }
    };
    if (d == 2)
        walk(keys.first_end(row, tail_end, 0));
    else
        walk(tail_end);
}

}  // namespace polysparse
