// Outputs per row: the sizes that the fill must meet exactly.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "basis/simplex.hpp"

namespace polysparse {

/// How many of a row's n stored values, from the front, begin no tuple of degree d that is needed.
/// Below the lowest degree of an interaction expansion a tuple is only the tail of longer ones, so
/// lowest - d values must come before it. It keeps the scratch no larger than the output.
inline int64_t skipped(const Basis& basis, int64_t d) {
    return basis.interaction_only && d < basis.lowest ? basis.lowest - d : 0;
}

/// How many tuples of degree d of a row with n stored values are made: its outputs of that degree,
/// or, below the lowest, what longer ones are made from.
inline int64_t block_size(const Basis& basis, int64_t d, int64_t n) {
    return static_cast<int64_t>(simplex(d, n - skipped(basis, d) - basis.gap(d)));
}

/// The most tuples of a degree from `first` to below the lowest that a row is made through.
inline int64_t largest_below_lowest(const Basis& basis, int64_t first, int64_t n) {
    int64_t size = 0;
    for (int64_t d = first; d < basis.lowest && d <= basis.highest; ++d)
        size = std::max(size, block_size(basis, d, n));
    return size;
}

/// Outputs of a row with n stored values.
inline int64_t row_size(const Basis& basis, int64_t n) {
    int64_t size = basis.include_bias;
    if (n == 0) return size;
    for (int64_t d = basis.lowest; d <= basis.highest; ++d) size += block_size(basis, d, n);
    return size;
}

/// The distinct row lengths with how often each occurs, in rising order. The lengths decide the
/// size of every degree's block, so this is all that a plan needs of the data.
template <class Offset>
std::vector<std::pair<int64_t, int64_t>> count_row_lengths(const Offset* row_offsets,
                                                           int64_t n_rows) {
    constexpr int64_t n_short = 1024;  // longer rows are few beside their own stored values
    std::vector<int64_t> short_rows(n_short), long_rows;
    for (int64_t r = 0; r < n_rows; ++r) {
        const int64_t n = row_offsets[r + 1] - row_offsets[r];
        if (n < n_short)
            ++short_rows[n];
        else
            long_rows.push_back(n);
    }
    std::vector<std::pair<int64_t, int64_t>> lengths;
    for (int64_t n = 0; n < n_short; ++n)
        if (short_rows[n] > 0) lengths.emplace_back(n, short_rows[n]);
    std::sort(long_rows.begin(), long_rows.end());
    for (const int64_t n : long_rows) {
        if (lengths.empty() || lengths.back().first != n) lengths.emplace_back(n, 0);
        ++lengths.back().second;
    }
    return lengths;
}

/// out_offsets[r] = outputs of all rows before r. Needs: their total fits OutOffset.
template <class Offset, class OutOffset>
void fill_row_offsets(const Basis& basis, const Offset* row_offsets, int64_t n_rows,
                      OutOffset* out_offsets) {
    constexpr int64_t n_known = 256;
    std::vector<int64_t> known(n_known, -1);
    int64_t total = 0;
    out_offsets[0] = 0;
    for (int64_t r = 0; r < n_rows; ++r) {
        const int64_t n = row_offsets[r + 1] - row_offsets[r];
        if (n >= n_known) {
            total += row_size(basis, n);
        } else {
            if (known[n] < 0) known[n] = row_size(basis, n);
            total += known[n];
        }
        out_offsets[r + 1] = static_cast<OutOffset>(total);
    }
}

}  // namespace polysparse
