#include <algorithm>
#include <map>
#include <new>
#include <numeric>
#include <set>
#include <vector>

#include "brute_force.hpp"
#include "checks.hpp"
#include "products.hpp"
#include "select/append_rows.hpp"
#include "select/fill_chosen.hpp"
#include "select/fill_hashed.hpp"
#include "select/hash.hpp"
#include "select/lookup.hpp"

namespace polysparse::tests {
namespace {

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
    const int64_t n = std::ssize(expected.columns), small = small_task(1, n);
    const auto append = [&](int64_t n_threads, int64_t wanted, int64_t n_slots, StopAt stop) {
        return check_appended(x, expected, fill, n_threads, wanted, n_slots, stop);
    };
    for (const int64_t n_threads : {1, 2, 8})
        for (const int64_t wanted : {int64_t{0}, small, small_task(30, n)})
            check(append(n_threads, wanted, n, StopAt{-1}) == Appending::whole, "appended");
    for (const int64_t n_slots : {int64_t{0}, n / 2, n - 1})
        if (n_slots >= 0 && n_slots < n)
            check(append(3, small, n_slots, StopAt{-1}) == Appending::full, "appended: full");
    check(append(1, small, n, StopAt{1}) == Appending::stopped, "appended: stopped");
    check(append(3, small, n, StopAt{2}) != Appending::full, "appended: stopped, unless too late");
}

/// Appends rows whose columns have changed: any numbers, in columns that are there.
template <class X, class Fill>
void check_changed_appending(const X& x, int64_t n_columns, int64_t n_slots, const Fill& fill) {
    using Value = typename decltype(x.values)::value_type;
    for_each_change(x, [&](const X& changed) {
        std::vector<int64_t> offsets(x.n_rows() + 1);
        Guarded<int32_t> columns(n_slots, 1);
        Guarded<Value> values(n_slots, 1);
        const AppendTo<Value> out{offsets.data(), {columns.data(), values.data()}, n_slots};
        for (const int64_t wanted : {int64_t{0}, small_task(1, n_slots)}) {
            const Appending done = fill(changed.view(), out, 2, wanted, StopAt{-1});
            check(done != Appending::stopped, "appended");
            for (int64_t t = 0; done == Appending::whole && t < offsets.back(); ++t)
                check(columns.data()[t] >= 0 && columns.data()[t] < n_columns, "appended: columns");
            columns.check_against({}, false, "appended: columns, past the end");
            values.check_against({}, false, "appended: values, past the end");
        }
    });
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
        check_changed_appending(
            x, std::ssize(chosen), std::ssize(all.columns),
            [&](const auto&... how) { return fill_chosen(basis, lookup, how...); });
        check_changed_products(basis, lookup, x, std::ssize(chosen));
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
    for (int64_t r = 0; r < n_rows; ++r) {
        std::map<int32_t, Value> sums;
        const auto put = [&](uint64_t h, Value value) {
            if (hasher.is_negative(h)) value = -value;
            const auto [place, is_new] =
                sums.emplace(static_cast<int32_t>(hasher.bucket(h)), value);
            if (!is_new) place->second += value;
        };
        if (basis.include_bias) put(hasher(nullptr, 0), 1);
        each_output(basis, x, r, [&](const int64_t* columns, int64_t d, Value product) {
            put(hasher(columns, d), product);
        });
        for (const auto& [column, sum] : sums) {
            expected.columns.push_back(column);
            expected.values.push_back(sum);
        }
        expected.row_offsets.push_back(std::ssize(expected.columns));
    }
    check_every_appending(x, expected,
                          [&](const auto&... how) { return fill_hashed(basis, hasher, how...); });
    check_changed_appending(x, n_columns, std::ssize(expected.columns),
                            [&](const auto&... how) { return fill_hashed(basis, hasher, how...); });
    if (n_columns > 1000) return;
    check_products(basis, hasher, x, expected);
    check_changed_products(basis, hasher, x, n_columns);
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
        const int64_t before = n_bytes_requested();
        check(fill() == Appending::whole, "rows are filled");
        const int64_t requested = n_bytes_requested() - before, little = 1 << 16;
        const int64_t in_tasks = 12 * n_threads * task_size(task);
        check(requested <= said + little && said <= requested + in_tasks + little, what);
    };
    check_bytes(hashing_bytes<Value>(basis, hasher, rows, n_threads, task), "memory to hash in",
                [&] { return fill_hashed(basis, hasher, x.view(), out, n_threads, task, never); });
    check_bytes(choosing_bytes<Value>(basis, std::ssize(chosen), rows, n_threads, task),
                "memory to choose in",
                [&] { return fill_chosen(basis, lookup, x.view(), out, n_threads, task, never); });
}

