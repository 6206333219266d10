// Checks places.hpp on the processor, against enumeration; then prints hashes for Python to check.
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "places.hpp"

using namespace polysparse;
using Tuple = std::vector<int>;

static void require(bool holds, const char* what, int64 a, int64 b, int64 c) {
    if (holds) return;
    std::printf("%s fails at %lld %lld %lld\n", what, a, b, c);
    std::exit(1);
}

/// All rising tuples of d numbers below n, in order; strictly rising ones for interactions.
static std::vector<Tuple> tuples(int n, int d, bool strict) {
    std::vector<Tuple> found;
    Tuple now(d);
    const auto extend = [&](auto&& self, int at, int least) -> void {
        if (at == d) return found.push_back(now);
        for (int j = least; j < n; ++j) {
            now[at] = j;
            self(self, at + 1, strict ? j + 1 : j);
        }
    };
    extend(extend, 0, 0);
    return found;
}

static void check_simplex() {
    std::vector<std::vector<uint64>> pascal(70, std::vector<uint64>(70, 1));
    for (int k = 1; k < 33; ++k) {
        pascal[k][0] = 0;
        for (int n = 1; n < 33; ++n) {
            pascal[k][n] = pascal[k][n - 1] + pascal[k - 1][n];
            require(simplex(k, n) == pascal[k][n], "simplex", k, n, 0);
        }
        require(simplex(k, 0) == 0 && simplex(k, -3) == 0, "simplex of nothing", k, 0, 0);
    }
    for (uint64 n : {0ULL, 1ULL, 2ULL, 7ULL, 1000ULL, 65535ULL, 2000000ULL}) {
        const auto m = static_cast<int64>(n);
        require(simplex_word<2, uint64>(n) == simplex(2, m), "word 2", m, 0, 0);
        require(simplex_word<3, uint64>(n) == simplex(3, m), "word 3", m, 0, 0);
        require(simplex_word<2, uint32>(uint32(n)) == uint32(simplex(2, m)), "word 2", m, 32, 0);
        require(simplex_word<3, uint32>(uint32(n)) == uint32(simplex(3, m)), "word 3", m, 32, 0);
        require(simplex_word<4, uint32>(uint32(n)) == uint32(simplex(4, m)), "word 4", m, 32, 0);
        if (n < 100000) require(simplex_word<4, uint64>(n) == simplex(4, m), "word 4", m, 64, 0);
    }
}

static void check_roots() {
    for (int k = 1; k <= 9; ++k)
        for (int64 e : {1LL, 2LL, 3LL, 10LL, 63LL, 64LL, 65LL, 1000LL, 50000LL, 3000000LL}) {
            if (degree_size_about<false>(k, e + 1) > 0x1p57) continue;
            const uint64 here = simplex(k, e);
            require(root_of_simplex(k, here) == e, "root", k, e, 0);
            require(root_of_simplex(k, here - 1) == e - 1, "root below", k, e, 0);
            require(root_of_simplex(k, simplex(k, e + 1) - 1) == e, "root above", k, e, 0);
        }
}

template <int d, bool strict>
static void check_degree(int n) {
    const std::vector<Tuple> all = tuples(n, d, strict);
    const auto size = static_cast<int64>(all.size());
    require(degree_size<strict>(d, n) == all.size(), "degree_size", d, n, strict);
    for (int64 t = 0; t < size; ++t) {
        int places[d];
        unrank_from_end<strict>(d, static_cast<uint64>(size - 1 - t), places);
        for (int j = 0; j < d; ++j)
            require(n - 1 - places[j] == all[t][j], "unrank_from_end", d, n, t);
        for (int step : {0, 1, 2, 31, 32}) {
            if (t + step >= size) continue;
            int stepped[d];
            for (int j = 0; j < d; ++j) stepped[j] = places[j];
            const bool has_changed = step_forward<d, strict>(stepped, step);
            bool is_other = false;
            for (int j = 0; j < d; ++j) {
                require(n - 1 - stepped[j] == all[t + step][j], "step_forward", d, n, step);
                is_other |= j + 1 < d && stepped[j] != places[j];
            }
            require(has_changed || !is_other, "what step_forward returns", d, n, step);
        }
    }
}

/// What the columns of a tuple add up to.
template <int k, bool strict, class Word>
static Word shifts(const Tuple& tuple, int n_features, int d) {
    if constexpr (k == 0)
        return 0;
    else
        return shift_of<k, strict, Word>(n_features, tuple[d - k]) +
               shifts<k - 1, strict, Word>(tuple, n_features, d);
}

