#include "apply/apply_listed.hpp"

#include <algorithm>
#include <iterator>
#include <new>
#include <span>
#include <type_traits>
#include <variant>
#include <vector>

#include "apply/chunks.hpp"
#include "apply/hashed_lister.hpp"
#include "expand/row_readers.hpp"
#include "expand/row_shape.hpp"
#include "matrix/slots.hpp"
#include "platform/thread_pool.hpp"
#include "select/append_rows.hpp"
#include "select/chosen_makers.hpp"
#include "select/output_piece.hpp"

namespace polysparse {
namespace {

/// Calls f with a maker of rows for each worker.
template <class Value, class F>
bool with_makers(const Basis& basis, const Lookup& lookup, const CsrView<Value>& x,
                 int64_t n_threads, const F& f) {
    const RowShape largest = largest_shape(x.row_offsets, x.n_rows);
    return with_chosen_makers<Value>(basis, lookup, largest, n_threads, f);
}
template <class Value, class F>
bool with_makers(const Basis& basis, const Hasher& hasher, const CsrView<Value>& x,
                 int64_t n_threads, const F& f) {
    const RowShape largest = largest_shape(x.row_offsets, x.n_rows);
    if (basis.groups && !is_countable(basis, largest)) throw std::bad_alloc();
    return with_row_reader<int64_t>(basis, [&]<class Rows>(std::type_identity<Rows>) {
        std::vector<HashedLister<Rows, Value>> makers;
        for (int64_t worker = 0; worker < n_threads; ++worker)
            makers.emplace_back(basis, hasher, largest);
        return f(makers);
    });
}

/// Outputs of a task, if all were kept.
constexpr int64_t default_share = int64_t{1} << 15;

int64_t share_of(Effort effort) {
    return effort.task > 0 ? effort.task : default_share;
}

/// Calls f with the number of vectors: one that the compiler knows, if they are few.
template <class F>
void with_few(int64_t k, const F& f) {
    switch (k) {
        case 1:
            return f(std::integral_constant<int64_t, 1>{});
        case 2:
            return f(std::integral_constant<int64_t, 2>{});
        case 3:
            return f(std::integral_constant<int64_t, 3>{});
        case 4:
            return f(std::integral_constant<int64_t, 4>{});
        default:
            return f(k);
    }
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
    with_few(k, [&](auto k) {
        for (int64_t t = 0; t < n; ++t) {
            const Value* const of_column = coefficients + list.columns[t] * k;
            for (int64_t c = 0; c < k; ++c) sums[c] += list.values[t] * of_column[c];
        }
    });
}

/// A copy of a few numbers, which no other code changes, as the compiler knows; or where many are.
template <class K, class Value>
class OwnCopy {
  public:
    explicit OwnCopy(const Value* numbers) { std::copy_n(numbers, K::value, numbers_); }
    Value operator[](int64_t i) const { return numbers_[i]; }

  private:
    Value numbers_[K::value];
};
template <class Value>
class OwnCopy<int64_t, Value> {
  public:
    explicit OwnCopy(const Value* numbers) : numbers_(numbers) {}
    Value operator[](int64_t i) const { return numbers_[i]; }

  private:
    const Value* numbers_;
};

/// Adds one listed row, times its k weights.
template <class Value>
void add_list(ConstSlots<int32_t, Value> list, int64_t n, const Value* weights, int64_t k,
              Value* out) {
    with_few(k, [&](auto k) {
        const OwnCopy<decltype(k), Value> own(weights);
        for (int64_t t = 0; t < n; ++t) {
            Value* const of_column = out + list.columns[t] * k;
            for (int64_t c = 0; c < k; ++c) of_column[c] += list.values[t] * own[c];
        }
    });
}

/// The tasks of range i of n_ranges, which have about as many each.
std::span<const AppendTask> range_of(std::span<const AppendTask> tasks, int64_t i,
                                     int64_t n_ranges) {
    const int64_t n = std::ssize(tasks), begin = n * i / n_ranges;
    return tasks.subspan(begin, n * (i + 1) / n_ranges - begin);
}

/// Which of these ranges has a task, of n.
int64_t range_with(int64_t task, int64_t n, int64_t n_ranges) {
    return ((task + 1) * n_ranges - 1) / n;
}

/// Rows that one worker lists, a task at a time, and then adds.
template <class Value>
class ListedTask {
  public:
    /// For any task. Throws bad_alloc.
    explicit ListedTask(const AppendTasks& cut) : buffer_(cut.largest + lanes) {
        for (const AppendTask& task : cut.tasks)
            ends_.resize(std::max<size_t>(ends_.size(), task.last - task.first));
    }

