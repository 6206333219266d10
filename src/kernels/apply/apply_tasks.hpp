// How `apply` and `apply_transposed` are done.
//
// A product with the expansion is shared out by rows. A long row is divided by its leads, and the
// sums of its parts are added in order.
//
// A product with the transposed expansion is shared out by columns. What a group of neighbouring
// leads contributes is a strip of the result for each degree. It belongs to one worker, which reads
// all rows in order: there are neither copies nor locks, and every number is summed in the order of
// the rows, whichever thread adds them. Where the result is short beside the work, rows are divided
// as well, into chunks that have a result each. How many there are depends on the matrix alone.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <type_traits>
#include <utility>
#include <vector>

#include "apply/apply.hpp"
#include "apply/chunks.hpp"
#include "apply/grouped_nest.hpp"
#include "apply/lead_parts.hpp"
#include "apply/nest.hpp"
#include "apply/sinks.hpp"
#include "apply/strips.hpp"
#include "apply/term_nest.hpp"
#include "apply/vector_groups.hpp"
#include "expand/row_shape.hpp"
#include "matrix/own_columns.hpp"

namespace polysparse {

/// What one worker reads and walks rows with.
template <class OfIndex, class SomeNest>
struct Walker {
    using Index = OfIndex;
    OwnColumns<Index> columns;
    SomeNest nest;
};

/// The features that each value of a row may have, if rows are known to be alike and distinct.
inline std::vector<ColumnRange> ranges_of_rows(const Basis& basis) {
    std::vector<ColumnRange> ranges;
    for (const int32_t group : basis.row_groups) {
        const int64_t first = basis.groups->start(group);
        ranges.push_back({first, first + basis.groups->size(group) - 1});
    }
    return ranges;
}

/// One for each worker. Throws bad_alloc.
template <class SomeWalker, class Value>
std::vector<SomeWalker> walkers_for(const Basis& basis, const CsrView<Value>& x,
                                    const Strips& strips, int64_t n_threads) {
    // A tuple whose columns do not increase may be in front of its degree, by up to gap(degree). If
    // the lowest degree has too few columns in front of it, no column may be so small. With groups
    // it may be anywhere.
    const ColumnOrder order = basis.groups ? ColumnOrder::increasing : ColumnOrder::any;
    const bool is_in_front = !basis.groups && basis.gap(basis.lowest) > basis.include_bias;
    const int64_t least = is_in_front ? basis.gap(basis.highest) : 0;
    const int64_t together = std::min(strips.stored_together(basis), x.row_offsets[x.n_rows]);
    const RowShape largest = largest_shape(x.row_offsets, x.n_rows);
    using Columns = OwnColumns<typename SomeWalker::Index>;
    const std::vector<ColumnRange> ranges = ranges_of_rows(basis);
    std::vector<SomeWalker> walkers;
    for (int64_t worker = 0; worker < n_threads; ++worker) {
        Columns columns = basis.knows_groups() ? Columns(ranges, together)
                                               : Columns(least, basis.n_features, n_stored(largest),
                                                         together, order);
        walkers.push_back({std::move(columns), {basis, largest}});
    }
    return walkers;
}

/// For k vectors.
template <class Value>
Strips strips_for(const Basis& basis, const CsrView<Value>& x, int64_t n_outputs, int64_t k) {
    return {basis, k, sizeof(Value), n_outputs / std::max<int64_t>(x.n_rows, 1)};
}

// ------------------------------------------------------------------------------------- products

constexpr int64_t worth_a_task = int64_t{1} << 13;  // outputs

/// Rows [first, last), or the part of one row that its values [from, to) lead.
struct RowTask {
    int64_t first, last;
    int64_t from, to;
    bool is_part;
};

/// The row in which a share of all stored values ends.
inline int64_t row_at(const Indices& row_offsets, int64_t n_rows, double share) {
    const auto stored = static_cast<int64_t>(share * static_cast<double>(row_offsets[n_rows]));
    return largest_where(0, n_rows, [&](int64_t r) { return row_offsets[r] <= stored; });
}

/// Cuts rows into tasks of about `share` outputs and, if it can_divide rows, a row that is much
/// larger than `part` outputs into parts of about that.
inline std::vector<RowTask> cut_rows(const Basis& basis, const Indices& row_offsets, int64_t n_rows,
                                     int64_t n_outputs, int64_t share, int64_t part,
                                     bool can_divide) {
    std::vector<RowTask> tasks;
    int64_t first = 0;
    const auto end_task = [&](int64_t last) {
        if (first < last) tasks.push_back({first, last, 0, 0, false});
        first = std::max(first, last);
    };
    if (!can_divide || row_size(basis, largest_shape(row_offsets, n_rows)) <= 4 * part) {
        const int64_t n_tasks = n_outputs / share + 1;
        for (int64_t task = 1; task < n_tasks; ++task)
            end_task(row_at(row_offsets, n_rows, static_cast<double>(task) / n_tasks));
        end_task(n_rows);
        return tasks;
    }
    RowSizes size_of(basis);
    int64_t in_task = 0;
    for (int64_t r = 0; r < n_rows; ++r) {
        const RowShape shape = shape_of(row_offsets, r);
        const int64_t size = size_of(shape);
        if (size > 4 * part) {
            end_task(r);
            const LeadParts parts = LeadParts::of_about(basis, shape, part);
            for (int64_t i = 0; i < parts.count(); ++i)
                tasks.push_back({r, r + 1, parts.first(i), parts.first(i + 1), true});
            first = r + 1;
            in_task = 0;
            continue;
        }
        in_task += size + 1;
        if (in_task >= share) {
            end_task(r + 1);
            in_task = 0;
        }
    }
    end_task(n_rows);
    return tasks;
}

/// The products of one task, in the rows of `out` from the task's first on.
template <bool is_one, class SomeWalker, class Value>
void dot_rows(SomeWalker& walker, const CsrView<Value>& x, const RowTask& task,
              VectorTable<const Value> coefficients, VectorTable<Value> out) {
    using Index = typename SomeWalker::Index;
    const auto dot = [&](int64_t r, const Row<Index, Value>& row) POLYSPARSE_INLINE_LAMBDA {
        Value* const sums = out[r - task.first];
        std::fill_n(sums, is_one ? 1 : out.n_vectors, Value(0));
        const int64_t to = task.is_part ? task.to : row.n;
        walker.nest.walk(led_by(row, task.from, to), task.from == 0,
                         ToDot<Value, is_one>{coefficients, sums});
    };
    walker.columns.for_each(x, task.first, task.last, dot);
}

/// The same for whole rows, strip by strip.
template <bool is_one, class SomeWalker, class Value>
void dot_strips(SomeWalker& walker, const CsrView<Value>& x, const Strips& strips,
                const RowTask& task, VectorTable<const Value> coefficients,
                VectorTable<Value> out) {
    std::fill_n(out.values, (task.last - task.first) * out.n_vectors, Value(0));
    using Index = typename SomeWalker::Index;
    const auto dot = [&](int64_t r, const LedRow<Index, Value>& part, bool is_first) {
        Value* const sums = out[r - task.first];
        walker.nest.walk(part, is_first, ToDot<Value, is_one>{coefficients, sums});
    };
    strips.walk(x, walker.columns, task.first, task.last, 0, x.n_columns, dot);
}

template <class SomeWalker, bool is_one, class Value>
bool dot_all(const Basis& basis, const CsrView<Value>& x, VectorTable<const Value> coefficients,
             VectorTable<Value> out, Effort effort, const StopRequest& should_stop) {
    const int64_t k = out.n_vectors;
    const Strips strips = strips_for(basis, x, effort.n_outputs, k);
    const int64_t part = effort.task > 0 ? effort.task : int64_t{1} << 16;
    // A strip is read once for all rows of a task. Results depend on parts, but not on tasks.
    const int64_t share = std::clamp(effort.n_outputs / (4 * effort.n_threads),
                                     std::min(part, worth_a_task), part * strips.count());
    const Basis sizing = sizing_basis(basis, x.row_offsets, x.n_rows);
    const std::vector<RowTask> tasks =
        cut_rows(sizing, x.row_offsets, x.n_rows, effort.n_outputs, share, part, !basis.terms);
    std::vector<SomeWalker> walkers = walkers_for<SomeWalker>(basis, x, strips, effort.n_threads);
    std::vector<Value> parts(tasks.size() * k);  // of tasks that are parts of a row
    const auto dot_task = [&](int64_t worker, int64_t number) {
        const RowTask& task = tasks[number];
        Value* const sums = task.is_part ? parts.data() + number * k : out[task.first];
        if (strips.count() > 1 && !task.is_part)
            dot_strips<is_one>(walkers[worker], x, strips, task, coefficients, {sums, k});
        else
            dot_rows<is_one>(walkers[worker], x, task, coefficients, {sums, k});
    };
    if (!run_tasks(std::ssize(tasks), effort.n_threads, dot_task, should_stop)) return false;
    for (int64_t number = 0; number < std::ssize(tasks); ++number) {
        const RowTask& task = tasks[number];
        if (!task.is_part) continue;
        for (int64_t c = 0; c < k; ++c) {
            Value& sum = out[task.first][c];
            const Value part = parts[number * k + c];
            sum = task.from == 0 ? part : sum + part;
        }
    }
    return true;
}

// -------------------------------------------------------------------------- transposed products

/// Rows [first, last), of whose outputs those are wanted that columns [low, high) lead.
struct ScatterTask {
    int64_t first, last;
    int64_t low, high;
};

template <bool is_one, class SomeWalker, class Value>
void scatter_rows(SomeWalker& walker, const CsrView<Value>& x, const Strips& strips,
                  const ScatterTask& task, VectorTable<const Value> weights,
                  VectorTable<Value> out) {
    using Index = typename SomeWalker::Index;
    const auto scatter = [&](int64_t r, const LedRow<Index, Value>& part, bool is_first)
                             POLYSPARSE_INLINE_LAMBDA {
                                 walker.nest.walk(part, is_first && task.low == 0,
                                                  ToScatter<Value, is_one>{out, weights[r]});
                             };
    strips.walk(x, walker.columns, task.first, task.last, task.low, task.high, scatter);
}

/// Columns that divide a matrix into groups of leads with about as many outputs each, as far as a
/// sample of its rows can tell. The first is 0, the last n_features.
template <class Value>
std::vector<int64_t> divide_leads(const Basis& basis, const CsrView<Value>& x, int64_t n_outputs,
                                  int64_t n_groups) {
    std::vector<int64_t> bounds{0};
    if (n_groups > 1 && x.n_rows > 0) {
        const Basis sizing = sizing_basis(basis, x.row_offsets, x.n_rows);
        const int64_t per_row = x.row_offsets[x.n_rows] / std::max<int64_t>(x.n_rows, 1) + 1;
        const int64_t n_wanted = std::clamp<int64_t>(n_outputs >> 11, 64, 1024);
        const int64_t n_sampled = std::clamp<int64_t>(n_wanted / per_row, 1, x.n_rows);
        std::vector<std::pair<int64_t, double>> sample;  // leads, and how many outputs they have
        double total = 0;
        for (int64_t i = 0; i < n_sampled; ++i) {
            const int64_t r = x.n_rows / n_sampled * i;
            const int64_t begin = x.row_offsets[r], n = x.row_offsets[r + 1] - begin;
            for (int64_t a = 0; a < n; ++a) {
                sample.emplace_back(
                    within(x.columns[begin + a], x.n_columns),
                    static_cast<double>(size_led(sizing, shape_of(x.row_offsets, r), a, a + 1)));
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

template <class SomeWalker, bool is_one, class Value>
bool scatter_all(const Basis& basis, const CsrView<Value>& x, VectorTable<const Value> weights,
                 VectorTable<Value> out, Effort effort, const StopRequest& should_stop) {
    const int64_t n_columns = basis.n_columns(), n_threads = effort.n_threads, k = out.n_vectors;
    // Their results need little memory compared to the matrix, or to the few vectors of a solver.
    const int64_t n_kept = std::max<int64_t>(x.row_offsets[x.n_rows] / 4, k << 16);
    const int64_t n_chunks = count_chunks<Value>(effort.n_outputs, n_columns, k, n_kept);
    // As few groups as keep the threads busy: each looks for its leads in every row.
    const std::vector<int64_t> bounds =
        divide_leads(basis, x, effort.n_outputs, (n_threads - 1) / n_chunks + 1);
    const int64_t n_groups = std::ssize(bounds) - 1;
    // Workers stop between two batches of rows, which take a tenth of a second at most.
    const int64_t n_batches = effort.n_outputs / (int64_t{1} << 23) / n_threads + 1;
    const int64_t n_ranges = n_chunks * n_batches;
    const auto first_row = [&](int64_t range) {
        if (range == 0 || range == n_ranges) return range == 0 ? 0 : x.n_rows;
        return row_at(x.row_offsets, x.n_rows, static_cast<double>(range) / n_ranges);
    };

    const Strips strips = strips_for(basis, x, effort.n_outputs, k);
    std::vector<SomeWalker> walkers = walkers_for<SomeWalker>(basis, x, strips, n_threads);
    ChunkResults<Value> results(n_chunks, n_columns, out, n_threads);
    for (int64_t batch = 0; batch < n_batches; ++batch) {
        const auto scatter_task = [&](int64_t worker, int64_t task) {
            const int64_t chunk = task / n_groups, group = task % n_groups;
            const int64_t range = chunk * n_batches + batch;
            const ScatterTask rows{first_row(range), first_row(range + 1), bounds[group],
                                   bounds[group + 1]};
            scatter_rows<is_one>(walkers[worker], x, strips, rows, weights, results[chunk]);
        };
        if (!run_tasks(n_chunks * n_groups, n_threads, scatter_task, should_stop)) return false;
    }
    return results.add(n_threads, should_stop);
}

// ---------------------------------------------------------------------------------- any vectors

/// Calls f with the type of the walkers, and whether there is one vector.
template <class Value, class F>
bool with_kinds(const Basis& basis, const CsrView<Value>& x, int64_t n_vectors, const F& f) {
    return x.columns.visit([&]<class Index>(const Index*) {
        const auto with_nest = [&]<class SomeNest>(std::type_identity<SomeNest>) {
            const std::type_identity<Walker<Index, SomeNest>> walker;
            return n_vectors == 1 ? f(walker, std::true_type{}) : f(walker, std::false_type{});
        };
        if (basis.terms) return with_nest(std::type_identity<TermNest<Index, Value>>{});
        if (basis.groups) return with_nest(std::type_identity<GroupedNest<Index, Value>>{});
        return with_nest(std::type_identity<Nest<Index, Value>>{});
    });
}

/// Into which groups to divide k vectors. Strips keep their numbers in a cache already.
template <class Value>
VectorGroups groups_for(const Basis& basis, const CsrView<Value>& x, int64_t k, Effort effort,
                        int64_t cached) {
    if (strips_for(basis, x, effort.n_outputs, k).count() > 1) return {k, k};
    return VectorGroups::of(k, basis.n_columns(), sizeof(Value), effort.n_outputs, cached);
}

template <class Value>
bool apply(const Basis& basis, const CsrView<Value>& x, VectorTable<const Value> coefficients,
           VectorTable<Value> out, Effort effort, const StopRequest& should_stop) {
    const auto dot = [&](VectorTable<const Value> from, VectorTable<Value> to) {
        return with_kinds(basis, x, to.n_vectors,
                          [&]<class SomeWalker>(std::type_identity<SomeWalker>, auto is_one) {
                              return dot_all<SomeWalker, is_one>(basis, x, from, to, effort,
                                                                 should_stop);
                          });
    };
    const VectorGroups groups =
        groups_for(basis, x, out.n_vectors, effort, VectorGroups::cached_reads);
    return by_groups<false>(groups, coefficients, basis.n_columns(), out, x.n_rows,
                            effort.n_threads, dot);
}

template <class Value>
bool apply_transposed(const Basis& basis, const CsrView<Value>& x, VectorTable<const Value> weights,
                      VectorTable<Value> out, Effort effort, const StopRequest& should_stop) {
    if (basis.n_columns() == 0 || out.n_vectors == 0) return true;
    const auto scatter = [&](VectorTable<const Value> from, VectorTable<Value> to) {
        return with_kinds(basis, x, to.n_vectors,
                          [&]<class SomeWalker>(std::type_identity<SomeWalker>, auto is_one) {
                              return scatter_all<SomeWalker, is_one>(basis, x, from, to, effort,
                                                                     should_stop);
                          });
    };
    const VectorGroups groups =
        groups_for(basis, x, out.n_vectors, effort, VectorGroups::cached_sums);
    return by_groups<true>(groups, weights, x.n_rows, out, basis.n_columns(), effort.n_threads,
                           scatter);
}

}  // namespace polysparse
