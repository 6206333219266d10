// Every kernel, without Python, on random small matrices, judged by brute force. It is meant for
// the sanitizers, see sanitize.sh. Stops at the first failure.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <new>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <thread>

#include "apply/apply.hpp"
#include "apply/apply_listed.hpp"
#include "apply/gram.hpp"
#include "expand/dense.hpp"
#include "expand/fill.hpp"
#include "expand/row_offsets.hpp"
#include "losses/exponentials.hpp"
#include "losses/log_losses.hpp"
#include "losses/vectors.hpp"
#include "matrix/inspect.hpp"
#include "observe/number_set.hpp"
#include "observe/observe.hpp"
#include "observe/tally.hpp"
#include "platform/crew.hpp"
#include "platform/slabs.hpp"
#include "platform/threads.hpp"
#include "select/append_rows.hpp"
#include "select/fill_chosen.hpp"
#include "select/fill_hashed.hpp"
#include "select/hash.hpp"
#include "select/lookup.hpp"

using namespace polysparse;

namespace {

std::atomic<int64_t> n_bytes_asked_for = 0;  // of new, since the program began

}  // namespace

// Compilers that see into one of a pair alone take the other for a mismatch.
__attribute__((noinline)) void* operator new(size_t n) {
    n_bytes_asked_for += static_cast<int64_t>(n);
    if (void* const memory = std::malloc(n)) return memory;
    throw std::bad_alloc();
}
void* operator new[](size_t n) {
    return operator new(n);
}
__attribute__((noinline)) void operator delete(void* memory) noexcept {
    std::free(memory);
}
__attribute__((noinline)) void operator delete(void* memory, size_t) noexcept {
    std::free(memory);
}
__attribute__((noinline)) void operator delete[](void* memory) noexcept {
    std::free(memory);
}
__attribute__((noinline)) void operator delete[](void* memory, size_t) noexcept {
    std::free(memory);
}

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

template <class OutIndex, class Offset, class Index, class Value>
auto expand_by_brute_force(const Basis& basis, const Matrix<Offset, Index, Value>& x) {
    Matrix<OutIndex, OutIndex, Value> out{basis.n_columns()};
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
    check(column == basis.n_columns(), "number of columns");
}

