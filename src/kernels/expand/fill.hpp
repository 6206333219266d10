// Who fills what: the rows of an expansion shared out by output size, also inside one long row.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <memory>
#include <vector>

#include "expand/walk.hpp"
#include "platform/threads.hpp"

namespace polysparse {

/// Room for so many columns and values.
template <class Index, class Value>
class SlotArrays {
  public:
    explicit SlotArrays(int64_t size)
        : columns_(std::make_unique_for_overwrite<Index[]>(size)),
          values_(std::make_unique_for_overwrite<Value[]>(size)) {}

    Slots<Index, Value> slots() const { return {columns_.get(), values_.get()}; }

  private:
    std::unique_ptr<Index[]> columns_;
    std::unique_ptr<Value[]> values_;
};

/// Room for the degrees from 2 to below the lowest of a row with n stored values.
template <class Index, class Value>
class Scratch {
  public:
    Scratch(const Basis& basis, int64_t n)
        : half_(largest_below_lowest(basis, 2, n) + lanes),  // a group may spill
          arrays_(2 * half_) {}

    ScratchSlots<Index, Value> slots() const { return {arrays_.slots(), arrays_.slots() + half_}; }
    int64_t size() const { return 2 * half_; }

  private:
    int64_t half_;
    SlotArrays<Index, Value> arrays_;
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
        : basis_(&basis), row_(row), out_(out), scratch_(basis, row.n) {}

    int64_t scratch_size() const { return scratch_.size(); }

    /// How many outputs of degree d there are to share out; those of degree 1 go in one piece.
    int64_t size(int64_t d) const { return d == 1 ? 1 : block_size(*basis_, d, row_.n); }

    /// Outputs [begin, end) of degree d. The degree before must be whole.
    void fill(int64_t d, int64_t begin, int64_t end) const {
        if (d == 1) {
            const auto first = fill_bias(*basis_, out_);
            if (basis_->lowest == 1) fill_first_degree<false>(*basis_, row_, first);
        } else if (d == 2) {
            fill_part(*basis_, d, row_, row_.end(), place(d) + begin, begin, end);
        } else {
            const ConstSlots<OutIndex, Value> tail_end = place(d - 1) + size(d - 1);
            fill_part(*basis_, d, row_, tail_end, place(d) + begin, begin, end);
        }
    }

  private:
    /// Where P_d begins.
    Slots<OutIndex, Value> place(int64_t d) const {
        if (d < basis_->lowest) return scratch_.slots()[d];
        Slots<OutIndex, Value> begin = out_ + basis_->include_bias;
        for (int64_t e = basis_->lowest; e < d; ++e) begin = begin + block_size(*basis_, e, row_.n);
        return begin;
    }

    const Basis* basis_;
    Row<Index, Value> row_;
    Slots<OutIndex, Value> out_;
    Scratch<OutIndex, Value> scratch_;
};

/// Fills some long rows. False if stopped.
template <class Row, class Stop>
bool fill_long_rows(const Basis& basis, const std::vector<Row>& rows, int64_t task,
                    int64_t n_threads, Stop& should_stop) {
    struct Part {
        const Row* of;
        int64_t begin, end;
    };
    for (int64_t d = 1; d <= basis.highest && !rows.empty(); ++d) {
        std::vector<Part> parts;
        for (const Row& row : rows)
            for (int64_t begin = 0, size = row.size(d); begin < size; begin += task)
                parts.push_back({&row, begin, std::min(begin + task, size)});
        const auto fill_one = [&](int64_t, int64_t i) {
            parts[i].of->fill(d, parts[i].begin, parts[i].end);
        };
        if (!run_tasks(std::ssize(parts), n_threads, fill_one, should_stop)) return false;
    }
    return true;
}

/// Fills out_offsets' every slot. Needs: x inspected and rising, out_offsets from fill_row_offsets,
/// OutIndex wide enough for the basis. The result does not depend on n_threads. False if stopped.
/// Throws bad_alloc, while no thread runs, if there is no room for the scratch: twice the largest
/// block below the lowest degree, for each thread.
template <class Offset, class Index, class Value, class OutIndex, class Stop>
bool fill(const Basis& basis, const CsrView<Offset, Index, Value>& x, const OutIndex* out_offsets,
          Slots<OutIndex, Value> out, int64_t n_threads, int64_t wanted, Stop& should_stop) {
    const int64_t n_outputs = out_offsets[x.n_rows];
    const Shares shares(n_outputs, n_threads, wanted);

    int64_t longest_stored = 0;  // stored values of the longest row that is not divided
    bool has_long_rows = false;
    const auto is_long = [&](int64_t r) {
        return out_offsets[r + 1] - out_offsets[r] > shares.longest_row;
    };
    for (int64_t r = 0; r < x.n_rows; ++r) {
        if (is_long(r))
            has_long_rows = true;
        else
            longest_stored = std::max<int64_t>(longest_stored, row_of(x, r).n);
    }
    std::vector<Scratch<OutIndex, Value>> scratch;
    for (int64_t worker = 0; worker < n_threads; ++worker)
        scratch.emplace_back(basis, longest_stored);

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
    scratch.clear();

    // Long rows go together, as far as their scratch does not add up to much.
    constexpr int64_t much = int64_t{1} << 20;
    std::vector<LongRow<Index, Value, OutIndex>> together;
    int64_t scratch_size = 0;
    for (int64_t r = 0; has_long_rows && r < x.n_rows; ++r) {
        if (!is_long(r)) continue;
        together.emplace_back(basis, row_of(x, r), out + out_offsets[r]);
        scratch_size += together.back().scratch_size();
        if (scratch_size < much) continue;
        if (!fill_long_rows(basis, together, shares.task, n_threads, should_stop)) return false;
        together.clear();
        scratch_size = 0;
    }
    return fill_long_rows(basis, together, shares.task, n_threads, should_stop);
}

}  // namespace polysparse
