#include "apply/apply_listed.hpp"

#include <algorithm>
#include <bit>
#include <iterator>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "apply/hashed_lister.hpp"
#include "expand/row_shape.hpp"
#include "matrix/slots.hpp"
#include "select/append_rows.hpp"
#include "select/chosen_row.hpp"

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

/// What one task adds to the result, divided by ranges of columns. In each range outputs are in the
/// order of the rows.
template <class Value>
class Contributions {
  public:
    /// For up to n outputs. Throws bad_alloc.
    Contributions(int64_t n, int64_t n_ranges)
        : columns_(std::make_unique_for_overwrite<int32_t[]>(n)),
          rows_(std::make_unique_for_overwrite<int32_t[]>(n)),
          values_(std::make_unique_for_overwrite<Value[]>(n)),
          ends_(n_ranges) {}

    /// Takes n listed outputs. rows[t] is the row of output t, counted from `first_row`; column j
    /// is in range j >> range_bits.
    void take(ConstSlots<int32_t, Value> list, const int32_t* rows, int64_t n, int64_t first_row,
              int range_bits) {
        first_row_ = first_row;
        std::fill(ends_.begin(), ends_.end(), 0);
        for (int64_t t = 0; t < n; ++t) ++ends_[list.columns[t] >> range_bits];
        int64_t before = 0;
        for (int64_t& end : ends_) before += std::exchange(end, before);
        for (int64_t t = 0; t < n; ++t) {
            const int64_t place = ends_[list.columns[t] >> range_bits]++;
            columns_[place] = list.columns[t];
            rows_[place] = rows[t];
            values_[place] = list.values[t];
        }
    }

    /// Adds those of one range, times the weights of their rows.
    void add(int64_t range, VectorTable<const Value> weights, VectorTable<Value> out) const {
        const int64_t k = out.n_vectors;
        const Value* const of_task = weights.values + first_row_ * k;
        const int64_t begin = range == 0 ? 0 : ends_[range - 1], end = ends_[range];
        const int32_t *const columns = columns_.get(), *const rows = rows_.get();
        const Value* const values = values_.get();
        if (k == 1) {
            for (int64_t t = begin; t < end; ++t)
                out.values[columns[t]] += values[t] * of_task[rows[t]];
            return;
        }
        for (int64_t t = begin; t < end; ++t)
            for (int64_t c = 0; c < k; ++c)
                out.values[columns[t] * k + c] += values[t] * of_task[rows[t] * k + c];
    }

  private:
    std::unique_ptr<int32_t[]> columns_, rows_;
    std::unique_ptr<Value[]> values_;
    std::vector<int64_t> ends_;
    int64_t first_row_ = 0;
};

/// In rounds: workers list a few tasks each, divided by ranges of columns, and then add a range
/// each, task by task. So every number is summed in the order of the rows.
template <class By, class Value>
bool scatter_listed(const Basis& basis, const By& by, const CsrView<Value>& x, int64_t n_columns,
                    VectorTable<const Value> weights, VectorTable<Value> out, Effort effort,
                    const StopRequest& should_stop) {
    const int64_t n_threads = effort.n_threads;
    return with_makers(basis, by, x, n_threads, [&]<class Maker>(std::vector<Maker>& makers) {
        const AppendTasks cut = cut_into_tasks(basis, x, makers[0], share_of(effort));
        const int64_t n_tasks = std::ssize(cut.tasks), in_round = std::min(4 * n_threads, n_tasks);
        const int range_bits =
            n_threads == 1 ? 31
                           : std::bit_width(static_cast<uint64_t>(n_columns / (4 * n_threads)));
        const int64_t n_ranges = (n_columns >> range_bits) + 1;
        std::vector<SlotArrays<int32_t, Value>> rooms;
        std::vector<std::unique_ptr<int32_t[]>> row_rooms;
        for (int64_t worker = 0; worker < n_threads; ++worker) {
            rooms.emplace_back(cut.largest + lanes);
            row_rooms.push_back(std::make_unique_for_overwrite<int32_t[]>(cut.largest));
        }
        std::vector<Contributions<Value>> listed;
        for (int64_t i = 0; i < in_round; ++i) listed.emplace_back(cut.largest, n_ranges);

        for (int64_t first = 0; first < n_tasks; first += in_round) {
            const int64_t here = std::min(in_round, n_tasks - first);
            const auto list_task = [&](int64_t worker, int64_t i) {
                const AppendTask& task = cut.tasks[first + i];
                int64_t n = 0;
                for (int64_t r = task.first; r < task.last; ++r) {
                    const int64_t n_row = makers[worker].fill(x, r, task.part, task.n_parts,
                                                              rooms[worker].slots() + n);
                    std::fill_n(row_rooms[worker].get() + n, n_row,
                                static_cast<int32_t>(r - task.first));
                    n += n_row;
                }
                listed[i].take(rooms[worker].slots(), row_rooms[worker].get(), n, task.first,
                               range_bits);
            };
            if (!run_tasks(here, n_threads, list_task, should_stop)) return false;
            const auto add_range = [&](int64_t, int64_t range) {
                for (int64_t i = 0; i < here; ++i) listed[i].add(range, weights, out);
            };
            if (!run_tasks(n_ranges, n_threads, add_range, should_stop)) return false;
        }
        return true;
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
    const int64_t n_columns =
        std::visit([](const auto& table) { return table.n_columns(); }, lookup);
    return scatter_listed(basis, lookup, x, n_columns, weights, out, effort, should_stop);
}

template <class Value>
bool apply_transposed(const Basis& basis, const Hasher& hasher, const CsrView<Value>& x,
                      VectorTable<const Value> weights, VectorTable<Value> out, Effort effort,
                      const StopRequest& should_stop) {
    const auto n_columns = static_cast<int64_t>(hasher.n_columns);
    return scatter_listed(basis, hasher, x, n_columns, weights, out, effort, should_stop);
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
