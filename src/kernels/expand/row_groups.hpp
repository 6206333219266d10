// The groups of a row's values. In most tables every row has values of the same groups, so what
// depends on groups alone is found once for many rows.
#pragma once

#include <cstdint>
#include <vector>

#include "basis/basis.hpp"
#include "expand/row_shape.hpp"
#include "matrix/own_columns.hpp"
#include "platform/processors.hpp"

namespace polysparse {

/// Those of one row at a time. The basis must outlive it, and have groups.
class RowGroups {
  public:
    /// For rows up to a shape. Throws bad_alloc.
    RowGroups(const Basis& basis, RowShape largest)
        : group_of_(basis.groups->groups_of_features()),
          n_features_(basis.n_features),
          groups_(n_stored(largest)) {}

    static uint64_t bytes(RowShape largest) { return n_stored(largest) * sizeof(int32_t); }

    /// Reads a row of n columns, which are brought into range. Returns whether its groups are not
    /// those of the row before.
    template <class Index>
    bool read(const Index* columns, int64_t n) {
        int32_t difference = n != n_;
        for (int64_t a = 0; a < n; ++a) {
            const int32_t group = group_of_[within(columns[a], n_features_)];
            difference |= group ^ groups_[a];
            groups_[a] = group;
        }
        n_ = n;
        return difference != 0;
    }

    /// The group of each value of the row.
    const int32_t* data() const { return groups_.data(); }

  private:
    const int32_t* group_of_;
    int64_t n_features_;
    int64_t n_ = -1;               // values of the row
    std::vector<int32_t> groups_;  // of each value
};

/// next[a]: which of n increasing columns is the first that may follow column a. The first of them
/// has number `first`.
template <class Groups, class Index, class Number>
void find_next(const Groups& groups, const Index* columns, int64_t n, int64_t first, Number* next) {
    int64_t group_behind = groups.n_groups(), next_behind = n;
    for (int64_t a = n - 1; a >= 0; --a) {
        const int64_t group = groups.group_of(static_cast<int64_t>(columns[a]));
        if (group != group_behind) next_behind = a + 1;
        next[a] = static_cast<Number>(first + (groups.has_powers(group) ? a : next_behind));
        group_behind = group;
    }
}

}  // namespace polysparse