template <int d, bool strict>
static void check_columns(int n_features) {
    const std::vector<Tuple> all = tuples(n_features, d, strict);
    for (size_t t = 0; t < all.size(); ++t) {
        const uint64 column = all.size() - 1 + shifts<d, strict, uint64>(all[t], n_features, d);
        const uint32 narrow =
            uint32(all.size() - 1) + shifts<d, strict, uint32>(all[t], n_features, d);
        require(column == t && narrow == t, "column", d, n_features, int64(t));
    }
}

/// Rows: sizes, degrees of places, and the row with a 1 in front that has all degrees at once.
template <bool strict>
static void check_rows() {
    for (int lowest = 1; lowest <= 4; ++lowest)
        for (int highest = lowest; highest <= 4; ++highest)
            for (int bias = 0; bias <= 1; ++bias)
                for (int n = 0; n <= 6; ++n) {
                    const Basis basis{10, lowest, highest, bias};
                    std::vector<Place> places;
                    if (bias) places.push_back({0, 0});
                    for (int d = lowest; d <= highest; ++d) {
                        const auto size = tuples(n, d, strict).size();
                        for (size_t t = 0; t < size; ++t) places.push_back({d, size - 1 - t});
                    }
                    require(row_size<strict>(basis, n) == places.size(), "row_size", lowest,
                            highest, n);
                    for (size_t t = 0; t < places.size(); ++t) {
                        const Place p =
                            place_from_end(basis, PlainRow<strict>{n}, places.size() - 1 - t);
                        require(p.degree == places[t].degree && p.from_end == places[t].from_end,
                                "place_from_end", lowest, highest, int64(t));
                    }
                }
    const std::vector<Tuple> with_one = tuples(6, 3, false);
    std::vector<Tuple> in_order;
    for (int d = 0; d <= 3; ++d)
        for (Tuple t : tuples(5, d, false)) {
            for (int& j : t) ++j;
            t.insert(t.begin(), 3 - d, 0);
            in_order.push_back(t);
        }
    require(with_one == in_order, "a row with a 1 in front", 0, 0, 0);
}

/// Runs: each output is in one, and follows from its leads and its place in it.
template <int highest, bool strict>
static void check_runs() {
    for (int bias : {0, 1})
        for (int lowest = 1; lowest <= highest; ++lowest)
            for (int n = 0; n <= 9; ++n) {
                const Basis basis{10, lowest, highest, bias};
                const int is_in_run = is_bias_in_run<strict>(basis);
                std::vector<Tuple> outputs;  // places, with n for a 1
                if (is_in_run) outputs.push_back(Tuple(highest, n));
                for (int d = lowest; d <= highest; ++d)
                    for (Tuple t : tuples(n, d, strict)) {
                        for (int& j : t) j = n - 1 - j;
                        t.insert(t.begin(), highest - d, n);
                        outputs.push_back(t);
                    }
                const auto size = static_cast<int64>(outputs.size());
                require(count_outputs<highest, strict>(basis, n) == size + (bias && !is_in_run),
                        "count_outputs", highest, n, lowest);
                const uint64 n_runs = count_runs<strict>(basis, n);
                if (bias && !is_in_run)
                    require(run_from_end<strict>(basis, n, uint64(size)) == n_runs, "bias", highest,
                            n, lowest);
                uint64 last = n_runs;
                for (int64 t = 0; t < size; ++t) {
                    const uint64 u = run_from_end<strict>(basis, n, uint64(size - 1 - t));
                    require(u == last || u + 1 == last, "runs one after the other", highest, n, t);
                    last = u;
                    Run<highest, uint32> run{};
                    find_run<highest, highest, strict>(n, u, n - 1 + is_in_run, &run);
                    const int64 first = size - 1 - run.behind;
                    require(first <= t && t <= first + run.tail, "run", highest, n, t);
                    for (int j = 0; j + 1 < highest; ++j)
                        require(run.leads[j] == outputs[t][j], "lead", highest, n, t);
                    require(run.tail - (t - first) == outputs[t].back(), "tail", highest, n, t);
                }
                require(last == 0, "the last run", highest, n, 0);
            }
}

template <bool strict>
static void check_tuples() {
    for (int n : {1, 2, 3, 5, 8, 11}) {
        check_degree<1, strict>(n);
        check_degree<2, strict>(n);
        check_degree<3, strict>(n);
        check_degree<4, strict>(n);
        check_degree<5, strict>(n);
        check_columns<1, strict>(n);
        check_columns<2, strict>(n);
        check_columns<3, strict>(n);
        check_columns<4, strict>(n);
        check_columns<5, strict>(n);
    }
    check_degree<2, strict>(70);
    check_degree<3, strict>(40);
    check_rows<strict>();
    check_runs<1, strict>();
    check_runs<2, strict>();
    check_runs<3, strict>();
    check_runs<4, strict>();
    check_runs<5, strict>();
}

