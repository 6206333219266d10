#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "apply/gram.hpp"
#include "apply/vector_groups.hpp"
#include "brute_force.hpp"
#include "checks.hpp"
#include "products.hpp"

namespace polysparse::tests {
namespace {

template <class Offset, class Index, class Value>
void test_products(const Basis& basis) {
    const auto x = random_matrix<Offset, Index, Value>(30, basis.n_features, 6);
    check_products(basis, basis, x, expand_by_brute_force<int64_t>(basis, x));
    check_changed_products(basis, basis, x, basis.n_columns());
}

/// Of rows that are alike.
template <class Offset, class Index, class Value>
void test_alike_products(const Basis& unknown) {
    for_each_alike<Offset, Index, Value>(unknown, [](const Basis& basis, const auto& x) {
        check_products(basis, basis, x, expand_by_brute_force<int64_t>(basis, x));
        check_changed_products(basis, basis, x, basis.n_columns());
    });
}

/// Inner products of every two expanded rows, of one matrix and of two.
template <class Offset, class Index, class Value>
void test_gram(const Basis& basis) {
    const auto x = random_matrix<Offset, Index, Value>(20, basis.n_features, 6);
    const auto z = random_matrix<Offset, Index, Value>(11, basis.n_features, 4);
    const auto expanded = [&](const auto& matrix) {
        const auto whole = expand_by_brute_force<int64_t>(basis, matrix);
        std::vector<std::map<int64_t, double>> rows(matrix.n_rows());
        for (int64_t r = 0; r < matrix.n_rows(); ++r)
            for (int64_t t = whole.row_offsets[r]; t < whole.row_offsets[r + 1]; ++t)
                rows[r][whole.columns[t]] = whole.values[t];
        return rows;
    };
    const auto x_rows = expanded(x), z_rows = expanded(z);
    const auto never = [] { return false; };
    const auto is_right = [](const auto& a, const auto& b, double result) {
        double product = 0, size = 1;
        for (const auto& [column, value] : a)
            if (const auto found = b.find(column); found != b.end()) {
                product += value * found->second;
                size += std::abs(value * found->second);
            }
        return std::abs(result - product) <= (sizeof(Value) == 4 ? 1e-5 : 1e-12) * size;
    };
    for (const int64_t n_threads : {1, 3}) {
        std::vector<Value> all(20 * 20), some(20 * 11), norms(20);
        check(fill_gram(basis, x.view(), x.view(), true, all.data(), n_threads, never) &&
                  fill_gram(basis, x.view(), z.view(), false, some.data(), n_threads, never) &&
                  fill_row_norms(basis, x.view(), norms.data(), n_threads, never),
              "inner products: not stopped");
        for (int64_t r = 0; r < 20; ++r) {
            for (int64_t s = 0; s < 20; ++s)
                check(is_right(x_rows[r], x_rows[s], all[r * 20 + s]), "inner products");
            for (int64_t s = 0; s < 11; ++s)
                check(is_right(x_rows[r], z_rows[s], some[r * 11 + s]), "inner products of two");
            check(is_right(x_rows[r], x_rows[r], double{norms[r]} * norms[r]), "norms");
        }
    }
    for_each_change(x, [&](const auto& changed) {
        std::vector<Value> all(20 * 20), some(20 * 11), others(11 * 20);
        const auto a = changed.view(), b = z.view();
        check(fill_gram(basis, a, a, true, all.data(), 2, never) &&
                  fill_gram(basis, a, b, false, some.data(), 2, never) &&
                  fill_gram(basis, b, a, false, others.data(), 2, never),
              "inner products");
    });
}

/// Rows of one value in each group and of several, so long that they are divided.
void test_divided_rows() {
    const std::vector<int64_t> pairs(30, 2), many(30, 20);
    test_products<int32_t, int32_t, double>(make_grouped(pairs, 2, 3, true, false));
    test_products<int32_t, int64_t, float>(make_grouped(pairs, 1, 2, true, true));
    test_products<int32_t, int32_t, double>(make_grouped(many, 1, 2, false, true));
    test_products<int32_t, int32_t, double>(
        make_grouped({20, 1, 25, 15}, 2, 3, true, true, {{0, 2}, {0, 2, 3}}));
}

/// Element j of the product of a vector is the sum of (i + 2 j) times its element i.
template <bool is_added>
void test_groups(VectorGroups groups, int64_t k) {
    const int64_t n_from = 5, n_to = 7;
    std::vector<double> from(n_from * k), to(n_to * k, 1.0);
    for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<double>(i * i % 17);
    int64_t most = 0, n_vectors = 0;
    const auto multiply = [&](VectorTable<const double> own, VectorTable<double> out) {
        most = std::max(most, own.n_vectors);
        n_vectors += own.n_vectors;
        for (int64_t j = 0; j < n_to; ++j)
            for (int64_t c = 0; c < own.n_vectors; ++c) {
                if (!is_added) out[j][c] = 0;
                for (int64_t i = 0; i < n_from; ++i)
                    out[j][c] += static_cast<double>(i + 2 * j) * own[i][c];
            }
        return n_vectors < 100;
    };
    const VectorTable<const double> source{from.data(), k};
    check(by_groups<is_added>(groups, source, n_from, VectorTable<double>{to.data(), k}, n_to, 2,
                              multiply),
          "vector groups: not stopped");
    check(most == std::min(groups.together, k) && n_vectors == k, "vector groups: sizes");
    for (int64_t j = 0; j < n_to; ++j)
        for (int64_t c = 0; c < k; ++c) {
            double expected = is_added ? 1 : 0;
            for (int64_t i = 0; i < n_from; ++i)
                expected += static_cast<double>(i + 2 * j) * from[i * k + c];
            check(to[j * k + c] == expected, "vector groups");
        }
    const auto stop = [](VectorTable<const double>, VectorTable<double>) { return false; };
    check(!by_groups<is_added>(groups, source, n_from, VectorTable<double>{to.data(), k}, n_to, 1,
                               stop),
          "vector groups: stopped");
}

/// Groups that divide the vectors evenly, and not.
void test_vector_groups() {
    for (const int64_t k : {2, 3, 8, 11, 17})
        for (const VectorGroups groups :
             {VectorGroups{1, 8}, VectorGroups{2, 8}, VectorGroups{8, 8}, VectorGroups{16, 16}}) {
            test_groups<false>(groups, k);
            test_groups<true>(groups, k);
        }
    const auto together = [](int64_t k, int64_t n_columns, int64_t n_outputs) {
        return VectorGroups::of(k, n_columns, 8, n_outputs, int64_t{1} << 21).together;
    };
    check(together(16, 7'750, 4'000'000) == 16, "vector groups: a table that stays in a cache");
    check(together(16, 60'000, 4'000'000) == 4, "vector groups: one that does not");
    check(together(16, 500'000, 23'000'000) == 1, "vector groups: one by one");
    check(together(16, 500'000, 4'000'000) == 16, "vector groups: numbers that are read once");
    check(together(16, 4'000'000, 400'000'000) == 16, "vector groups: vectors of no cache");
}

}  // namespace

void test_apply() {
    test_vector_groups();
    for_each_basis({0, 1, 9}, 4, test_products<int32_t, int32_t, double>);
    for_each_basis({8}, 3, test_products<int64_t, int64_t, float>);
    test_products<int32_t, int32_t, double>(make_basis(200, 1, 2, false, true));
    test_products<int32_t, int64_t, float>(make_basis(60, 2, 3, true, false));
    for_each_basis({0, 1, 9}, 4, test_gram<int32_t, int32_t, double>);
    for_each_basis({8}, 3, test_gram<int64_t, int64_t, float>);
    for_each_grouped_basis(4, test_products<int32_t, int32_t, double>);
    for_each_grouped_basis(3, test_products<int64_t, int64_t, float>);
    for_each_grouped_basis(4, test_gram<int32_t, int32_t, double>);
    for_each_grouped_basis(3, test_gram<int64_t, int64_t, float>);
    test_divided_rows();
    for_each_grouped_basis(4, test_alike_products<int32_t, int32_t, double>);
    for_each_grouped_basis(3, test_alike_products<int64_t, int64_t, float>);
    test_alike_products<int32_t, int32_t, double>(
        make_grouped(std::vector<int64_t>(30, 20), 1, 2, true, true));
}

}  // namespace polysparse::tests
