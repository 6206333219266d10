// The rows of an expansion with only some of its columns, or with columns that fall together: how
// long a row is shows only when it is made. So workers make tasks of rows, or of parts of a long
// one, in memory of their own, that stays in cache, and append them to the output in order.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <vector>

#include "expand/fill.hpp"
#include "expand/sizes.hpp"
#include "expand/walk.hpp"
#include "matrix/csr_view.hpp"
#include "platform/threads.hpp"
#include "select/lookup.hpp"

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

    static constexpr bool divides_rows = true;

    int64_t n_columns() const { return lookup_->n_columns(); }

    /// Into how many parts a row of n stored values is divided, if a part has about `share`
    /// outputs. Every part makes the lower degrees anew, so it must be large beside them.
    int64_t n_parts(int64_t n, int64_t share) const {
        if (row_size(*basis_, n) <= 4 * share || basis_->highest < 2) return 1;
        const int64_t least = std::max(share, 8 * row_size(below_, n));
        return std::max<int64_t>(1, block_size(*basis_, basis_->highest, n) / least);
    }

    /// Writes what is chosen of a part of a row, in order, and returns how much; one slot more may
    /// be written. Needs room for all of it, or for n_columns, if that is less.
    template <class Index>
    int64_t fill(Row<Index, Value> row, int64_t part, int64_t n_parts, Slots<int32_t, Value> out) {
        // A copy, behind which there is room.
        std::copy_n(row.begin.columns, row.n, row_.slots().columns);
        std::copy_n(row.begin.values, row.n, row_.slots().values);
        const Row<int64_t, Value> copy{row_.slots(), row.n};
        if (n_parts > 1 || (row_size(*basis_, row.n) > piece_size && basis_->highest > 1))
            return fill_long(copy, part, n_parts, out);
        return fill_chosen_row(*basis_, *lookup_, copy, all_.slots(), lower_.slots(), out);
    }

  private:
    static int64_t room(const Basis& basis, int64_t longest) {
        const int64_t all = row_size(basis, longest);
        if (basis.highest <= 1) return all;
        const int64_t top = block_size(basis, basis.highest, longest);
        return all - top + lanes + std::min(top, piece_size);
    }

    /// The first part has the lower degrees, too.
    int64_t fill_long(Row<int64_t, Value> row, int64_t part, int64_t n_parts,
                      Slots<int32_t, Value> out) {
        const int64_t d = basis_->highest, n_below = row_size(below_, row.n);
        const Slots<int64_t, Value> all = all_.slots(), piece = all + n_below + lanes;
        int64_t n = 0;
        if (part == 0)
            n = fill_chosen_row(below_, *lookup_, row, all, lower_.slots(), out);
        else
            fill_row<false>(below_, row, all, lower_.slots());
        ConstSlots<int64_t, Value> tail_end = row.end();
        if (d > 2 && d > basis_->lowest) tail_end = all + n_below;
        if (d > 2 && d == basis_->lowest)
            tail_end = lower_.slots()[d - 1] + block_size(*basis_, d - 1, row.n);
        const int64_t size = block_size(*basis_, d, row.n) / n_parts;
        const int64_t last =
            part + 1 == n_parts ? block_size(*basis_, d, row.n) : size * (part + 1);
        for (int64_t begin = size * part; begin < last; begin += piece_size)
            n += fill_chosen_part(*basis_, *lookup_, d, row, tail_end, begin,
                                  std::min(begin + piece_size, last), piece, out + n);
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
    struct Task {
        int64_t first, last;  // rows
        int64_t part, n_parts;
        int64_t n;  // outputs, once it is done
    };
    std::vector<Task> tasks;
    int64_t first = 0, in_task = 0, largest_task = 0;  // outputs, at most
    const auto end_task = [&](int64_t last) {
        if (first < last) tasks.push_back({first, last, 0, 1, 0});
        first = last;
        in_task = 0;
    };
    for (int64_t r = 0; r < x.n_rows; ++r) {
        const int64_t n = row_of(x, r).n, n_parts = rows[0].n_parts(n, share);
        const int64_t size = std::min(row_size(basis, n), rows[0].n_columns());
        if (n_parts > 1) {
            end_task(r);
            for (int64_t part = 0; part < n_parts; ++part)
                tasks.push_back({r, r + 1, part, n_parts, 0});
            largest_task = std::max(largest_task, size);
            first = r + 1;
            continue;
        }
        in_task += size;
        largest_task = std::max(largest_task, in_task);
        if (in_task >= share) end_task(r + 1);
    }
    end_task(x.n_rows);

    std::vector<SlotArrays<int32_t, Value>> rooms;
    for (int64_t worker = 0; worker < n_threads; ++worker) rooms.emplace_back(largest_task + 1);

    Turns turns;
    std::atomic<bool> is_full{false};
    const auto fill_task = [&](int64_t worker, int64_t number) {
        Task& task = tasks[number];
        // Alone, and as long as there is room for all of a task, it can be made in its place.
        const bool is_direct = n_threads == 1 && turns.end() + largest_task < n_slots;
        const Slots<int32_t, Value> room = is_direct ? out + turns.end() : rooms[worker].slots();
        for (int64_t r = task.first; r < task.last && !is_full; ++r) {
            const int64_t n =
                rows[worker].fill(row_of(x, r), task.part, task.n_parts, room + task.n);
            if (task.n_parts == 1) out_offsets[r + 1] = static_cast<OutIndex>(n);
            task.n += n;
        }
        const int64_t begin = turns.take(number, task.n);
        if (begin + task.n > n_slots) is_full = true;
        if (is_full || is_direct) return;
        std::memcpy(out.columns + begin, room.columns, task.n * sizeof(int32_t));
        std::memcpy(out.values + begin, room.values, task.n * sizeof(Value));
    };
    if (!run_tasks<Order::in_order>(std::ssize(tasks), n_threads, fill_task, should_stop))
        return Selection::stopped;
    if (is_full) return Selection::full;

    // Rows that were divided have the outputs of all their parts.
    for (const Task& task : tasks)
        if (task.n_parts > 1 && task.part == 0) out_offsets[task.last] = 0;
    for (const Task& task : tasks)
        if (task.n_parts > 1) out_offsets[task.last] += static_cast<OutIndex>(task.n);
    int64_t end = 0;
    out_offsets[0] = 0;
    for (int64_t r = 0; r < x.n_rows; ++r) {
        end += out_offsets[r + 1];
        out_offsets[r + 1] = static_cast<OutIndex>(end);
    }
    return Selection::whole;
}

}  // namespace polysparse
