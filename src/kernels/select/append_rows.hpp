// Rows whose length is known only once they are made: chosen or hashed columns. Workers make tasks
// of rows, or parts of a long row, in memory that stays in cache, and append them in order.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <mutex>
#include <span>
#include <vector>

#include "basis/basis.hpp"
#include "expand/row_shape.hpp"
#include "matrix/csr_view.hpp"
#include "matrix/slots.hpp"
#include "platform/spin.hpp"
#include "platform/threads.hpp"

namespace polysparse {

/// Where rows are appended: n_slots at most; offsets separate them.
template <class Value>
struct AppendTo {
    OutIndices offsets;
    Slots<int32_t, Value> slots;
    int64_t n_slots;
};

/// Outputs of a task, about: so many as are wanted, or 0 for the default.
constexpr int64_t task_size(int64_t wanted) {
    return wanted > 0 ? wanted : int64_t{1} << 17;
}

enum class Appending { whole, stopped, full };

/// Workers pass one at a time, in the order of their tasks. Tasks must be started in order, so that
/// no task waits for one that has not started.
class Turns {
  public:
    /// Waits for the tasks before this one.
    void wait(int64_t task) {
        const auto is_next = [&] { return turn_ == task; };
        spin_until(is_next);
        std::unique_lock lock(mutex_);
        passed_.wait(lock, is_next);
    }
    /// The next task's turn.
    void pass() {
        {
            const std::lock_guard lock(mutex_);
            ++turn_;
        }
        passed_.notify_all();
    }

  private:
    // Not std::atomic::wait, which can miss a wake-up in libstdc++ 12 where there are no futexes.
    std::mutex mutex_;
    std::condition_variable passed_;
    std::atomic<int64_t> turn_{0};  // changes under the mutex, and is read without it first
};

/// Rows [first, last), or one part of a single row.
struct AppendTask {
    int64_t first, last;
    int64_t part, n_parts;
    int64_t n_outputs;  // once it is done
};

struct AppendTasks {
    std::vector<AppendTask> tasks;
    int64_t largest = 0;  // the most outputs a task can have
};

/// How rows are divided: not at all. The basis must outlive it.
class WholeRows {
  public:
    WholeRows(const Basis& basis, int64_t n_columns) : basis_(&basis), n_columns_(n_columns) {}

    const Basis& basis() const { return *basis_; }
    /// No row has more outputs.
    int64_t n_columns() const { return n_columns_; }
    /// Into how many parts, of about `share` outputs, to divide a row.
    int64_t n_parts(RowShape, int64_t) const { return 1; }
    /// No part of such a row has more outputs.
    int64_t part_capacity(RowShape shape, int64_t) const {
        return std::min(row_size(*basis_, shape), n_columns_);
    }

