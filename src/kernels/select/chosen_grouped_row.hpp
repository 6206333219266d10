// The chosen outputs of one row, where features are in groups or terms are chosen: made some at a
// time, in the order of their columns, and looked up at once.
#pragma once

#include <algorithm>
#include <cstdint>

#include "basis/basis.hpp"
#include "expand/layout.hpp"
#include "expand/rank_keys.hpp"
#include "expand/row_copy.hpp"
#include "expand/row_readers.hpp"
#include "expand/row_shape.hpp"
#include "expand/to_slots.hpp"
#include "expand/walk.hpp"
#include "matrix/csr_view.hpp"
#include "matrix/slots.hpp"
#include "platform/processors.hpp"
#include "select/append_rows.hpp"

namespace polysparse {

/// Sink: outputs wait until there are enough of them to be looked up; those that are chosen are
/// appended to `out`. Reads whole groups of lanes behind a run.
template <class Lookup, class Value>
struct ToChosen {
    using Place = Slots<int64_t, Value>;

    static constexpr bool holds_degrees = false;
    static constexpr int64_t n_waiting_most = int64_t{1} << 10;

    const Lookup* lookup;
    Place waiting;  // n_waiting_most slots, and lanes to spill into
    Slots<int32_t, Value> out;
    int64_t n_waiting = 0, n_chosen = 0;

    POLYSPARSE_INLINE void bias() {
        *waiting.columns = 0;
        *waiting.values = 1;
        n_waiting = 1;
    }
    template <class Role, class Row, class Keys>
    POLYSPARSE_INLINE void first(Role role, const Row& row, const Keys& keys, int64_t, Place) {
        if (role.is_output) put(row.begin, row.n, keys.first_shift(), Value(1));
    }
    template <class Role, class Tail>
    POLYSPARSE_INLINE void run(Role role, Tail tail, int64_t n, uint64_t shift, Value scale,
                               Place to) {
        if (role.is_tail) scale_shift<true>(tail, n, shift, scale, to);
        if (role.is_output) put(tail, n, shift, scale);
    }
    template <class Tail>
    POLYSPARSE_INLINE void single(Tail tail, int64_t n, uint64_t shift, Place) {
        put(tail, n, shift, Value(1));
    }

    /// Looks up those that wait.
    POLYSPARSE_INLINE void choose() {
        n_chosen += lookup->template choose<Value>(waiting, n_waiting, out + n_chosen);
        n_waiting = 0;
    }

  private:
    template <class Tail>
    POLYSPARSE_INLINE void put(Tail tail, int64_t n, uint64_t shift, Value scale) {
        while (n > 0) {
            const int64_t here = std::min(n, n_waiting_most - n_waiting);
            scale_shift<true>(tail, here, shift, scale, waiting + n_waiting);
            n_waiting += here;
            tail = tail + here;
            n -= here;
            if (n_waiting == n_waiting_most) choose();
        }
    }
};

/// Makes the chosen outputs of rows, for one worker (see append_rows). Rows reads them.
template <class Rows, class Lookup, class Value>
class ChosenGroupedRow : public WholeRows {
  public:
    using Division = WholeRows;

    /// For rows up to a shape. The basis and the lookup must outlive it. Throws bad_alloc.
    ChosenGroupedRow(const Basis& basis, const Lookup& lookup, RowShape largest)
        : WholeRows(basis, lookup.n_columns()),
          lookup_(&lookup),
          copy_(largest),
          rows_(basis, largest),
          tails_(basis, largest),
          waiting_(n_waiting) {
        tails_.clear();
    }

    /// What one takes: 16 bytes per tuple of a degree below the highest, at most, and little
    /// besides.
    static uint64_t bytes(const Basis& basis, RowShape largest) {
        return RowCopy<Value>::bytes(largest) + Rows::bytes(basis, largest) +
               Tails::bytes(basis, largest) + SlotArrays<int64_t, Value>::bytes(n_waiting);
    }

    /// Needs room for all outputs of the row, or for n_columns if that is less.
    int64_t fill(const CsrView<Value>& x, int64_t r, int64_t, int64_t, Slots<int32_t, Value> out) {
        // Columns of the copy increase, so that all outputs are columns of the basis.
        return choose(basis(), rows_.read(copy_.copy(x, r)), tails_.layout(),
                      Sink{lookup_, waiting_.slots(), out});
    }

  private:
    using Sink = ToChosen<Lookup, Value>;
    using Tails = Scratch<RankKeys<int64_t>, Sink>;
    static constexpr int64_t n_waiting = Sink::n_waiting_most + lanes;

    template <class AnyRow>
    POLYSPARSE_PER_PROCESSOR static int64_t choose(const Basis& basis, const AnyRow& row,
                                                   Layout<Slots<int64_t, Value>> layout,
                                                   Sink sink) {
        walk_row(basis, row, keys_of(basis, row), layout, sink);
        sink.choose();
        return sink.n_chosen;
    }

    const Lookup* lookup_;
    RowCopy<Value> copy_;
    Rows rows_;
    Tails tails_;
    SlotArrays<int64_t, Value> waiting_;
};

}  // namespace polysparse
