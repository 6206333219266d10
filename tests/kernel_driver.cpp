// Every kernel, without Python, on random small matrices, judged by brute force. It is meant for
// the sanitizers, see sanitize.sh. Stops at the first failure.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <random>
#include <set>
#include <string>

#include "dense.hpp"
#include "fill.hpp"

using namespace polysparse;

namespace {

std::mt19937_64 random_bits(1);
std::string subject;  // of the check, for its message
long long n_passed = 0;

void check(bool holds, const char* what) {
    if (!holds) {
        std::fprintf(stderr, "FAILED: %s: %s\n", subject.c_str(), what);
        std::printf("%lld passed, 1 failed\n", n_passed);
        std::exit(1);
    }
    ++n_passed;
}

/// Monomials of one degree in n features, modulo 2^64, by the school formula for C(n, k).
uint64_t count_monomials(int64_t n, int64_t degree, bool interaction_only) {
    if (n <= 0 || (interaction_only && degree > n)) return 0;
    const int64_t others = interaction_only ? n - degree : n - 1;
    const auto [k, rest] = std::minmax(degree, others);
    unsigned __int128 value = 1;
    for (int64_t i = 1; i <= k; ++i) value = value * (static_cast<uint64_t>(rest) + i) / i;
    return static_cast<uint64_t>(value);
}

/// As basis.py makes it.
Basis make_basis(int64_t n, int64_t low, int64_t high, bool interaction_only, bool bias) {
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

int64_t count_columns(const Basis& basis) {
    if (basis.highest < basis.lowest) return basis.include_bias;
    return static_cast<int64_t>(basis.degree_end[basis.highest]);
}

/// Calls visit for every rising k-tuple below n (strictly, if distinct), in lexicographic order.
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
    CsrView<Offset, Index, Value> view() const {
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

template <class OutIndex, class Offset, class Index, class Value>
auto expand_by_brute_force(const Basis& basis, const Matrix<Offset, Index, Value>& x) {
    Matrix<OutIndex, OutIndex, Value> out{count_columns(basis)};
    std::vector<int64_t> columns(basis.highest);
    for (int64_t r = 0; r < x.n_rows(); ++r) {
        const int64_t start = x.row_offsets[r], n = x.row_offsets[r + 1] - start;
        out.columns.insert(out.columns.end(), basis.include_bias, 0);
        out.values.insert(out.values.end(), basis.include_bias, 1);
        for (int64_t d = basis.lowest; d <= basis.highest; ++d)
            each_tuple(n, d, basis.interaction_only, [&](const auto& tuple) {
                Value product = 1;
                for (int64_t m = d; m-- > 0;) product = x.values[start + tuple[m]] * product;
                for (int64_t m = 0; m < d; ++m) columns[m] = x.columns[start + tuple[m]];
                out.columns.push_back(static_cast<OutIndex>(basis.rank(columns.data(), d)));
                out.values.push_back(product);
            });
        out.row_offsets.push_back(static_cast<OutIndex>(out.columns.size()));
    }
    return out;
}

/// A poisoned output array between two guard zones that nobody may write. Without guard zones it
/// lies between the sanitizer's own, which notice reads as well.
template <class T>
class Guarded {
  public:
    Guarded(int64_t n, int64_t n_guards) : n_guards_(n_guards), all_(n + 2 * n_guards, poison) {}
    T* data() { return all_.data() + n_guards_; }

    /// Checks that the guard zones are untouched and, if `filled`, the rest bit for bit.
    void check_against(const std::vector<T>& expected, bool filled, const char* what) const {
        std::vector<T> whole = all_;
        std::fill_n(whole.begin(), n_guards_, poison);
        std::fill_n(whole.rbegin(), n_guards_, poison);
        if (filled) std::ranges::copy(expected, whole.begin() + n_guards_);
        const auto same = [](const T& a, const T& b) { return !std::memcmp(&a, &b, sizeof a); };
        check(std::ranges::equal(whole, all_, same), what);
    }
    static constexpr T poison = -77;

  private:
    int64_t n_guards_;
    std::vector<T> all_;
};

/// Says "stop" when asked for the n-th time.
struct StopAt {
    int64_t n;
    int64_t asked = 0;
    bool operator()() { return ++asked == n; }
};

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
    check(column == count_columns(basis), "number of columns");
}

void test_some_columns(const Basis& basis) {
    const int64_t n = count_columns(basis);
    for (int64_t i = 0; i < 400; ++i) {
        int64_t column = i < 5 ? i : i < 10 ? n - i + 4 : random_bits() % n;
        std::vector<int64_t> tuple(basis.highest);
        tuple.resize(basis.unrank(column, tuple.data()));
        if (tuple.empty()) continue;
        check(std::ranges::is_sorted(tuple), "unrank: rising");
        check(tuple.front() >= 0 && tuple.back() < basis.n_features, "unrank: range");
        check(basis.rank(tuple.data(), std::ssize(tuple)) == column, "round trip");
    }
}

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
    check(report.fault == CsrFault::none && report.rising && report.stored_zeros == 2, "good");
    check(inspected([](X& x) { x.n_columns = INT64_MAX; }).rising, "wide");
    check(inspected([](X& x) { x = {0}; }).rising, "empty");
    check(!inspected([](X& x) { std::swap(x.columns[2], x.columns[3]); }).rising, "unsorted");
    check(!inspected([](X& x) { x.columns[3] = 4; }).rising, "twice the same");
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
            bool rising = true;
            for (int64_t r = 0; r < x.n_rows(); ++r)
                for (int64_t u = x.row_offsets[r] + 1; u < x.row_offsets[r + 1]; ++u)
                    rising &= x.columns[u - 1] < x.columns[u];
            const CsrReport report = inspect(x.view(), std::ssize(x.columns), 3);
            const bool inside = column >= 0 && column < 9;
            check(report.fault == (inside ? CsrFault::none : CsrFault::column_range), "fault");
            check(inside ? report.rising == rising : report.where == t, "rising, or place");
            x.columns[t] = before;
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
    check(count_row_lengths(offsets.data(), std::ssize(offsets) - 1) == sorted, "row lengths");
    Guarded<OutOffset> out(std::ssize(offsets), 3);
    fill_row_offsets(basis, offsets.data(), std::ssize(offsets) - 1, out.data());
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
        fill(basis, x.view(), expected.row_offsets.data(), out, n_threads, wanted, stop);
    check(whole ? stop.n < 0 || stop.asked < stop.n : stop.asked == stop.n, "fill: stop");
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
    fill_row_offsets(basis, x.row_offsets.data(), x.n_rows(), offsets.data());
    offsets.check_against(expected.row_offsets, true, "row offsets");
    for (const int64_t n_threads : {1, 2, 3, 8})
        for (const int64_t wanted : {0, 1, 5, 30, 400})
            check(check_fill(basis, x, expected, n_threads, wanted, StopAt{-1}), "fill");
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
    const int64_t n_in = basis.n_features, n_out = count_columns(basis);
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
            StopAt never{-1};
            check(fill_dense(basis, from, to, n_rows, n_out, n_threads, never), "fill_dense");
            out.check_against(laid_out, true, by_rows ? "dense, by rows" : "dense, by columns");
        }
    }
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

}  // namespace

