// How `fill` is done: rows are shared out by output size, and long rows are divided.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <type_traits>
#include <vector>

#include "expand/alike_terms.hpp"
#include "expand/fill.hpp"
#include "expand/layout.hpp"
#include "expand/long_row.hpp"
#include "expand/row_readers.hpp"
#include "expand/row_shape.hpp"
#include "expand/short_rows.hpp"
#include "expand/term_rows.hpp"
#include "expand/to_slots.hpp"
#include "platform/threads.hpp"

namespace polysparse {

/// Zeros instead of a row that has changed.
template <class Index, class Value>
void clear(Slots<Index, Value> out, int64_t n) {
    std::fill_n(out.columns, n, Index(0));
    std::fill_n(out.values, n, Value(0));
}

/// Rows whose outputs depend on their columns may have changed since they were counted.
template <class Rows>
constexpr bool may_have_changed =
    !std::is_same_v<Rows, StoredRows> && !std::is_same_v<Rows, DistinctRows> &&
    !std::is_same_v<Rows, AlikeRows>;

/// Rows whose short ones may be filled from registers.
template <class Rows>
constexpr bool may_be_short = std::is_same_v<Rows, StoredRows> || std::is_same_v<Rows, AlikeRows>;

/// Rows [first, last), without those of more than `longest` outputs. The last is filled exactly:
/// what is behind it belongs to somebody else.
template <class Index, class Rows, class Value, class OutIndex>
POLYSPARSE_PER_PROCESSOR void fill_rows(const Basis& basis, const CsrView<Value>& x, Rows& rows,
                                        const OutIndex* out_offsets, Slots<OutIndex, Value> out,
                                        Layout<Slots<OutIndex, Value>> buffers, int64_t first,
                                        int64_t last, int64_t longest) {
    const Indices row_offsets = x.row_offsets;
    const ConstSlots<Index, Value> stored{x.columns.template as<Index>(), x.values};
    const int64_t n_outputs = out_offsets[last], n_stored = row_offsets[x.n_rows];
    // Rows before this one may be read and written past their ends.
    int64_t last_spilling = last;
    while (last_spilling > first && (out_offsets[last_spilling] + lanes > n_outputs ||
                                     row_offsets[last_spilling] + lanes > n_stored))
        --last_spilling;
    const bool has_registers = may_be_short<Rows> && fills_short_rows(basis, longest);
    for (int64_t r = first; r < last; ++r) {
        if constexpr (may_be_short<Rows>)
            if (has_registers && r < last_spilling)
                r = fill_short_rows(basis, keys_of(basis, rows.read(Row<Index, Value>{stored, 0})),
                                    row_offsets, stored, out_offsets, out, r, last_spilling);
        const int64_t start = out_offsets[r], row_start = row_offsets[r];
        if (out_offsets[r + 1] - start > longest) continue;
        const auto row =
            rows.read(Row<Index, Value>{stored + row_start, row_offsets[r + 1] - row_start});
        if (may_have_changed<Rows> && row_size(basis, shape_of(row)) != out_offsets[r + 1] - start)
            clear(out + start, out_offsets[r + 1] - start);
        else if (r < last_spilling)
            fill_row<true>(basis, row, out + start, buffers);
        else
            fill_row<false>(basis, row, out + start, buffers);
    }
}

/// Fills some long rows. False if stopped.
template <class AnyLongRow>
bool fill_long_rows(const Basis& basis, std::vector<AnyLongRow>& rows, int64_t task,
                    int64_t n_threads, const StopRequest& should_stop) {
    struct Part {
        const AnyLongRow* of;
        int64_t begin, end;
    };
    for (int64_t d = 1; d <= basis.highest && !rows.empty(); ++d) {
        std::vector<Part> parts;
        for (AnyLongRow& row : rows)
            for (int64_t begin = 0, size = row.start(d); begin < size; begin += task)
                parts.push_back({&row, begin, std::min(begin + task, size)});
        const auto fill_one = [&](int64_t, int64_t i) {
            parts[i].of->fill(d, parts[i].begin, parts[i].end);
        };
        if (!run_tasks(std::ssize(parts), n_threads, fill_one, should_stop)) return false;
    }
    return true;
}

/// One fill: its arguments, and how much a task does. Rows reads the rows of x.
template <class Index, class Rows, class Value, class OutIndex>
struct Fill {
    const Basis& basis;
    const CsrView<Value>& x;
    const OutIndex* out_offsets;
    Slots<OutIndex, Value> out;
    int64_t n_threads;
    const StopRequest& should_stop;
    int64_t task;  // outputs, about

    static constexpr bool can_divide = !std::is_same_v<Rows, TermRows<Index>>;

    /// A row with more outputs is divided.
    int64_t longest_row() const {
        return can_divide ? 4 * task : std::numeric_limits<int64_t>::max();
    }
    bool is_long(int64_t r) const { return out_offsets[r + 1] - out_offsets[r] > longest_row(); }

    /// False if stopped.
    bool operator()() const {
        struct Seen {
            RowShape largest;  // of the rows that are not long
            bool has_long = false;
        };
        const EqualRanges ranges(x.n_rows, n_threads);
        std::vector<Seen> seen(ranges.size());
        ranges.run([&](int64_t i, int64_t begin, int64_t end) {
            Seen here;
            for (int64_t r = begin; r < end; ++r) {
                if (is_long(r))
                    here.has_long = true;
                else
                    here.largest = larger(here.largest, shape_of(x.row_offsets, r));
            }
            seen[i] = here;
        });
        Seen all;
        for (const Seen& here : seen) {
            all.largest = larger(all.largest, here.largest);
            all.has_long |= here.has_long;
        }
        if (!fill_short(all.largest)) return false;
        if constexpr (can_divide) return !all.has_long || fill_long();
        return true;
    }