/// Rows with groups: `groups` has the group of each value, or its complement if it has powers.
static void check_groups(const std::vector<int>& groups) {
    constexpr int highest = 4;
    const int n = static_cast<int>(groups.size());
    std::vector<int64> led((highest - 1) * n);
    const GroupedRow row{led.data(), n, n};
    for (int a = n - 1; a >= 0; --a) {
        int next = a + 1;
        while (next < n && groups[next] == groups[a]) ++next;
        row.count_led(highest, a, groups[a] < 0 ? a : next);
    }
    const auto is_allowed = [&](const Tuple& tuple) {
        for (size_t j = 1; j < tuple.size(); ++j)
            if (groups[tuple[j]] == groups[tuple[j - 1]] && groups[tuple[j]] >= 0) return false;
        return true;
    };
    for (int lowest = 1; lowest <= highest; ++lowest) {
        const Basis basis{10, lowest, highest, 1};
        std::vector<Tuple> all{{}};
        for (int d = lowest; d <= highest; ++d)
            for (const Tuple& tuple : tuples(n, d, false))
                if (is_allowed(tuple)) all.push_back(tuple);
        const auto size = static_cast<int64>(all.size());
        require(count_outputs(basis, row) == size, "outputs with groups", n, lowest, size);
        for (int64 t = 0; t < size; ++t) {
            const Place place = place_from_end(basis, row, static_cast<uint64>(size - 1 - t));
            int places[highest];
            row.unrank(place.degree, place.from_end, places);
            require(place.degree == int(all[t].size()), "degree with groups", n, lowest, t);
            for (int j = 0; j < place.degree; ++j)
                require(n - 1 - places[j] == all[t][j], "tuple with groups", n, lowest, t);
        }
    }
}

static void check_counts() {
    require(add_counts(most_counted, most_counted) == most_counted, "sum", 0, 0, 0);
    require(add_counts(most_counted - 2, 1) == most_counted - 1, "sum", 1, 0, 0);
    require(multiply_counts(int64(1) << 40, int64(1) << 40) == most_counted, "product", 0, 0, 0);
    require(multiply_counts(most_counted, 0) == 0, "product", 1, 0, 0);
    require(multiply_counts(int64(1) << 29, int64(1) << 30) == int64(1) << 59, "product", 2, 0, 0);
}

/// Terms of groups [0, 3), [3, 3), [3, 5) and [5, 9).
static void check_terms() {
    const Member members[] = {{0, 3, 2}, {3, 5, 1}, {5, 9, 1}, {3, 3, 1}, {5, 9, 1}};
    const Term terms[] = {{0, 0}, {2, 6}, {3, 10}, {5, 10}};
    const TermTable table{terms, members, 3};
    const int columns[] = {0, 2, 3, 5, 6, 8};
    require(table.degree(0) == 2 && table.degree(1) == 1 && table.degree(2) == 2, "degree", 0, 0,
            0);
    require(table.size(0, columns, 6) == 2, "size of a term", 0, 0, 0);
    require(table.size(1, columns, 6) == 3, "size of a term", 1, 0, 0);
    require(table.size(2, columns, 6) == 0, "size of a term", 2, 0, 0);
    require(table.size(0, columns, 2) == 0, "size of a term", 0, 2, 0);
    const Slice slice = slice_of(members[0], columns, 6);
    require(slice.begin == 0 && slice.end == 2, "slice", slice.begin, slice.end, 0);
    for (int bound = 0; bound < 10; ++bound) {
        int64 expected = 0;
        while (expected < 6 && columns[expected] < bound) ++expected;
        require(first_at_least(columns, 6, bound) == expected, "first_at_least", bound, 0, 0);
    }
}

int main() {
    check_counts();
    check_terms();
    for (const std::vector<int>& groups : std::vector<std::vector<int>>{{},
                                                                        {0},
                                                                        {~0},
                                                                        {0, 0, 0},
                                                                        {0, 1, 2, 3},
                                                                        {~0, ~1, ~2},
                                                                        {0, 0, 1, 1, 1, ~2, 3, 3},
                                                                        {~0, 1, ~2, 3, 3, ~5},
                                                                        {0, 0, 0, 7, 9, 9}})
        check_groups(groups);
    check_simplex();
    check_roots();
    check_tuples<false>();
    check_tuples<true>();
    const uint64 salt = Hasher::mix_bits(7 + 0x9E3779B97F4A7C15ULL);
    const Hasher hasher{1000, 1ULL << 31, salt};
    for (const Tuple& tuple : {Tuple{}, Tuple{0}, Tuple{3, 3}, Tuple{1, 20, 300}}) {
        uint64 h = hasher.salt;
        for (size_t j = tuple.size(); j > 0; --j) h = hasher.lead(uint64(tuple[j - 1]), h);
        std::printf("%d %d\n", hasher.bucket(h), hasher.is_negative(h) ? -1 : 1);
    }
}
