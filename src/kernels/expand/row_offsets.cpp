#include "expand/row_offsets.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <numeric>

#include "expand/grouped_rows.hpp"
#include "expand/row_groups.hpp"
#include "expand/row_shape.hpp"
#include "expand/term_rows.hpp"
#include "platform/threads.hpp"

namespace polysparse {

namespace {

template <class Offset>
std::vector<std::pair<int64_t, int64_t>> count_lengths(const Offset* row_offsets, int64_t n_rows) {
    constexpr int64_t n_short = 1024;  // longer rows are few compared to what they store
    std::vector<int64_t> short_rows(n_short), long_rows;
    for (int64_t r = 0; r < n_rows; ++r) {
        const int64_t n = row_offsets[r + 1] - row_offsets[r];
        if (n < n_short)
            ++short_rows[n];
        else
            long_rows.push_back(n);
    }
    std::vector<std::pair<int64_t, int64_t>> lengths;
    for (int64_t n = 0; n < n_short; ++n)
        if (short_rows[n] > 0) lengths.emplace_back(n, short_rows[n]);
    std::sort(long_rows.begin(), long_rows.end());
    for (const int64_t n : long_rows) {
        if (lengths.empty() || lengths.back().first != n) lengths.emplace_back(n, 0);
        ++lengths.back().second;
    }
    return lengths;
}

/// a + b, or `most` if that is less.
int64_t add_up(int64_t a, int64_t b) {
    return std::min(a + b, OutputCounts::most);
}
int64_t multiply_up(int64_t a, int64_t b) {
    constexpr int64_t small = int64_t{1} << 30;  // whose products need no division
    if (a <= small && b <= small) return a * b;
    return b > 0 && a > OutputCounts::most / b ? OutputCounts::most : a * b;
}

/// Outputs of single rows by degree, where features are in groups: what GroupedRows and TermRows
/// find, but it does not overflow.
class DegreeSizes {
  public:
    /// For rows up to a shape. Throws bad_alloc.
    DegreeSizes(const Basis& basis, RowShape largest)
        : basis_(&basis),
          groups_(basis, largest),
          sizes_(std::max<int64_t>(basis.highest, 0) + 1),
          counts_(sizes_.size()) {
        if (basis.terms) slices_.resize(basis.terms->n_slots());
    }

    /// Element d is the number of outputs of degree d. It is valid until the next call.
    template <class Index>
    const std::vector<int64_t>& operator()(const Index* columns, int64_t n) {
        return groups_.read(columns, n) ? count(groups_.data(), n) : sizes_;
    }

    /// The same for values of these groups, which do not fall.
    const std::vector<int64_t>& count(const int32_t* groups, int64_t n) {
        std::fill(sizes_.begin(), sizes_.end(), 0);
        if (basis_->include_bias) sizes_[0] = 1;
        if (basis_->terms)
            count_terms(groups, n);
        else if (n > 0 && basis_->highest >= basis_->lowest)
            count_tuples(groups, n);
        return sizes_;
    }

  private:
    void count_terms(const int32_t* groups, int64_t n) {
        find_slices(*basis_->terms, groups, n, slices_);
        for (const Term& term : basis_->terms->terms()) {
            int64_t size = 1;
            for (const Term::Member& member : term.members)
                size = multiply_up(size, slices_[member.slot].size());
            sizes_[term.members.size()] = add_up(sizes_[term.members.size()], size);
        }
    }

    /// From the last group to the first: E_d of the groups seen so far, with the numbers of their
    /// values as sizes. counts_[d] is E_d.
    void count_tuples(const int32_t* groups, int64_t n) {
        const int64_t highest = basis_->highest;
        std::fill(counts_.begin(), counts_.end(), 0);
        counts_[0] = 1;
        for (int64_t end = n; end > 0;) {
            const int64_t group = groups[end - 1];
            int64_t begin = end - 1;
            while (begin > 0 && groups[begin - 1] == group) --begin;
            const int64_t size = end - begin;
            if (basis_->groups->has_powers(group) && size == 1)
                for (int64_t d = 1; d <= highest; ++d)
                    counts_[d] = add_up(counts_[d], counts_[d - 1]);
            else
                for (int64_t d = highest; d >= 1; --d)
                    counts_[d] = add_up(counts_[d], multiply_up(size, counts_[d - 1]));
            end = begin;
        }
        for (int64_t d = basis_->lowest; d <= highest; ++d) sizes_[d] = counts_[d];
    }

    const Basis* basis_;
    RowGroups groups_;
    std::vector<int64_t> sizes_, counts_;
    std::vector<RowSlice> slices_;
};

/// Outputs of every row by degree, if rows are known to be alike.
std::vector<int64_t> sizes_of_alike(const Basis& basis) {
    const int64_t n = std::ssize(basis.row_groups);
    return DegreeSizes(basis, shape_storing(n)).count(basis.row_groups.data(), n);
}

/// The sum, up to a limit.
int64_t total_of(const std::vector<int64_t>& sizes) {
    return std::accumulate(sizes.begin(), sizes.end(), int64_t{0}, add_up);
}

/// Outputs of row r. Each of several parts of the rows has its own.
template <class Offset, class Column>
class GroupedSizes {
  public:
    GroupedSizes(const Basis& basis, const Offset* row_offsets, int64_t n_rows,
                 const Column* columns)
        : degree_sizes_(basis, largest_shape(row_offsets, n_rows)),
          row_offsets_(row_offsets),
          columns_(columns) {}

