// The stored values of some rows in the order of their columns, and the columns numbered afresh.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "matrix/csr_view.hpp"
#include "platform/threads.hpp"

namespace polysparse {

/// A stored value as the beginning of the rest of its row: positions [begin, end) of the columns.
template <class Column>
struct Tail {
    Column column;
    uint32_t begin, end;
};

/// Sorts by column, stably: tails of one column stay in the order of the rows. One pass over the
/// tails for each 11 bits of the largest column, shared out among threads. Two rooms, in turn.
template <class Column>
class TailSorter {
  public:
    explicit TailSorter(int64_t n)
        : n_(n),
          tails_(std::make_unique_for_overwrite<Tail<Column>[]>(n)),
          other_(std::make_unique_for_overwrite<Tail<Column>[]>(n)) {}

    Tail<Column>* tails() { return tails_.get(); }

    /// Needs: tails() were filled. The other room is given back.
    std::unique_ptr<Tail<Column>[]> sort(Column largest, int64_t n_threads) {
        for (int shift = 0; shift < static_cast<int>(std::bit_width(largest)); shift += digit_bits)
            sort_by_digit(shift, n_threads);
        other_.reset();
        return std::move(tails_);
    }

  private:
    static constexpr int digit_bits = 11;
    using Places = std::array<uint32_t, 1 << digit_bits>;

    void sort_by_digit(int shift, int64_t n_threads) {
        const auto digit = [&](const Tail<Column>& tail) {
            return static_cast<size_t>(tail.column >> shift) % (1 << digit_bits);
        };
        std::vector<Places> places(n_threads);  // of each part
        const auto begin = [&](int64_t part) { return n_ * part / n_threads; };
        auto never = [] { return false; };
        const auto count = [&](int64_t, int64_t part) {
            Places& here = places[part];
            here.fill(0);
            for (int64_t i = begin(part); i < begin(part + 1); ++i) ++here[digit(tails_[i])];
        };
        run_tasks(n_threads, n_threads, count, never);
        uint32_t place = 0;
        for (size_t d = 0; d < places[0].size(); ++d)
            for (Places& here : places) place += std::exchange(here[d], place);
        const auto move = [&](int64_t, int64_t part) {
            Places& here = places[part];
            for (int64_t i = begin(part); i < begin(part + 1); ++i)
                other_[here[digit(tails_[i])]++] = tails_[i];
        };
        run_tasks(n_threads, n_threads, move, never);
        std::swap(tails_, other_);
    }

    int64_t n_;
    std::unique_ptr<Tail<Column>[]> tails_, other_;
};

/// Rows of a CSR matrix by column. A column that occurs has a number, in the order of the columns.
template <class Column>
struct Transposed {
    std::unique_ptr<Tail<Column>[]> tails;  // by column
    std::vector<uint32_t> first;            // [i]: the first tail of column number i; and the end
    std::vector<Column> names;              // [i]: column number i
    std::unique_ptr<uint32_t[]> numbers;    // [t]: the number of stored value t's column

    int64_t n_columns() const { return static_cast<int64_t>(names.size()); }
};

/// Needs: x inspected and rising, fewer than 2^32 stored values. Memory: 28 bytes (36 for columns
/// of 64 bits) for each stored value, 12 (20) of which are given back. Throws bad_alloc.
template <class Offset, class Index, class Column = std::make_unsigned_t<Index>>
Transposed<Column> transpose(const Offset* row_offsets, int64_t n_rows, const Index* columns,
                             int64_t n_threads) {
    const int64_t first = row_offsets[0], n = row_offsets[n_rows] - first;
    auto never = [] { return false; };
    TailSorter<Column> sorter(n);
    Tail<Column>* const unsorted = sorter.tails();
    std::vector<Column> largest(n_threads, 0);
    const auto list = [&](int64_t, int64_t part) {
        for (int64_t r = n_rows * part / n_threads; r < n_rows * (part + 1) / n_threads; ++r) {
            const int64_t begin = row_offsets[r] - first, end = row_offsets[r + 1] - first;
            for (int64_t t = begin; t < end; ++t)
                unsorted[t] = {static_cast<Column>(columns[first + t]), static_cast<uint32_t>(t),
                               static_cast<uint32_t>(end)};
            if (begin < end) largest[part] = std::max(largest[part], unsorted[end - 1].column);
        }
    };
    run_tasks(n_threads, n_threads, list, never);

    Transposed<Column> out;
    out.tails = sorter.sort(*std::max_element(largest.begin(), largest.end()), n_threads);

    // Every part of the tails numbers the columns that begin in it, once it is known how many begin
    // before it.
    const auto begin = [&](int64_t part) { return n * part / n_threads; };
    const auto is_first = [&](int64_t i) {
        return i == 0 || out.tails[i].column != out.tails[i - 1].column;
    };
    std::vector<int64_t> n_before(n_threads + 1);
    const auto count = [&](int64_t, int64_t part) {
        int64_t n_first = 0;
        for (int64_t i = begin(part); i < begin(part + 1); ++i) n_first += is_first(i);
        n_before[part + 1] = n_first;
    };
    run_tasks(n_threads, n_threads, count, never);
    for (int64_t part = 0; part < n_threads; ++part) n_before[part + 1] += n_before[part];
    out.first.resize(n_before[n_threads] + 1);
    out.names.resize(n_before[n_threads]);
    out.numbers = std::make_unique_for_overwrite<uint32_t[]>(n);
    out.first.back() = static_cast<uint32_t>(n);
    const auto number = [&](int64_t, int64_t part) {
        int64_t last = n_before[part] - 1;
        for (int64_t i = begin(part); i < begin(part + 1); ++i) {
            if (is_first(i)) {
                out.first[++last] = static_cast<uint32_t>(i);
                out.names[last] = out.tails[i].column;
            }
            out.numbers[out.tails[i].begin] = static_cast<uint32_t>(last);
        }
    };
    run_tasks(n_threads, n_threads, number, never);
    return out;
}

}  // namespace polysparse