    /// All rows but the long ones.
    bool fill_short(RowShape largest) const {
        std::vector<LowerDegrees<OutIndex, Value>> lower;
        std::vector<Rows> rows;
        for (int64_t worker = 0; worker < n_threads; ++worker) {
            lower.emplace_back(basis, largest);
            rows.emplace_back(basis, largest);
        }
        const int64_t n_outputs = out_offsets[x.n_rows], n_tasks = n_outputs / task + 1;
        const auto first_row = [&](int64_t number) -> int64_t {
            if (number == n_tasks) return x.n_rows;
            const auto place = static_cast<OutIndex>(std::min(number * task, n_outputs));
            return std::lower_bound(out_offsets, out_offsets + x.n_rows, place) - out_offsets;
        };
        const auto fill_task = [&](int64_t worker, int64_t number) {
            fill_rows<Index>(basis, x, rows[worker], out_offsets, out, lower[worker].layout(out),
                             first_row(number), first_row(number + 1), longest_row());
        };
        return run_tasks(n_tasks, n_threads, fill_task, should_stop);
    }

    /// The long rows, several together until their scratch adds up.
    bool fill_long() const {
        constexpr int64_t much = int64_t{1} << 20;
        std::vector<LongRow<Rows, Index, Value, OutIndex>> together;
        int64_t scratch_size = 0;
        for (int64_t r = 0; r < x.n_rows; ++r) {
            if (!is_long(r)) continue;
            together.emplace_back(basis, row_of<Index>(x, r), out + out_offsets[r]);
            const int64_t n_outputs = out_offsets[r + 1] - out_offsets[r];
            if (may_have_changed<Rows> && together.back().n_outputs() != n_outputs) {
                together.pop_back();
                clear(out + out_offsets[r], n_outputs);
                continue;
            }
            scratch_size += together.back().scratch_size();
            if (scratch_size < much) continue;
            if (!fill_long_rows(basis, together, task, n_threads, should_stop)) return false;
            together.clear();
            scratch_size = 0;
        }
        return fill_long_rows(basis, together, task, n_threads, should_stop);
    }
};

/// Rows [first, last) of terms of alike rows, the last exactly. x begins with its first row.
template <class Index, class Value, class OutIndex>
POLYSPARSE_PER_PROCESSOR void fill_alike_rows(const AlikeTerms<OutIndex>& terms,
                                              ConstSlots<Index, Value> stored, int64_t n_stored,
                                              Slots<OutIndex, Value> out, int64_t first,
                                              int64_t last) {
    const int64_t n = terms.n_stored(), n_outputs = terms.n_outputs();
    if (!terms.has_runs()) {
        constexpr int64_t together = 64;  // whose values stay in the first cache
        for (; first < last; first += together)
            terms.fill_rows(stored + first * n, std::min(together, last - first),
                            out + first * n_outputs);
        return;
    }
    int64_t last_spilling = last;
    while (last_spilling > first && (last_spilling * n_outputs + lanes > last * n_outputs ||
                                     last_spilling * n + lanes > n_stored))
        --last_spilling;
    for (; first < last_spilling; ++first)
        terms.template fill_row<true>(stored + first * n, out + first * n_outputs);
    for (; first < last; ++first)
        terms.template fill_row<false>(stored + first * n, out + first * n_outputs);
}

/// Terms of alike rows. False if stopped.
template <class Index, class Value, class OutIndex>
bool fill_alike(const Basis& basis, const CsrView<Value>& x, Slots<OutIndex, Value> out,
                int64_t n_threads, int64_t task, const StopRequest& should_stop) {
    const AlikeTerms<OutIndex> terms(basis);
    if (terms.n_outputs() == 0) return true;
    const int64_t start = x.row_offsets[0], n_stored = x.row_offsets[x.n_rows] - start;
    const ConstSlots<Index, Value> stored{x.columns.template as<Index>() + start, x.values + start};
    const int64_t rows = std::max<int64_t>(task / terms.n_outputs(), 1);
    const auto fill_task = [&](int64_t, int64_t number) {
        fill_alike_rows(terms, stored, n_stored, out, number * rows,
                        std::min((number + 1) * rows, x.n_rows));
    };
    return run_tasks((x.n_rows + rows - 1) / rows, n_threads, fill_task, should_stop);
}

template <class Value, class OutIndex>
bool fill(const Basis& basis, const CsrView<Value>& x, const OutIndex* out_offsets,
          Slots<OutIndex, Value> out, int64_t n_threads, int64_t wanted,
          const StopRequest& should_stop) {
    // Enough to be worth handing out, little enough to share and to stop.
    const int64_t suitable =
        std::clamp<int64_t>(out_offsets[x.n_rows] / (16 * n_threads), 1 << 14, 1 << 20);
    const int64_t task = wanted > 0 ? wanted : suitable;
    return x.columns.visit([&]<class Index>(const Index*) {
        const auto fill_by = [&]<class Rows>(std::type_identity<Rows>) {
            return Fill<Index, Rows, Value, OutIndex>{basis,     x,           out_offsets, out,
                                                      n_threads, should_stop, task}();
        };
        if (AlikeTerms<OutIndex>::can_make(basis))
            return fill_alike<Index>(basis, x, out, n_threads, task, should_stop);
        if (AlikeRows::can_read(basis)) return fill_by(std::type_identity<AlikeRows>{});
        if (basis.has_sizes_of_interactions()) return fill_by(std::type_identity<DistinctRows>{});
        return with_row_reader<Index>(basis, fill_by);
    });
}

}  // namespace polysparse
