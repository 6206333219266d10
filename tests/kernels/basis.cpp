#include "basis/basis.hpp"

#include <algorithm>
#include <vector>

#include "brute_force.hpp"
#include "checks.hpp"

namespace polysparse::tests {
namespace {

void test_simplex() {
    subject = "simplex";
    for (int64_t k = 1; k <= 66; ++k)
        for (int64_t n = -2; n + k <= 67; ++n)  // up to C(66, 33), the last of its kind below 2^64
            check(simplex(k, n) == count_monomials(n, k, false), "small");
    check(simplex(1, INT64_MAX) == INT64_MAX, "wide line");
    check(simplex(2, 6'000'000'000) == count_monomials(6'000'000'000, 2, false), "wide triangle");
    check(simplex(3, 4'800'000) == count_monomials(4'800'000, 3, false), "wide tetrahedron");
}

void test_every_column(const Basis& basis) {
    int64_t column = basis.include_bias;
    std::vector<int64_t> found(basis.highest);
    for (int64_t d = basis.lowest; d <= basis.highest; ++d)
        each_tuple(basis.n_features, d, basis.interaction_only, [&](const auto& tuple) {
            check(basis.rank(tuple.data(), d) == column, "rank");
            check(basis.unrank(column, found.data()) == d, "unrank: degree");
            check(std::equal(tuple.begin(), tuple.end(), found.begin()), "unrank: tuple");
            ++column;
        });
    check(column == basis.n_columns(), "number of columns");
}

void test_some_columns(const Basis& basis) {
    const int64_t n = basis.n_columns();
    for (int64_t i = 0; i < 400; ++i) {
        int64_t column = i < 5 ? i : i < 10 ? n - i + 4 : random_bits() % n;
        std::vector<int64_t> tuple(basis.highest);
        tuple.resize(basis.unrank(column, tuple.data()));
        if (tuple.empty()) continue;
        check(std::ranges::is_sorted(tuple), "unrank: increasing");
        check(tuple.front() >= 0 && tuple.back() < basis.n_features, "unrank: range");
        check(basis.rank(tuple.data(), std::ssize(tuple)) == column, "round trip");
    }
}

}  // namespace

void test_basis() {
    test_simplex();
    for_each_basis({0, 1, 2, 5, 8}, 5, test_every_column);
    test_some_columns(make_basis(INT64_MAX - 1, 1, 1, false, true));
    test_some_columns(make_basis(INT64_MAX, 1, 1, false, false));
    test_some_columns(make_basis(4'000'000'000, 0, 2, false, true));
    test_some_columns(make_basis(3'800'000, 3, 3, false, false));
    test_some_columns(make_basis(100, 97, 99, true, true));
}

}  // namespace polysparse::tests
