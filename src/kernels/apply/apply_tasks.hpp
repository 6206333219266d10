// How `apply` and `apply_transposed` are done.
//
// A product with the expansion is shared out by rows. A long row is divided by its leads, and the
// sums of its parts are added in order.
//
// A product with the transposed expansion is shared out by columns. What a group of neighbouring
// leads contributes is a strip of the result for each degree. It belongs to one worker, which reads
// all rows in order: there are neither copies nor locks, and every number is summed in the order of
// the rows, whoever does it. Where the result is short beside the work, rows are divided as well,
// into chunks that have a result each. How many there are depends on the matrix alone.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <type_traits>
#include <utility>
#include <vector>

#include "apply/apply.hpp"
#include "apply/lead_parts.hpp"
#include "apply/sinks.hpp"
#include "apply/vectors.hpp"
#include "expand/layout.hpp"
#include "expand/rank_keys.hpp"
#include "expand/row_copy.hpp"
#include "expand/row_shape.hpp"
#include "expand/walk.hpp"
#include "platform/huge_array.hpp"

namespace polysparse {

/// Walks rows with one kind of sink, for one worker. Degrees above 2 are made from tails that are
/// stored. Rows are copied then: groups of lanes go past their end.
template <class Index, class Value, class Sink>
class RowWalker {
  public:
    /// For rows up to a shape. The basis must outlive it. Throws bad_alloc.
    RowWalker(const Basis& basis, const CsrView<Value>& x, RowShape largest)
        : basis_(&basis),
          x_(x),
          has_tails_(basis.highest > 2),
          copy_(has_tails_ ? largest : RowShape{}),
          scratch_(basis, has_tails_ ? largest : RowShape{}) {
        scratch_.clear();
    }

    /// Row r, or a copy of it, which is valid until the next one.
    POLYSPARSE_INLINE Row<Index, Value> row(int64_t r) const {
        if constexpr (std::is_same_v<Index, int64_t>)
            if (has_tails_) return copy_.copy(x_, r);
        return row_of<Index>(x_, r);
    }

    template <class AnyRow>
    POLYSPARSE_INLINE void walk(const AnyRow& row, Sink& sink) const {
        const RankKeys<Index> keys{basis_, row.begin.columns};
        walk_row(*basis_, row, keys, scratch_.layout(), sink);
    }

