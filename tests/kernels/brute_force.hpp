// Bases, matrices and their expansions, made without the kernels but for the rank of a tuple.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "basis/basis.hpp"
#include "basis/groups.hpp"
#include "checks.hpp"
#include "matrix/csr_view.hpp"

namespace polysparse::tests {

/// Monomials of one degree in n features, modulo 2^64, by the school formula for C(n, k).
inline uint64_t count_monomials(int64_t n, int64_t degree, bool interaction_only) {
    if (n <= 0 || (interaction_only && degree > n)) return 0;
    const int64_t others = interaction_only ? n - degree : n - 1;
    const auto [k, rest] = std::minmax(degree, others);
    unsigned __int128 value = 1;
    for (int64_t i = 1; i <= k; ++i) value = value * (static_cast<uint64_t>(rest) + i) / i;
    return static_cast<uint64_t>(value);
}

/// As basis.py makes it.
inline Basis make_basis(int64_t n, int64_t low, int64_t high, bool interaction_only, bool bias) {
    subject = std::to_string(n) + " features, degree " + std::to_string(low) + " to " +
              std::to_string(high) + (interaction_only ? ", interactions" : "") +
              (bias ? ", bias" : "");
    if (interaction_only || n == 0) high = std::min(high, n);
    Basis basis{n, std::max<int64_t>(low, 1), high, interaction_only, bias, {0}};
    uint64_t stop = bias;
    for (int64_t d = 1; d <= high; ++d) {
        const uint64_t size = count_monomials(n, d, interaction_only);
        if (d >= basis.lowest) stop += size;
        basis.degree_end.push_back(d >= basis.lowest ? stop : size);
    }
    return basis;
}

/// The same with features in groups of these sizes, and only these terms if there are any.
inline Basis make_grouped(const std::vector<int64_t>& sizes, int64_t low, int64_t high,
                          bool interaction_only, bool bias,
                          const std::vector<std::vector<int64_t>>& terms = {}) {
    int64_t n = 0, n_not_empty = 0;
    for (const int64_t size : sizes) n += size, n_not_empty += size > 0;
    const bool has_powers = !interaction_only && std::ranges::count(sizes, 1) > 0;
    if (!has_powers && terms.empty()) high = std::min(high, n_not_empty);
    Basis basis = make_basis(n, low, high, !has_powers, bias);
    subject +=
        ", " + std::to_string(sizes.size()) + " groups, " + std::to_string(terms.size()) + " terms";
    basis.groups = std::make_shared<GroupTable>(sizes, has_powers, basis.highest);
    if (!terms.empty()) basis.terms = std::make_shared<TermTable>(*basis.groups, terms, bias);
    uint64_t stop = bias;
    for (int64_t d = 1; d <= basis.highest; ++d) {
        uint64_t size = basis.groups->count_from(d, 0);
        if (basis.terms) {
            size = 0;
            for (const Term& term : basis.terms->terms()) {
                uint64_t n_columns = std::ssize(term.members) == d;
                for (const Term::Member& member : term.members)
                    n_columns *= basis.groups->size(member.group);
                size += n_columns;
            }
        }
        if (d >= basis.lowest) stop += size;
        basis.degree_end[d] = d >= basis.lowest ? stop : size;
    }
    return basis;
}

/// Calls visit for every increasing k-tuple below n (strictly, if distinct), in lexicographic
/// order.
template <class Visit>
void each_tuple(int64_t n, int64_t k, bool distinct, const Visit& visit,
                std::vector<int64_t>&& tuple = {}) {
    const int64_t missing = k - std::ssize(tuple);
    if (missing == 0) return visit(tuple);
    tuple.push_back(tuple.empty() ? 0 : tuple.back() + distinct);
    for (; tuple.back() < n - (distinct ? missing - 1 : 0); ++tuple.back())
        each_tuple(n, k, distinct, visit, std::move(tuple));
    tuple.pop_back();
}

template <class Offset, class Index, class Value>
struct Matrix {
    int64_t n_columns;
    std::vector<Offset> row_offsets{0};
    std::vector<Index> columns{};
    std::vector<Value> values{};

