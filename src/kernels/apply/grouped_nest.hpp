// The outputs of a row as nested runs, where features are in groups.
//
// In most rows every group has one value, as one-hot rows have: each value is followed by all later
// ones, as in an interaction expansion, and only the shifts differ. In other rows the runs of
// neighbouring leads begin in different places, and are walked one by one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "apply/nest.hpp"
#include "basis/basis.hpp"
#include "expand/grouped_rows.hpp"
#include "expand/row_shape.hpp"
#include "matrix/csr_view.hpp"
#include "platform/processors.hpp"

namespace polysparse {

/// Values are followed by those of the groups that may follow theirs.
struct GroupFollowers {
    const int64_t* nexts;  // [value]
    const int64_t* lasts;  // [degree]

    POLYSPARSE_INLINE int64_t next(int64_t a) const { return nexts[a]; }
    POLYSPARSE_INLINE int64_t last(int64_t d) const { return lasts[d]; }

    template <class Index, class Value, class Sink>
    POLYSPARSE_INLINE void pairs(const Row<Index, Value>& row, int64_t first, int64_t last,
                                 KnownShifts shifts, Value scale, const Sink& sink) const {
        for (int64_t a = first; a < last; ++a)
            sink.run(row.begin + nexts[a], row.n - nexts[a], shifts(a), scale * row.scale(a));
    }
};

/// What a lead takes from the column of a pair, looked up by its feature.
template <class Index>
struct FeatureShifts {
    const Index* columns;
    const uint64_t* depths;  // [feature]
    int64_t shift;

    POLYSPARSE_INLINE int64_t operator()(int64_t a) const {
        return shift - static_cast<int64_t>(depths[columns[a]]);
    }
};

/// Walks rows with increasing columns, and of the groups that the basis knows, for one worker.
template <class Index, class Value>
class GroupedNest {
  public:
    /// For rows up to a shape. The basis must outlive it. Throws bad_alloc.
    GroupedNest(const Basis& basis, RowShape largest)
        : basis_(&basis),
          nexts_(n_stored(largest)),
          lasts_(std::max<int64_t>(basis.highest, 0) + 1),
          deep_(basis, largest, basis.highest > 1) {}

    /// All outputs that the first values of a row lead, and the bias if `has_bias`.
    template <class Sink>
    POLYSPARSE_INLINE void walk(const LedRow<Index, Value>& row, bool has_bias, const Sink& sink) {
        const Basis& basis = *basis_;
        if (has_bias && basis.include_bias) sink.bias();
        if (basis.lowest <= 1 && basis.highest >= 1)
            sink.run(row.begin, row.leads, deep_.shift_of(1), Value(1));
        if (basis.highest < 2) return;
        if (has_one_each(row)) {
            const uint64_t* const depths = basis.groups->depths(2);
            if (basis.lowest <= 2 && depths != nullptr) walk_known_pairs(row, depths, sink);
            if (basis.highest == 2 && depths != nullptr) return;
            walk_deep(row, GapFollowers{1, row.n}, depths == nullptr, sink);
        } else {
            walk_deep(row, find_followers(row), true, sink);
        }
    }

  private:
    // What has the inner loops is called apart, and compiled for each generation of processors.

    /// The pairs of a row with one value in each group, whose depths are those of all features.
    template <class Sink>
    POLYSPARSE_PER_PROCESSOR void walk_known_pairs(const LedRow<Index, Value>& row,
                                                   const uint64_t* depths, const Sink& sink) const {
        sink.pairs(row, std::min(row.leads, row.n - 1), 1,
                   FeatureShifts<Index>{row.begin.columns, depths, deep_.shift_of(2)}, Value(1));
    }

    template <class Followers, class Sink>
    POLYSPARSE_PER_PROCESSOR void walk_pairs(const LedRow<Index, Value>& row, Followers followers,
                                             const Sink& sink) const {
        followers.pairs(row, 0, std::min(row.leads, followers.last(2)),
                        KnownShifts{deep_.depths(2), deep_.shift_of(2)}, Value(1), sink);
    }

    /// Degrees above 2, and pairs if `has_pairs`.
    template <class Followers, class Sink>
    POLYSPARSE_APART void walk_deep(const LedRow<Index, Value>& row, Followers followers,
                                    bool has_pairs, const Sink& sink) {
        for (int64_t d = 2; d <= basis_->highest; ++d) find_depths(d, row);
        if (has_pairs && basis_->lowest <= 2) walk_pairs(row, followers, sink);
        if (basis_->highest > 2) deep_.walk(row, followers, sink);
    }

    /// Whether no group has two values or powers. The whole row decides, so that its parts round
    /// alike, however it is divided.
    POLYSPARSE_INLINE bool has_one_each(const LedRow<Index, Value>& row) const {
        if (!basis_->interaction_only) return false;
        if (basis_->knows_groups()) return true;
        const int32_t* const group_of = basis_->groups->groups_of_features();
        const Index* const columns = row.begin.columns - row.before;
        int32_t before = -1;
        bool has_two = false;
        for (int64_t a = 0; a < row.n + row.before; ++a) {
            const int32_t group = group_of[columns[a]];
            has_two |= group == before;
            before = group;
        }
        return !has_two;
    }

    POLYSPARSE_INLINE void find_depths(int64_t d, const Row<Index, Value>& row) {
        uint64_t* const depths = deep_.depths(d);
        const Index* const columns = row.begin.columns;
        if (const uint64_t* const known = basis_->groups->depths(d))
            for (int64_t a = 0; a < row.n; ++a) depths[a] = known[columns[a]];
        else
            for (int64_t a = 0; a < row.n; ++a) depths[a] = basis_->groups->depth(d, columns[a]);
    }

    /// A value leads a d-tuple if there are d values in groups that follow one another from it on.
    POLYSPARSE_APART GroupFollowers find_followers(const Row<Index, Value>& row) {
        find_next(*basis_->groups, row.begin.columns, row.n, 0, nexts_.data());
        std::fill(lasts_.begin(), lasts_.end(), 0);
        int64_t length = 1;  // of the longest tuples that values from a on lead
        for (int64_t a = row.n - 1; a >= 0 && length <= basis_->highest; --a) {
            if (nexts_[a] == a) length = basis_->highest;
            for (int64_t d = length; d >= 1 && lasts_[d] == 0; --d) lasts_[d] = a + 1;
            const bool is_first_of_group = a == 0 || nexts_[a - 1] != nexts_[a];
            length += is_first_of_group;
        }
        return {nexts_.data(), lasts_.data()};
    }

    const Basis* basis_;
    std::vector<int64_t> nexts_;  // [value]
    std::vector<int64_t> lasts_;  // [degree]
    DeepNest<Index, Value> deep_;
};

}  // namespace polysparse
