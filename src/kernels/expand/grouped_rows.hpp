// Rows whose values are in groups: which values may follow another.
//
// The recurrence of walk.hpp holds for them too; only what follows a lead differs. The tail of a
// lead begins with the first value whose group may follow its own. How long the tails are depends
// on the groups of a row's values, not on their number alone, so it is counted for each row.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

#include "basis/basis.hpp"
#include "expand/row_groups.hpp"
#include "expand/row_shape.hpp"
#include "matrix/csr_view.hpp"
#include "matrix/own_columns.hpp"
#include "platform/processors.hpp"

namespace polysparse {

/// What the sizes of a row's degrees depend on, if its values are in groups.
struct GroupedShape {
    int64_t n_stored;
    const int64_t* next;    // [a]: the first value that may follow value a
    const int64_t* counts;  // [d][a]: the d-tuples led by value a or a later one, a <= n_stored
    const int64_t* firsts;  // [d]: the first value that leads a d-tuple which is needed
    int64_t width;          // of a row of counts

    int64_t count(int64_t d, int64_t a) const { return counts[d * width + a]; }
    int64_t size(int64_t d) const { return count(d, firsts[d]); }
};

template <class Index, class Value>
struct GroupedRow : Row<Index, Value> {
    GroupedShape shape;
};
template <class Index, class Value>
GroupedShape shape_of(const GroupedRow<Index, Value>& row) {
    return row.shape;
}
inline bool is_empty(const GroupedShape& shape) {
    return shape.n_stored == 0;
}

/// The runs of P_d, d >= 2, as Runs are.
template <class Degree>
struct GroupedRuns {
    int64_t length(int64_t a) const {
        if constexpr (std::is_same_v<Degree, std::integral_constant<int64_t, 2>>)
            return last - shape.next[a];
        else
            return shape.count(d - 1, shape.next[a]);
    }
    int64_t start(int64_t a) const { return shape.count(d, first) - shape.count(d, a); }
    int64_t holding(int64_t t) const {
        return largest_where(first, last - 1, [&](int64_t a) { return start(a) <= t; });
    }

    Degree d;
    GroupedShape shape;
    int64_t first, last;
};

template <class Degree>
POLYSPARSE_INLINE GroupedRuns<Degree> runs_of(const Basis&, Degree d, const GroupedShape& shape) {
    return {d, shape, shape.firsts[d], shape.n_stored};
}
inline int64_t skipped(const Basis&, int64_t d, const GroupedShape& shape) {
    return shape.firsts[d];
}
inline int64_t degree_size(const Basis&, int64_t d, const GroupedShape& shape) {
    return shape.size(d);
}
inline int64_t row_size(const Basis& basis, const GroupedShape& shape) {
    int64_t size = basis.include_bias;
    for (int64_t d = basis.lowest; d <= basis.highest; ++d) size += shape.size(d);
    return size;
}

/// Keys of the walk: a tuple is known by its output column, as RankKeys have it. Columns may
/// change.
template <class Index>
struct GroupedKeys {
    const Basis* basis;
    const Index* columns;  // of the row

    static constexpr int64_t first_stored = 2;

    template <class Degree>
    POLYSPARSE_INLINE auto leads(Degree d) const {
        const uint64_t tails_end = d == 2 ? basis->n_features : basis->degree_end[d - 1];
        return [d, columns = columns, groups = basis->groups.get(),
                known = basis->groups->depths(d), n = basis->n_features,
                base = basis->degree_end[d] - tails_end](int64_t a) POLYSPARSE_INLINE_LAMBDA {
            const int64_t column = within(columns[a], n);
            return base - (known != nullptr ? known[column] : groups->depth(d, column));
        };
    }
    uint64_t first_shift() const { return basis->degree_end[1] - basis->n_features; }

    template <class AnyRow, class Place>
    POLYSPARSE_INLINE auto first_end(const AnyRow& row, Place, int64_t) const {
        return row.end();
    }
};
template <class Index, class Value>
GroupedKeys<Index> keys_of(const Basis& basis, const GroupedRow<Index, Value>& row) {
    return {&basis, row.begin.columns};
}

/// A row with at most one value of each group: all that differs from interactions is its keys.
template <class Index, class Value>
struct DistinctRow : Row<Index, Value> {};
template <class Index, class Value>
POLYSPARSE_INLINE GroupedKeys<Index> keys_of(const Basis& basis,
                                             const DistinctRow<Index, Value>& row) {
    return {&basis, row.begin.columns};
}

/// Reads such rows as they are stored, for one worker.
struct DistinctRows {
    DistinctRows(const Basis&, RowShape) {}

    template <class Index, class Value>
    POLYSPARSE_INLINE DistinctRow<Index, Value> read(const Row<Index, Value>& row) {
        return {row};
    }
};

/// The same of rows whose groups are known: a lead is a constant plus its column times a factor.
template <class Index>
struct AlikeKeys {
    const Basis* basis;
    const Index* columns;  // of the row
    const uint64_t*
        of_pairs;  // [a]: constants, then the factors, `width` apart; then of triples...
    int64_t width;

    static constexpr int64_t first_stored = 2;

    template <class Degree>
    POLYSPARSE_INLINE auto leads(Degree d) const {
        const uint64_t* const constants = of_pairs + (d - 2) * 2 * width;
        return [columns = columns, constants, factors = constants + width](int64_t a)
                   POLYSPARSE_INLINE_LAMBDA {
                       return constants[a] + static_cast<uint64_t>(columns[a]) * factors[a];
                   };
    }
    uint64_t first_shift() const { return basis->degree_end[1] - basis->n_features; }