    int64_t n_rows() const { return std::ssize(row_offsets) - 1; }
    CsrView<Value> view() const {
        return {n_rows(), n_columns, row_offsets.data(), columns.data(), values.data()};
    }
};

/// Every `period`-th row is as long as can be, the others are short or empty.
template <class Offset, class Index, class Value>
auto random_matrix(int64_t n_rows, int64_t n_columns, int64_t period) {
    std::uniform_real_distribution<Value> any(-2, 2);
    Matrix<Offset, Index, Value> x{n_columns};
    for (int64_t r = 1; r <= n_rows; ++r) {
        const auto most = std::min<uint64_t>(n_columns, 70);
        const auto n = r % period == 0 ? most : std::min(random_bits() % 5, most);
        std::set<int64_t> row;
        while (row.size() < n) row.insert(random_bits() % n_columns);
        x.columns.insert(x.columns.end(), row.begin(), row.end());
        while (x.values.size() < x.columns.size()) x.values.push_back(any(random_bits));
        x.row_offsets.push_back(static_cast<Offset>(x.columns.size()));
    }
    return x;
}

/// Rows with values of these groups, as many of each as it is repeated.
template <class Offset, class Index, class Value>
auto alike_matrix(const Basis& basis, int64_t n_rows, const std::vector<int32_t>& row_groups) {
    std::uniform_real_distribution<Value> any(-2, 2);
    Matrix<Offset, Index, Value> x{basis.n_features};
    for (int64_t r = 0; r < n_rows; ++r) {
        std::multiset<int32_t> left(row_groups.begin(), row_groups.end());
        std::set<int64_t> row;
        while (!left.empty()) {
            const int64_t column = random_bits() % basis.n_features;
            const auto group = left.find(static_cast<int32_t>(basis.groups->group_of(column)));
            if (group != left.end() && row.insert(column).second) left.erase(group);
        }
        x.columns.insert(x.columns.end(), row.begin(), row.end());
        while (x.values.size() < x.columns.size()) x.values.push_back(any(random_bits));
        x.row_offsets.push_back(static_cast<Offset>(x.columns.size()));
    }
    return x;
}

/// Calls test(basis, x) for rows that have the same groups, as the basis knows: one value of all
/// groups, or of every second one, or several values.
template <class Offset, class Index, class Value, class Test>
void for_each_alike(Basis basis, const Test& test) {
    std::vector<int32_t> all, every_second, sets;
    for (int32_t g = 0; g < basis.groups->n_groups(); ++g) {
        if (basis.groups->size(g) == 0) continue;
        all.push_back(g);
        if (g % 2 == 1) every_second.push_back(g);
        sets.insert(sets.end(), basis.groups->size(g) > 1 ? 2 : 1, g);
    }
    const std::string of_basis = subject;
    for (const auto& row_groups : {all, every_second, sets}) {
        if (row_groups.empty()) continue;
        subject = of_basis + ", rows of " + std::to_string(row_groups.size()) + " values";
        basis.rows_are_distinct = std::ranges::adjacent_find(row_groups) == row_groups.end();
        basis.row_groups = row_groups;
        test(basis, alike_matrix<Offset, Index, Value>(basis, 21, row_groups));
    }
}

/// Calls test with the matrix as another thread may leave it, once it was inspected: with columns
/// that are not there, that are all the same, or in any order.
template <class Offset, class Index, class Value, class Test>
void for_each_change(const Matrix<Offset, Index, Value>& x, const Test& test) {
    const std::string unchanged = subject;
    subject += ", changed columns";
    const auto largest = std::numeric_limits<Index>::max();
    for (const Index column : {Index(0), Index(-1), Index(x.n_columns), largest, Index(~largest)}) {
        Matrix<Offset, Index, Value> changed = x;
        for (Index& one : changed.columns) one = column;
        test(changed);
        for (Index& one : changed.columns)
            one = random_bits() % 3 == 0 ? column : static_cast<Index>(random_bits() % x.n_columns);
        if (x.n_columns > 0) test(changed);
    }
    subject = unchanged;
}

/// Calls visit(columns, degree, product) for every output of a row but the bias, in the order of
/// the basis.
template <class Matrix, class Visit>
void each_output(const Basis& basis, const Matrix& x, int64_t r, const Visit& visit) {
    using Value = typename decltype(x.values)::value_type;
    const int64_t start = x.row_offsets[r], n = x.row_offsets[r + 1] - start;
    std::vector<int64_t> columns(basis.highest), groups(basis.highest);
    const auto visit_tuples = [&](int64_t d, const auto& is_monomial) {
        each_tuple(n, d, basis.interaction_only, [&](const auto& tuple) {
            Value product = 1;
            for (int64_t m = d; m-- > 0;) product = x.values[start + tuple[m]] * product;
            for (int64_t m = 0; m < d; ++m) columns[m] = x.columns[start + tuple[m]];
            for (int64_t m = 0; basis.groups && m < d; ++m)
                groups[m] = basis.groups->group_of(columns[m]);
            if (is_monomial(d)) visit(columns.data(), d, product);
        });
    };
    if (basis.terms) {
        for (const Term& term : basis.terms->terms())
            visit_tuples(std::ssize(term.members), [&](int64_t) {
                return std::ranges::equal(term.members,
                                          std::span(groups).first(term.members.size()), {},
                                          &Term::Member::group);
            });
        return;
    }
    for (int64_t d = basis.lowest; d <= basis.highest; ++d)
        visit_tuples(d, [&](int64_t d) {
            for (int64_t m = 1; basis.groups && m < d; ++m)
                if (groups[m] == groups[m - 1] && !basis.groups->has_powers(groups[m]))
                    return false;
            return true;
        });
}

template <class OutIndex, class Offset, class Index, class Value>
auto expand_by_brute_force(const Basis& basis, const Matrix<Offset, Index, Value>& x) {
    Matrix<OutIndex, OutIndex, Value> out{basis.n_columns()};
    for (int64_t r = 0; r < x.n_rows(); ++r) {
        out.columns.insert(out.columns.end(), basis.include_bias, 0);
        out.values.insert(out.values.end(), basis.include_bias, 1);
        each_output(basis, x, r, [&](const int64_t* columns, int64_t d, Value product) {
            out.columns.push_back(static_cast<OutIndex>(basis.rank(columns, d)));
            out.values.push_back(product);
        });
        out.row_offsets.push_back(static_cast<OutIndex>(out.columns.size()));
    }
    return out;
}

template <class Test>
void for_each_basis(std::initializer_list<int64_t> sizes, int64_t highest, const Test& test) {
    for (const int64_t n : sizes)
        for (int64_t high = 0; high <= highest; ++high)
            for (int64_t low = 0; low <= high; ++low)
                for (const bool interaction_only : {false, true})
                    for (const bool bias : {false, true})
                        test(make_basis(n, low, high, interaction_only, bias));
}

/// With groups of one and of several features, an empty one, and terms of them.
template <class Test>
void for_each_grouped_basis(int64_t highest, const Test& test) {
    const std::vector<std::vector<int64_t>> divisions{
        {1, 3, 0, 2, 1, 4}, {2, 2, 2, 2}, {7}, {1, 1, 1, 5}};
    for (const auto& sizes : divisions)
        for (int64_t high = 1; high <= highest; ++high)
            for (int64_t low = 0; low <= high; ++low)
                for (const bool interaction_only : {false, true})
                    test(make_grouped(sizes, low, high, interaction_only, (low + high) % 2 == 0));
    for (const bool bias : {false, true}) {
        test(make_grouped(divisions[0], 1, 1, true, bias, {{5}, {0}}));
        test(make_grouped(divisions[0], 2, 2, true, bias, {{1, 5}, {2, 3}, {0, 1}}));
        test(make_grouped(divisions[0], 1, 5, true, bias,
                          {{3}, {0, 1}, {1, 3, 5}, {0, 3, 4}, {0, 1, 3, 4}, {0, 1, 3, 4, 5}}));
        test(make_grouped(divisions[1], 3, 4, true, bias, {{1, 2, 3}, {0, 1, 2, 3}}));
    }
}

}  // namespace polysparse::tests
