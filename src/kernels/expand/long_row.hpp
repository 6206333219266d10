// A row that is too long for one task.
#pragma once

#include <cstdint>
#include <utility>

#include "basis/basis.hpp"
#include "expand/layout.hpp"
#include "expand/rank_keys.hpp"
#include "expand/row_shape.hpp"
#include "expand/to_slots.hpp"
#include "expand/walk.hpp"
#include "matrix/csr_view.hpp"
#include "platform/processors.hpp"

namespace polysparse {

/// Tuples [begin, end) of a row's P_d, d >= 2, at `to`. P_{d-1} ends at `tail_end`, if d > 2.
template <class AnyRow, class Value, class OutIndex>
POLYSPARSE_PER_PROCESSOR void fill_part(const Basis& basis, int64_t d, const AnyRow& row,
                                        Slots<OutIndex, Value> tail_end, int64_t begin, int64_t end,
                                        Slots<OutIndex, Value> to) {
    const ToSlots<false, OutIndex, Value> sink{to};
    walk_part(basis, d, row, keys_of(basis, row), tail_end, begin, end, to, sink);
}

/// Its degrees are filled one after the other, each in parts. Rows reads it.
template <class Rows, class Index, class Value, class OutIndex>
class LongRow {
  public:
    LongRow(const Basis& basis, Row<Index, Value> row, Slots<OutIndex, Value> out)
        : basis_(&basis),
          rows_(basis, shape_of(row)),
          row_(rows_.read(row)),
          out_(out),
          lower_(basis, shape_of(row)) {}

    /// Outputs of the row.
    int64_t n_outputs() const { return row_size(*basis_, shape_of(row_)); }

    int64_t scratch_size() const { return lower_.size(); }

    /// Goes on to degree d, the one above the last; from 1 up. Returns what there is to share out:
    /// degree 1, with the bias, is one piece.
    int64_t start(int64_t d) {
        const int64_t size = degree_size(*basis_, d, shape_of(row_));
        below_end_ = end_;
        begin_ = layout().next(d, end_);
        end_ = d == 1 && layout().first_held > 1 ? begin_ : begin_ + size;  // P_1 is not stored
        return d == 1 ? 1 : size;
    }

    /// Parts [begin, end) of degree d, which was started. The degree below must be whole.
    void fill(int64_t d, int64_t begin, int64_t end) const {
        if (d == 1) {
            const ToSlots<false, OutIndex, Value> sink{out_};
            walk_first(*basis_, row_, keys_of(*basis_, row_), layout(), sink);
        } else {
            fill_part(*basis_, d, row_, below_end_, begin, end, begin_ + begin);
        }
    }

  private:
    Layout<Slots<OutIndex, Value>> layout() const {
        return lower_.layout(out_ + basis_->include_bias);
    }

    const Basis* basis_;
    Rows rows_;
    decltype(std::declval<Rows&>().read(std::declval<Row<Index, Value>>())) row_;
    Slots<OutIndex, Value> out_;
    LowerDegrees<OutIndex, Value> lower_;
    Slots<OutIndex, Value> below_end_{}, begin_{}, end_{};  // of the degree below, and of this one
};

}  // namespace polysparse
