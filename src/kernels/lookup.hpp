// From a column of the basis to its place among chosen ones.
//
// Two structures, of at most about 20 bytes for each chosen column: where the chosen ones are dense
// among all, bits with running counts, and where they are sparse, a hash table of cache lines.
#pragma once

#include <bit>
#include <cstdint>
#include <memory>

#include "targets.hpp"

namespace polysparse {

constexpr uint32_t not_chosen = ~uint32_t{0};

/// A bit for each column of the basis; and, beside every 64, how many were set before.
class BitLookup {
  public:
    static int64_t bytes(int64_t n_basis_columns) {
        return (n_basis_columns / 64 + 1) * static_cast<int64_t>(sizeof(Word));
    }

    /// Needs: the n columns rise, and are below n_basis_columns.
    BitLookup(const int64_t* columns, int64_t n, int64_t n_basis_columns)
        : words_(std::make_unique<Word[]>(n_basis_columns / 64 + 1)) {
        for (int64_t i = 0; i < n; ++i)
            words_[columns[i] / 64].bits |= uint64_t{1} << (columns[i] % 64);
        uint32_t before = 0;
        for (int64_t w = 0; w <= n_basis_columns / 64; ++w) {
            words_[w].before = before;
            before += static_cast<uint32_t>(std::popcount(words_[w].bits));
        }
    }

    void expect(int64_t column) const { prefetch(&words_[column / 64]); }

    /// The place of a column, or not_chosen.
    uint32_t find(int64_t column) const {
        const Word& word = words_[column / 64];
        const uint64_t bit = uint64_t{1} << (column % 64);
        const auto lower = static_cast<uint32_t>(std::popcount(word.bits & (bit - 1)));
        return (word.bits & bit) != 0 ? word.before + lower : not_chosen;
    }

  private:
    struct Word {
        uint64_t bits;
        uint32_t before;
    };
    std::unique_ptr<Word[]> words_;
};

/// Lines of five columns with their places; a column is in the line that its hash says, or, if that
/// is full, in one of the next.
class HashLookup {
  public:
    /// Needs: the n columns rise.
    HashLookup(const int64_t* columns, int64_t n)
        : shift_(64 - std::bit_width(static_cast<uint64_t>(n) / 3 + 1)),
          n_lines_((int64_t{1} << (64 - shift_)) + 1),
          lines_(std::make_unique<Line[]>(n_lines_)) {
        constexpr int64_t ahead = 16;
        for (int64_t i = 0; i < n; ++i) {
            if (i + ahead < n) expect(columns[i + ahead]);
            int64_t line = line_of(columns[i]);
            while (lines_[line].n == per_line) line = next(line);
            Line& here = lines_[line];
            here.columns[here.n] = columns[i];
            here.places[here.n] = static_cast<uint32_t>(i);
            ++here.n;
        }
    }

    void expect(int64_t column) const { prefetch(&lines_[line_of(column)]); }

    /// The place of a column, or not_chosen.
    uint32_t find(int64_t column) const {
        for (int64_t line = line_of(column);; line = next(line)) {
            const Line& here = lines_[line];
            uint32_t place = not_chosen;
            for (uint32_t i = 0; i < per_line; ++i)
                if (here.columns[i] == column) place = here.places[i];
            if (place != not_chosen || here.n < per_line) return place;
        }
    }

  private:
    static constexpr uint32_t per_line = 5;
    struct alignas(64) Line {
        int64_t columns[per_line] = {-1, -1, -1, -1, -1};
        uint32_t places[per_line] = {};
        uint32_t n = 0;
    };

    int64_t line_of(int64_t column) const {
        return static_cast<int64_t>((static_cast<uint64_t>(column) * 0x9E3779B97F4A7C15) >> shift_);
    }
    int64_t next(int64_t line) const { return line + 1 < n_lines_ ? line + 1 : 0; }

    int shift_;
    int64_t n_lines_;
    std::unique_ptr<Line[]> lines_;
};

}  // namespace polysparse
