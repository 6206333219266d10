#include "apply/gram.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <vector>

#include "matrix/own_columns.hpp"
#include "platform/processors.hpp"

namespace polysparse {
namespace {

/// Sums of the monomials of each degree of some values, for `width` sets of values side by side.
/// Element d * width + u of `sums` is that of degree d of set u.
template <int64_t width, bool distinct>
struct MonomialSums {
    double* sums;
    int64_t highest;

    POLYSPARSE_INLINE void clear() const {
        std::fill_n(sums, width, 1.0);
        std::fill_n(sums + width, highest * width, 0.0);
    }

    /// Adds a value to each set that has one: where `is_there` is not 0.
    POLYSPARSE_INLINE void add(const double* __restrict values,
                               const double* __restrict is_there) const {
        if constexpr (distinct)
            for (int64_t d = highest; d >= 1; --d) add(d, values, is_there);
        else
            for (int64_t d = 1; d <= highest; ++d) add(d, values, is_there);
    }

    POLYSPARSE_INLINE double total(const Basis& basis, int64_t u) const {
        double total = basis.include_bias ? 1 : 0;
        for (int64_t d = basis.lowest; d <= highest; ++d) total += sums[d * width + u];
        return total;
    }

  private:
    POLYSPARSE_INLINE void add(int64_t d, const double* __restrict values,
                               const double* __restrict is_there) const {
        double* const to = sums + d * width;
        const double* const below = to - width;
        const auto step = [&](int64_t u) POLYSPARSE_INLINE_LAMBDA {
            const double more = to[u] + values[u] * below[u];  // NaN, if 0 times infinity
            to[u] = is_there[u] != 0 ? more : to[u];
        };
        if constexpr (width == lanes)
            for_lanes(step);
        else
            step(0);
    }
};

/// Eight rows side by side, without the columns that none of them stores.
struct Panel {
    std::vector<int32_t> slots;  // of each column, its place among those stored; -1 if it is not
    std::vector<double> values;  // eight for each slot, 0 where a row does not store the column
    std::vector<double> sums;
    std::vector<int64_t> columns;  // of each slot
    int32_t n_slots = 0;

    Panel(int64_t n_columns, int64_t most_stored, int64_t highest)
        : slots(n_columns, -1),
          values(most_stored * lanes),
          sums((highest + 1) * lanes),
          columns(most_stored) {}

