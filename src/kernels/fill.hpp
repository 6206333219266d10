// Who fills what: the rows of an expansion shared out by output size, also inside one long row.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "expand.hpp"
#include "threads.hpp"

namespace polysparse {

/// Room for the degrees from 2 to below the lowest, which the output does not hold.
template <class Index, class Value>
class Scratch {
  public:
    explicit Scratch(int64_t size) : columns_(size), values_(size) {}
    Slots<Index, Value> slots() { return {columns_.data(), values_.data()}; }

    static int64_t size_for(const Basis& basis, int64_t n) {
        int64_t size = lanes;  // a group may spill
        for (int64_t d = 2; d < basis.lowest; ++d) size += block_size(basis, d, n);
        return size;
    }

  private:
    std::vector<Index> columns_;
    std::vector<Value> values_;
};

/// How much one task fills: enough to be worth handing out, little enough to share and to stop.
struct Shares {
    /// `wanted`: outputs in a task; 0 for what suits the number of threads.
    Shares(int64_t n_outputs, int64_t n_threads, int64_t wanted)
        : task(wanted > 0 ? wanted
                          : std::clamp<int64_t>(n_outputs / (16 * n_threads), 1 << 14, 1 << 20)),
          longest_row(4 * task) {}
    int64_t task;         // outputs in a task, about
    int64_t longest_row;  // a row with more outputs is divided
};

/// A row too long for one task: its blocks are filled one degree after the other, each by everyone.
template <class Index, class Value, class OutIndex>
class LongRow {
  public:
    LongRow(const Basis& basis, Row<Index, Value> row, Slots<OutIndex, Value> out)
        : row_(row), out_(out), scratch_(Scratch<OutIndex, Value>::size_for(basis, row.n)) {
        Slots<OutIndex, Value> place = scratch_.slots();
        for (int64_t d = 0; d <= basis.highest; ++d) {
            if (d == basis.lowest) place = out + basis.include_bias;
            blocks_.push_back(place);
            if (d >= std::min<int64_t>(basis.lowest, 2))
                place = place + block_size(basis, d, row.n);
        }
    }

    /// How many outputs of degree d there are to share out; those of degree 1 go in one piece.
    int64_t size(const Basis& basis, int64_t d) const {
        return d == 1 ? 1 : block_size(basis, d, row_.n);
    }

    /// Outputs [begin, end) of degree d. The degree before must be whole.
    void fill(const Basis& basis, int64_t d, int64_t begin, int64_t end) const {
        if (d == 1) {
            const auto first = fill_bias(basis, out_);
            if (basis.lowest == 1) fill_first_degree<false>(basis, row_, first);
        } else if (d == 2) {
            fill_part(basis, d, row_, row_.end(), blocks_[2], begin, end);
        } else {
            const auto size_before = block_size(basis, d - 1, row_.n);
            const ConstSlots<OutIndex, Value> tail_end = blocks_[d - 1] + size_before;
            fill_part(basis, d, row_, tail_end, blocks_[d], begin, end);
        }
    }

  private:
    Row<Index, Value> row_;
    Slots<OutIndex, Value> out_;
    Scratch<OutIndex, Value> scratch_;
    std::vector<Slots<OutIndex, Value>> blocks_;  // [d]: where P_d begins
};

/// Fills out_offsets' every slot. Needs: x inspected and rising, out_offsets from fill_row_offsets,
/// OutIndex wide enough for the basis. The result does not depend on n_threads. False if stopped.
/// Throws bad_alloc, before any thread starts, if there is no room for the scratch.
template <class Offset, class Index, class Value, class OutIndex, class Stop>
bool fill(const Basis& basis, const CsrView<Offset, Index, Value>& x, const OutIndex* out_offsets,
          Slots<OutIndex, Value> out, int64_t n_threads, int64_t wanted, Stop& should_stop) {
    const int64_t n_outputs = out_offsets[x.n_rows];
    const Shares shares(n_outputs, n_threads, wanted);

    std::vector<LongRow<Index, Value, OutIndex>> long_rows;
    int64_t longest_stored = 0;  // stored values of the longest row that is not divided
    for (int64_t r = 0; r < x.n_rows; ++r) {
        if (out_offsets[r + 1] - out_offsets[r] > shares.longest_row)
            long_rows.emplace_back(basis, row_of(x, r), out + out_offsets[r]);
        else
            longest_stored = std::max<int64_t>(longest_stored, row_of(x, r).n);
    }
    std::vector<Scratch<OutIndex, Value>> scratch;
    const int64_t scratch_size = Scratch<OutIndex, Value>::size_for(basis, longest_stored);
    for (int64_t worker = 0; worker < n_threads; ++worker) scratch.emplace_back(scratch_size);

    const int64_t n_tasks = n_outputs / shares.task + 1;
    const auto first_row = [&](int64_t task) -> int64_t {
        if (task == n_tasks) return x.n_rows;
        const auto place = static_cast<OutIndex>(std::min(task * shares.task, n_outputs));
        return std::lower_bound(out_offsets, out_offsets + x.n_rows, place) - out_offsets;
    };
    const auto fill_task = [&](int64_t worker, int64_t task) {
        fill_rows(basis, x, out_offsets, out, scratch[worker].slots(), first_row(task),
                  first_row(task + 1), shares.longest_row);
    };
    if (!run_tasks(n_tasks, n_threads, fill_task, should_stop)) return false;

    struct Part {
        const LongRow<Index, Value, OutIndex>* of;
        int64_t begin, end;
    };
    for (int64_t d = 1; d <= basis.highest && !long_rows.empty(); ++d) {
        std::vector<Part> parts;
        for (const auto& one : long_rows) {
            const int64_t size = one.size(basis, d);
            for (int64_t begin = 0; begin < size; begin += shares.task)
                parts.push_back({&one, begin, std::min(begin + shares.task, size)});
        }
        const auto fill_one = [&](int64_t, int64_t task) {
            parts[task].of->fill(basis, d, parts[task].begin, parts[task].end);
        };
        if (!run_tasks(std::ssize(parts), n_threads, fill_one, should_stop)) return false;
    }
    return true;
}

}  // namespace polysparse