    template <class Maker>
    void list(Maker& maker, const CsrView<Value>& x, const AppendTask& task) {
        int64_t n = 0;
        for (int64_t r = task.first; r < task.last; ++r) {
            n += maker.fill(x, r, task.part, task.n_parts, buffer_.slots() + n);
            ends_[r - task.first] = n;
        }
    }

    void add(const AppendTask& task, VectorTable<const Value> weights,
             VectorTable<Value> out) const {
        int64_t n = 0;
        for (int64_t r = task.first; r < task.last; ++r) {
            const int64_t end = ends_[r - task.first];
            add_list<Value>(buffer_.slots() + n, end - n, weights[r], out.n_vectors, out.values);
            n = end;
        }
    }

  private:
    SlotArrays<int32_t, Value> buffer_;
    std::vector<int64_t> ends_;  // of the rows in the buffer
};

/// One for each of n workers.
template <class Value>
std::vector<ListedTask<Value>> listed_tasks(const AppendTasks& cut, int64_t n) {
    std::vector<ListedTask<Value>> out;
    for (int64_t worker = 0; worker < n; ++worker) out.emplace_back(cut);
    return out;
}

/// Workers list tasks, and take turns to add what they listed: every number is summed in the order
/// of the rows. To list takes twice as long as to add, or longer.
template <class Maker, class Value>
bool scatter_in_turns(std::vector<Maker>& makers, const CsrView<Value>& x, const AppendTasks& cut,
                      VectorTable<const Value> weights, VectorTable<Value> out, int64_t n_threads,
                      const StopRequest& should_stop) {
    std::vector<ListedTask<Value>> listed = listed_tasks<Value>(cut, n_threads);
    Turns turns;
    const auto add_task = [&](int64_t worker, int64_t number) {
        listed[worker].list(makers[worker], x, cut.tasks[number]);
        turns.wait(number);
        listed[worker].add(cut.tasks[number], weights, out);
        turns.pass();
    };
    return run_tasks(std::ssize(cut.tasks), n_threads, add_task, should_stop, Order::in_order);
}

/// Workers list and add tasks, each of a chunk of its own.
template <class Maker, class Value>
bool scatter_chunks(std::vector<Maker>& makers, const CsrView<Value>& x, const AppendTasks& cut,
                    VectorTable<const Value> weights, ChunkResults<Value>& results,
                    int64_t n_threads, const StopRequest& should_stop) {
    const int64_t n_chunks = results.count();
    std::vector<ListedTask<Value>> listed = listed_tasks<Value>(cut, n_threads);
    // Workers stop between two batches of tasks, each of some milliseconds.
    const int64_t n_batches = std::ssize(cut.tasks) / n_chunks / 32 + 1;
    for (int64_t batch = 0; batch < n_batches; ++batch) {
        const auto add_batch = [&](int64_t worker, int64_t chunk) {
            for (const AppendTask& task :
                 range_of(range_of(cut.tasks, chunk, n_chunks), batch, n_batches)) {
                listed[worker].list(makers[worker], x, task);
                listed[worker].add(task, weights, results[chunk]);
            }
        };
        if (!run_tasks(n_chunks, n_threads, add_batch, should_stop)) return false;
    }
    return results.add(n_threads, should_stop);
}

/// For one vector, some tasks at a time: workers list them and distribute what they listed
/// by ranges of columns; then each range is added by one of them, from one task after the other.
/// Nearly always it is the same one, in whose cache the range stays.
template <class Maker, class Value>
bool scatter_by_ranges(std::vector<Maker>& makers, const CsrView<Value>& x, const AppendTasks& cut,
                       ColumnRanges ranges, const Value* weights, ChunkResults<Value>& results,
                       int64_t n_threads, const StopRequest& should_stop) {
    const int64_t n_tasks = std::ssize(cut.tasks);
    const int64_t n_together = std::min(n_tasks, std::max<int64_t>(8, 2 * n_threads));
    std::vector<OutputPiece<Value>> pieces;
    for (int64_t i = 0; i < n_together; ++i) pieces.emplace_back(cut.largest + lanes, ranges);
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
            for (int64_t i = 0; i < n_pieces; ++i) {
                const int64_t chunk = range_with(begin + i, n_tasks, results.count());
                Value* const out = results[chunk].values;
                pieces[i].give(range, [&](const int32_t* columns, const Value* values, int64_t n) {
                    for (int64_t t = 0; t < n; ++t) out[columns[t]] += values[t];
                });
            }
        };
        if (!run_tasks(n_pieces, n_threads, list_task, should_stop) ||
            !run_tasks(ranges.count(), n_threads, add_range, should_stop))
            return false;
    }
    return results.add(n_threads, should_stop);
}

