// Rows with their columns in the order of a search: rare ones first.
//
// The members of a monomial can be visited in any order. If the rarest comes first, a prefix is in
// few rows, its bound is low, and the walk ends early.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include "basis/basis.hpp"
#include "matrix/csr_view.hpp"
#include "matrix/own_columns.hpp"
#include "observe/transposed.hpp"
#include "platform/huge_array.hpp"
#include "platform/stretches.hpp"
#include "platform/threads.hpp"

namespace polysparse {

/// What a search may use of a column of X.
enum class Use : uint8_t { none, any, among };

/// What the columns of X are, which need not be all features.
struct SearchedColumns {
    int64_t n;
    const int64_t* features;  // [column], as the basis numbers them
    const Use* uses;          // [column]
};

/// The groups of columns that were put into another order.
struct ColumnGroups {
    std::vector<int64_t> groups;  // [number]
    std::vector<uint8_t> powers;  // [group]: whether powers of its member are monomials

    int64_t n_groups() const { return std::ssize(powers); }
    int64_t group_of(int64_t number) const { return groups[number]; }
    bool has_powers(int64_t group) const { return powers[group]; }
};

/// Of a row; all weights are 1 if null.
inline double weight_of(const double* weights, uint32_t row) {
    return weights == nullptr ? 1.0 : weights[row];
}

struct OrderedRows {
    std::vector<int64_t> features;  // [number]: the feature, as the basis numbers them
    std::vector<uint8_t> is_among;  // [number]
    int64_t end_of_among = 0;       // one past the last number that is among
    ColumnGroups groups;            // if the basis has any
    std::vector<int64_t> row_offsets;
    HugeArray<int32_t> numbers{0};  // by row, increasing
    HugeArray<double> values{0};    // beside them, unless all are 1
    HugeArray<uint32_t> rows{0};    // the row of each
    std::vector<double> largest;    // [row]: size of the largest value, unless all are 1

    int64_t n_rows() const { return std::ssize(row_offsets) - 1; }
    int64_t n_columns() const { return std::ssize(features); }

    /// The output column of a prefix of `size` column numbers and one more. `tuple` has room for
    /// them.
    int64_t rank(const Basis& basis, const std::vector<int64_t>& prefix, int64_t size,
                 int64_t number, std::vector<int64_t>& tuple) const {
        for (int64_t m = 0; m < size; ++m) tuple[m] = features[prefix[m]];
        tuple[size] = features[number];
        std::sort(tuple.begin(), tuple.begin() + size + 1);
        return basis.rank(tuple.data(), size + 1);
    }
};

/// The columns of all stored values. A copy, because the caller's arrays may change between two
/// passes.
struct OwnRows {
    HugeArray<int32_t> columns;
    std::vector<uint32_t> n_rows_with;  // [column]

