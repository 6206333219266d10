#include "apply/gram.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <type_traits>
#include <vector>

#include "matrix/own_columns.hpp"
#include "platform/processors.hpp"

namespace polysparse {
namespace {

// *Sums* are those of the monomials of some values, for `width` sets of values side by side. They
// have
//     sums.clear()
//     sums.add(column, values, is_there)   a value of a column for each set that has one: where
//                                          is_there is not 0; columns increase
//     sums.finish()                        after the last value
//     sums.total(u)                        of set u

/// Calls step(u) for every one of `width` sets.
template <int64_t width, class Step>
POLYSPARSE_INLINE void for_sets(const Step& step) {
    if constexpr (width == lanes)
        for_lanes(step);
    else
        for (int64_t u = 0; u < width; ++u) step(u);
}

/// Element d * width + u of `sums` is that of degree d of set u.
template <int64_t width>
struct DegreeSums {
    const Basis* basis;
    double* sums;

    static int64_t size(const Basis& basis) { return (basis.highest + 1) * width; }

    POLYSPARSE_INLINE void clear() const {
        std::fill_n(sums, width, 1.0);
        std::fill_n(sums + width, basis->highest * width, 0.0);
    }

    /// Adds the monomials that have a value, once if they are distinct.
    template <bool distinct>
    POLYSPARSE_INLINE void add(const double* __restrict values,
                               const double* __restrict is_there) const {
        if constexpr (distinct)
            for (int64_t d = basis->highest; d >= 1; --d) add(d, values, is_there);
        else
            for (int64_t d = 1; d <= basis->highest; ++d) add(d, values, is_there);
    }

    POLYSPARSE_INLINE double total(int64_t u) const {
        double total = basis->include_bias ? 1 : 0;
        for (int64_t d = basis->lowest; d <= basis->highest; ++d) total += sums[d * width + u];
        return total;
    }

  private:
    POLYSPARSE_INLINE void add(int64_t d, const double* __restrict values,
                               const double* __restrict is_there) const {
        double* const to = sums + d * width;
        const double* const below = to - width;
        for_sets<width>([&](int64_t u) POLYSPARSE_INLINE_LAMBDA {
            const double more = to[u] + values[u] * below[u];  // NaN, if 0 times infinity
            to[u] = is_there[u] != 0 ? more : to[u];
        });
    }
};

/// Sums for a basis without groups.
template <int64_t of_width, bool distinct>
struct PlainSums {
    static constexpr int64_t width = of_width;
    DegreeSums<width> degrees;

    PlainSums(const Basis& basis, double* scratch) : degrees{&basis, scratch} {}
    static int64_t size(const Basis& basis) { return DegreeSums<width>::size(basis); }

    POLYSPARSE_INLINE void clear() const { degrees.clear(); }
    POLYSPARSE_INLINE void add(int64_t, const double* __restrict values,
                               const double* __restrict is_there) const {
        degrees.template add<distinct>(values, is_there);
    }
    POLYSPARSE_INLINE void finish() const {}
    POLYSPARSE_INLINE double total(int64_t u) const { return degrees.total(u); }
};

/// The values of one group, summed: a monomial has one of them, whichever it is.
template <int64_t width>
struct GroupSum {
    double* sums;
    double* is_there;  // 1 where a set has a value of the group

    GroupSum(double* scratch) : sums(scratch), is_there(scratch + width) {}
    static constexpr int64_t size = 2 * width;

    POLYSPARSE_INLINE void clear() const { std::fill_n(sums, size, 0.0); }
    POLYSPARSE_INLINE void add(const double* values, const double* others) const {
        for_sets<width>([&](int64_t u) POLYSPARSE_INLINE_LAMBDA {
            const double more = sums[u] + values[u];
            sums[u] = others[u] != 0 ? more : sums[u];
            is_there[u] = others[u] != 0 ? 1 : is_there[u];
        });
    }
};

/// Sums for a basis with groups.
template <int64_t of_width>
struct GroupedSums {
    static constexpr int64_t width = of_width;
    const GroupTable* groups;
    GroupSum<width> of_group;
    DegreeSums<width> degrees;
    int64_t group = -1;  // whose values are summed

