// Rows of which chosen terms are wanted: for each, the products of the values in its groups.
//
// A term of k groups is made from its end: the values of the last group, then for each value of the
// group before a run of all that has been made. The last step writes outputs; the others alternate
// between two buffers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include "basis/basis.hpp"
#include "expand/layout.hpp"
#include "expand/row_groups.hpp"
#include "expand/row_shape.hpp"
#include "expand/walk.hpp"
#include "matrix/csr_view.hpp"
#include "matrix/own_columns.hpp"
#include "platform/processors.hpp"

namespace polysparse {

/// Values [begin, end) of a row: those in one group.
struct RowSlice {
    int64_t begin, end;
    int64_t size() const { return end - begin; }
};

/// What the sizes of a row's terms depend on.
struct TermShape {
    const TermTable* table;
    const RowSlice* slices;  // [slot of a group]
    int64_t n_outputs;       // of all terms

    RowSlice slice(const Term::Member& member) const { return slices[member.slot]; }
    int64_t size(const Term& term) const {
        int64_t size = 1;
        for (const Term::Member& member : term.members) size *= slice(member).size();
        return size;
    }
};

template <class Index, class Value>
struct TermRow : Row<Index, Value> {
    TermShape shape;
};
template <class Index, class Value>
TermShape shape_of(const TermRow<Index, Value>& row) {
    return row.shape;
}

inline int64_t degree_size(const Basis& basis, int64_t d, const TermShape& shape) {
    int64_t size = 0;
    for (const Term& term : basis.terms->terms())
        if (static_cast<int64_t>(term.members.size()) == d) size += shape.size(term);
    return size;
}
inline int64_t row_size(const Basis& basis, const TermShape& shape) {
    return basis.include_bias + shape.n_outputs;
}

/// Keys of the walk: a tuple is known by its output column. A lead adds its place within its group
/// times its stride; the last one, whose key is its input column, is shifted to the term's columns.
template <class Index>
struct TermKeys {
    const Basis* basis;
    const Index* columns;  // of the row

    static constexpr int64_t first_stored = 2;

    /// What the value `a` does to keys as the m-th member of a term.
    POLYSPARSE_INLINE uint64_t lead(const Term& term, int64_t m, int64_t a) const {
        const Term::Member& member = term.members[m];
        return static_cast<uint64_t>(columns[a] - member.start) * member.stride;
    }
    /// From an input column of the last group to the first output column that has it.
    POLYSPARSE_INLINE uint64_t last_shift(const Term& term) const {
        return static_cast<uint64_t>(term.first_column - term.members.back().start);
    }
    /// Where the values of the last group are: in the row as it is stored.
    template <class AnyRow, class Place>
    POLYSPARSE_INLINE auto stored(const AnyRow& row, Place) const {
        return row.begin;
    }
};
template <class Index, class Value>
TermKeys<Index> keys_of(const Basis& basis, const TermRow<Index, Value>& row) {
    return {&basis, row.begin.columns};
}

/// All of one row. The sink's runs are as in walk.hpp; a term of one group is one run of its own:
///     sink.single(tail, n, shift, to)
template <class Index, class Value, class Keys, class Place, class Sink>
POLYSPARSE_INLINE void walk_row(const Basis& basis, const TermRow<Index, Value>& row,
                                const Keys& keys, const Layout<Place>& layout, Sink& sink) {
    if (basis.include_bias) sink.bias();
    const TermShape shape = shape_of(row);
    Place out = layout.held;
    const auto stored = keys.stored(row, layout.first());
    for (const Term& term : basis.terms->terms()) {
        const auto k = static_cast<int64_t>(term.members.size());
        const int64_t n_outputs = shape.size(term);
        if (n_outputs == 0) continue;
        const RowSlice last = shape.slice(term.members.back());
        const auto tail = stored + last.begin;
        if (k == 1) {
            sink.single(tail, last.size(), keys.last_shift(term), out);
        } else {
            int64_t n = last.size();
            const auto step = [&](int64_t m, auto from, uint64_t shift) POLYSPARSE_INLINE_LAMBDA {
                const DegreeRole<int64_t> role{k - m, m == 0, m > 0};
                Place to = m == 0 ? out : role.d % 2 == 0 ? layout.even : layout.odd;
                const Place begin = to;
                const RowSlice leads = shape.slice(term.members[m]);
                for (int64_t a = leads.begin; a < leads.end; ++a) {
                    sink.run(role, from, n, keys.lead(term, m, a) + shift, row.scale(a), to);
                    if (Sink::holds_degrees || role.is_tail) to = to + n;
                }
                n *= leads.size();
                return begin;
            };
            Place made = step(k - 2, tail, keys.last_shift(term));
            for (int64_t m = k - 3; m >= 0; --m) made = step(m, made, 0);
        }
        if (Sink::holds_degrees) out = out + n_outputs;
    }
}

/// slices[slot]: which of n values, whose groups do not fall, are in the group of a slot.
inline void find_slices(const TermTable& terms, const int32_t* groups, int64_t n,
                        std::vector<RowSlice>& slices) {
    std::fill(slices.begin(), slices.end(), RowSlice{0, 0});
    int64_t group_before = -1, slot = -1;
    for (int64_t a = 0; a < n; ++a) {
        if (groups[a] != group_before) {
            group_before = groups[a];
            slot = terms.slot_of(group_before);
            if (slot >= 0) slices[slot] = {a, a};
        }
        if (slot >= 0) slices[slot].end = a + 1;
    }
}

/// Where the values of a row's groups are, for one worker.
class TermSlices {
  public:
    /// For rows up to a shape. The basis must outlive it. Throws bad_alloc.
    TermSlices(const Basis& basis, RowShape largest)
        : groups_(basis, largest), terms_(basis.terms.get()), slices_(terms_->n_slots()) {}