int main() {
    test_simplex();
    for_each_basis({0, 1, 2, 5, 8}, 5, test_every_column);
    test_some_columns(make_basis(INT64_MAX - 1, 1, 1, false, true));
    test_some_columns(make_basis(INT64_MAX, 1, 1, false, false));
    test_some_columns(make_basis(4'000'000'000, 0, 2, false, true));
    test_some_columns(make_basis(3'800'000, 3, 3, false, false));
    test_some_columns(make_basis(100, 97, 99, true, true));

    test_inspect<int32_t, int32_t, float>();
    test_inspect<int64_t, int32_t, double>();
    test_inspect<int32_t, int64_t, double>();
    test_shared_inspect();
    for_each_basis({2000}, 2, test_count<int32_t, int32_t>);
    for_each_basis({2000}, 3, test_count<int64_t, int64_t>);

    for_each_basis({0, 1, 9}, 4, test_fill<int32_t, int32_t, int32_t, double>);
    for_each_basis({7}, 5, test_fill<int64_t, int64_t, int64_t, double>);
    for_each_basis({8}, 3, test_fill<int32_t, int64_t, int32_t, float>);
    for_each_basis({8}, 3, test_fill<int64_t, int32_t, int64_t, float>);
    test_fill<int32_t, int64_t, int64_t, double>(make_basis(4'000'000'000, 0, 2, false, true));
    // The degrees below the lowest have far more than 2^64 monomials, which has to cancel out.
    test_fill<int32_t, int32_t, int32_t, double>(make_basis(70, 68, 70, true, true));

    test_stopped_fill(make_basis(9, 2, 4, true, true));
    test_stopped_fill(make_basis(9, 1, 3, false, false));
    for_each_basis({1, 6}, 3, [](const Basis& basis) { test_dense<float>(basis, 600); });
    test_dense<double>(make_basis(12, 3, 4, false, true), 300);
    std::printf("%lld passed, 0 failed\n", n_passed);
}