    GroupedSums(const Basis& basis, double* scratch)
        : groups(basis.groups.get()),
          of_group(scratch),
          degrees{&basis, scratch + GroupSum<width>::size} {}
    static int64_t size(const Basis& basis) {
        return GroupSum<width>::size + DegreeSums<width>::size(basis);
    }

    POLYSPARSE_INLINE void clear() {
        degrees.clear();
        group = -1;
    }
    POLYSPARSE_INLINE void add(int64_t column, const double* values, const double* is_there) {
        const int64_t next = groups->group_of(column);
        if (next != group) {
            finish();
            of_group.clear();
            group = next;
        }
        of_group.add(values, is_there);
    }
    POLYSPARSE_INLINE void finish() const {
        if (group < 0) return;
        if (groups->has_powers(group))
            degrees.template add<false>(of_group.sums, of_group.is_there);
        else
            degrees.template add<true>(of_group.sums, of_group.is_there);
    }
    POLYSPARSE_INLINE double total(int64_t u) const { return degrees.total(u); }
};

/// Sums for a basis of terms: each is the product of the sums of its groups.
template <int64_t of_width>
struct TermSums {
    static constexpr int64_t width = of_width;
    const Basis* basis;
    double* totals;
    double* scratch;  // a GroupSum for each slot

    TermSums(const Basis& basis, double* scratch)
        : basis(&basis), totals(scratch), scratch(scratch + width) {}
    static int64_t size(const Basis& basis) {
        return width + basis.terms->n_slots() * GroupSum<width>::size;
    }

    POLYSPARSE_INLINE GroupSum<width> of_slot(int64_t slot) const {
        return {scratch + slot * GroupSum<width>::size};
    }
    POLYSPARSE_INLINE void clear() const {
        std::fill_n(totals, width, basis->include_bias ? 1.0 : 0.0);
        std::fill_n(scratch, basis->terms->n_slots() * GroupSum<width>::size, 0.0);
    }
    POLYSPARSE_INLINE void add(int64_t column, const double* values, const double* is_there) const {
        const int64_t slot = basis->terms->slot_of(basis->groups->group_of(column));
        if (slot >= 0) of_slot(slot).add(values, is_there);
    }
    POLYSPARSE_INLINE void finish() const {
        for (const Term& term : basis->terms->terms()) {
            double products[width], is_there[width];
            std::fill_n(products, width, 1.0);
            std::fill_n(is_there, width, 1.0);
            for (const Term::Member& member : term.members) {
                const GroupSum<width> factor = of_slot(member.slot);
                for_sets<width>([&](int64_t u) POLYSPARSE_INLINE_LAMBDA {
                    products[u] *= factor.sums[u];  // NaN, if 0 times infinity
                    is_there[u] *= factor.is_there[u];
                });
            }
            for_sets<width>([&](int64_t u) POLYSPARSE_INLINE_LAMBDA {
                const double more = totals[u] + products[u];
                totals[u] = is_there[u] != 0 ? more : totals[u];
            });
        }
    }
    POLYSPARSE_INLINE double total(int64_t u) const { return totals[u]; }
};

/// Calls f with the type of the sums of a basis.
template <int64_t width, class F>
auto with_sums(const Basis& basis, const F& f) {
    if (basis.terms) return f(std::type_identity<TermSums<width>>{});
    if (basis.groups) return f(std::type_identity<GroupedSums<width>>{});
    if (basis.interaction_only) return f(std::type_identity<PlainSums<width, true>>{});
    return f(std::type_identity<PlainSums<width, false>>{});
}

template <int64_t width>
int64_t sums_size(const Basis& basis) {
    return with_sums<width>(
        basis, [&]<class Sums>(std::type_identity<Sums>) { return Sums::size(basis); });
}

/// Eight rows side by side, without the columns that none of them stores.
struct Panel {
    std::vector<int32_t> slots;  // of each column, its place among those stored; -1 if it is not
    std::vector<double> values;  // eight for each slot, 0 where a row does not store the column
    std::vector<double> sums;
    std::vector<int64_t> columns;  // of each slot
    int32_t n_slots = 0;