  private:
    const Basis* basis_;
    CsrView<Value> x_;
    bool has_tails_;
    RowCopy<Value> copy_;
    Scratch<RankKeys<int64_t>, Sink> scratch_;
};

/// How many of a row's columns are below a bound.
template <class Index>
POLYSPARSE_INLINE int64_t count_below(const Index* columns, int64_t n, int64_t bound) {
    if (n > 64) return std::lower_bound(columns, columns + n, bound) - columns;
    Index count = 0;  // of the type of the columns, so that lanes are as many
    for (int64_t t = 0; t < n; ++t) count += columns[t] < static_cast<Index>(bound);
    return count;
}

// ------------------------------------------------------------------------------------- products

/// Rows [first, last), or the part of one row that its values [from, to) lead.
struct RowTask {
    int64_t first, last;
    int64_t from, to;
    bool is_part;
};

/// Cuts rows into tasks of about `share` outputs.
inline std::vector<RowTask> cut_rows(const Basis& basis, const Indices& row_offsets, int64_t n_rows,
                                     int64_t share) {
    std::vector<RowTask> tasks;
    RowSizes size_of(basis);
    int64_t first = 0, in_task = 0;
    const auto end_task = [&](int64_t last) {
        if (first < last) tasks.push_back({first, last, 0, 0, false});
        first = last;
        in_task = 0;
    };
    for (int64_t r = 0; r < n_rows; ++r) {
        const RowShape shape = shape_of(row_offsets, r);
        const int64_t size = size_of(shape);
        if (size > 4 * share) {
            end_task(r);
            const LeadParts parts = LeadParts::of_about(basis, shape, share);
            for (int64_t part = 0; part < parts.count(); ++part)
                tasks.push_back({r, r + 1, parts.first(part), parts.first(part + 1), true});
            first = r + 1;
            continue;
        }
        in_task += size + 1;
        if (in_task >= share) end_task(r + 1);
    }
    end_task(n_rows);
    return tasks;
}

/// The products of one task, at sums, one behind the other.
template <class Index, class Value, int64_t width>
void dot_rows(const RowWalker<Index, Value, ToDot<Value, width>>& walker, const RowTask& task,
              Vectors<const Value, width> coefficients, Vectors<Value, width> sums) {
    for (int64_t r = task.first; r < task.last; ++r) {
        ToDot<Value, width> sink{coefficients, task.from == 0};
        const Row<Index, Value> row = walker.row(r);
        if (task.is_part)
            walker.walk(led_by(row, task.from, task.to), sink);
        else
            walker.walk(row, sink);
        std::copy_n(sink.sums.of.data(), width, sums[r - task.first]);
    }
}

template <class Index, int64_t width, class Value>
bool dot_all(const Basis& basis, const CsrView<Value>& x, Vectors<const Value, width> coefficients,
             Vectors<Value, width> out, Effort effort, const StopRequest& should_stop) {
    const int64_t share = effort.task > 0 ? effort.task : int64_t{1} << 16;
    const std::vector<RowTask> tasks = cut_rows(basis, x.row_offsets, x.n_rows, share);
    const RowShape largest = largest_shape(x.row_offsets, x.n_rows);
    std::vector<RowWalker<Index, Value, ToDot<Value, width>>> walkers;
    for (int64_t worker = 0; worker < effort.n_threads; ++worker)
        walkers.emplace_back(basis, x, largest);
    std::vector<Value> parts(tasks.size() * width);  // of tasks that are parts of a row
    const auto dot_task = [&](int64_t worker, int64_t number) {
        const RowTask& task = tasks[number];
        const Vectors<Value, width> sums{parts.data() + number * width, width};
        dot_rows(walkers[worker], task, coefficients, task.is_part ? sums : out.from(task.first));
    };
    if (!run_tasks(std::ssize(tasks), effort.n_threads, dot_task, should_stop)) return false;
    for (int64_t number = 0; number < std::ssize(tasks); ++number) {
        const RowTask& task = tasks[number];
        if (!task.is_part) continue;
        for (int64_t c = 0; c < width; ++c) {
            Value& sum = out[task.first][c];
            const Value part = parts[number * width + c];
            sum = task.from == 0 ? part : sum + part;
        }
    }
    return true;
}

// -------------------------------------------------------------------------- transposed products

/// Rows [first, last), of whose outputs those are wanted that columns [low, high) lead.
struct StripTask {
    int64_t first, last;
    int64_t low, high;
};

template <class Index, class Value, int64_t width>
void scatter_rows(const RowWalker<Index, Value, ToScatter<Value, width>>& walker,
                  int64_t n_features, const StripTask& task, Vectors<const Value, width> weights,
                  Vectors<Value, width> out) {
    for (int64_t r = task.first; r < task.last; ++r) {
        const Row<Index, Value> row = walker.row(r);
        const Index* const columns = row.begin.columns;
        const int64_t from = task.low == 0 ? 0 : count_below(columns, row.n, task.low);
        const int64_t to = task.high == n_features ? row.n : count_below(columns, row.n, task.high);
        ToScatter<Value, width> sink{out, task.low == 0, {}};
        sink.weights.add(1, weights[r]);
        if (from < to || task.low == 0) walker.walk(led_by(row, from, to), sink);
    }
}

/// Columns that divide a matrix into groups of leads with about as many outputs each, as far as a
/// sample of its rows can tell. The first is 0, the last n_features.
template <class Value>
std::vector<int64_t> divide_leads(const Basis& basis, const CsrView<Value>& x, int64_t n_groups) {
    std::vector<int64_t> bounds{0};
    if (n_groups > 1 && x.n_rows > 0) {
        const int64_t per_row = x.row_offsets[x.n_rows] / std::max<int64_t>(x.n_rows, 1) + 1;
        const int64_t n_sampled = std::clamp<int64_t>(1024 / per_row, 1, x.n_rows);
        std::vector<std::pair<int64_t, double>> sample;  // leads, and how many outputs they have
        double total = 0;
        for (int64_t i = 0; i < n_sampled; ++i) {
            const int64_t r = x.n_rows / n_sampled * i;
            const int64_t begin = x.row_offsets[r], n = x.row_offsets[r + 1] - begin;
            for (int64_t a = 0; a < n; ++a) {
                sample.emplace_back(
                    x.columns[begin + a],
                    static_cast<double>(size_led(basis, shape_of(x.row_offsets, r), a, a + 1)));
                total += sample.back().second;
            }
        }
        std::sort(sample.begin(), sample.end());
        double before = 0;
        for (const auto& [column, size] : sample) {
            before += size;
            const double wanted = total * static_cast<double>(bounds.size()) / n_groups;
            if (before >= wanted && column + 1 > bounds.back() && column + 1 < x.n_columns)
                bounds.push_back(column + 1);
        }
    }
    bounds.push_back(x.n_columns);
    return bounds;
}

/// Into how many chunks to divide the rows: at most 32, and so few that adding their results is
/// little beside the work, and that these need little room beside the matrix, or beside the few
/// vectors that whoever multiplies has.
template <class Value>
int64_t count_chunks(const Basis& basis, const CsrView<Value>& x, int64_t n_outputs,
                     int64_t width) {
    const int64_t n_columns = basis.n_columns();
    const int64_t by_work = n_outputs / (16 * n_columns + 1);
    const int64_t by_room = std::max<int64_t>(x.row_offsets[x.n_rows] / 4 / width, 1 << 16);
    int64_t n_chunks = 1;
    while (n_chunks < 32 && 2 * n_chunks <= by_work &&
           (n_chunks == 1 || 2 * n_chunks * n_columns <= by_room))
        n_chunks *= 2;
    return n_chunks;
}

template <class Index, int64_t width, class Value>
bool scatter_all(const Basis& basis, const CsrView<Value>& x, Vectors<const Value, width> weights,
                 Vectors<Value, width> out, Effort effort, const StopRequest& should_stop) {
    const int64_t n_columns = basis.n_columns(), n_threads = effort.n_threads;
    const int64_t n_chunks = count_chunks(basis, x, effort.n_outputs, width);
    // As few groups as keep the threads busy: each looks for its leads in every row.
    const std::vector<int64_t> bounds = divide_leads(basis, x, (n_threads - 1) / n_chunks + 1);
    const int64_t n_groups = std::ssize(bounds) - 1;
    // Workers stop between two slabs of rows, which take a tenth of a second at most.
    const int64_t n_slabs = effort.n_outputs / (int64_t{1} << 23) / n_threads + 1;
    const int64_t n_strips = n_chunks * n_slabs;
    const auto first_row = [&](int64_t strip) {
        if (strip == 0 || strip == n_strips) return strip == 0 ? 0 : x.n_rows;
        const double share = static_cast<double>(strip) / static_cast<double>(n_strips);
        const auto stored = static_cast<int64_t>(share * x.row_offsets[x.n_rows]);
        return largest_where(0, x.n_rows, [&](int64_t r) { return x.row_offsets[r] <= stored; });
    };

    std::vector<RowWalker<Index, Value, ToScatter<Value, width>>> walkers;
    const RowShape largest = largest_shape(x.row_offsets, x.n_rows);
    for (int64_t worker = 0; worker < n_threads; ++worker) walkers.emplace_back(basis, x, largest);
    std::vector<Value> others((n_chunks - 1) * n_columns * width);  // results of the other chunks
    const auto result_of = [&](int64_t chunk) -> Vectors<Value, width> {
        if (chunk == 0) return out;
        return {others.data() + (chunk - 1) * n_columns * width, width};
    };
    for (int64_t slab = 0; slab < n_slabs; ++slab) {
        const auto scatter_task = [&](int64_t worker, int64_t task) {
            const int64_t chunk = task / n_groups, group = task % n_groups;
            const int64_t strip = chunk * n_slabs + slab;
            const StripTask rows{first_row(strip), first_row(strip + 1), bounds[group],
                                 bounds[group + 1]};
            scatter_rows(walkers[worker], x.n_columns, rows, weights, result_of(chunk));
        };
        if (!run_tasks(n_chunks * n_groups, n_threads, scatter_task, should_stop)) return false;
    }
    if (n_chunks == 1) return true;
    constexpr int64_t together = 1 << 12;  // columns
    const auto add_task = [&](int64_t, int64_t task) {
        const int64_t first = task * together, last = std::min(first + together, n_columns);
        for (int64_t chunk = 1; chunk < n_chunks; ++chunk)
            for (int64_t j = first; j < last; ++j)
                for (int64_t c = 0; c < width; ++c) out[j][c] += result_of(chunk)[j][c];
    };
    return run_tasks((n_columns - 1) / together + 1, n_threads, add_task, should_stop);
}

// ---------------------------------------------------------------------------------- any vectors

/// The last column of a table as a table of its own.
template <class Value>
class LastColumn {
  public:
    /// Throws bad_alloc.
    LastColumn(VectorTable<Value> table, int64_t n_rows) : table_(table), values_(n_rows) {
        for (int64_t i = 0; i < n_rows; ++i) values_[i] = *place(i);
    }
    void put_back() const {
        for (int64_t i = 0; i < std::ssize(values_); ++i) *place(i) = values_[i];
    }
    std::remove_const_t<Value>* values() { return values_.data(); }

