// The outputs of some blocks of rows, as a learner needs them: each column of a block is numbered,
// so that its weight is computed once and its gradient is added up in memory that stays in cache.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "matrix/csr_view.hpp"
#include "matrix/slots.hpp"
#include "platform/processors.hpp"

namespace polysparse {

/// Numbers distinct columns in the order in which they are first looked up.
class ColumnNumbers {
  public:
    /// For up to `most` columns at a time. Throws bad_alloc.
    explicit ColumnNumbers(int64_t most)
        : entries_(std::bit_ceil(static_cast<uint64_t>(std::max(spread * most, least_places))),
                   free_entry),
          used_(most + 1) {}

    /// Writes the numbers of n columns. New ones are appended to `columns`, of which there are
    /// `n_found` already. Returns how many there are then; one more slot may be written.
    POLYSPARSE_INLINE int64_t number(const int32_t* wanted, int64_t n, int32_t* numbers,
                                     int32_t* columns, int64_t n_found) {
        require_room(columns, n_found, n);
        uint64_t* const entries = entries_.data();
        uint32_t* const used = used_.data();
        const uint32_t mask = mask_;
        const int shift = shift_;
        for (int64_t t = 0; t < n; ++t) {
            const int32_t column = wanted[t];
            uint32_t i = place_of(column, shift);
            uint64_t entry = entries[i];
            while ((column_of(entry) ^ column) > 0) {  // another column, seldom
                i = (i + 1) & mask;
                entry = entries[i];
            }
            // A branch would often be mispredicted, so the entry is written whether or not the
            // column is new.
            const int32_t is_new = column_of(entry) >> 31;  // all bits
            const int32_t number =
                (static_cast<int32_t>(n_found) & is_new) | (static_cast<int32_t>(entry) & ~is_new);
            entries[i] = entry_of(column, number);
            used[n_found] = i;
            columns[n_found] = column;
            n_found -= is_new;
            numbers[t] = number;
        }
        return n_found;
    }

    /// Forgets the n_found columns that there are.
    void forget(int64_t n_found) {
        for (int64_t u = 0; u < n_found; ++u) entries_[used_[u]] = free_entry;
    }

  private:
    /// The upper half of an entry is its column, the lower half its number.
    POLYSPARSE_INLINE static uint64_t entry_of(int32_t column, int32_t number) {
        return static_cast<uint64_t>(column) << 32 | static_cast<uint32_t>(number);
    }
    POLYSPARSE_INLINE static int32_t column_of(uint64_t entry) {
        return static_cast<int32_t>(entry >> 32);
    }

    POLYSPARSE_INLINE static uint32_t place_of(int32_t column, int shift) {
        return (static_cast<uint32_t>(column) * 0x9E3779B1u) >> shift;
    }

    /// Three quarters of the places stay free, so that a column is nearly always in its own. Few
    /// are used, so that they stay in cache, until more are needed.
    void require_room(const int32_t* columns, int64_t n_found, int64_t n_more) {
        const uint64_t needed = std::bit_ceil(static_cast<uint64_t>(spread * (n_found + n_more)));
        if (needed <= uint64_t{mask_} + 1) return;
        forget(n_found);
        mask_ = static_cast<uint32_t>(std::min<uint64_t>(needed, entries_.size()) - 1);
        shift_ = 32 - std::bit_width(mask_);
        for (int64_t u = 0; u < n_found; ++u) {
            uint32_t i = place_of(columns[u], shift_);
            while (column_of(entries_[i]) >= 0) i = (i + 1) & mask_;
            entries_[i] = entry_of(columns[u], static_cast<int32_t>(u));
            used_[u] = i;
        }
    }

    static constexpr int64_t spread = 4, least_places = 1024;
    static constexpr uint64_t free_entry = ~uint64_t{0};  // a column of -1

    std::vector<uint64_t> entries_;
    std::vector<uint32_t> used_;  // the place of each column that was found
    uint32_t mask_ = least_places - 1;
    int shift_ = 32 - std::bit_width(uint32_t{least_places - 1});
};

/// Consecutive blocks of rows, which one worker lists.
struct BlockRange {
    int64_t first_block, last_block;
    int64_t first_row, last_row;
};

/// Listed rows of some blocks: output t of the range has the value values[t], and belongs to column
/// columns[numbers[t]] of its block.
class BlockOutputs {
  public:
    /// For up to so many rows, outputs and columns of a block. Throws bad_alloc.
    BlockOutputs(int64_t n_rows, int64_t n_blocks, int64_t n_outputs, int64_t n_columns)
        : outputs_(n_outputs + lanes), columns_(n_outputs + 1), numbers_(n_columns) {
        row_ends_.reserve(n_rows + 1);
        column_ends_.reserve(n_blocks + 1);
    }

    /// Lists the rows of some blocks, whose last rows are before `ends`.
    template <class Maker>
    void list(Maker& maker, const CsrView<float>& x, const BlockRange& range, const int64_t* ends) {
        row_ends_.assign(1, 0);
        column_ends_.assign(1, 0);
        first_row_ = range.first_row;
        int64_t row = range.first_row;
        for (int64_t b = range.first_block; b < range.last_block; ++b) {
            int32_t* const columns = columns_.data() + column_ends_.back();
            int64_t n_found = 0;
            for (; row < ends[b]; ++row) {
                const int64_t begin = row_ends_.back();
                const Slots<int32_t, float> to = outputs_.slots() + begin;
                const int64_t n = maker.fill(x, row, 0, 1, to);
                n_found = numbers_.number(to.columns, n, to.columns, columns, n_found);
                row_ends_.push_back(begin + n);
            }
            numbers_.forget(n_found);
            column_ends_.push_back(column_ends_.back() + n_found);
        }
    }

    /// Of block b of the range, counted from 0.
    int64_t n_columns(int64_t b) const { return column_ends_[b + 1] - column_ends_[b]; }
    const int32_t* columns(int64_t b) const { return columns_.data() + column_ends_[b]; }

    /// Of a row of the matrix.
    int64_t n_outputs(int64_t row) const {
        return row_ends_[row - first_row_ + 1] - row_ends_[row - first_row_];
    }
    const int32_t* numbers(int64_t row) const {
        return outputs_.slots().columns + row_ends_[row - first_row_];
    }
    const float* values(int64_t row) const {
        return outputs_.slots().values + row_ends_[row - first_row_];
    }

  private:
    SlotArrays<int32_t, float> outputs_;  // numbers replace columns, once a row is listed
    std::vector<int32_t> columns_;
    ColumnNumbers numbers_;
    std::vector<int64_t> row_ends_, column_ends_;
    int64_t first_row_ = 0;
};

}  // namespace polysparse