    Panel(int64_t n_columns, int64_t most_stored, int64_t n_sums)
        : slots(n_columns, -1), values(most_stored * lanes), sums(n_sums), columns(most_stored) {}

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
POLYSPARSE_INLINE void multiply(const Panel& panel, const Row<Index, Value>& row, Sums& sums) {
    const int64_t n_columns = std::ssize(panel.slots);
    sums.clear();
    for (int64_t t = 0; t < row.n; ++t) {
        const int64_t column = within(row.begin.columns[t], n_columns);
        const int32_t slot = panel.slots[column];
        if (slot < 0) continue;
        const double* const from = &panel.values[slot * lanes];
        const double scale = row.begin.values[t];
        double products[lanes];
        for_lanes([&](int64_t u) POLYSPARSE_INLINE_LAMBDA { products[u] = from[u] * scale; });
        sums.add(column, products, from);
    }
    sums.finish();
}

/// What a task is: the inner products of rows [first, last) of x with rows [begin, end) of z.
struct Tile {
    int64_t first, last, begin, end;
};

template <class Sums, class Index, class Value>
POLYSPARSE_PER_PROCESSOR void fill_tile(const Basis& basis, const CsrView<Value>& z,
                                        bool is_symmetric, Tile tile, Panel& panel, Value* out) {
    Sums sums(basis, panel.sums.data());
    for (int64_t j = tile.begin; j < tile.end; ++j) {
        multiply(panel, row_of<Index>(z, j), sums);
        for (int64_t i = tile.first; i < tile.last; ++i) {
            if (is_symmetric && i < j) continue;
            const auto value = static_cast<Value>(sums.total(i - tile.first));
            out[i * z.n_rows + j] = value;
            if (is_symmetric) out[j * z.n_rows + i] = value;
        }
    }
}

template <class Sums, class Value>
double squared_norm(Sums& sums, const CsrView<Value>& x, int64_t r) {
    sums.clear();
    for (int64_t t = x.row_offsets[r]; t < x.row_offsets[r + 1]; ++t) {
        const double value = x.values[t], square = value * value;
        sums.add(within(x.columns[t], x.n_columns), &square, &value);
    }
    sums.finish();
    return sums.total(0);
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
    std::vector<Panel> panels(n_workers, Panel(x.n_columns, most_stored, sums_size<lanes>(basis)));

    const auto fill_task = [&](int64_t worker, int64_t task) {
        Tile tile{task / n_chunks * lanes, 0, task % n_chunks * height, 0};
        tile.last = std::min(tile.first + lanes, x.n_rows);
        tile.end = std::min(tile.begin + height, is_symmetric ? tile.last : z.n_rows);
        if (tile.begin >= tile.end) return;
        panels[worker].read(x, tile.first, tile.last);
        z.columns.visit([&]<class Index>(const Index*) {
            with_sums<lanes>(basis, [&]<class Sums>(std::type_identity<Sums>) {
                fill_tile<Sums, Index>(basis, z, is_symmetric, tile, panels[worker], out);
            });
        });
        panels[worker].forget();
    };
    return run_tasks(n_tasks, n_workers, fill_task, should_stop);
}

template <class Value>
bool fill_row_norms(const Basis& basis, const CsrView<Value>& x, Value* out, int64_t n_threads,
                    const StopRequest& should_stop) {
    constexpr int64_t height = 1 << 10;
    std::vector<std::vector<double>> scratch(n_threads, std::vector<double>(sums_size<1>(basis)));
    const auto fill_task = [&](int64_t worker, int64_t task) {
        const int64_t last = std::min((task + 1) * height, x.n_rows);
        with_sums<1>(basis, [&]<class Sums>(std::type_identity<Sums>) {
            Sums sums(basis, scratch[worker].data());
            for (int64_t r = task * height; r < last; ++r)
                out[r] = static_cast<Value>(std::sqrt(squared_norm(sums, x, r)));
        });
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