    const std::vector<int64_t>& by_degree(int64_t r) {
        return degree_sizes_(columns_ + row_offsets_[r], row_offsets_[r + 1] - row_offsets_[r]);
    }
    int64_t operator()(int64_t r) { return total_of(by_degree(r)); }

  private:
    DegreeSizes degree_sizes_;
    const Offset* row_offsets_;
    const Column* columns_;
};

/// Writes the sums of sizes, which never fall. Each part of the rows has a copy of size_of, which
/// gives them; every size is found once, because it may be another one the next time. False if the
/// total does not fit.
template <class Offset, class Sizes>
bool sum_sizes(int64_t n_rows, Offset* out, int64_t n_threads, const Sizes& size_of) {
    constexpr int64_t most =
        std::min<int64_t>(OutputCounts::most, std::numeric_limits<Offset>::max());
    const EqualRanges ranges(n_rows, n_threads);
    std::vector<int64_t> before(ranges.size() + 1);  // outputs before each range
    std::vector<Sizes> sizes(ranges.size(), size_of);
    out[0] = 0;
    ranges.run([&](int64_t i, int64_t begin, int64_t end) {
        int64_t total = 0;
        for (int64_t r = begin; r < end; ++r) {
            total = add_up(total, sizes[i](r));
            out[r + 1] = static_cast<Offset>(std::min(total, most));
        }
        before[i + 1] = total;
    });
    std::partial_sum(before.begin(), before.end(), before.begin(), add_up);
    if (ranges.size() > 1)
        ranges.run([&](int64_t i, int64_t begin, int64_t end) {
            for (int64_t r = begin; i > 0 && r < end; ++r)
                out[r + 1] = static_cast<Offset>(std::min(before[i] + out[r + 1], most));
        });
    return before.back() <= most;
}

/// Writes the sums of equal sizes, if they fit.
template <class Offset>
bool multiply_size(int64_t n_rows, Offset* out, int64_t n_threads, int64_t size) {
    if (multiply_up(n_rows, size) >
        std::min<int64_t>(OutputCounts::most - 1, std::numeric_limits<Offset>::max()))
        return false;
    out[0] = 0;
    EqualRanges(n_rows, n_threads).run([&](int64_t, int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) out[r + 1] = static_cast<Offset>((r + 1) * size);
    });
    return true;
}

}  // namespace

std::vector<std::pair<int64_t, int64_t>> count_row_lengths(const Indices& row_offsets,
                                                           int64_t n_rows) {
    return row_offsets.visit([&](const auto* offsets) { return count_lengths(offsets, n_rows); });
}

bool fill_row_offsets(const Basis& basis, const Indices& row_offsets, int64_t n_rows,
                      const Indices& columns, const OutIndices& out_offsets, int64_t n_threads) {
    return row_offsets.visit([&]<class Offset>(const Offset* offsets) {
        return out_offsets.visit([&](auto* out) {
            if (!basis.row_groups.empty())
                return multiply_size(n_rows, out, n_threads, total_of(sizes_of_alike(basis)));
            if (!basis.groups || basis.has_sizes_of_interactions())
                return sum_sizes(n_rows, out, n_threads,
                                 [offsets, size_of = RowSizes(basis)](int64_t r) mutable {
                                     return size_of(shape_of(offsets, r));
                                 });
            return columns.visit([&]<class Column>(const Column* columns) {
                return sum_sizes(n_rows, out, n_threads,
                                 GroupedSizes(basis, offsets, n_rows, columns));
            });
        });
    });
}

OutputCounts count_outputs(const Basis& basis, const Indices& row_offsets, int64_t n_rows,
                           const Indices& columns, int64_t n_threads) {
    const EqualRanges ranges(n_rows, n_threads);
    if (!basis.row_groups.empty() && n_rows > 0) {
        OutputCounts all{sizes_of_alike(basis), 0};
        all.largest_row = total_of(all.by_degree);
        for (int64_t& size : all.by_degree) size = multiply_up(n_rows, size);
        return all;
    }
    OutputCounts none;
    none.by_degree.resize(std::max<int64_t>(basis.highest, 0) + 1);
    std::vector<OutputCounts> parts(ranges.size(), none);
    row_offsets.visit([&]<class Offset>(const Offset* offsets) {
        columns.visit([&]<class Column>(const Column* columns) {
            std::vector<GroupedSizes<Offset, Column>> sizes(
                ranges.size(), GroupedSizes(basis, offsets, n_rows, columns));
            ranges.run([&](int64_t i, int64_t begin, int64_t end) {
                OutputCounts& part = parts[i];
                for (int64_t r = begin; r < end; ++r) {
                    const std::vector<int64_t>& of_row = sizes[i].by_degree(r);
                    int64_t total = 0;
                    for (size_t d = 0; d < of_row.size(); ++d) {
                        part.by_degree[d] = add_up(part.by_degree[d], of_row[d]);
                        total = add_up(total, of_row[d]);
                    }
                    part.largest_row = std::max(part.largest_row, total);
                }
            });
        });
    });
    OutputCounts all = none;
    for (const OutputCounts& part : parts) {
        for (size_t d = 0; d < part.by_degree.size(); ++d)
            all.by_degree[d] = add_up(all.by_degree[d], part.by_degree[d]);
        all.largest_row = std::max(all.largest_row, part.largest_row);
    }
    return all;
}

}  // namespace polysparse