int64_t count_columns(const Lookup& lookup) {
    return std::visit([](const auto& table) { return table.n_columns(); }, lookup);
}
int64_t count_columns(const Hasher& hasher) {
    return static_cast<int64_t>(hasher.n_columns);
}

/// How many threads it takes to add one vector by ranges faster than one does by rows. To
/// distribute outputs takes longer than to hash them, but not than to look them up.
template <class By>
constexpr int64_t least_sharing = std::is_same_v<By, Hasher> ? 4 : 2;

}  // namespace

template <class Value, class By>
bool apply(const Basis& basis, const By& by, const CsrView<Value>& x,
           VectorTable<const Value> coefficients, VectorTable<Value> out, Effort effort,
           const StopRequest& should_stop) {
    const int64_t k = out.n_vectors;
    return with_makers(
        basis, by, x, effort.n_threads, [&]<class Maker>(std::vector<Maker>& makers) {
            const AppendTasks cut = cut_into_tasks(basis, x, makers[0], share_of(effort));
            std::vector<SlotArrays<int32_t, Value>> buffers;
            for (size_t worker = 0; worker < makers.size(); ++worker)
                buffers.emplace_back(cut.largest + lanes);
            std::vector<Value> parts(cut.tasks.size() * k);  // of tasks that are parts of a row
            const auto dot_task = [&](int64_t worker, int64_t number) {
                const AppendTask& task = cut.tasks[number];
                const Slots<int32_t, Value> buffer = buffers[worker].slots();
                for (int64_t r = task.first; r < task.last; ++r) {
                    const int64_t n = makers[worker].fill(x, r, task.part, task.n_parts, buffer);
                    Value* const sums =
                        task.n_parts > 1 ? parts.data() + number * k : out.values + r * k;
                    dot_list<Value>(buffer, n, coefficients.values, k, sums);
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

template <class Value, class By>
bool apply_transposed(const Basis& basis, const By& by, const CsrView<Value>& x,
                      VectorTable<const Value> weights, VectorTable<Value> out, Effort effort,
                      const StopRequest& should_stop) {
    const int64_t n_columns = count_columns(by), k = out.n_vectors;
    if (k == 0) return true;
    // Two threads that share ranges are twice as fast as one already, if columns are looked up.
    const bool has_chunks = k > 1 || least_sharing<By> > 2;
    // More than two need no more memory than the values of the matrix.
    const int64_t n_kept = std::max<int64_t>(x.row_offsets[x.n_rows], k << 16);
    const int64_t n_chunks =
        has_chunks ? count_chunks<Value>(effort.n_outputs, n_columns, k, n_kept) : 1;
    const bool by_ranges = k == 1 && effort.n_threads >= least_sharing<By> * n_chunks;
    const bool in_turns = k > 1 && n_chunks == 1 && effort.n_threads > 1;
    const int64_t n_threads =
        by_ranges || in_turns ? effort.n_threads : std::min(effort.n_threads, n_chunks);
    return with_makers(basis, by, x, n_threads, [&](auto& makers) {
        const AppendTasks cut = cut_into_tasks(basis, x, makers[0], share_of(effort));
        if (in_turns) return scatter_in_turns(makers, x, cut, weights, out, n_threads, should_stop);
        ThreadPool own;
        const UsePool use(ThreadPool::current() != nullptr ? *ThreadPool::current() : own);
        ChunkResults<Value> results(n_chunks, n_columns, out, n_threads);
        if (by_ranges)
            return scatter_by_ranges(makers, x, cut, ColumnRanges(n_columns), weights.values,
                                     results, n_threads, should_stop);
        return scatter_chunks(makers, x, cut, weights, results, n_threads, should_stop);
    });
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
