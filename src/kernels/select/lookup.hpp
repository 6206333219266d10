// From columns of the basis to their places among the chosen ones.
//
// Two structures of at most about 26 bytes per chosen column: bits with running counts where many
// columns of the basis are chosen, otherwise a hash table of cache lines. Either looks up many
// columns at once, so that it can prefetch.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <variant>

#include "basis/basis.hpp"
#include "matrix/slots.hpp"
#include "platform/huge_array.hpp"
#include "platform/processors.hpp"

namespace polysparse {

/// A bit for each column of the basis and, beside every 64, how many bits are set before them.
class BitLookup {
  public:
    static int64_t bytes(int64_t n_basis_columns) {
        return (n_basis_columns / 64 + 1) * static_cast<int64_t>(sizeof(Word));
    }

    /// Needs: the n columns rise, and are below n_basis_columns.
    BitLookup(const int64_t* columns, int64_t n, int64_t n_basis_columns)
        : n_columns_(n), words_(n_basis_columns / 64 + 1) {
        for (int64_t w = 0; w <= n_basis_columns / 64; ++w) words_[w] = {};
        for (int64_t i = 0; i < n; ++i) words_[word_of(columns[i])].bits |= bit_of(columns[i]);
        uint32_t before = 0;
        for (int64_t w = 0; w <= n_basis_columns / 64; ++w) {
            words_[w].before = before;
            before += static_cast<uint32_t>(std::popcount(words_[w].bits));
        }
    }

    int64_t n_columns() const { return n_columns_; }

    /// Copies those of n outputs that are chosen, in order, with their new columns. Returns how
    /// many; one more slot may be written.
    template <class Value>
    POLYSPARSE_INLINE int64_t choose(ConstSlots<int64_t, Value> from, int64_t n,
                                     Slots<int32_t, Value> out) const {
        constexpr int64_t group = 16, ahead = 32;
        int64_t n_chosen = 0, begin = 0;
        uint32_t places[group];
        for (; begin + group <= n; begin += group) {
            const int64_t* const columns = from.columns + begin;
            uint32_t all = 0;
            for (int64_t t = 0; t < group; ++t) {
                if (begin + ahead + group <= n) prefetch(&words_[word_of(columns[t + ahead])]);
                places[t] = find(columns[t]);
                all |= places[t];
            }
            if (all != not_chosen) {
                std::copy_n(places, group, out.columns + n_chosen);
                std::copy_n(from.values + begin, group, out.values + n_chosen);
                n_chosen += group;
                continue;
            }
            for (int64_t t = 0; t < group; ++t) {
                out.columns[n_chosen] = static_cast<int32_t>(places[t]);  // may be overwritten
                out.values[n_chosen] = from.values[begin + t];
                n_chosen += places[t] != not_chosen;
            }
        }
        for (; begin < n; ++begin) {
            const uint32_t place = find(from.columns[begin]);
            out.columns[n_chosen] = static_cast<int32_t>(place);
            out.values[n_chosen] = from.values[begin];
            n_chosen += place != not_chosen;
        }
        return n_chosen;
    }

  private:
    static constexpr uint32_t not_chosen = ~uint32_t{0};
    struct Word {
        uint64_t bits;
        uint32_t before;
    };
    static uint64_t word_of(int64_t column) { return static_cast<uint64_t>(column) >> 6; }
    static uint64_t bit_of(int64_t column) { return uint64_t{1} << (column & 63); }

    POLYSPARSE_INLINE uint32_t find(int64_t column) const {
        const Word& word = words_[word_of(column)];
        const auto lower = static_cast<uint32_t>(std::popcount(word.bits & (bit_of(column) - 1)));
        const auto is_set = static_cast<uint32_t>((word.bits >> (column & 63)) & 1);
        return (word.before + lower) | (is_set - 1);
    }

    int64_t n_columns_;
    HugeArray<Word> words_;
};

/// Lines of five columns with their places. A column is in the line given by its hash or, if that
/// is full, in one of the following; the first line follows the last.
class HashLookup {
  public:
    /// Needs: the n columns rise, n < 2^31.
    HashLookup(const int64_t* columns, int64_t n)
        : n_columns_(n), n_lines_(static_cast<uint64_t>(n) * 2 / 5 + 1), lines_(n_lines_) {
        for (uint64_t line = 0; line < n_lines_; ++line) lines_[line] = {};
        for (int64_t i = 0; i < n; ++i) {
            if (i + ahead < n) prefetch(&lines_[line_of(columns[i + ahead])]);
            uint64_t line = line_of(columns[i]);
            for (; lines_[line].n == per_line; line = next(line)) lines_[line].is_passed = true;
            Line& here = lines_[line];
            here.columns[here.n] = columns[i];
            here.places[here.n++] = static_cast<int32_t>(i);
        }
    }

    int64_t n_columns() const { return n_columns_; }

    /// Copies those of n outputs that are chosen, in order, with their new columns. Returns how
    /// many; one more slot may be written.
    template <class Value>
    POLYSPARSE_INLINE int64_t choose(ConstSlots<int64_t, Value> from, int64_t n,
                                     Slots<int32_t, Value> out) const {
        const auto expect = [&](int64_t t) POLYSPARSE_INLINE_LAMBDA {
            if (t < n) prefetch(&lines_[line_of(from.columns[t])]);
        };
        int64_t n_chosen = 0;
        for (int64_t t = 0; t < ahead; ++t) expect(t);
        for (int64_t t = 0; t < n; ++t) {
            expect(t + ahead);
            const int32_t place = find(from.columns[t]);
            out.columns[n_chosen] = place;  // may be overwritten
            out.values[n_chosen] = from.values[t];
            n_chosen += place >= 0;
        }
        return n_chosen;
    }

  private:
    static constexpr int64_t ahead = 32;
    static constexpr uint32_t per_line = 5;
    struct alignas(64) Line {
        int64_t columns[per_line] = {-1, -1, -1, -1, -1};
        int32_t places[per_line] = {};
        uint16_t n = 0;
        bool is_passed = false;  // a column with this hash is in a later line
    };

    uint64_t line_of(int64_t column) const {
        uint64_t hash = static_cast<uint64_t>(column) * 0x9E3779B97F4A7C15;
        hash = (hash ^ (hash >> 32)) * 0xD1342543DE82EF95;
        return ((hash >> 32) * n_lines_) >> 32;
    }
    uint64_t next(uint64_t line) const { return line + 1 < n_lines_ ? line + 1 : 0; }

    /// The place of a column, or -1.
    POLYSPARSE_INLINE int32_t find(int64_t column) const {
        for (uint64_t line = line_of(column);; line = next(line)) {
            const Line& here = lines_[line];
            int32_t place = -1;
            for (uint32_t i = 0; i < per_line; ++i)
                if (here.columns[i] == column) place = here.places[i];
            if (place >= 0 || !here.is_passed) return place;
        }
    }

    int64_t n_columns_;
    uint64_t n_lines_;
    HugeArray<Line> lines_;
};

using Lookup = std::variant<BitLookup, HashLookup>;

/// The smaller structure of the two. Needs: the n columns rise and are in the basis, n < 2^31.
/// Throws bad_alloc.
inline Lookup make_lookup(const Basis& basis, const int64_t* columns, int64_t n) {
    if (BitLookup::bytes(basis.n_columns()) <= 20 * n + 1024)
        return BitLookup(columns, n, basis.n_columns());
    return HashLookup(columns, n);
}

}  // namespace polysparse