  private:
    Value* place(int64_t i) const { return table_.values + (i + 1) * table_.n_vectors - 1; }

    VectorTable<Value> table_;
    std::vector<std::remove_const_t<Value>> values_;
};

/// Calls product(from, to) for a few neighbouring columns of two tables at a time, until all are
/// done or it is stopped.
template <class Value, class Product>
bool by_panels(VectorTable<const Value> from, int64_t n_from, VectorTable<Value> to, int64_t n_to,
               const Product& product) {
    const int64_t k = to.n_vectors;
    if (k == 1)
        return product(Vectors<const Value, 1>{from.values, 1}, Vectors<Value, 1>{to.values, 1});
    int64_t first = 0;
    const auto all_of = [&]<int64_t width>(std::integral_constant<int64_t, width>) {
        for (; first + width <= k; first += width)
            if (!product(Vectors<const Value, width>{from.values + first, k},
                         Vectors<Value, width>{to.values + first, k}))
                return false;
        return true;
    };
    if (!all_of(std::integral_constant<int64_t, 8>{}) ||
        !all_of(std::integral_constant<int64_t, 2>{}))
        return false;
    if (first == k) return true;
    LastColumn<const Value> last_from(from, n_from);
    LastColumn<Value> last_to(to, n_to);
    if (!product(Vectors<const Value, 1>{last_from.values(), 1},
                 Vectors<Value, 1>{last_to.values(), 1}))
        return false;
    last_to.put_back();
    return true;
}

/// Calls f with a value of the type in which rows are read.
template <class Value, class F>
bool with_row_index(const Basis& basis, const CsrView<Value>& x, const F& f) {
    return x.columns.visit(
        [&]<class Index>(const Index*) { return basis.highest > 2 ? f(int64_t{}) : f(Index{}); });
}

template <class Value>
bool apply(const Basis& basis, const Basis&, const CsrView<Value>& x,
           VectorTable<const Value> coefficients, VectorTable<Value> out, Effort effort,
           const StopRequest& should_stop) {
    return with_row_index(basis, x, [&]<class Index>(Index) {
        const auto product = [&]<int64_t width>(Vectors<const Value, width> from,
                                                Vectors<Value, width> to) {
            return dot_all<Index, width>(basis, x, from, to, effort, should_stop);
        };
        return by_panels(coefficients, basis.n_columns(), out, x.n_rows, product);
    });
}

template <class Value>
bool apply_transposed(const Basis& basis, const Basis&, const CsrView<Value>& x,
                      VectorTable<const Value> weights, VectorTable<Value> out, Effort effort,
                      const StopRequest& should_stop) {
    if (basis.n_columns() == 0) return true;
    return with_row_index(basis, x, [&]<class Index>(Index) {
        const auto product = [&]<int64_t width>(Vectors<const Value, width> from,
                                                Vectors<Value, width> to) {
            return scatter_all<Index, width>(basis, x, from, to, effort, should_stop);
        };
        return by_panels(weights, x.n_rows, out, basis.n_columns(), product);
    });
}

}  // namespace polysparse
