#include <cmath>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "brute_force.hpp"
#include "checks.hpp"
#include "matrix/distinct.hpp"
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

/// Values that differ in high or low bits alone, among them 0, and tables that grow several times.
void test_number_distinct() {
    subject = "number_distinct";
    for (const int64_t n_values : {0, 1, 47, 48, 49, 1000, 30'000})
        for (const int shift : {0, 4, 48}) {
            std::vector<uint64_t> values;
            for (int64_t i = 0; i < 3 * n_values; ++i)
                values.push_back(static_cast<uint64_t>(i * i % (n_values + 7)) << shift);
            std::map<uint64_t, int32_t> expected;
            std::vector<int64_t> expected_firsts;
            std::vector<int32_t> expected_numbers;
            for (size_t i = 0; i < values.size(); ++i) {
                const auto next = static_cast<int32_t>(expected.size());
                const auto [place, is_new] = expected.try_emplace(values[i], next);
                if (is_new) expected_firsts.push_back(static_cast<int64_t>(i));
                expected_numbers.push_back(place->second);
            }
            const int64_t n = std::ssize(expected_firsts);
            std::vector<int32_t> numbers(values.size());
            std::vector<int64_t> firsts(n);
            const auto number = [&](int64_t most) {
                return number_distinct(values.data(), std::ssize(values), most, numbers.data(),
                                       firsts.data());
            };
            check(number(n) == n && numbers == expected_numbers && firsts == expected_firsts,
                  "numbers");
            check(n == 0 || number(n - 1) == -1, "too many");
        }
}

}  // namespace

void test_matrix() {
    test_inspect<int32_t, int32_t, float>();
    test_inspect<int64_t, int32_t, double>();
    test_inspect<int32_t, int64_t, double>();
    test_shared_inspect();
    test_number_distinct();
}

}  // namespace polysparse::tests