void test_some_columns(const Basis& basis) {
    const int64_t n = basis.n_columns();
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
    check(report.finite, "finite");
    for (const Value value : {Value(INFINITY), Value(-INFINITY), Value(NAN)})
        for (const size_t t : {0, 5})
            check(!inspected([&](X& x) { x.values[t] = value; }).finite, "not finite");
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
            fill_row_offsets(basis, x.row_offsets.data(), n_rows, offsets.data(), n_threads);
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
    fill_row_offsets(basis, offsets.data(), n_rows, out.data(), 2);
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
    fill_row_offsets(basis, x.row_offsets.data(), x.n_rows(), offsets.data(), 2);
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

/// Columns and counts that a tally has, through `choose` and `write`.
template <class Count>
std::pair<std::vector<int64_t>, std::vector<int64_t>> written(Tally<Count>& tally,
                                                              uint64_t min_count, int64_t most) {
    tally.settle();
    const Kept kept = tally.choose(min_count, most, 2);
    std::vector<int64_t> columns(kept.n_columns), counts(kept.n_columns);
    tally.write(kept, columns.data(), counts.data(), 3);
    return {columns, counts};
}

/// The same of a map, by sorting.
std::pair<std::vector<int64_t>, std::vector<int64_t>> chosen_by_brute_force(
    const std::map<int64_t, int64_t>& all, int64_t min_count, int64_t most) {
    std::vector<std::pair<int64_t, int64_t>> by_count;  // count, falling; then column
    for (const auto& [column, count] : all)
        if (count >= min_count) by_count.emplace_back(-count, column);
    std::ranges::sort(by_count);
    if (std::ssize(by_count) > most) by_count.resize(most);
    std::map<int64_t, int64_t> kept;
    for (const auto& [count, column] : by_count) kept[column] = -count;
    std::pair<std::vector<int64_t>, std::vector<int64_t>> out;
    for (const auto& [column, count] : kept) {
        out.first.push_back(column);
        out.second.push_back(count);
    }
    return out;
}

/// Small counters overflow all the time; runs of many sizes are merged.
template <class Count>
void test_tally(int64_t n_batches, int64_t n_columns, int64_t largest_count) {
    subject = "tally";
    Tally<Count> tally, other;
    std::map<int64_t, int64_t> expected;
    for (int64_t b = 0; b < n_batches; ++b) {
        std::set<int64_t> columns;
        const auto n = static_cast<size_t>(random_bits() % (2 * n_columns / 3));
        while (columns.size() < n) columns.insert(random_bits() % n_columns);
        const std::vector<int64_t> sorted(columns.begin(), columns.end());
        std::vector<int64_t> counts;
        for (const int64_t column : sorted) {
            counts.push_back(1 + random_bits() % largest_count);
            expected[column] += counts.back();
        }
        Tally<Count>& to = b % 3 == 0 ? other : tally;
        to.add_counts(sorted.data(), counts.data(), std::ssize(sorted));
    }
    // Copies share their runs; whatever is merged into one, the others do not change.
    Tally<Count> shared = other, copy = tally;
    const auto of_other = written(shared, 1, INT64_MAX);
    const int64_t n_other = other.n_entries();
    copy.add_all_of(other);
    check(other.n_entries() == n_other, "the other stays as it is");
    tally.take_all_of(std::move(other));
    tally.settle();
    check(written(shared, 1, INT64_MAX) == of_other, "a tally whose runs were merged into others");
    const int64_t n = std::ssize(expected);
    for (const int64_t min_count : {int64_t{1}, int64_t{2}, largest_count, 40 * largest_count})
        for (const int64_t most : {int64_t{1}, n / 3, n - 1, n, INT64_MAX}) {
            const auto wanted = chosen_by_brute_force(expected, min_count, most);
            check(written(tally, min_count, most) == wanted, "columns and counts");
            check(written(copy, min_count, most) == wanted, "columns and counts of a copy");
        }
    Tally<Count> empty;
    check(empty.n_entries() == 0 && written(empty, 1, 5).first.empty(), "nothing");
}

/// Every task is done once, whoever is on duty: nobody, a crew, one that was ended, one that is at
/// work for this thread or for another.
void test_crew() {
    subject = "crew";
    const auto run_all = [](int64_t n_tasks, const auto& also) {
        std::vector<std::atomic<int64_t>> done(n_tasks);
        run_tasks(n_tasks, 4, [&](int64_t worker, int64_t task) {
            ++done[task];
            also(worker, task);
        });
        return std::ranges::all_of(done, [](const auto& times) { return times == 1; });
    };
    const auto nothing = [](int64_t, int64_t) {};
    Crew crew;
    {
        const OnDuty duty(crew);
        for (int64_t round = 0; round < 300; ++round) {
            if (round % 100 == 50) crew.end();
            check(run_all(round % 7, nothing), "one piece of work after the other");
        }
        std::atomic<bool> holds{true};
        check(run_all(5,
                      [&](int64_t, int64_t) {
                          if (!run_all(3, nothing)) holds = false;
                      }) &&
                  holds,
              "work within work");
        std::thread other([&] {
            const OnDuty too(crew);
            for (int64_t round = 0; round < 100; ++round)
                if (!run_all(9, nothing)) holds = false;
        });
        for (int64_t round = 0; round < 100; ++round)
            if (!run_all(9, nothing)) holds = false;
        other.join();
        check(holds && Crew::on_duty() == &crew, "two threads at once");
        {
            Crew inner;
            const OnDuty for_a_while(inner);
            check(Crew::on_duty() == &inner && run_all(20, nothing), "a crew in place of another");
        }
        check(Crew::on_duty() == &crew, "the first is on duty again");
    }
    check(Crew::on_duty() == nullptr && run_all(50, nothing), "nobody is on duty");
}

/// Arrays of all sizes keep what is written to them, after their arena is gone and others are
/// freed.
void test_slabs() {
    subject = "slabs";
    using Array = std::vector<int64_t, SlabAllocator<int64_t>>;
    std::vector<Array> arrays;
    {
        std::vector<SlabArena> arenas(2);
        for (int64_t i = 0; i < 400; ++i) {
            const int64_t size = i % 7 == 0 ? i : i % 50 == 1 ? 400'000 : 5'000 + 100 * i;
            arrays.emplace_back(size, i, SlabAllocator<int64_t>(arenas[i % 2]));
        }
        arenas.emplace_back(std::move(arenas[0]));
    }
    const Array copy = arrays[2], moved = std::move(arrays[3]);
    run_tasks(200, 3, [&](int64_t, int64_t i) { arrays[2 * i] = {}; });
    for (int64_t i = 1; i < std::ssize(arrays); i += 2)
        check(std::ranges::count(arrays[i], i) == std::ssize(arrays[i]), "what was written");
    check(std::ranges::count(copy, 2) == 5'200 && std::ssize(moved) == 5'300, "copied and moved");
}

void test_number_set() {
    subject = "number set";
    for (const int64_t limit : {0, 1, 63, 64, 65, 4096, 300'000, 20'000'000}) {
        NumberSet set(limit);
        for (int64_t round = 0; round < 3; ++round) {
            std::set<uint32_t> expected;
            for (int64_t i = 0; i < std::min<int64_t>(limit, 500); ++i)
                expected.insert(i < 2 ? (i == 0 ? 0 : limit - 1) : random_bits() % limit);
            for (const uint32_t number : expected) set.insert(number);
            for (const uint32_t number : expected) set.insert(number);
            std::vector<uint32_t> found;
            set.drain([&](uint32_t number) { found.push_back(number); });
            check(std::ranges::equal(found, expected), "in order, once");
        }
    }
}

/// Asks for all that is chosen, for what is beside it, and for others; and for the first n of them.
template <class Lookup>
void check_lookup(const Lookup& lookup, const std::vector<int64_t>& chosen, int64_t n_basis) {
    std::set<int64_t> asked;
    for (const int64_t column : chosen)
        for (const int64_t other : {column - 1, column, column + 1})
            if (other >= 0 && other < n_basis && random_bits() % 4 != 0) asked.insert(other);
    for (int64_t i = 0; i < 50; ++i) asked.insert(static_cast<int64_t>(random_bits() % n_basis));
    const std::vector<int64_t> columns(asked.begin(), asked.end());
    std::vector<double> values(columns.size());
    for (size_t t = 0; t < values.size(); ++t) values[t] = static_cast<double>(t);
    for (const size_t n : {columns.size(), columns.size() / 2, size_t{1}, size_t{0}}) {
        std::vector<int32_t> places(n);
        std::vector<double> kept(n);
        const int64_t n_kept = lookup.template choose<double>(
            ConstSlots<int64_t, double>{columns.data(), values.data()}, n,
            Slots<int32_t, double>{places.data(), kept.data()});
        int64_t i = 0;
        for (size_t t = 0; t < n; ++t) {
            const auto found = std::ranges::lower_bound(chosen, columns[t]);
            if (found == chosen.end() || *found != columns[t]) continue;
            check(i < n_kept && places[i] == found - chosen.begin() && kept[i] == values[t],
                  "place and value");
            ++i;
        }
        check(i == n_kept, "how many are chosen");
    }
}

void test_lookups() {
    subject = "lookup";
    for (const int64_t n_basis : {int64_t{1}, int64_t{64}, int64_t{65}, int64_t{5000}, INT64_MAX})
        for (const int64_t wanted : {0, 1, 2, 3, 5, 17, 64, 700}) {
            std::set<int64_t> set;
            while (std::ssize(set) < std::min(wanted, n_basis))
                set.insert(static_cast<int64_t>(random_bits() % n_basis));
            const std::vector<int64_t> columns(set.begin(), set.end());
            check_lookup(HashLookup(columns.data(), std::ssize(columns)), columns, n_basis);
            if (n_basis < INT64_MAX)
                check_lookup(BitLookup(columns.data(), std::ssize(columns), n_basis), columns,
                             n_basis);
        }
    // Many that the hash sends to the last of 161 lines, which are followed by the first.
    std::vector<int64_t> crowded;
    for (int64_t column = 0; std::ssize(crowded) < 400; ++column) {
        uint64_t hash = static_cast<uint64_t>(column) * 0x9E3779B97F4A7C15;
        hash = (hash ^ (hash >> 32)) * 0xD1342543DE82EF95;
        if (((hash >> 32) * 161) >> 32 > 155) crowded.push_back(column);
    }
    check_lookup(HashLookup(crowded.data(), 400), crowded, INT64_MAX);
}

/// In how many rows each column of an expansion is.
template <class OutIndex, class Value>
std::map<int64_t, int64_t> count_rows(const Matrix<OutIndex, OutIndex, Value>& expanded) {
    std::map<int64_t, int64_t> counts;
    for (const OutIndex column : expanded.columns) ++counts[column];
    return counts;
}

/// Also of some rows that begin in the middle of the arrays.
template <class Offset, class Index, class Count>
void test_observe(const Basis& basis) {
    const auto x = random_matrix<Offset, Index, double>(14, basis.n_features, 5);
    for (const int64_t first : {0, 3}) {
        Matrix<Offset, Index, double> part = x;
        part.row_offsets.erase(part.row_offsets.begin(), part.row_offsets.begin() + first);
        const auto expected = count_rows(expand_by_brute_force<int64_t>(basis, part));
        for (const int64_t n_threads : {1, 2, 5})
            for (const int64_t wanted : {0, 1, 7})
                for (const int64_t least : {1, 2, 3, 20}) {
                    const CsrPattern rows{part.row_offsets.data(), part.n_rows(), x.columns.data()};
                    check(rows.can_be_observed(std::ssize(x.columns)), "can be observed");
                    Run<Count> run;
                    check(
                        observe(basis, rows, least, INT64_MAX, n_threads, wanted, StopAt{-1}, run),
                        "observe");
                    const auto kept = chosen_by_brute_force(expected, least, INT64_MAX);
                    check(size_of(run) == std::ssize(kept.first), "observe: size");
                    Tally<Count> tally;
                    tally.add(std::move(run));
                    check(written(tally, 1, INT64_MAX) == kept, "observe: columns and counts");
                }
    }
}

/// No recursion by degree: this one is deeper than a stack.
void test_observe_a_high_degree() {
    const int64_t degree = 60'000;
    const Basis basis = make_basis(1, 0, degree, false, true);
    const std::vector<int64_t> row_offsets{0, 1, 2};
    const std::vector<int32_t> columns{0, 0};
    for (const int64_t n_rows : {1, 2}) {
        const CsrPattern rows{row_offsets.data(), n_rows, columns.data()};
        Run<uint32_t> run;
        check(observe(basis, rows, 1, INT64_MAX, 1, 0, StopAt{-1}, run), "observe: a high degree");
        check(size_of(run) == degree + 1, "observe: monomials of a high degree");
    }
}

/// Nobody gets a part of it.
void test_stopped_and_full_observe(const Basis& basis) {
    const auto x = random_matrix<int32_t, int32_t, double>(30, basis.n_features, 3);
    const auto n = std::ssize(count_rows(expand_by_brute_force<int64_t>(basis, x)));
    const auto observed = [&](int64_t most, int64_t n_threads, StopAt stop) {
        Tally<> tally;
        const CsrPattern rows{x.row_offsets.data(), x.n_rows(), x.columns.data()};
        const Observed observed = observe_into(tally, basis, rows, 1, most, n_threads, 2, stop);
        check((tally.n_entries() > 0) == (observed == Observed::all), "observe: all or nothing");
        return observed;
    };
    int64_t n_stopped = 0;
    for (int64_t at = 1; at < 40; ++at) {
        n_stopped += observed(INT64_MAX, 1, StopAt{at}) == Observed::stopped;
        observed(INT64_MAX, 3, StopAt{at});
    }
    check(5 < n_stopped, "observe: stopped");
    check(observed(n, 3, StopAt{-1}) == Observed::all, "observe: just enough");
    for (const int64_t most : {int64_t{0}, n / 2})
        check(observed(most, 3, StopAt{-1}) == Observed::full, "observe: too many");
}

/// Appends rows once; `n_slots` may be too few.
template <class X, class Value, class Fill>
Appending check_appended(const X& x, const Matrix<int64_t, int32_t, Value>& expected,
                         const Fill& fill, int64_t n_threads, int64_t wanted, int64_t n_slots,
                         StopAt stop) {
    Guarded<int64_t> offsets(x.n_rows() + 1, 3);
    Guarded<int32_t> columns(n_slots, 3);
    Guarded<Value> values(n_slots, 3);
    const AppendTo<Value> out{offsets.data(), {columns.data(), values.data()}, n_slots};
    const Appending appending = fill(x.view(), out, n_threads, wanted, stop);
    if (appending == Appending::whole) {
        offsets.check_against(expected.row_offsets, true, "appended: offsets");
        columns.check_against(expected.columns, true, "appended: columns");
        values.check_against(expected.values, true, "appended: values");
    }
    return appending;
}

template <class X, class Value, class Fill>
void check_every_appending(const X& x, const Matrix<int64_t, int32_t, Value>& expected,
                           const Fill& fill) {
    const int64_t n = std::ssize(expected.columns);
    const auto append = [&](int64_t n_threads, int64_t wanted, int64_t n_slots, StopAt stop) {
        return check_appended(x, expected, fill, n_threads, wanted, n_slots, stop);
    };
    for (const int64_t n_threads : {1, 2, 8})
        for (const int64_t wanted : {0, 1, 30})
            check(append(n_threads, wanted, n, StopAt{-1}) == Appending::whole, "appended");
    for (const int64_t n_slots : {int64_t{0}, n / 2, n - 1})
        if (n_slots >= 0 && n_slots < n)
            check(append(3, 1, n_slots, StopAt{-1}) == Appending::full, "appended: full");
    check(append(1, 1, n, StopAt{1}) == Appending::stopped, "appended: stopped");
    check(append(3, 1, n, StopAt{2}) != Appending::full, "appended: stopped, unless too late");
}

/// Products with an expansion, and with its transpose, of one vector and of several: right, and the
/// same bits whoever makes them. `by`: which columns there are, the basis for all.
template <class X, class Index, class Value, class By>
void check_products(const Basis& basis, const By& by, const X& x,
                    const Matrix<int64_t, Index, Value>& expanded) {
    const int64_t n_outputs = std::ssize(expanded.values);
    std::uniform_real_distribution<Value> any(-2, 2);
    for (const int64_t k : {1, 11}) {
        std::vector<Value> coefficients(expanded.n_columns * k), weights(x.n_rows() * k);
        for (auto* vectors : {&coefficients, &weights})
            for (Value& number : *vectors) number = any(random_bits);
        // What each number should be, and the size of what is summed for it.
        std::vector<double> sums(weights.size()), sizes(weights.size(), 1e-30);
        std::vector<double> back_sums(coefficients.size()), back_sizes(coefficients.size(), 1e-30);
        for (int64_t r = 0; r < x.n_rows(); ++r)
            for (int64_t t = expanded.row_offsets[r]; t < expanded.row_offsets[r + 1]; ++t)
                for (int64_t c = 0; c < k; ++c) {
                    const int64_t i = r * k + c, j = expanded.columns[t] * k + c;
                    const double value = expanded.values[t];
                    sums[i] += value * coefficients[j];
                    sizes[i] += std::abs(value * coefficients[j]);
                    back_sums[j] += value * weights[i];
                    back_sizes[j] += std::abs(value * weights[i]);
                }
        const auto is_right = [](const auto& found, const auto& wanted, const auto& size) {
            for (size_t i = 0; i < found.size(); ++i)
                if (std::abs(found[i] - wanted[i]) > (sizeof(Value) == 4 ? 1e-4 : 1e-12) * size[i])
                    return false;
            return true;
        };
        const auto multiply = [&](int64_t n_threads, int64_t task, StopAt stop, auto& out,
                                  auto& back) {
            const Effort effort{n_outputs, n_threads, task};
            const VectorTable<const Value> from{coefficients.data(), k},
                from_rows{weights.data(), k};
            return apply<Value>(basis, by, x.view(), from, {out.data(), k}, effort, stop) &&
                   apply_transposed<Value>(basis, by, x.view(), from_rows, {back.data(), k}, effort,
                                           stop);
        };
        std::vector<Value> out(weights.size(), -7), back(coefficients.size());
        check(multiply(1, 0, {-1}, out, back), "products: not stopped");
        check(is_right(out, sums, sizes), "product");
        check(is_right(back, back_sums, back_sizes), "transposed product");
        for (const int64_t task : {0, 20}) {
            std::vector<Value> first, first_back;
            for (const int64_t n_threads : {1, 3}) {
                std::vector<Value> again(weights.size(), -7), back_again(coefficients.size());
                check(multiply(n_threads, task, {-1}, again, back_again), "products: threads");
                if (n_threads == 1) first = again, first_back = back_again;
                check(is_right(again, sums, sizes) && is_right(back_again, back_sums, back_sizes),
                      "products of threads");
                check(again == first && back_again == first_back, "products: same bits");
            }
        }
        check(n_outputs == 0 || !multiply(1, 1, {1}, out, back), "products: stopped");
    }
}

template <class Offset, class Index, class Value>
void test_products(const Basis& basis) {
    const auto x = random_matrix<Offset, Index, Value>(30, basis.n_features, 6);
    check_products(basis, basis, x, expand_by_brute_force<int64_t>(basis, x));
}

/// The functions are within three units in the last place of those of long doubles.
void test_exponentials() {
    subject = "exponentials";
    std::uniform_real_distribution<double> any(0, 1);
    const auto is_close = [](double found, long double wanted) {
        const auto rounded = static_cast<double>(wanted);
        return std::abs(found - wanted) <= 3 * (std::nextafter(rounded, 1e9) - rounded);
    };
    for (int64_t i = 0; i < 100'000; ++i) {
        const double x = 745 * std::pow(any(random_bits), 8), share = std::pow(any(random_bits), 8);
        const double large = 1 + std::pow(10, 9 * any(random_bits) - 6);
        check(is_close(exp_of_minus(x), std::exp(static_cast<long double>(-x))), "exp");
        check(is_close(log_1_plus(share), std::log1p(static_cast<long double>(share))), "log1p");
        check(is_close(log_of(large), std::log(static_cast<long double>(large))), "log");
    }
    check(exp_of_minus(0) == 1 && exp_of_minus(INFINITY) == 0 && std::isnan(exp_of_minus(NAN)),
          "exp at the ends");
    check(log_1_plus(0) == 0 && log_of(1) == 0 && std::isnan(log_1_plus(NAN)) &&
              std::isnan(log_of(NAN)),
          "log at the ends");
}

/// Rows of k scores, and vectors as long as all of them: the same bits whoever sums, and all stop.
void test_losses(int64_t n, int64_t k) {
    subject = std::to_string(n) + " rows of " + std::to_string(k) + " scores";
    std::uniform_real_distribution<double> any(-3, 3);
    const auto vector = [&](int64_t size) {
        std::vector<double> found(size);
        for (double& number : found) number = any(random_bits);
        return found;
    };
    const std::vector<double> scores = vector(n * k), change = vector(n * k), shifts = vector(k);
    std::vector<double> weights = vector(n);
    std::vector<int64_t> classes(n);
    for (int64_t r = 0; r < n; ++r) {
        weights[r] = std::abs(weights[r]);
        classes[r] = r % std::max<int64_t>(k, 2);
    }
    const ScoredRows rows{n, k, scores.data(), shifts.data(), classes.data(), weights.data()};
    std::vector<std::vector<double>> first;
    for (const int64_t n_threads : {1, 3}) {
        const StopRequest never = StopAt{-1};
        const Work work{n_threads, never};
        std::vector<double> residuals(n * k), curvatures(n * k),
            likely(n * std::max<int64_t>(k, 2));
        std::vector<double> sums(n_loss_sums(k)), more(sums.size()), range(2), curved(n * k),
            cross(k), singles(3), updated = scores, products(n * k);
        std::vector<double> squares = change, means = scores, raised(n * k), cleared = scores;
        const std::vector<double> totals(k, 2.5);
        const Change along{change.data(), shifts.data(), 0.5, curvatures.data()};
        bool is_done =
            k == 1 ? fill_two_classes(rows, residuals.data(), curvatures.data(), work) &&
                         fill_two_probabilities(n, scores.data(), likely.data(), work)
                   : fill_classes(rows, residuals.data(), curvatures.data(), likely.data(), work);
        const auto sum = k == 1 ? sum_two_classes : sum_classes;
        is_done = is_done && sum(rows, {}, sums.data(), range.data(), work) &&
                  sum(rows, along, more.data(), range.data(), work);
        if (k > 1) {
            const LikelyRows own{n, k, likely.data(), weights.data(), change.data(), shifts.data()};
            is_done = is_done && fill_curved(own, curved.data(), work) &&
                      sum_curved(own, cross.data(), work);
        }
        is_done = is_done && dot(n * k, scores.data(), change.data(), &singles[0], work) &&
                  weighted_squares(n, weights.data(), scores.data(), 0.5, &singles[1], work) &&
                  combine(n * k, 0.5, updated.data(), 2, change.data(), 0.1, work) &&
                  multiply(n * k, scores.data(), change.data(), 0.1, products.data(), work) &&
                  divide(n, scores.data(), weights.data(), curved.data(), &singles[2], work) &&
                  rescale(n * k, updated.data(), 0.5, 1, work) &&
                  raise_shifted(n * k, scores.data(), 0.5, raised.data(), work) &&
                  centre(n, k, squares.data(), means.data(), totals.data(), work) &&
                  clear(n * k * sizeof(double), cleared.data(), work);
        check(is_done, "losses: not stopped");
        check(cleared == std::vector<double>(n * k), "cleared");
        for (int64_t i = 0; i < n * k; ++i) {
            const double own = scores[i] + 0.5, expected = own > 0 ? std::pow(own, 0.75) : 1;
            check(std::abs(raised[i] - expected) <= 1e-14 * expected, "raised");
            const double rest = change[i] - scores[i] * scores[i] / 2.5;
            check(squares[i] == std::max(rest, 0.0) && means[i] == scores[i] / 2.5, "centred");
        }
        double slope = 0, value = 0, least = INFINITY, most = -INFINITY;
        for (int64_t r = 0; r < n; ++r) {
            double total = k == 1 ? 1 : 0;
            for (int64_t c = 0; c < k; ++c) {
                total += std::exp(scores[r * k + c] + shifts[c]);
                const double z = scores[r * k + c] + 0.5 * (change[r * k + c] - shifts[c]);
                least = std::min(least, z);
                most = std::max(most, z);
            }
            const bool is_second = k > 1 || classes[r] == 1;
            const int64_t own = k == 1 ? 0 : classes[r];
            const double margin = is_second ? scores[r * k + own] + shifts[own] : 0;
            value += weights[r] * (std::log(total) - margin);
            slope += residuals[r * k];
        }
        check(std::abs(sums[sum_value] - value) <= 1e-11 * n, "sum of losses");
        check(std::abs(sums[sum_lists] - slope) <= 1e-11 * n, "slope");
        check(range[0] == least && range[1] == most, "range");
        const std::vector<std::vector<double>> found{
            residuals, curvatures, likely,  sums,     more,    range, curved,
            cross,     singles,    updated, products, squares, means, raised};
        if (n_threads == 1) first = found;
        check(found == first, "losses: same bits");
        const StopRequest at_once = StopAt{1};
        check(n == 0 || !sum(rows, {}, sums.data(), range.data(), Work{1, at_once}),
              "losses: stopped");
    }
}

/// Every third column, by both lookups.
template <class Offset, class Index, class Value>
void test_chosen(const Basis& basis) {
    const auto x = random_matrix<Offset, Index, Value>(12, basis.n_features, 4);
    const auto all = expand_by_brute_force<int64_t>(basis, x);
    const int64_t n_basis = basis.n_columns();
    const std::set<int64_t> occurring(all.columns.begin(), all.columns.end());
    std::vector<int64_t> chosen;
    for (const int64_t column : occurring)
        if (random_bits() % 3 != 0) chosen.push_back(column);
    Matrix<int64_t, int32_t, Value> expected{std::ssize(chosen)};
    for (int64_t r = 0; r < x.n_rows(); ++r) {
        for (int64_t t = all.row_offsets[r]; t < all.row_offsets[r + 1]; ++t) {
            const auto found = std::ranges::lower_bound(chosen, all.columns[t]);
            if (found == chosen.end() || *found != all.columns[t]) continue;
            expected.columns.push_back(static_cast<int32_t>(found - chosen.begin()));
            expected.values.push_back(all.values[t]);
        }
        expected.row_offsets.push_back(std::ssize(expected.columns));
    }
    const auto check_lookup = [&](const Lookup& lookup) {
        check_every_appending(
            x, expected, [&](const auto&... how) { return fill_chosen(basis, lookup, how...); });
        check_products(basis, lookup, x, expected);
    };
    check_lookup(HashLookup(chosen.data(), std::ssize(chosen)));
    if (n_basis <= 1 << 20) check_lookup(BitLookup(chosen.data(), std::ssize(chosen), n_basis));
}

/// Rows hashed by a map, in the order of the basis.
template <class Index, class Value>
void test_hashed(const Basis& basis, int64_t n_columns, int64_t n_rows) {
    const auto x = random_matrix<int32_t, Index, Value>(n_rows, basis.n_features, 4);
    const Hasher hasher(n_columns, true, 5);
    Matrix<int64_t, int32_t, Value> expected{n_columns};
    std::vector<int64_t> columns(basis.highest);
    for (int64_t r = 0; r < n_rows; ++r) {
        const int64_t start = x.row_offsets[r], n = x.row_offsets[r + 1] - start;
        std::map<int32_t, Value> sums;
        const auto put = [&](uint64_t h, Value value) {
            if (hasher.is_negative(h)) value = -value;
            const auto [place, is_new] =
                sums.emplace(static_cast<int32_t>(hasher.bucket(h)), value);
            if (!is_new) place->second += value;
        };
        if (basis.include_bias) put(hasher(columns.data(), 0), 1);
        for (int64_t d = basis.lowest; d <= basis.highest; ++d)
            each_tuple(n, d, basis.interaction_only, [&](const auto& tuple) {
                Value product = 1;
                for (int64_t m = d; m-- > 0;) product = x.values[start + tuple[m]] * product;
                for (int64_t m = 0; m < d; ++m) columns[m] = x.columns[start + tuple[m]];
                put(hasher(columns.data(), d), product);
            });
        for (const auto& [column, sum] : sums) {
            expected.columns.push_back(column);
            expected.values.push_back(sum);
        }
        expected.row_offsets.push_back(std::ssize(expected.columns));
    }
    check_every_appending(x, expected,
                          [&](const auto&... how) { return fill_hashed(basis, hasher, how...); });
    if (n_columns <= 1000) check_products(basis, hasher, x, expected);
}

/// What hashing_bytes and choosing_bytes say is what fill_hashed and fill_chosen allocate. A task
/// may be smaller than it might have been.
template <class Value>
void test_working_memory(const Basis& basis, int64_t n_columns, int64_t n_threads, int64_t task) {
    const auto x = random_matrix<int32_t, int32_t, Value>(9, basis.n_features, 3);
    std::vector<RowsOfShape> rows;
    for (int64_t r = 0; r < x.n_rows(); ++r) rows.push_back({shape_of(x.row_offsets.data(), r), 1});
    const Hasher hasher(n_columns, true, 5);
    std::vector<int64_t> chosen(std::min(n_columns, basis.n_columns()));
    std::iota(chosen.begin(), chosen.end(), int64_t{0});
    const Lookup lookup = make_lookup(basis, chosen.data(), std::ssize(chosen));
    std::vector<int64_t> offsets(x.n_rows() + 1);
    const int64_t n_slots = x.n_rows() * std::min<int64_t>(n_columns, 1 << 16);  // no row has more
    std::vector<int32_t> columns(n_slots);
    std::vector<Value> values(n_slots);
    const AppendTo<Value> out{offsets.data(), {columns.data(), values.data()}, n_slots};
    const auto never = [] { return false; };
    const auto check_bytes = [&](int64_t said, const char* what, const auto& fill) {
        const int64_t before = n_bytes_asked_for;
        check(fill() == Appending::whole, "rows are filled");
        const int64_t asked_for = n_bytes_asked_for - before, little = 1 << 16;
        const int64_t in_tasks = 12 * n_threads * task_size(task);
        check(asked_for <= said + little && said <= asked_for + in_tasks + little, what);
    };
    check_bytes(hashing_bytes<Value>(basis, hasher, rows, n_threads, task), "memory to hash in",
                [&] { return fill_hashed(basis, hasher, x.view(), out, n_threads, task, never); });
    check_bytes(choosing_bytes<Value>(basis, std::ssize(chosen), rows, n_threads, task),
                "memory to choose in",
                [&] { return fill_chosen(basis, lookup, x.view(), out, n_threads, task, never); });
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
    test_crew();
    Crew crew;  // for all that follows: qemu keeps some memory of every thread that has ended
    const OnDuty duty(crew);
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

    test_stopped_fill(make_basis(9, 2, 4, true, true));
    test_stopped_fill(make_basis(9, 1, 3, false, false));
    for_each_basis({1, 6}, 3, [](const Basis& basis) { test_dense<float>(basis, 600); });
    test_dense<double>(make_basis(12, 3, 4, false, true), 300);

    test_number_set();
    test_slabs();
    test_lookups();
    test_tally<uint8_t>(60, 50, 1000);
    test_tally<uint8_t>(40, 400, 3);
    test_tally<uint32_t>(5, 200'000, 3);
    test_tally<uint32_t>(9, 40, int64_t{1} << 34);
    for_each_basis({0, 1, 9}, 4, test_observe<int32_t, int32_t, uint8_t>);
    for_each_basis({30}, 2, test_observe<int64_t, int64_t, uint32_t>);
    test_observe<int32_t, int64_t, uint32_t>(make_basis(4'000'000'000, 0, 2, false, true));
    test_observe<int64_t, int64_t, uint32_t>(make_basis(INT64_MAX - 1, 1, 1, false, true));
    test_stopped_and_full_observe(make_basis(40, 1, 2, false, true));
    test_observe_a_high_degree();
    test_stopped_and_full_observe(make_basis(12, 2, 4, true, false));
    for_each_basis({0, 1, 9}, 4, test_chosen<int32_t, int32_t, double>);
    for_each_basis({8}, 3, test_chosen<int64_t, int64_t, float>);
    test_chosen<int32_t, int64_t, double>(make_basis(4'000'000'000, 0, 2, false, true));
    for (const bool interaction_only : {false, true})  // rows of more outputs than a piece
        for (const int64_t low : {0, 2, 3})
            test_chosen<int32_t, int32_t, double>(make_basis(80, low, 3, interaction_only, true));
    test_chosen<int32_t, int32_t, float>(make_basis(24, 4, 4, false, false));
    test_chosen<int32_t, int32_t, float>(make_basis(30, 3, 4, true, false));
    for (const int64_t n_columns : {1, 7, 64, 1000, 1 << 20}) {
        for_each_basis({0, 1, 9}, 4, [&](const Basis& basis) {
            test_hashed<int32_t, double>(basis, n_columns, 8);
        });
        test_hashed<int64_t, float>(make_basis(INT64_MAX, 0, 3, false, true), n_columns, 8);
    }
    test_hashed<int32_t, double>(make_basis(90, 1, 3, false, true), 1 << 21, 4);
    for (const int64_t n_columns : {1, 1000, 1 << 18})
        for (const int64_t n_threads : {1, 5})
            for (const int64_t task : {0, 1000}) {
                test_working_memory<double>(make_basis(70, 1, 2, false, true), n_columns, n_threads,
                                            task);
                test_working_memory<float>(make_basis(50, 2, 3, true, false), n_columns, n_threads,
                                           task);
            }
    for_each_basis({0, 1, 9}, 4, test_products<int32_t, int32_t, double>);
    for_each_basis({8}, 3, test_products<int64_t, int64_t, float>);
    test_products<int32_t, int32_t, double>(make_basis(200, 1, 2, false, true));
    test_products<int32_t, int64_t, float>(make_basis(60, 2, 3, true, false));
    for_each_basis({0, 1, 9}, 4, test_gram<int32_t, int32_t, double>);
    for_each_basis({8}, 3, test_gram<int64_t, int64_t, float>);
    test_exponentials();
    for (const int64_t k : {1, 3, 20})
        for (const int64_t n : {0, 1, 13, 5'000}) test_losses(n, k);
    std::printf("%lld passed, 0 failed\n", n_passed);
}
