#include "observe/observe.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "brute_force.hpp"
#include "checks.hpp"
#include "observe/number_set.hpp"
#include "observe/tally.hpp"

namespace polysparse::tests {
namespace {

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

/// In how many rows each column of an expansion is.
template <class OutIndex, class Value>
std::map<int64_t, int64_t> count_rows(const Matrix<OutIndex, OutIndex, Value>& expanded) {
    std::map<int64_t, int64_t> counts;
    for (const OutIndex column : expanded.columns) ++counts[column];
    return counts;
}

/// Also of some rows that begin in the middle of the arrays.
template <class Offset, class Index, class Count>
void test_observed(const Basis& basis) {
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

/// Rows whose columns have changed have as many monomials as before: it ends, and they are in the
/// basis, in order.
void test_observe_changed(const Basis& basis) {
    const auto x = random_matrix<int32_t, int32_t, double>(14, basis.n_features, 5);
    for_each_change(x, [&](const auto& changed) {
        const CsrPattern rows{x.row_offsets.data(), x.n_rows(), changed.columns.data()};
        Run<uint32_t> run;
        check(observe(basis, rows, 1, INT64_MAX, 2, 0, StopAt{-1}, run), "observe");
        Tally<> tally;
        tally.add(std::move(run));
        const auto columns = written(tally, 1, INT64_MAX).first;
        check(is_rising(columns.data(), std::ssize(columns)), "columns in order");
        check(columns.empty() || (columns[0] >= 0 && columns.back() < basis.n_columns()),
              "columns in the basis");
    });
}

/// No recursion by degree: this one is deeper than a stack.
void test_observe_a_high_degree(const Basis& basis) {
    const std::vector<int64_t> row_offsets{0, 1, 2};
    const std::vector<int32_t> columns{0, 0};
    for (const int64_t n_rows : {1, 2}) {
        const CsrPattern rows{row_offsets.data(), n_rows, columns.data()};
        Run<uint32_t> run;
        check(observe(basis, rows, 1, INT64_MAX, 1, 0, StopAt{-1}, run), "observe: a high degree");
        check(size_of(run) == basis.highest + 1, "observe: monomials of a high degree");
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

}  // namespace

void test_observe() {
    test_number_set();
    test_tally<uint8_t>(60, 50, 1000);
    test_tally<uint8_t>(40, 400, 3);
    test_tally<uint32_t>(5, 200'000, 3);
    test_tally<uint32_t>(9, 40, int64_t{1} << 34);
    for_each_basis({0, 1, 9}, 4, test_observed<int32_t, int32_t, uint8_t>);
    for_each_basis({30}, 2, test_observed<int64_t, int64_t, uint32_t>);
    for_each_grouped_basis(4, test_observed<int32_t, int32_t, uint8_t>);
    for_each_grouped_basis(2, test_observed<int64_t, int64_t, uint32_t>);
    test_observed<int32_t, int64_t, uint32_t>(make_basis(4'000'000'000, 0, 2, false, true));
    test_observed<int64_t, int64_t, uint32_t>(make_basis(INT64_MAX - 1, 1, 1, false, true));
    test_stopped_and_full_observe(make_basis(40, 1, 2, false, true));
    for_each_basis({1, 9, 40}, 4, test_observe_changed);
    for_each_grouped_basis(4, test_observe_changed);
    test_observe_a_high_degree(make_basis(1, 0, 60'000, false, true));
    test_observe_a_high_degree(make_grouped({1}, 0, 1'000, false, true));
    test_stopped_and_full_observe(make_basis(12, 2, 4, true, false));
    test_stopped_and_full_observe(make_grouped({3, 4, 1, 5, 2}, 1, 3, false, false));
    test_stopped_and_full_observe(
        make_grouped({3, 4, 1, 5, 2}, 1, 3, true, false, {{3}, {0, 1}, {3, 4}, {0, 1, 3}}));
}

}  // namespace polysparse::tests