  private:
    const Basis* basis_;
    int64_t n_columns_;
};

/// No task that such rows are cut into has more outputs.
template <class Division>
int64_t most_in_task(const Division& division, std::span<const RowsOfShape> rows, int64_t share) {
    int64_t most = 0, all = 0, largest = 0;  // all: of rows that stay whole, up to what matters
    for (const auto& [shape, n_rows] : rows) {
        const int64_t n_parts = division.n_parts(shape, share);
        const int64_t capacity = division.part_capacity(shape, n_parts);
        if (n_parts > 1) {
            most = std::max(most, capacity);
        } else {
            largest = std::max(largest, capacity);
            all += std::min(n_rows, share) * capacity;
        }
    }
    return std::max(most, std::min(all, share + largest));
}

/// Cuts the rows of x into tasks of about `share` outputs, if every output were kept.
template <class Division, class Value>
AppendTasks cut_into_tasks(const Basis& basis, const CsrView<Value>& x, const Division& maker,
                           int64_t share) {
    AppendTasks out;
    RowSizes size_of(basis);
    int64_t first = 0, in_task = 0, made = 0;  // outputs that may be kept; all, and rows
    const auto end_task = [&](int64_t last) {
        if (first < last) out.tasks.push_back({first, last, 0, 1, 0});
        first = last;
        in_task = made = 0;
    };
    for (int64_t r = 0; r < x.n_rows; ++r) {
        const RowShape shape = shape_of(x.row_offsets, r);
        const int64_t n_parts = maker.n_parts(shape, share);
        const int64_t size = size_of(shape);
        if (n_parts > 1) {
            end_task(r);
            for (int64_t part = 0; part < n_parts; ++part)
                out.tasks.push_back({r, r + 1, part, n_parts, 0});
            out.largest = std::max(out.largest, maker.part_capacity(shape, n_parts));
            first = r + 1;
            continue;
        }
        in_task += std::min(size, maker.n_columns());
        made += size + 1;
        out.largest = std::max(out.largest, in_task);
        if (made >= share) end_task(r + 1);
    }
    end_task(x.n_rows);
    return out;
}

/// Bytes of the buffer in which append_rows makes a task, for each maker.
template <class Value, class Division>
uint64_t task_bytes(const Division& division, std::span<const RowsOfShape> rows, int64_t share) {
    return SlotArrays<int32_t, Value>::bytes(most_in_task(division, rows, share) + 1);
}

/// Bytes of n workers. More than a petabyte each counts as a petabyte: no machine has it.
inline uint64_t bytes_of_workers(uint64_t each, int64_t n) {
    return std::min(each, uint64_t{1} << 50) * n;
}

/// Turns the lengths of rows, at offsets[r + 1], into offsets. A divided row's length is the sum of
/// its parts.
inline void sum_offsets(const std::vector<AppendTask>& tasks, int64_t n_rows,
                        const OutIndices& offsets) {
    for (const AppendTask& task : tasks)
        if (task.n_parts > 1 && task.part == 0) offsets.set(task.last, 0);
    for (const AppendTask& task : tasks)
        if (task.n_parts > 1) offsets.set(task.last, offsets[task.last] + task.n_outputs);
    int64_t end = 0;
    offsets.set(0, 0);
    for (int64_t r = 0; r < n_rows; ++r) {
        end += offsets[r + 1];
        offsets.set(r + 1, end);
    }
}

/// Appends all rows of x as the makers make them, one maker for each worker. `wanted`: outputs per
/// task; 0 for the default. The result does not depend on the number of makers. `full`: there are
/// too few slots. Throws bad_alloc, while no thread runs.
///
/// A RowMaker says how it divides rows, as WholeRows does, and has fill(x, r, part, n_parts, out),
/// which writes a part of row r and returns its length; one more slot may be written.
template <class RowMaker, class Value>
Appending append_rows(const Basis& basis, const CsrView<Value>& x, std::vector<RowMaker>& makers,
                      const AppendTo<Value>& out, int64_t wanted, const StopRequest& should_stop) {
    const auto n_threads = static_cast<int64_t>(makers.size());
    AppendTasks cut = cut_into_tasks(basis, x, makers[0], task_size(wanted));
    std::vector<SlotArrays<int32_t, Value>> buffers;
    for (int64_t worker = 0; worker < n_threads; ++worker) buffers.emplace_back(cut.largest + 1);

    Turns turns;
    int64_t end_of_all = 0;  // belongs to the task whose turn it is
    std::atomic<bool> is_full{false};
    const auto append_task = [&](int64_t worker, int64_t number) {
        AppendTask& task = cut.tasks[number];
        // A single worker makes rows in place while there is room for a whole task.
        const bool is_direct = n_threads == 1 && end_of_all + cut.largest < out.n_slots;
        const Slots<int32_t, Value> buffer =
            is_direct ? out.slots + end_of_all : buffers[worker].slots();
        for (int64_t r = task.first; r < task.last && !is_full; ++r) {
            const int64_t n =
                makers[worker].fill(x, r, task.part, task.n_parts, buffer + task.n_outputs);
            if (task.n_parts == 1) out.offsets.set(r + 1, n);
            task.n_outputs += n;
        }
        turns.wait(number);
        const int64_t begin = end_of_all;
        end_of_all += task.n_outputs;
        turns.pass();
        if (begin + task.n_outputs > out.n_slots) is_full = true;
        if (is_full || is_direct) return;
        std::memcpy(out.slots.columns + begin, buffer.columns, task.n_outputs * sizeof(int32_t));
        std::memcpy(out.slots.values + begin, buffer.values, task.n_outputs * sizeof(Value));
    };
    if (!run_tasks(std::ssize(cut.tasks), n_threads, append_task, should_stop, Order::in_order))
        return Appending::stopped;
    if (is_full) return Appending::full;
    sum_offsets(cut.tasks, x.n_rows, out.offsets);
    return Appending::whole;
}

}  // namespace polysparse
