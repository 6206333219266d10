// The rows of an expansion with only some of its columns, or with columns that fall together: how
// long a row is shows only when it is made. So workers make tasks of whole rows in memory of their
// own, that stays in cache, and append them to the output in the order of the rows.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <vector>

#include "count.hpp"
#include "csr_view.hpp"
#include "expand.hpp"
#include "fill.hpp"
#include "threads.hpp"

namespace polysparse {

/// Makes the chosen outputs of a row, for one worker. Lookup: see lookup.hpp.
template <class Lookup, class Value>
class ChosenRow {
  public:
    ChosenRow(const Basis& basis, const Lookup& lookup, int64_t longest)
        : basis_(&basis),
          lookup_(&lookup),
          row_(longest + lanes),
          all_(row_size(basis, longest) + lanes),
          lower_(basis, longest) {}

    /// Writes what is chosen, in order, and returns how much. Needs room for the whole row.
    template <class Index>
    int64_t fill(Row<Index, Value> row, Slots<int32_t, Value> out) {
        // A copy, behind which there is room to spill.
        std::copy_n(row.begin.columns, row.n, row_.slots().columns);
        std::copy_n(row.begin.values, row.n, row_.slots().values);
        fill_row<true>(*basis_, Row<int64_t, Value>{row_.slots(), row.n}, all_.slots(),
                       lower_.slots());
        return choose(all_.slots(), row_size(*basis_, row.n), out);
    }

  private:
    int64_t choose(ConstSlots<int64_t, Value> from, int64_t n, Slots<int32_t, Value> out) const {
        constexpr int64_t ahead = 32;
        int64_t n_chosen = 0;
        for (int64_t t = 0; t < std::min(n, ahead); ++t) lookup_->expect(from.columns[t]);
        for (int64_t t = 0; t < n; ++t) {
            if (t + ahead < n) lookup_->expect(from.columns[t + ahead]);
            const uint32_t place = lookup_->find(from.columns[t]);
            out.columns[n_chosen] = static_cast<int32_t>(place);  // to be overwritten if not chosen
            out.values[n_chosen] = from.values[t];
            n_chosen += place != not_chosen;
        }
        return n_chosen;
    }

    const Basis* basis_;
    const Lookup* lookup_;
    SlotArrays<int64_t, Value> row_, all_;
    Scratch<int64_t, Value> lower_;
};

/// Lets workers pass one after the other, in the order of their tasks, each taking a stretch of the
/// output. A task is begun only after all before it were, so that nobody waits for one that is not
/// at work.
class Turns {
  public:
    /// Where the task's n outputs go. Waits for the tasks before.
    int64_t take(int64_t task, int64_t n) {
        for (int64_t now = turn_; now != task; now = turn_) turn_.wait(now);
        const int64_t begin = end_;
        end_ = begin + n;
        turn_ = task + 1;
        turn_.notify_all();
        return begin;
    }
    int64_t end() const { return end_; }

  private:
    std::atomic<int64_t> turn_{0};
    int64_t end_ = 0;  // belongs to whose turn it is
};

enum class Selection { whole, stopped, full };

/// Appends all rows of x, as `rows` makes them, to out, of so many slots; out_offsets tells them
/// apart. There is one of `rows` for each worker, made for x's longest row. The result does not
/// depend on their number. `full`: the slots are too few. Throws bad_alloc, while no thread runs.
template <class RowMaker, class Offset, class Index, class Value, class OutIndex, class Stop>
Selection fill_selected(const Basis& basis, const CsrView<Offset, Index, Value>& x,
                        std::vector<RowMaker>& rows, OutIndex* out_offsets,
                        Slots<int32_t, Value> out, int64_t n_slots, int64_t wanted,
                        Stop& should_stop) {
    const auto n_threads = static_cast<int64_t>(rows.size());
    const int64_t share = wanted > 0 ? wanted : int64_t{1} << 16;  // outputs of a task, about
    std::vector<int64_t> task_rows{0};                             // where tasks begin
    int64_t in_task = 0, largest_task = 0;
    for (int64_t r = 0; r < x.n_rows; ++r) {
        in_task += row_size(basis, row_of(x, r).n);
        largest_task = std::max(largest_task, in_task);
        if (in_task < share && r + 1 < x.n_rows) continue;
        task_rows.push_back(r + 1);
        in_task = 0;
    }
    const auto n_tasks = static_cast<int64_t>(task_rows.size()) - 1;

    std::vector<SlotArrays<int32_t, Value>> rooms;
    for (int64_t worker = 0; worker < n_threads; ++worker) rooms.emplace_back(largest_task + 1);

    Turns turns;
    std::atomic<bool> is_full{false};
    const auto fill_task = [&](int64_t worker, int64_t task) {
        const Slots<int32_t, Value> room = rooms[worker].slots();
        int64_t n = 0;
        for (int64_t r = task_rows[task]; r < task_rows[task + 1] && !is_full; ++r) {
            const int64_t n_here = rows[worker].fill(row_of(x, r), room + n);
            out_offsets[r + 1] = static_cast<OutIndex>(n_here);  // offsets once all are known
            n += n_here;
        }
        const int64_t begin = turns.take(task, n);
        if (begin + n > n_slots) is_full = true;
        if (is_full) return;
        std::memcpy(out.columns + begin, room.columns, n * sizeof(int32_t));
        std::memcpy(out.values + begin, room.values, n * sizeof(Value));
    };
    if (!run_tasks<Order::in_order>(n_tasks, n_threads, fill_task, should_stop))
        return Selection::stopped;
    if (is_full) return Selection::full;
    int64_t end = 0;
    out_offsets[0] = 0;
    for (int64_t r = 0; r < x.n_rows; ++r) {
        end += out_offsets[r + 1];
        out_offsets[r + 1] = static_cast<OutIndex>(end);
    }
    return Selection::whole;
}

}  // namespace polysparse