    /// Needs: rows inspected and increasing, fewer than 2^31 stored values and columns. Throws
    /// bad_alloc and Stopped.
    OwnRows(int64_t n_columns, int64_t n_rows, const Indices& row_offsets, const Indices& indices,
            int64_t n_threads, const StopRequest& should_stop)
        : columns(row_offsets[n_rows] - row_offsets[0]) {
        const int64_t first = row_offsets[0];
        std::vector<std::vector<uint32_t>> counts(n_threads, std::vector<uint32_t>(n_columns));
        const auto copy = [&](int64_t worker, int64_t, int64_t begin, int64_t end) {
            std::vector<uint32_t>& count = counts[worker];
            indices.visit([&](const auto* from) {
                for (int64_t r = begin; r < end; ++r) {
                    const int64_t n = row_offsets[r + 1] - row_offsets[r];
                    int32_t* const to = columns.data() + (row_offsets[r] - first);
                    copy_increasing(from + row_offsets[r], n, n_columns, to);
                    for (int64_t t = 0; t < n; ++t) ++count[to[t]];
                }
            });
        };
        stretches_of_rows(row_offsets, n_rows, n_threads).run(should_stop, copy);
        n_rows_with = std::move(counts[0]);
        for (int64_t worker = 1; worker < n_threads; ++worker)
            for (int64_t j = 0; j < n_columns; ++j) n_rows_with[j] += counts[worker][j];
    }
};

/// In which order a search numbers columns.
enum class Numbering { rare_first, by_feature };

/// Numbers columns that may be used and are in at least `least` rows. `rare_first`: rare groups
/// first, rare columns first within a group; a group that has members `among` precedes the others.
/// Returns the number of each column, or -1. Throws Stopped.
inline std::vector<int32_t> order_columns(const Basis& basis, const SearchedColumns& columns,
                                          const std::vector<uint32_t>& n_rows_with, int64_t least,
                                          Numbering numbering, const StopRequest& should_stop,
                                          OrderedRows& out) {
    const GroupTable* const groups = basis.groups.get();
    const auto group_of = [&](int64_t j) {
        return groups == nullptr ? j : groups->group_of(columns.features[j]);
    };
    const int64_t n_groups = groups == nullptr ? columns.n : groups->n_groups();
    struct Group {
        bool has_none_among = true;
        double n_stored = 0, n_columns = 0;
        double mean() const { return n_stored / std::max(n_columns, 1.0); }
    };
    std::vector<Group> of_group(n_groups);
    std::vector<int32_t> order;
    for (int64_t j = 0; j < columns.n; ++j) {
        if (columns.uses[j] == Use::none || n_rows_with[j] < least) continue;
        order.push_back(static_cast<int32_t>(j));
        Group& group = of_group[group_of(j)];
        group.has_none_among &= columns.uses[j] != Use::among;
        group.n_stored += n_rows_with[j];
        group.n_columns += 1;
    }
    uint32_t n_keys = 0;
    const auto key = [&](int32_t j) {
        if (++n_keys % (1 << 20) == 0 && should_stop()) throw Stopped();
        const int64_t g = group_of(j);
        return std::tuple(of_group[g].has_none_among, of_group[g].mean(), g, n_rows_with[j], j);
    };
    if (numbering == Numbering::rare_first) std::ranges::sort(order, {}, key);
    std::vector<int32_t> number_of(columns.n, -1);
    for (const int32_t j : order) {
        number_of[j] = static_cast<int32_t>(out.features.size());
        out.features.push_back(columns.features[j]);
        out.is_among.push_back(columns.uses[j] == Use::among);
        if (out.is_among.back()) out.end_of_among = std::ssize(out.features);
        if (groups != nullptr) out.groups.groups.push_back(group_of(j));
    }
    for (int64_t g = 0; groups != nullptr && g < n_groups; ++g)
        out.groups.powers.push_back(groups->has_powers(g));
    return number_of;
}

/// Writes the numbers of the columns of a row that have one, in their order.
inline void order_numbers(const std::vector<int32_t>& number_of, const int32_t* columns, int64_t n,
                          int32_t* to) {
    int64_t n_kept = 0;
    for (int64_t a = 0; a < n; ++a) {
        const int32_t number = number_of[columns[a]];
        if (number < 0) continue;
        int64_t b = n_kept++;
        for (; n <= 32 && b > 0 && to[b - 1] > number; --b) to[b] = to[b - 1];
        to[b] = number;
    }
    if (n > 32) std::sort(to, to + n_kept);
}

/// Writes the columns of row r that have a number, with their values, in the order of the numbers;
/// and the row of each.
inline void order_row(const std::vector<int32_t>& number_of, const int32_t* columns,
                      const double* values, int64_t n, int64_t r,
                      std::vector<std::pair<int32_t, double>>& row, OrderedRows& out) {
    const int64_t start = out.row_offsets[r];
    std::fill(&out.rows[start], &out.rows[out.row_offsets[r + 1]], static_cast<uint32_t>(r));
    if (values == nullptr) return order_numbers(number_of, columns, n, &out.numbers[start]);
    row.clear();
    for (int64_t a = 0; a < n; ++a) {
        const int32_t number = number_of[columns[a]];
        if (number < 0) continue;
        row.emplace_back(number, values[a]);
        for (size_t b = row.size() - 1; n <= 32 && b > 0 && row[b - 1].first > number; --b)
            std::swap(row[b - 1], row[b]);
    }
    if (n > 32) std::ranges::sort(row, {}, [](const auto& one) { return one.first; });
    double largest = 0;
    for (size_t a = 0; a < row.size(); ++a) {
        out.numbers[start + a] = row[a].first;
        out.values[start + a] = row[a].second;
        largest = std::max(largest, std::abs(row[a].second));
    }
    out.largest[r] = largest;
}

/// Rows in the order of a search. `values` are null if all are 1. Takes at most 20 bytes per stored
/// value besides the copy, which it frees. Throws bad_alloc and Stopped.
inline OrderedRows order_rows(const Basis& basis, const SearchedColumns& columns, int64_t n_rows,
                              const Indices& row_offsets, const OwnRows own_rows,
                              const double* values, int64_t least, int64_t n_threads,
                              const StopRequest& should_stop) {
    OrderedRows out;
    const int64_t first = row_offsets[0];
    const HugeArray<int32_t>& own = own_rows.columns;
    const std::vector<int32_t> number_of = order_columns(
        basis, columns, own_rows.n_rows_with, least, Numbering::rare_first, should_stop, out);
    const auto stretches = stretches_of_rows(row_offsets, n_rows, n_threads);
    out.row_offsets.assign(n_rows + 1, 0);
    stretches.run(should_stop, [&](int64_t, int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r)
            for (int64_t t = row_offsets[r] - first; t < row_offsets[r + 1] - first; ++t)
                out.row_offsets[r + 1] += number_of[own[t]] >= 0;
    });
    int64_t longest = 0;
    equal_stretches(n_rows, 1).run(should_stop, [&](int64_t, int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) {
            longest = std::max(longest, out.row_offsets[r + 1]);
            out.row_offsets[r + 1] += out.row_offsets[r];
        }
    });
    out.numbers = HugeArray<int32_t>(out.row_offsets.back());
    out.rows = HugeArray<uint32_t>(out.row_offsets.back());
    if (values != nullptr) {
        out.values = HugeArray<double>(out.row_offsets.back());
        out.largest.resize(n_rows);
    }
    std::vector<std::vector<std::pair<int32_t, double>>> of_worker(n_threads);
    for (auto& row : of_worker) row.reserve(longest);  // a worker must not throw
    stretches.run(should_stop, [&](int64_t worker, int64_t, int64_t begin, int64_t end) {
        auto& row = of_worker[worker];
        for (int64_t r = begin; r < end; ++r) {
            const int64_t start = row_offsets[r] - first;
            order_row(number_of, own.data() + start,
                      values == nullptr ? nullptr : values + row_offsets[r],
                      row_offsets[r + 1] - row_offsets[r], r, row, out);
        }
    });
    return out;
}

}  // namespace polysparse
