#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "brute_force.hpp"
#include "checks.hpp"
#include "expand/alike_rows.hpp"
#include "expand/dense.hpp"
#include "expand/fill.hpp"
#include "expand/row_offsets.hpp"
#include "matrix/inspect.hpp"

namespace polysparse::tests {
namespace {

/// So many rows that threads share them, with one that is long, or falls, where shares meet.
void test_shared_rows() {
    subject = "rows, shared";
    const Basis basis = make_basis(7, 1, 2, false, true);
    const int64_t n_rows = 4 << 16;
    for (const int64_t place : {int64_t{0}, n_rows / 4 - 1, n_rows / 4, n_rows - 1}) {
        Matrix<int32_t, int32_t, float> x{7, {0}, {}, {}};
        for (int64_t r = 0; r < n_rows; ++r) {
            const int32_t n = r == place ? 7 : static_cast<int32_t>(r % 3);
            for (int32_t i = 0; i < n; ++i) {
                x.columns.push_back(i);
                x.values.push_back(static_cast<float>(i + 1));
            }
            x.row_offsets.push_back(x.row_offsets.back() + n);
        }
        std::vector<std::vector<int64_t>> filled;
        for (const int64_t n_threads : {1, 3, 4}) {
            std::vector<int64_t> offsets(n_rows + 1);
            fill_row_offsets(basis, x.row_offsets.data(), n_rows, x.columns.data(), offsets.data(),
                             n_threads);
            std::vector<int64_t> columns(offsets.back());
            std::vector<float> values(offsets.back());
            const Slots<int64_t, float> out{columns.data(), values.data()};
            check(fill(basis, x.view(), offsets.data(), out, n_threads, 5, StopAt{-1}), "fill");
            offsets.insert(offsets.end(), columns.begin(), columns.end());
            offsets.insert(offsets.end(), values.begin(), values.end());
            filled.push_back(offsets);
            check(filled.back() == filled.front(), "the same for any number of threads");
        }
        x.row_offsets[place + 1] = -1;
        const CsrReport report = inspect(x.view(), std::ssize(x.columns), 4);
        check(report.fault == CsrFault::falling_offset && report.where == place, "falling offset");
    }
}

/// Only offsets are read, so the rows can be long.
template <class Offset, class OutOffset>
void test_count(const Basis& basis) {
    std::vector<Offset> offsets{0};
    std::vector<OutOffset> expected{0};
    std::map<int64_t, int64_t> lengths;
    for (const int n : {3, 0, 2000, 255, 256, 1023, 1024, 1025, 2000, 0, 1, 3, 1024}) {
        ++lengths[n];
        offsets.push_back(offsets.back() + n);
        uint64_t size = basis.include_bias;
        for (int64_t d = basis.lowest; d <= basis.highest; ++d)
            size += count_monomials(n, d, basis.interaction_only);
        expected.push_back(static_cast<OutOffset>(expected.back() + size));
    }
    const std::vector<std::pair<int64_t, int64_t>> sorted(lengths.begin(), lengths.end());
    const int64_t n_rows = std::ssize(offsets) - 1;
    check(count_row_lengths(offsets.data(), n_rows) == sorted, "row lengths");
    Guarded<OutOffset> out(std::ssize(offsets), 3);
    const int32_t* const no_columns = nullptr;
    fill_row_offsets(basis, offsets.data(), n_rows, no_columns, out.data(), 2);
    out.check_against(expected, true, "row offsets");
}

/// One fill. Returns whether it went through rather than being stopped.
template <class X, class OutIndex, class Value>
bool check_fill(const Basis& basis, const X& x, const Matrix<OutIndex, OutIndex, Value>& expected,
                int64_t n_threads, int64_t wanted, StopAt stop) {
    const int64_t n = std::ssize(expected.columns), n_guards = n_threads == 1 ? 0 : 5;
    Guarded<OutIndex> columns(n, n_guards);
    Guarded<Value> values(n, n_guards);
    const Slots<OutIndex, Value> out{columns.data(), values.data()};
    const bool whole =
        fill(basis, x.view(), expected.row_offsets.data(), out, n_threads, wanted, std::ref(stop));
    check(whole ? stop.n < 0 || stop.n_calls < stop.n : stop.n_calls == stop.n, "fill: stop");
    columns.check_against(expected.columns, whole, "fill: columns");
    values.check_against(expected.values, whole, "fill: values");
    return whole;
}

/// Tasks of a few outputs divide nearly every row, tasks of many none.
template <class Offset, class Index, class OutIndex, class Value>
void test_fill(const Basis& basis) {
    const auto x = random_matrix<Offset, Index, Value>(10, basis.n_features, 4);
    const auto expected = expand_by_brute_force<OutIndex>(basis, x);
    Guarded<OutIndex> offsets(x.n_rows() + 1, 3);
    fill_row_offsets(basis, x.row_offsets.data(), x.n_rows(), x.columns.data(), offsets.data(), 2);
    offsets.check_against(expected.row_offsets, true, "row offsets");
    for (const int64_t n_threads : {1, 2, 3, 8})
        for (const int64_t wanted : {0, 1, 5, 30, 400})
            check(check_fill(basis, x, expected, n_threads, wanted, StopAt{-1}), "fill");
}

/// Rows that are alike, also as another thread may change them.
template <class Offset, class Index, class OutIndex, class Value>
void test_alike(const Basis& unknown) {
    for_each_alike<Offset, Index, Value>(unknown, [&](const Basis& basis, const auto& x) {
        const RowsInCommon rows =
            compare_groups(unknown, x.row_offsets.data(), x.n_rows(), x.columns.data(), 2);
        check(rows.row_groups == basis.row_groups && rows.are_distinct == basis.rows_are_distinct,
              "what rows have in common");
        const auto expected = expand_by_brute_force<OutIndex>(basis, x);
        Guarded<OutIndex> offsets(x.n_rows() + 1, 3);
        fill_row_offsets(basis, x.row_offsets.data(), x.n_rows(), x.columns.data(), offsets.data(),
                         2);
        offsets.check_against(expected.row_offsets, true, "row offsets");
        for (const int64_t n_threads : {1, 3})
            for (const int64_t wanted : {0, 1, 30})
                check(check_fill(basis, x, expected, n_threads, wanted, StopAt{-1}), "fill");
        for_each_change(x, [&](const auto& changed) {
            Guarded<OutIndex> columns(std::ssize(expected.columns), 5);
            Guarded<Value> values(std::ssize(expected.values), 5);
            const Slots<OutIndex, Value> out{columns.data(), values.data()};
            check(fill(basis, changed.view(), expected.row_offsets.data(), out, 2, 0, StopAt{-1}),
                  "fill");
            columns.check_against({}, false, "fill: guards");
            values.check_against({}, false, "fill: guards");
        });
    });
}

/// Stops at every task in turn, so that both the rows and each degree of a long row are cut short.
void test_stopped_fill(const Basis& basis) {
    const auto x = random_matrix<int32_t, int32_t, double>(9, basis.n_features, 4);
    const auto expected = expand_by_brute_force<int32_t>(basis, x);
    int64_t n_stopped = 0;
    for (int64_t n = 1; n < 60; ++n) {
        n_stopped += !check_fill(basis, x, expected, 1, 40, StopAt{n});
        check_fill(basis, x, expected, 3, 40, StopAt{n});
    }
    check(20 < n_stopped && n_stopped < 59, "fill: stopped at every task, then no more");
}

/// Lines of the output are one longer than need be: what lies between them is a guard zone too.
template <class Value>
void test_dense(const Basis& basis, int64_t n_rows) {
    const int64_t n_in = basis.n_features, n_out = basis.n_columns();
    const auto x = random_matrix<int32_t, int32_t, Value>(n_rows, n_in, 1);
    const auto expected = expand_by_brute_force<int64_t>(basis, x);
    for (const bool by_rows : {true, false}) {
        const int64_t row_step = by_rows ? n_out + 1 : 1, column_step = by_rows ? 1 : n_rows + 1;
        const int64_t size = by_rows ? n_rows * row_step : n_out * column_step;
        std::vector<Value> laid_out(size, Guarded<Value>::poison);
        for (int64_t t = 0; t < n_rows * n_out; ++t)
            laid_out[t / n_out * row_step + t % n_out * column_step] = expected.values[t];
        for (const int64_t n_threads : {1, 3}) {
            Guarded<Value> out(size, n_threads == 1 ? 0 : 5);
            const DenseView<const Value> from{x.values.data(), n_in, 1};
            const DenseView<Value> to{out.data(), row_step, column_step};
            check(fill_dense(basis, from, to, n_rows, n_threads, StopAt{-1}), "fill_dense");
            out.check_against(laid_out, true, by_rows ? "dense, by rows" : "dense, by columns");
        }
    }
}

}  // namespace

void test_expand() {
    test_shared_rows();
    for_each_basis({2000}, 2, test_count<int32_t, int32_t>);
    for_each_basis({2000}, 3, test_count<int64_t, int64_t>);

    for_each_basis({0, 1, 9}, 4, test_fill<int32_t, int32_t, int32_t, double>);
    for_each_basis({7}, 5, test_fill<int64_t, int64_t, int64_t, double>);
    for_each_basis({8}, 3, test_fill<int32_t, int64_t, int32_t, float>);
    for_each_basis({8}, 3, test_fill<int64_t, int32_t, int64_t, float>);
    test_fill<int32_t, int64_t, int64_t, double>(make_basis(4'000'000'000, 0, 2, false, true));
    // The degrees below the lowest have far more than 2^64 monomials, which has to cancel out.
    test_fill<int32_t, int32_t, int32_t, double>(make_basis(70, 68, 70, true, true));

    for_each_grouped_basis(4, test_alike<int32_t, int32_t, int32_t, double>);
    for_each_grouped_basis(3, test_alike<int64_t, int64_t, int64_t, float>);
    for_each_grouped_basis(3, test_alike<int32_t, int32_t, int64_t, double>);

    test_stopped_fill(make_basis(9, 2, 4, true, true));
    test_stopped_fill(make_basis(9, 1, 3, false, false));
    for_each_basis({1, 6}, 3, [](const Basis& basis) { test_dense<float>(basis, 600); });
    test_dense<double>(make_basis(12, 3, 4, false, true), 300);
}

}  // namespace polysparse::tests
