#include "expand/alike_rows.hpp"

#include <algorithm>
#include <atomic>
#include <limits>
#include <type_traits>
#include <utility>

#include "matrix/own_columns.hpp"
#include "platform/processors.hpp"
#include "platform/threads.hpp"

namespace polysparse {
namespace {

/// The groups of the first row.
template <class Offset, class Column>
std::vector<int32_t> first_groups(const Basis& basis, const Offset* offsets,
                                  const Column* columns) {
    const int64_t n = offsets[1] - offsets[0];
    std::vector<Column> own(n);
    copy_increasing(columns + offsets[0], n, basis.n_features, own.data());
    std::vector<int32_t> groups;
    for (const Column column : own)
        groups.push_back(static_cast<int32_t>(basis.groups->group_of(column)));
    return groups;
}

/// The features that the values of some rows may have, for rows of the same groups.
template <class Column>
struct Bounds {
    using Unsigned = std::make_unsigned_t<Column>;
    static constexpr int64_t n_rows = lanes;  // so that values come in whole groups of lanes

    Bounds(const Basis& basis, const std::vector<int32_t>& row_groups) {
        for (int64_t r = 0; r < n_rows; ++r)
            for (const int32_t group : row_groups) {
                starts.push_back(static_cast<Unsigned>(basis.groups->start(group)));
                sizes.push_back(static_cast<Unsigned>(std::min<int64_t>(
                    basis.groups->size(group), std::numeric_limits<Column>::max())));
            }
    }

    std::vector<Unsigned> starts, sizes;
};

template <class Offset>
POLYSPARSE_PER_PROCESSOR bool have_length(const Offset* __restrict offsets, int64_t begin,
                                          int64_t end, Offset n) {
    Offset different = 0;
    for (int64_t r = begin; r < end; ++r) different |= (offsets[r + 1] - offsets[r]) ^ n;
    return different == 0;
}

/// Whether the n values of some rows are within bounds.
template <class Column>
POLYSPARSE_PER_PROCESSOR bool are_within(const Column* columns,
                                         const std::make_unsigned_t<Column>* __restrict starts,
                                         const std::make_unsigned_t<Column>* __restrict sizes,
                                         int64_t n) {
    using Unsigned = std::make_unsigned_t<Column>;
    Unsigned outside = 0;
    for (int64_t t = 0; t < n; ++t)
        outside |= static_cast<Unsigned>(columns[t]) - starts[t] >= sizes[t];
    return outside == 0;
}

/// Whether the values of rows [begin, end) are in these groups.
template <class Offset, class Column>
bool have_groups(const Bounds<Column>& bounds, int64_t n, const Offset* offsets,
                 const Column* columns, int64_t begin, int64_t end) {
    if (!have_length(offsets, begin, end, static_cast<Offset>(n))) return false;
    const auto step = static_cast<int64_t>(bounds.starts.size());
    const Column* const last = columns + offsets[end];
    for (const Column* from = columns + offsets[begin]; from < last; from += step)
        if (!are_within(from, bounds.starts.data(), bounds.sizes.data(),
                        std::min<int64_t>(step, last - from)))
            return false;
    return true;
}

/// How many values of rows [begin, end) are in the same group as the value before them.
template <class Offset, class Column>
POLYSPARSE_PER_PROCESSOR int64_t count_neighbors(const Basis& basis, const Offset* offsets,
                                                 const Column* columns, int64_t begin,
                                                 int64_t end) {
    const int32_t* const group_of = basis.groups->groups_of_features();
    const auto last = static_cast<std::make_unsigned_t<Column>>(basis.n_features - 1);
    const auto group = [&](int64_t t) POLYSPARSE_INLINE_LAMBDA {
        return group_of[std::min(static_cast<std::make_unsigned_t<Column>>(columns[t]), last)];
    };
    int64_t n_equal = 0;
    for (int64_t r = begin; r < end; ++r) {
        int32_t before = -1;
        for (int64_t t = offsets[r]; t < offsets[r + 1]; ++t) {
            const int32_t now = group(t);
            n_equal += now == before;
            before = now;
        }
    }
    return n_equal;
}

/// Whether holds(begin, end) for all parts of the rows. A few rows at a time are looked at, until
/// it does not.
template <class Holds>
bool holds_for_all(int64_t n_rows, int64_t n_threads, const Holds& holds) {
    constexpr int64_t together = 1 << 12;
    std::atomic<bool> all = true;
    EqualRanges(n_rows, n_threads).run([&](int64_t, int64_t begin, int64_t end) {
        for (; begin < end && all.load(std::memory_order_relaxed); begin += together)
            if (!holds(begin, std::min(begin + together, end))) all = false;
    });
    return all;
}

}  // namespace

RowsInCommon compare_groups(const Basis& basis, const Indices& row_offsets, int64_t n_rows,
                            const Indices& columns, int64_t n_threads) {
    constexpr int64_t most = 1024;  // values of a row
    if (n_rows == 0) return {true, {}};
    return row_offsets.visit([&]<class Offset>(const Offset* offsets) {
        return columns.visit([&]<class Column>(const Column* columns) -> RowsInCommon {
            const int64_t n = offsets[1] - offsets[0];
            if (n > 0 && n <= most) {
                std::vector<int32_t> groups = first_groups(basis, offsets, columns);
                const Bounds<Column> bounds(basis, groups);
                if (holds_for_all(n_rows, n_threads, [&](int64_t begin, int64_t end) {
                        return have_groups(bounds, n, offsets, columns, begin, end);
                    })) {
                    const bool are_distinct =
                        std::adjacent_find(groups.begin(), groups.end()) == groups.end();
                    return {are_distinct, std::move(groups)};
                }
            }
            return {holds_for_all(n_rows, n_threads,
                                  [&](int64_t begin, int64_t end) {
                                      return count_neighbors(basis, offsets, columns, begin, end) ==
                                             0;
                                  }),
                    {}};
        });
    });
}

}  // namespace polysparse
