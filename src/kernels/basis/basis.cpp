#include "basis/basis.hpp"

#include <algorithm>
#include <functional>

namespace polysparse {

int64_t Basis::rank(const int64_t* tuple, int64_t k) const {
    if (terms) return terms->rank(*groups, tuple, k);
    uint64_t column = degree_end[k] - 1;
    for (int64_t m = 0; m < k; ++m) column -= depth(k - m, tuple[m]);
    return static_cast<int64_t>(column);
}

int64_t Basis::unrank(int64_t column, int64_t* tuple) const {
    if (include_bias && column == 0) return 0;
    if (terms) return terms->unrank(column, tuple);
    int64_t degree = lowest;
    while (static_cast<uint64_t>(column) >= degree_end[degree]) ++degree;
    uint64_t rest = degree_end[degree] - 1 - static_cast<uint64_t>(column);
    if (groups) {
        for (int64_t m = 0, first = 0; m < degree; ++m) {
            tuple[m] = groups->leading(degree - m, rest, first);
            rest -= depth(degree - m, tuple[m]);
            first = groups->next(groups->group_of(tuple[m]));
        }
        return degree;
    }
    int64_t most = n_features - gap(degree);  // each term's argument is at most the one before
    for (int64_t m = 0; m < degree; ++m) {
        const int64_t k = degree - m;
        most = largest_where(0, most, [&](int64_t n) { return simplex(k, n) <= rest; });
        rest -= simplex(k, most);
        tuple[m] = n_features - 1 - gap(k) - most;
    }
    return degree;
}

void rank_all(const Basis& basis, TupleTable tuples, int64_t* columns) {
    for (int64_t i = 0; i < tuples.n; ++i) {
        const int64_t k = tuples.degree(i);
        columns[i] = k == 0 ? 0 : basis.rank(tuples[i], k);
    }
}

void unrank_all(const Basis& basis, const int64_t* columns, int64_t n, int64_t width,
                int64_t* tuples) {
    for (int64_t i = 0; i < n; ++i) {
        int64_t* const tuple = tuples + i * width;
        const int64_t k = basis.unrank(columns[i], tuple);
        std::fill(tuple + k, tuple + width, -1);
    }
}

bool is_rising(const int64_t* numbers, int64_t n) {
    return std::adjacent_find(numbers, numbers + n, std::greater_equal<>()) == numbers + n;
}

}  // namespace polysparse