/// A row whose outputs cannot be counted as if they had no groups, though it has few of them.
void test_uncountable() {
    std::vector<int64_t> twenty(20, 1), all(20);
    std::iota(all.begin(), all.end(), int64_t{0});
    twenty.push_back(3000);
    for (const Basis& basis : {make_grouped(twenty, 20, 20, true, true, {all}),
                               make_grouped(twenty, 20, 20, true, true)}) {
        Matrix<int32_t, int32_t, double> x{basis.n_features};
        x.columns.resize(basis.n_features);
        std::iota(x.columns.begin(), x.columns.end(), 0);
        x.values.assign(x.columns.size(), 1);
        x.row_offsets.push_back(static_cast<int32_t>(x.columns.size()));
        const Hasher hasher(1000, true, 5);
        const std::vector<int64_t> chosen{0, 1};
        const Lookup lookup = make_lookup(basis, chosen.data(), 2);
        const RowsOfShape rows[]{{shape_of(x.row_offsets.data(), 0), 1}};
        const auto is_refused = [&](const auto& fill) {
            std::vector<int64_t> offsets(2);
            std::vector<int32_t> columns(5000);
            std::vector<double> values(5000);
            try {
                fill(x.view(),
                     AppendTo<double>{offsets.data(), {columns.data(), values.data()}, 5000}, 1, 0,
                     StopAt{-1});
            } catch (const std::bad_alloc&) {
                return true;
            }
            return false;
        };
        check(is_refused([&](const auto&... how) { fill_chosen(basis, lookup, how...); }) &&
                  is_refused([&](const auto&... how) { fill_hashed(basis, hasher, how...); }),
              "refused");
        check(choosing_bytes<double>(basis, 2, rows, 1, 0) == int64_t{1} << 50 &&
                  hashing_bytes<double>(basis, hasher, rows, 1, 0) == int64_t{1} << 50,
              "more memory than there is");
    }
}

void test_groups() {
    for_each_grouped_basis(4, test_chosen<int32_t, int32_t, double>);
    for_each_grouped_basis(3, test_chosen<int64_t, int64_t, float>);
    for (const int64_t n_columns : {1, 64, 1000, 1 << 20})
        for_each_grouped_basis(
            4, [&](const Basis& basis) { test_hashed<int32_t, double>(basis, n_columns, 8); });
    const std::vector<int64_t> many(30, 2);  // rows of more outputs than wait to be looked up
    const Basis long_rows = make_grouped(many, 2, 3, false, true);
    test_chosen<int32_t, int32_t, double>(long_rows);
    test_hashed<int64_t, float>(long_rows, 1000, 8);
    const Basis long_terms = make_grouped({20, 1, 25, 15}, 2, 3, true, true, {{0, 2}, {0, 2, 3}});
    test_chosen<int32_t, int32_t, double>(long_terms);
    test_hashed<int64_t, float>(long_terms, 1000, 8);
    for (const int64_t n_columns : {1, 1000, 1 << 18})
        for (const int64_t n_threads : {1, 5}) {
            test_working_memory<double>(make_grouped(many, 1, 2, true, true), n_columns, n_threads,
                                        0);
            test_working_memory<float>(long_terms, n_columns, n_threads, 1000);
        }
    test_uncountable();
}

}  // namespace

void test_select() {
    test_lookups();
    for_each_basis({0, 1, 9}, 4, test_chosen<int32_t, int32_t, double>);
    for_each_basis({8}, 3, test_chosen<int64_t, int64_t, float>);
    test_chosen<int32_t, int64_t, double>(make_basis(4'000'000'000, 0, 2, false, true));
    for (const bool interaction_only : {false, true})  // rows of more outputs than a piece
        for (const int64_t low : {0, 2, 3})
            test_chosen<int32_t, int32_t, double>(make_basis(60, low, 3, interaction_only, true));
    test_chosen<int32_t, int32_t, float>(make_basis(24, 4, 4, false, false));
    test_chosen<int32_t, int32_t, float>(make_basis(30, 3, 4, true, false));
    for (const int64_t n_columns : {1, 7, 64, 1000, 1 << 20}) {
        for_each_basis({0, 1, 9}, 4, [&](const Basis& basis) {
            test_hashed<int32_t, double>(basis, n_columns, 8);
        });
        test_hashed<int64_t, float>(make_basis(INT64_MAX, 0, 3, false, true), n_columns, 8);
    }
    test_hashed<int32_t, double>(make_basis(90, 1, 3, false, true), 1 << 21, 4);
    test_groups();
    for (const int64_t n_columns : {1, 1000, 1 << 18})
        for (const int64_t n_threads : {1, 5})
            for (const int64_t task : {0, 1000}) {
                test_working_memory<double>(make_basis(70, 1, 2, false, true), n_columns, n_threads,
                                            task);
                test_working_memory<float>(make_basis(50, 2, 3, true, false), n_columns, n_threads,
                                           task);
            }
}

}  // namespace polysparse::tests