    template <class Value>
    void read(const CsrView<Value>& x, int64_t first, int64_t last) {
        for (int64_t r = first; r < last; ++r)
            for (int64_t t = x.row_offsets[r]; t < x.row_offsets[r + 1]; ++t) {
                const int64_t column = within(x.columns[t], x.n_columns);
                int32_t& slot = slots[column];
                if (slot < 0) {
                    slot = n_slots++;
                    columns[slot] = column;
                    std::fill_n(&values[slot * lanes], lanes, 0.0);
                }
                values[slot * lanes + r - first] = x.values[t];
            }
    }
    void forget() {
        while (n_slots > 0) slots[columns[--n_slots]] = -1;
    }
};

/// The inner products of a panel with one row.
template <class Index, class Value, class Sums>
POLYSPARSE_INLINE void multiply(const Panel& panel, const Row<Index, Value>& row,
                                const Sums& sums) {
    const int64_t n_columns = std::ssize(panel.slots);
    sums.clear();
    for (int64_t t = 0; t < row.n; ++t) {
        const int32_t slot = panel.slots[within(row.begin.columns[t], n_columns)];
        if (slot < 0) continue;
        const double* const from = &panel.values[slot * lanes];
        const double scale = row.begin.values[t];
        double products[lanes];
        for_lanes([&](int64_t u) POLYSPARSE_INLINE_LAMBDA { products[u] = from[u] * scale; });
        sums.add(products, from);
    }
}

/// What a task is: the inner products of rows [first, last) of x with rows [begin, end) of z.
struct Tile {
    int64_t first, last, begin, end;
};

template <bool distinct, class Index, class Value>
POLYSPARSE_PER_PROCESSOR void fill_tile(const Basis& basis, const CsrView<Value>& z,
                                        bool is_symmetric, Tile tile, Panel& panel, Value* out) {
    const MonomialSums<lanes, distinct> sums{panel.sums.data(), basis.highest};
    for (int64_t j = tile.begin; j < tile.end; ++j) {
        multiply(panel, row_of<Index>(z, j), sums);
        for (int64_t i = tile.first; i < tile.last; ++i) {
            if (is_symmetric && i < j) continue;
            const auto value = static_cast<Value>(sums.total(basis, i - tile.first));
            out[i * z.n_rows + j] = value;
            if (is_symmetric) out[j * z.n_rows + i] = value;
        }
    }
}

template <bool distinct, class Value>
double squared_norm(const Basis& basis, const CsrView<Value>& x, int64_t r, double* scratch) {
    const MonomialSums<1, distinct> sums{scratch, basis.highest};
    sums.clear();
    for (int64_t t = x.row_offsets[r]; t < x.row_offsets[r + 1]; ++t) {
        const double value = x.values[t], square = value * value;
        sums.add(&square, &value);
    }
    return sums.total(basis, 0);
}

int64_t parts_of(int64_t n, int64_t size) {
    return (n + size - 1) / size;
}

}  // namespace

template <class Value>
bool fill_gram(const Basis& basis, const CsrView<Value>& x, const CsrView<Value>& z,
               bool is_symmetric, Value* out, int64_t n_threads, const StopRequest& should_stop) {
    if (x.n_rows == 0 || z.n_rows == 0) return true;
    const int64_t n_panels = parts_of(x.n_rows, lanes);
    int64_t most_stored = 0;
    for (int64_t first = 0; first < x.n_rows; first += lanes)
        most_stored = std::max(
            most_stored, x.row_offsets[std::min(first + lanes, x.n_rows)] - x.row_offsets[first]);
    // Short enough to look for signals often, long enough to be worth reading a panel.
    constexpr int64_t share = int64_t{1} << 18;
    const int64_t n_chunks = std::clamp<int64_t>(z.row_offsets[z.n_rows] / share, 1, z.n_rows);
    const int64_t height = parts_of(z.n_rows, n_chunks), n_tasks = n_panels * n_chunks;
    const int64_t n_workers = std::min(n_threads, n_tasks);
    std::vector<Panel> panels(n_workers, Panel(x.n_columns, most_stored, basis.highest));

    const auto fill_task = [&](int64_t worker, int64_t task) {
        Tile tile{task / n_chunks * lanes, 0, task % n_chunks * height, 0};
        tile.last = std::min(tile.first + lanes, x.n_rows);
        tile.end = std::min(tile.begin + height, is_symmetric ? tile.last : z.n_rows);
        if (tile.begin >= tile.end) return;
        panels[worker].read(x, tile.first, tile.last);
        z.columns.visit([&]<class Index>(const Index*) {
            const auto fill = basis.interaction_only ? &fill_tile<true, Index, Value>
                                                     : &fill_tile<false, Index, Value>;
            fill(basis, z, is_symmetric, tile, panels[worker], out);
        });
        panels[worker].forget();
    };
    return run_tasks(n_tasks, n_workers, fill_task, should_stop);
}

template <class Value>
bool fill_row_norms(const Basis& basis, const CsrView<Value>& x, Value* out, int64_t n_threads,
                    const StopRequest& should_stop) {
    constexpr int64_t height = 1 << 10;
    std::vector<std::vector<double>> scratch(n_threads, std::vector<double>(basis.highest + 1));
    const auto fill_task = [&](int64_t worker, int64_t task) {
        const auto square =
            basis.interaction_only ? &squared_norm<true, Value> : &squared_norm<false, Value>;
        const int64_t last = std::min((task + 1) * height, x.n_rows);
        for (int64_t r = task * height; r < last; ++r)
            out[r] = static_cast<Value>(std::sqrt(square(basis, x, r, scratch[worker].data())));
    };
    return run_tasks(parts_of(x.n_rows, height), n_threads, fill_task, should_stop);
}

template bool fill_gram(const Basis&, const CsrView<float>&, const CsrView<float>&, bool, float*,
                        int64_t, const StopRequest&);
template bool fill_gram(const Basis&, const CsrView<double>&, const CsrView<double>&, bool, double*,
                        int64_t, const StopRequest&);
template bool fill_row_norms(const Basis&, const CsrView<float>&, float*, int64_t,
                             const StopRequest&);
template bool fill_row_norms(const Basis&, const CsrView<double>&, double*, int64_t,
                             const StopRequest&);

}  // namespace polysparse
