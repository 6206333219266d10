#include <cmath>
#include <utility>

#include "brute_force.hpp"
#include "checks.hpp"
#include "matrix/inspect.hpp"

namespace polysparse::tests {
namespace {

template <class Offset, class Index, class Value>
void test_inspect() {
    subject = "inspect";
    using X = Matrix<Offset, Index, Value>;
    const auto inspected = [](const auto& change) {
        X x{5, {0, 2, 2, 5, 6}, {1, 4, 0, 2, 4, 4}, {1, 0, 3, 4, Value(-0.0), 6}};
        change(x);
        return inspect(x.view(), std::ssize(x.columns), 2);
    };
    const auto check_fault = [&](CsrFault fault, int64_t where, const auto& change) {
        const CsrReport report = inspected(change);
        check(report.fault == fault && report.where == where, "fault and place");
    };
    const CsrReport report = inspected([](X&) {});
    check(report.fault == CsrFault::none && report.increasing && report.stored_zeros == 2, "good");
    check(report.finite, "finite");
    for (const Value value : {Value(INFINITY), Value(-INFINITY), Value(NAN)})
        for (const size_t t : {0, 5})
            check(!inspected([&](X& x) { x.values[t] = value; }).finite, "not finite");
    check(inspected([](X& x) { x.n_columns = INT64_MAX; }).increasing, "wide");
    check(inspected([](X& x) { x = {0}; }).increasing, "empty");
    check(!inspected([](X& x) { std::swap(x.columns[2], x.columns[3]); }).increasing, "unsorted");
    check(!inspected([](X& x) { x.columns[3] = 4; }).increasing, "twice the same");
    check_fault(CsrFault::first_offset, 0, [](X& x) { x.row_offsets[0] = -1; });
    check_fault(CsrFault::falling_offset, 2, [](X& x) { x.row_offsets[3] = 1; });
    check_fault(CsrFault::last_offset, 4, [](X& x) { x.row_offsets[4] = 7; });
    check_fault(CsrFault::column_range, 3, [](X& x) { x.columns[3] = 5; });
    check_fault(CsrFault::column_range, 5, [](X& x) { x.columns[5] = -1; });
    check_fault(CsrFault::column_range, 0, [](X& x) { x.n_columns = 0; });
}

/// So many stored values that threads share them; a change must be seen also where shares meet.
void test_shared_inspect() {
    subject = "inspect, shared";
    auto x = random_matrix<int32_t, int64_t, float>(15'000, 9, 4);
    const int64_t share = 1 << 14;
    for (int64_t t = share - 3; t < share + 3; ++t)
        for (int64_t column = -1; column <= 9; ++column) {
            const int64_t before = std::exchange(x.columns[t], column);
            bool increasing = true;
            for (int64_t r = 0; r < x.n_rows(); ++r)
                for (int64_t u = x.row_offsets[r] + 1; u < x.row_offsets[r + 1]; ++u)
                    increasing &= x.columns[u - 1] < x.columns[u];
            const CsrReport report = inspect(x.view(), std::ssize(x.columns), 3);
            const bool inside = column >= 0 && column < 9;
            check(report.fault == (inside ? CsrFault::none : CsrFault::column_range), "fault");
            check(inside ? report.increasing == increasing : report.where == t,
                  "increasing, or place");
            x.columns[t] = before;
        }
}

}  // namespace

void test_matrix() {
    test_inspect<int32_t, int32_t, float>();
    test_inspect<int64_t, int32_t, double>();
    test_inspect<int32_t, int64_t, double>();
    test_shared_inspect();
}

}  // namespace polysparse::tests