    template <class AnyRow, class Place>
    POLYSPARSE_INLINE auto first_end(const AnyRow& row, Place, int64_t) const {
        return row.end();
    }
};

template <class Index, class Value>
struct AlikeRow : Row<Index, Value> {
    const uint64_t* of_pairs;
    int64_t width;
};
template <class Index, class Value>
POLYSPARSE_INLINE AlikeKeys<Index> keys_of(const Basis& basis, const AlikeRow<Index, Value>& row) {
    return {&basis, row.begin.columns, row.of_pairs, row.width};
}

/// Reads rows with one value of each of the same groups, for one worker.
class AlikeRows {
  public:
    static bool can_read(const Basis& basis) {
        return basis.has_sizes_of_interactions() && basis.knows_groups();
    }

    /// Needs: can_read. Throws bad_alloc.
    AlikeRows(const Basis& basis, RowShape)
        : width_((static_cast<int64_t>(basis.row_groups.size()) + lanes - 1) / lanes * lanes),
          leads_(std::max<int64_t>(basis.highest - 1, 1) * 2 * width_) {
        for (int64_t d = 2; d <= basis.highest; ++d) {
            const uint64_t tails_end = d == 2 ? basis.n_features : basis.degree_end[d - 1];
            uint64_t* const constants = leads_.data() + (d - 2) * 2 * width_;
            for (size_t a = 0; a < basis.row_groups.size(); ++a) {
                const auto depth = basis.groups->depth_in(d, basis.row_groups[a]);
                constants[a] = basis.degree_end[d] - tails_end - depth.constant;
                constants[width_ + a] = depth.factor;
            }
        }
    }

    template <class Index, class Value>
    POLYSPARSE_INLINE AlikeRow<Index, Value> read(const Row<Index, Value>& row) {
        return {row, leads_.data(), width_};
    }

  private:
    int64_t width_;
    std::vector<uint64_t> leads_;
};

/// Reads rows, for one worker. Their columns are copied, because they may change while they are
/// read: a row's groups must be those of the columns that are walked. Columns that do not increase
/// are replaced, because the tuples of others may have no output column.
template <class Index>
class GroupedRows {
  public:
    /// For rows up to a shape. The basis must outlive it. Throws bad_alloc.
    GroupedRows(const Basis& basis, RowShape largest)
        : basis_(&basis),
          groups_(basis, largest),
          width_(n_stored(largest) + 1),
          columns_(std::make_unique<Index[]>(width_ + lanes)),
          next_(std::make_unique_for_overwrite<int64_t[]>(width_)),
          counts_(std::make_unique<int64_t[]>(width_ * n_degrees(basis))),
          firsts_(std::make_unique<int64_t[]>(n_degrees(basis))) {}

    static uint64_t bytes(const Basis& basis, RowShape largest) {
        const uint64_t width = n_stored(largest) + 1;
        return RowGroups::bytes(largest) + (width + lanes) * sizeof(Index) +
               width * sizeof(int64_t) * (n_degrees(basis) + 1);
    }

    /// The row, with its groups. It is valid until the next one is read.
    template <class AnyIndex, class Value>
    GroupedRow<Index, Value> read(const Row<AnyIndex, Value>& row) {
        copy_increasing(row.begin.columns, row.n, basis_->n_features, columns_.get());
        std::fill_n(columns_.get() + row.n, lanes, Index(0));
        if (groups_.read(columns_.get(), row.n)) {
            find_next(*basis_->groups, columns_.get(), row.n, 0, next_.get());
            count(row.n);
            find_firsts(row.n);
        }
        return {{{columns_.get(), row.begin.values}, row.n},
                {row.n, next_.get(), counts_.get(), firsts_.get(), width_}};
    }

  private:
    static int64_t n_degrees(const Basis& basis) { return std::max<int64_t>(basis.highest, 1) + 1; }

    /// Numbers of tuples that are not needed may overflow.
    void count(int64_t n) {
        int64_t* counts = counts_.get() + width_;
        for (int64_t a = 0; a <= n; ++a) counts[a] = n - a;
        for (int64_t d = 2; d <= basis_->highest; ++d) {
            const int64_t* const below = counts;
            counts += width_;
            counts[n] = 0;
            for (int64_t a = n - 1; a >= 0; --a)
                counts[a] = static_cast<int64_t>(static_cast<uint64_t>(counts[a + 1]) +
                                                 static_cast<uint64_t>(below[next_[a]]));
        }
    }

    /// A tuple below the lowest degree is needed only if enough values may lead it.
    void find_firsts(int64_t n) {
        if (basis_->lowest <= 1) return;
        int64_t d = std::min(basis_->lowest - 1, n_degrees(*basis_) - 1);
        int64_t n_groups = 0;  // before value a
        for (int64_t a = 0; a < n && d >= 1; ++a) {
            if (next_[a] == a) n_groups = basis_->lowest;  // its powers are enough
            for (; d >= 1 && n_groups >= basis_->lowest - d; --d) firsts_[d] = a;
            if (next_[a] == a + 1) ++n_groups;
        }
        for (; d >= 1; --d) firsts_[d] = n;
    }

    const Basis* basis_;
    RowGroups groups_;
    int64_t width_;
    std::unique_ptr<Index[]> columns_;
    std::unique_ptr<int64_t[]> next_, counts_, firsts_;
};

}  // namespace polysparse
