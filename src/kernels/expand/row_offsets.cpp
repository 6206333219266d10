#include "expand/row_offsets.hpp"

#include <algorithm>
#include <numeric>

#include "expand/row_shape.hpp"
#include "platform/threads.hpp"

namespace polysparse {

namespace {

template <class Offset>
std::vector<std::pair<int64_t, int64_t>> count_lengths(const Offset* row_offsets, int64_t n_rows) {
    constexpr int64_t n_short = 1024;  // longer rows are few compared to what they store
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

}  // namespace

std::vector<std::pair<int64_t, int64_t>> count_row_lengths(const Indices& row_offsets,
                                                           int64_t n_rows) {
    return row_offsets.visit([&](const auto* offsets) { return count_lengths(offsets, n_rows); });
}

void fill_row_offsets(const Basis& basis, const Indices& row_offsets, int64_t n_rows,
                      const OutIndices& out_offsets, int64_t n_threads) {
    const EqualRanges ranges(n_rows, n_threads);
    std::vector<int64_t> before(ranges.size() + 1);  // outputs before each range
    row_offsets.visit([&](const auto* offsets) {
        out_offsets.visit([&]<class Offset>(Offset* out) {
            const auto sum_up = [&](int64_t begin, int64_t end, int64_t total, const auto& put) {
                RowSizes size_of(basis);
                for (int64_t r = begin; r < end; ++r) {
                    total += size_of(shape_of(offsets, r));
                    put(r, total);
                }
                return total;
            };
            if (ranges.size() > 1)
                ranges.run([&](int64_t i, int64_t begin, int64_t end) {
                    before[i + 1] = sum_up(begin, end, 0, [](int64_t, int64_t) {});
                });
            std::partial_sum(before.begin(), before.end(), before.begin());
            out[0] = 0;
            ranges.run([&](int64_t i, int64_t begin, int64_t end) {
                sum_up(begin, end, before[i],
                       [&](int64_t r, int64_t total) { out[r + 1] = static_cast<Offset>(total); });
            });
        });
    });
}

}  // namespace polysparse
