// The chosen outputs of one row, by way of all of them: made in memory that stays in cache, then
// looked up.
#pragma once

#include <algorithm>
#include <cstdint>

#include "basis/basis.hpp"
#include "expand/layout.hpp"
#include "expand/long_row.hpp"
#include "expand/row_copy.hpp"
#include "expand/row_shape.hpp"
#include "expand/to_slots.hpp"
#include "expand/walk.hpp"
#include "matrix/csr_view.hpp"
#include "platform/processors.hpp"

namespace polysparse {

/// How rows are divided: the highest degree is. The basis must outlive it.
class DividedRows {
  public:
    DividedRows(const Basis& basis, int64_t n_columns)
        : basis_(&basis), below_(basis), n_columns_(n_columns) {
        below_.highest = basis.highest - 1;
    }

    const Basis& basis() const { return *basis_; }
    /// Without the highest degree.
    const Basis& below() const { return below_; }
    int64_t n_columns() const { return n_columns_; }

    /// Every part makes the lower degrees again, so it must be large compared to them.
    int64_t n_parts(RowShape shape, int64_t share) const {
        if (basis_->highest < 2 || row_size(*basis_, shape) <= 4 * share) return 1;
        const int64_t least = std::max(share, 8 * row_size(below_, shape));
        return std::max<int64_t>(1, degree_size(*basis_, basis_->highest, shape) / least);
    }

    int64_t part_capacity(RowShape shape, int64_t n_parts) const {
        if (n_parts == 1) return std::min(row_size(*basis_, shape), n_columns_);
        const int64_t top = degree_size(*basis_, basis_->highest, shape);
        return std::min(row_size(below_, shape) + top / n_parts + n_parts, n_columns_);
    }

  private:
    const Basis* basis_;
    Basis below_;
    int64_t n_columns_;
};

/// Makes the chosen outputs of rows, for one worker (see append_rows). Of a long row only the
/// degrees below the highest are held; the highest is made from them in pieces.
template <class Lookup, class Value>
class ChosenRow : public DividedRows {
  public:
    using Division = DividedRows;

    /// For rows up to a shape. The basis and the lookup must outlive it. Throws bad_alloc.
    ChosenRow(const Basis& basis, const Lookup& lookup, RowShape largest)
        : DividedRows(basis, lookup.n_columns()),
          lookup_(&lookup),
          row_(largest),
          all_(capacity(basis, largest)),
          lower_(basis, largest) {}

    /// What one takes: 16 bytes per output of a degree below the highest, and little besides.
    static uint64_t bytes(const Basis& basis, RowShape largest) {
        return RowCopy<Value>::bytes(largest) +
               SlotArrays<int64_t, Value>::bytes(capacity(basis, largest)) +
               LowerDegrees<int64_t, Value>::bytes(basis, largest);
    }

    /// Needs room for all of the part, or for n_columns if that is less.
    int64_t fill(const CsrView<Value>& x, int64_t r, int64_t part, int64_t n_parts,
                 Slots<int32_t, Value> out) {
        const Row<int64_t, Value> row = row_.copy(x, r);
        const bool is_long = row_size(basis(), shape_of(row)) > piece_size && basis().highest > 1;
        if (n_parts > 1 || is_long) return fill_in_pieces(row, part, n_parts, out);
        return fill_whole(basis(), *lookup_, row, all_.slots(), lower_.layout(all_.slots()), out);
    }

  private:
    static constexpr int64_t piece_size = int64_t{1} << 14;  // outputs made between look-ups

    static int64_t capacity(const Basis& basis, RowShape largest) {
        const int64_t all = row_size(basis, largest) + lanes;
        if (basis.highest <= 1) return all;
        const int64_t top = degree_size(basis, basis.highest, largest);
        return all - top + lanes + std::min(top, piece_size);
    }

    /// Behind `row`, `all` and the layout's buffers there are lanes to spill into.
    POLYSPARSE_PER_PROCESSOR static int64_t fill_whole(const Basis& basis, const Lookup& lookup,
                                                       Row<int64_t, Value> row,
                                                       Slots<int64_t, Value> all,
                                                       Layout<Slots<int64_t, Value>> buffers,
                                                       Slots<int32_t, Value> out) {
        fill_row<true>(basis, row, all, buffers);
        return lookup.template choose<Value>(all, row_size(basis, shape_of(row)), out);
    }

    POLYSPARSE_PER_PROCESSOR static int64_t choose(const Lookup& lookup,
                                                   ConstSlots<int64_t, Value> piece, int64_t n,
                                                   Slots<int32_t, Value> out) {
        return lookup.template choose<Value>(piece, n, out);
    }

    /// The first part has the lower degrees, too.
    int64_t fill_in_pieces(Row<int64_t, Value> row, int64_t part, int64_t n_parts,
                           Slots<int32_t, Value> out) {
        const int64_t d = basis().highest, n_below = row_size(below(), shape_of(row));
        const Slots<int64_t, Value> all = all_.slots(), piece = all + n_below + lanes;
        const auto layout = lower_.layout(all + basis().include_bias);
        int64_t n = 0;
        if (part == 0)
            n = fill_whole(below(), *lookup_, row, all, layout, out);
        else
            fill_row<false>(below(), row, all, layout);
        const int64_t top = degree_size(basis(), d, shape_of(row)), size = top / n_parts;
        const int64_t last = part + 1 == n_parts ? top : size * (part + 1);
        Slots<int64_t, Value> tail_end{};
        if (d > 2) tail_end = layout.end(basis(), d - 1, shape_of(row));
        for (int64_t begin = size * part; begin < last; begin += piece_size) {
            const int64_t end = std::min(begin + piece_size, last);
            fill_part(basis(), d, row, tail_end, begin, end, piece);
            n += choose(*lookup_, piece, end - begin, out + n);
        }
        return n;
    }

    const Lookup* lookup_;
    RowCopy<Value> row_;
    SlotArrays<int64_t, Value> all_;
    LowerDegrees<int64_t, Value> lower_;
};

}  // namespace polysparse
