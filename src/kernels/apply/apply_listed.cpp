#include "apply/apply_listed.hpp"

#include <algorithm>
#include <iterator>
#include <variant>
#include <vector>

#include "apply/hashed_lister.hpp"
#include "expand/row_shape.hpp"
#include "matrix/slots.hpp"
#include "platform/crew.hpp"
#include "select/append_rows.hpp"
#include "select/chosen_row.hpp"
#include "select/output_piece.hpp"

namespace polysparse {
namespace {

/// Calls f with a maker of rows for each worker.
template <class Value, class F>
bool with_makers(const Basis& basis, const Lookup& lookup, const CsrView<Value>& x,
                 int64_t n_threads, const F& f) {
    const RowShape largest = largest_shape(x.row_offsets, x.n_rows);
    return std::visit(
        [&]<class Table>(const Table& table) {
            std::vector<ChosenRow<Table, Value>> makers;
            for (int64_t worker = 0; worker < n_threads; ++worker)
                makers.emplace_back(basis, table, largest);
            return f(makers);
        },
        lookup);
}
template <class Value, class F>
bool with_makers(const Basis& basis, const Hasher& hasher, const CsrView<Value>& x,
                 int64_t n_threads, const F& f) {
    const RowShape largest = largest_shape(x.row_offsets, x.n_rows);
    std::vector<HashedLister<Value>> makers;
    for (int64_t worker = 0; worker < n_threads; ++worker)
        makers.emplace_back(basis, hasher, largest);
    return f(makers);
}

/// Outputs of a task, if all were kept.
constexpr int64_t default_share = int64_t{1} << 15;

int64_t share_of(Effort effort) {
    return effort.task > 0 ? effort.task : default_share;
}

/// Writes the product of one listed row to k sums.
template <class Value>
void dot_list(ConstSlots<int32_t, Value> list, int64_t n, const Value* coefficients, int64_t k,
              Value* sums) {
    if (k == 1) {  // four sums in turn, so that they need not wait for each other
        Value turns[4] = {};
        int64_t t = 0;
        for (; t + 4 <= n; t += 4)
            for (int64_t u = 0; u < 4; ++u)
                turns[u] += list.values[t + u] * coefficients[list.columns[t + u]];
        for (; t < n; ++t) turns[0] += list.values[t] * coefficients[list.columns[t]];
        *sums = (turns[0] + turns[1]) + (turns[2] + turns[3]);
        return;
    }
    std::fill_n(sums, k, Value(0));
    for (int64_t t = 0; t < n; ++t) {
        const Value* const of_column = coefficients + list.columns[t] * k;
        for (int64_t c = 0; c < k; ++c) sums[c] += list.values[t] * of_column[c];
    }
}

template <class By, class Value>
bool dot_listed(const Basis& basis, const By& by, const CsrView<Value>& x,
                VectorTable<const Value> coefficients, VectorTable<Value> out, Effort effort,
                const StopRequest& should_stop) {
    const int64_t k = out.n_vectors;
    return with_makers(
        basis, by, x, effort.n_threads, [&]<class Maker>(std::vector<Maker>& makers) {
            const AppendTasks cut = cut_into_tasks(basis, x, makers[0], share_of(effort));
            std::vector<SlotArrays<int32_t, Value>> rooms;
            for (size_t worker = 0; worker < makers.size(); ++worker)
                rooms.emplace_back(cut.largest + lanes);
            std::vector<Value> parts(cut.tasks.size() * k);  // of tasks that are parts of a row
            const auto dot_task = [&](int64_t worker, int64_t number) {
                const AppendTask& task = cut.tasks[number];
                const Slots<int32_t, Value> room = rooms[worker].slots();
                for (int64_t r = task.first; r < task.last; ++r) {
                    const int64_t n = makers[worker].fill(x, r, task.part, task.n_parts, room);
                    Value* const sums =
                        task.n_parts > 1 ? parts.data() + number * k : out.values + r * k;
                    dot_list<Value>(room, n, coefficients.values, k, sums);
                }
            };
            if (!run_tasks(std::ssize(cut.tasks), effort.n_threads, dot_task, should_stop))
                return false;
            for (int64_t number = 0; number < std::ssize(cut.tasks); ++number) {
                const AppendTask& task = cut.tasks[number];
                for (int64_t c = 0; c < k && task.n_parts > 1; ++c) {
                    Value& sum = out.values[task.first * k + c];
                    sum = (task.part == 0 ? Value(0) : sum) + parts[number * k + c];
                }
            }
            return true;
        });
}

/// Adds one listed row, times its k weights.
template <class Value>
void add_list(ConstSlots<int32_t, Value> list, int64_t n, const Value* weights, int64_t k,
              Value* out) {
    if (k == 1) {
        const Value weight = *weights;
        for (int64_t t = 0; t < n; ++t) out[list.columns[t]] += list.values[t] * weight;
        return;
    }
    for (int64_t t = 0; t < n; ++t) {
        Value* const of_column = out + list.columns[t] * k;
        for (int64_t c = 0; c < k; ++c) of_column[c] += list.values[t] * weights[c];
    }
}

/// Workers list tasks, and take turns to add what they listed: every number is summed in the order
/// of the rows. To list takes twice as long as to add, or longer.
template <class Maker, class Value>
bool scatter_in_turns(std::vector<Maker>& makers, const CsrView<Value>& x, const AppendTasks& cut,
                      VectorTable<const Value> weights, VectorTable<Value> out, int64_t n_threads,
                      const StopRequest& should_stop) {
    const int64_t k = out.n_vectors;
    int64_t most_rows = 0;
    for (const AppendTask& task : cut.tasks)
        most_rows = std::max(most_rows, task.last - task.first);
    std::vector<SlotArrays<int32_t, Value>> rooms;
    std::vector<std::vector<int64_t>> row_ends;  // of the rows in a room
    for (size_t worker = 0; worker < makers.size(); ++worker) {
        rooms.emplace_back(cut.largest + lanes);
        row_ends.emplace_back(most_rows);
    }
    Turns turns;
    const auto add_task = [&](int64_t worker, int64_t number) {
        const AppendTask& task = cut.tasks[number];
        const Slots<int32_t, Value> room = rooms[worker].slots();
        std::vector<int64_t>& ends = row_ends[worker];
        int64_t n = 0;
        for (int64_t r = task.first; r < task.last; ++r) {
            n += makers[worker].fill(x, r, task.part, task.n_parts, room + n);
            ends[r - task.first] = n;
        }
        turns.wait(number);
        n = 0;
        for (int64_t r = task.first; r < task.last; ++r) {
            const int64_t end = ends[r - task.first];
            add_list<Value>(room + n, end - n, weights.values + r * k, k, out.values);
            n = end;
        }
        turns.pass();
    };
    return run_tasks(std::ssize(cut.tasks), n_threads, add_task, should_stop, Order::in_order);
}

/// The same for one vector, some tasks at a time: workers list them and distribute what they listed
/// by ranges of columns; then each range is added by one of them, from one task after the other.
/// Nearly always it is the same one, in whose cache the range stays.
template <class Maker, class Value>
bool scatter_by_ranges(std::vector<Maker>& makers, const CsrView<Value>& x, const AppendTasks& cut,
                       ColumnRanges ranges, const Value* weights, Value* out, int64_t n_threads,
                       const StopRequest& should_stop) {
    const int64_t n_tasks = std::ssize(cut.tasks);
    const int64_t n_together = std::min(n_tasks, std::max<int64_t>(8, 2 * n_threads));
    std::vector<OutputPiece<Value>> pieces;
    for (int64_t i = 0; i < n_together; ++i) pieces.emplace_back(cut.largest + lanes, ranges);
    const KeptThreads kept;
    for (int64_t begin = 0; begin < n_tasks; begin += n_together) {
        const int64_t n_pieces = std::min(n_tasks - begin, n_together);
        const auto list_task = [&](int64_t worker, int64_t i) {
            const AppendTask& task = cut.tasks[begin + i];
            const Slots<int32_t, Value> list = pieces[i].list();
            int64_t n = 0;
            for (int64_t r = task.first; r < task.last; ++r) {
                const int64_t end =
                    n + makers[worker].fill(x, r, task.part, task.n_parts, list + n);
                for (; n < end; ++n) list.values[n] *= weights[r];
            }
            pieces[i].distribute(n);
        };
        const auto add_range = [&](int64_t, int64_t range) {
            const auto add = [&](const int32_t* columns, const Value* values, int64_t n) {
                for (int64_t t = 0; t < n; ++t) out[columns[t]] += values[t];
            };
            for (int64_t i = 0; i < n_pieces; ++i) pieces[i].give(range, add);
        };
        if (!run_tasks(n_pieces, n_threads, list_task, should_stop) ||
            !run_tasks(ranges.count(), n_threads, add_range, should_stop))
            return false;
    }
    return true;
}

int64_t count_columns(const Lookup& lookup) {
    return std::visit([](const auto& table) { return table.n_columns(); }, lookup);
}
int64_t count_columns(const Hasher& hasher) {
    return static_cast<int64_t>(hasher.n_columns);
}

/// How many threads it takes to multiply one vector faster than one does. To distribute outputs
/// takes longer than to hash them, but not than to look them up.
int64_t least_sharing(const Lookup&) {
    return 2;
}
int64_t least_sharing(const Hasher&) {
    return 4;
}

template <class By, class Value>
bool scatter_listed(const Basis& basis, const By& by, const CsrView<Value>& x,
                    VectorTable<const Value> weights, VectorTable<Value> out, Effort effort,
                    const StopRequest& should_stop) {
    const bool is_one = out.n_vectors == 1;
    const int64_t n_threads = is_one && effort.n_threads < least_sharing(by) ? 1 : effort.n_threads;
    return with_makers(basis, by, x, n_threads, [&](auto& makers) {
        const AppendTasks cut = cut_into_tasks(basis, x, makers[0], share_of(effort));
        if (!is_one || n_threads == 1)
            return scatter_in_turns(makers, x, cut, weights, out, n_threads, should_stop);
        return scatter_by_ranges(makers, x, cut, ColumnRanges(count_columns(by)), weights.values,
                                 out.values, n_threads, should_stop);
    });
}

}  // namespace

template <class Value>
bool apply(const Basis& basis, const Lookup& lookup, const CsrView<Value>& x,
           VectorTable<const Value> coefficients, VectorTable<Value> out, Effort effort,
           const StopRequest& should_stop) {
    return dot_listed(basis, lookup, x, coefficients, out, effort, should_stop);
}

template <class Value>
bool apply(const Basis& basis, const Hasher& hasher, const CsrView<Value>& x,
           VectorTable<const Value> coefficients, VectorTable<Value> out, Effort effort,
           const StopRequest& should_stop) {
    return dot_listed(basis, hasher, x, coefficients, out, effort, should_stop);
}

template <class Value>
bool apply_transposed(const Basis& basis, const Lookup& lookup, const CsrView<Value>& x,
                      VectorTable<const Value> weights, VectorTable<Value> out, Effort effort,
                      const StopRequest& should_stop) {
    return scatter_listed(basis, lookup, x, weights, out, effort, should_stop);
}

template <class Value>
bool apply_transposed(const Basis& basis, const Hasher& hasher, const CsrView<Value>& x,
                      VectorTable<const Value> weights, VectorTable<Value> out, Effort effort,
                      const StopRequest& should_stop) {
    return scatter_listed(basis, hasher, x, weights, out, effort, should_stop);
}

#define POLYSPARSE_PRODUCTS(By, Value)                                                            \
    template bool apply(const Basis&, const By&, const CsrView<Value>&, VectorTable<const Value>, \
                        VectorTable<Value>, Effort, const StopRequest&);                          \
    template bool apply_transposed(const Basis&, const By&, const CsrView<Value>&,                \
                                   VectorTable<const Value>, VectorTable<Value>, Effort,          \
                                   const StopRequest&)
POLYSPARSE_PRODUCTS(Lookup, float);
POLYSPARSE_PRODUCTS(Lookup, double);
POLYSPARSE_PRODUCTS(Hasher, float);
POLYSPARSE_PRODUCTS(Hasher, double);
#undef POLYSPARSE_PRODUCTS

}  // namespace polysparse