    static uint64_t bytes(const Basis& basis, RowShape largest) {
        return RowGroups::bytes(largest) + basis.terms->n_slots() * sizeof(RowSlice);
    }

    /// The slices of n increasing columns. They are valid until the next call.
    template <class Index>
    TermShape find(const Index* columns, int64_t n) {
        if (groups_.read(columns, n)) set_groups({groups_.data(), static_cast<size_t>(n)});
        return shape();
    }

    /// Finds the slices of values in these groups, which do not fall.
    void set_groups(std::span<const int32_t> groups) {
        find_slices(*terms_, groups.data(), std::ssize(groups), slices_);
        n_outputs_ = 0;
        for (const Term& term : terms_->terms()) n_outputs_ += shape().size(term);
    }
    /// The slices that were found last.
    TermShape shape() const { return {terms_, slices_.data(), n_outputs_}; }

  private:
    RowGroups groups_;
    const TermTable* terms_;
    std::vector<RowSlice> slices_;
    int64_t n_outputs_ = 0;
};

/// Reads rows, for one worker, as GroupedRows do.
template <class Index>
class TermRows {
  public:
    TermRows(const Basis& basis, RowShape largest)
        : n_features_(basis.n_features),
          columns_(std::make_unique<Index[]>(n_stored(largest) + lanes)),
          slices_(basis, largest) {}

    static uint64_t bytes(const Basis& basis, RowShape largest) {
        return (n_stored(largest) + lanes) * sizeof(Index) + TermSlices::bytes(basis, largest);
    }

    template <class AnyIndex, class Value>
    TermRow<Index, Value> read(const Row<AnyIndex, Value>& row) {
        copy_increasing(row.begin.columns, row.n, n_features_, columns_.get());
        std::fill_n(columns_.get() + row.n, lanes, Index(0));
        return {{{columns_.get(), row.begin.values}, row.n}, slices_.find(columns_.get(), row.n)};
    }

  private:
    int64_t n_features_;
    std::unique_ptr<Index[]> columns_;
    TermSlices slices_;
};

}  // namespace polysparse
