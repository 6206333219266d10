// A row that is too long for one task.
#pragma once

#include <cstdint>

#include "basis/basis.hpp"
#include "expand/layout.hpp"
#include "expand/rank_keys.hpp"
#include "expand/row_shape.hpp"
#include "expand/to_slots.hpp"
#include "expand/walk.hpp"
#include "matrix/csr_view.hpp"
#include "platform/processors.hpp"

namespace polysparse {

/// Tuples [begin, end) of a row's P_d, at `to`.
template <class Index, class Value, class OutIndex>
POLYSPARSE_PER_PROCESSOR void fill_part(const Basis& basis, int64_t d, Row<Index, Value> row,
                                        Layout<Slots<OutIndex, Value>> layout, int64_t begin,
                                        int64_t end, Slots<OutIndex, Value> to) {
    const ToSlots<false, OutIndex, Value> sink{to};
    const RankKeys<Index> keys{&basis, row.begin.columns};
    walk_part(basis, d, row, keys, layout, begin, end, to, sink);
}

/// Its blocks are filled one degree after the other, each in parts.
template <class Index, class Value, class OutIndex>
class LongRow {
  public:
    LongRow(const Basis& basis, Row<Index, Value> row, Slots<OutIndex, Value> out)
        : basis_(&basis), row_(row), out_(out), lower_(basis, shape_of(row)) {}

    int64_t scratch_size() const { return lower_.size(); }

    /// What there is to share out of degree d. Degree 1, with the bias, is one piece.
    int64_t size(int64_t d) const { return d == 1 ? 1 : block_size(*basis_, d, shape_of(row_)); }

    /// Parts [begin, end) of degree d. The degree below must be whole.
    void fill(int64_t d, int64_t begin, int64_t end) const {
        const Layout<Slots<OutIndex, Value>> layout = lower_.layout(out_ + basis_->include_bias);
        if (d == 1) {
            const ToSlots<false, OutIndex, Value> sink{out_};
            const RankKeys<Index> keys{basis_, row_.begin.columns};
            walk_first(*basis_, row_, keys, layout, sink);
        } else {
            const Slots<OutIndex, Value> block = layout.begin(*basis_, d, shape_of(row_));
            fill_part(*basis_, d, row_, layout, begin, end, block + begin);
        }
    }

  private:
    const Basis* basis_;
    Row<Index, Value> row_;
    Slots<OutIndex, Value> out_;
    LowerDegrees<OutIndex, Value> lower_;
};

}  // namespace polysparse
