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
#include "lookup.hpp"
#include "threads.hpp"

namespace polysparse {

/// Outputs of a row that are made before they are looked up.
constexpr int64_t piece_size = int64_t{1} << 14;

/// The chosen outputs of a row, by way of all of them, in `all`. Returns how many. Behind `row`,
/// `all` and `lower` there is room to spill.
template <class Lookup, class Value>
POLYSPARSE_TARGETS int64_t fill_chosen_row(const Basis& basis, const Lookup& lookup,
                                           Row<int64_t, Value> row, Slots<int64_t, Value> all,
                                           ScratchSlots<int64_t, Value> lower,
                                           Slots<int32_t, Value> out) {
    fill_row<true>(basis, row, all, lower);
    return lookup.template choose<Value>(all, row_size(basis, row.n), out);
}

/// The same in pieces: outputs [begin, end) of P_d, in `piece`.
template <class Lookup, class Value>
POLYSPARSE_TARGETS int64_t fill_chosen_part(const Basis& basis, const Lookup& lookup, int64_t d,
                                            Row<int64_t, Value> row,
                                            ConstSlots<int64_t, Value> tail_end, int64_t begin,
                                            int64_t end, Slots<int64_t, Value> piece,
                                            Slots<int32_t, Value> out) {
    fill_part(basis, d, row, tail_end, piece, begin, end);
    return lookup.template choose<Value>(piece, end - begin, out);
}

/// Makes the chosen outputs of rows, for one worker. Lookup: see lookup.hpp. Of a long row only the
/// degrees below the highest are held, which is made from them in pieces.
template <class Lookup, class Value>
class ChosenRow {
  public:
    ChosenRow(const Basis& basis, const Lookup& lookup, int64_t longest)
        : basis_(&basis),
          below_(basis),
          lookup_(&lookup),
          row_(longest + lanes),
          all_(room(basis, longest) + lanes),
          lower_(basis, longest) {
        below_.highest = basis.highest - 1;
    }

    int64_t n_columns() const { return lookup_->n_columns(); }

    /// Writes what is chosen, in order, and returns how much; one slot more may be written. Needs
    /// room for the whole row, or for n_columns, if that is less.
    template <class Index>
    int64_t fill(Row<Index, Value> row, Slots<int32_t, Value> out) {
        // A copy, behind which there is room.
        std::copy_n(row.begin.columns, row.n, row_.slots().columns);
        std::copy_n(row.begin.values, row.n, row_.slots().values);
        const Row<int64_t, Value> copy{row_.slots(), row.n};
        if (row_size(*basis_, row.n) > piece_size && basis_->highest > 1)
            return fill_long(copy, out);
        return fill_chosen_row(*basis_, *lookup_, copy, all_.slots(), lower_.slots(), out);
    }

  private:
    static int64_t room(const Basis& basis, int64_t longest) {
        const int64_t all = row_size(basis, longest);
        if (all <= piece_size || basis.highest <= 1) return all;
        return all - block_size(basis, basis.highest, longest) + piece_size + lanes;
    }

    int64_t fill_long(Row<int64_t, Value> row, Slots<int32_t, Value> out) {
        const int64_t d = basis_->highest, n_below = row_size(below_, row.n);
        const Slots<int64_t, Value> all = all_.slots(), piece = all + n_below + lanes;
        int64_t n = fill_chosen_row(below_, *lookup_, row, all, lower_.slots(), out);
        ConstSlots<int64_t, Value> tail_end = row.end();
        if (d > 2 && d > basis_->lowest) tail_end = all + n_below;
        if (d > 2 && d == basis_->lowest)
            tail_end = lower_.slots()[d - 1] + block_size(*basis_, d - 1, row.n);
        const int64_t size = block_size(*basis_, d, row.n);
        for (int64_t begin = 0; begin < size; begin += piece_size)
            n += fill_chosen_part(*basis_, *lookup_, d, row, tail_end, begin,
                                  std::min(begin + piece_size, size), piece, out + n);
        return n;
    }

    const Basis* basis_;
    Basis below_;  // without the highest degree
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
    const int64_t share = wanted > 0 ? wanted : int64_t{1} << 17;  // outputs of a task, about
    std::vector<int64_t> task_rows{0};                             // where tasks begin
    int64_t in_task = 0, largest_task = 0;                         // outputs, at most
    for (int64_t r = 0; r < x.n_rows; ++r) {
        in_task += std::min(row_size(basis, row_of(x, r).n), rows[0].n_columns());
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
        // Alone, and as long as there is room for all of a task, it can be made in its place.
        const bool is_direct = n_threads == 1 && turns.end() + largest_task < n_slots;
        const Slots<int32_t, Value> room = is_direct ? out + turns.end() : rooms[worker].slots();
        int64_t n = 0;
        for (int64_t r = task_rows[task]; r < task_rows[task + 1] && !is_full; ++r) {
            const int64_t n_here = rows[worker].fill(row_of(x, r), room + n);
            out_offsets[r + 1] = static_cast<OutIndex>(n_here);  // offsets once all are known
            n += n_here;
        }
        const int64_t begin = turns.take(task, n);
        if (begin + n > n_slots) is_full = true;
        if (is_full || is_direct) return;
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
