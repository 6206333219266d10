// Leads in strips whose numbers stay in cache.
//
// What neighbouring leads have of a vector of coefficients is one strip of it for each degree.
// Where a table of such vectors is larger than a cache, some rows at a time are walked strip by
// strip, provided that they use most columns more than once, and that a row has enough to do in a
// strip.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <vector>

#include "apply/lead_parts.hpp"
#include "basis/basis.hpp"
#include "expand/row_shape.hpp"
#include "matrix/csr_view.hpp"
#include "matrix/own_columns.hpp"
#include "platform/processors.hpp"

namespace polysparse {

class Strips {
  public:
    /// For n_vectors side by side, of numbers of a size, and rows of about `row_size` outputs.
    Strips(const Basis& basis, int64_t n_vectors, int64_t number_size, int64_t row_size)
        : bounds_{0} {
        const int64_t table = basis.n_columns() * n_vectors * number_size;
        const int64_t n_strips = std::min(table / small, row_size * n_vectors / worth_a_visit);
        if (n_strips > 1 && row_size * rows_together >= 2 * basis.n_columns()) {
            const int64_t n_led = led_from(basis, 0);
            for (int64_t strip = 1; strip < n_strips; ++strip) {
                const int64_t behind = n_led / n_strips * (n_strips - strip);
                const int64_t bound =
                    largest_where(bounds_.back(), basis.n_features,
                                  [&](int64_t j) { return led_from(basis, j) >= behind; });
                if (bound > bounds_.back()) bounds_.push_back(bound);
            }
        }
        bounds_.push_back(basis.n_features);
    }

    int64_t count() const { return std::ssize(bounds_) - 1; }

    /// Stored values that are read together: few enough to stay in a cache. Degree 1 waits for
    /// memory, so that columns and values had better arrive together.
    int64_t stored_together(const Basis& basis) const {
        if (count() > 1) return int64_t{1} << 18;
        return basis.highest > 1 ? 1 << 11 : 1 << 8;
    }

    /// Calls visit(r, part, is_first) for the parts of rows [first, last) that columns [low, high)
    /// lead; is_first: of those of a row. Rows are read by way of `own`.
    template <class Index, class Value, class Visit>
    void walk(const CsrView<Value>& x, OwnColumns<Index>& own, int64_t first, int64_t last,
              int64_t low, int64_t high, const Visit& visit) const {
        if (count() == 1)
            return own.for_each(
                x, first, last,
                [&](int64_t r, const Row<Index, Value>& row) POLYSPARSE_INLINE_LAMBDA {
                    visit(r, led_by(row, n_below(x, row, low), n_below(x, row, high)), true);
                });
        std::array<int64_t, rows_together> done;  // leads of each row
        for (int64_t begin = first, end; begin < last; begin = end) {
            end = own.read(x, begin, std::min(begin + rows_together, last));
            for (int64_t r = begin; r < end; ++r) done[r - begin] = n_below(x, own.row(x, r), low);
            for (int64_t strip = 0; strip < count(); ++strip) {
                if (bounds_[strip + 1] <= low || bounds_[strip] >= high) continue;
                const int64_t bound = std::min(bounds_[strip + 1], high);
                const bool is_first = bounds_[strip] <= low;
                for (int64_t r = begin; r < end; ++r) {
                    const Row<Index, Value> row = own.row(x, r);
                    const int64_t from = done[r - begin], to = n_below(x, row, bound);
                    done[r - begin] = to;
                    if (from < to || is_first) visit(r, led_by(row, from, to), is_first);
                }
            }
        }
    }

  private:
    static constexpr int64_t small = int64_t{1} << 19;  // bytes of a strip that stays in cache
    static constexpr int64_t worth_a_visit = 512;       // multiplications
    static constexpr int64_t rows_together = 2048;

    /// How many columns of the basis are led by feature j or a later one.
    static int64_t led_from(const Basis& basis, int64_t j) {
        if (basis.groups) {
            if (j == basis.n_features) return 0;
            if (basis.terms)
                return static_cast<int64_t>(basis.terms->count_led_from(*basis.groups, j));
            uint64_t count = 0;
            for (int64_t d = basis.lowest; d <= basis.highest; ++d)
                count += basis.groups->count_led_from(d, j);
            return static_cast<int64_t>(count);
        }
        return row_size(basis, rest_of(dense_shape(basis), j));
    }

    /// How many of a row's columns are below a bound.
    template <class Index, class Value>
    POLYSPARSE_INLINE static int64_t n_below(const CsrView<Value>& x, const Row<Index, Value>& row,
                                             int64_t bound) {
        if (bound == 0 || bound == x.n_columns) return bound == 0 ? 0 : row.n;
        const Index* const columns = row.begin.columns;
        if (row.n > 64) return std::lower_bound(columns, columns + row.n, bound) - columns;
        Index count = 0;  // of the type of the columns, so that lanes are as many
        for (int64_t t = 0; t < row.n; ++t) count += columns[t] < static_cast<Index>(bound);
        return count;
    }

    std::vector<int64_t> bounds_;  // columns; the first is 0, the last the number of features
};

}  // namespace polysparse
