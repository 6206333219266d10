// Several vectors, a few at a time where their numbers would not stay in a cache.
//
// A table with a row of k numbers for each column of the expansion is read at random. If it is
// larger than a cache and one vector is not, products of fewer vectors are faster, although rows of
// X are read again for each: on 100,000 rows of 20 values and 501,500 columns, all vectors at once
// took up to three times as long as one after the other. Their numbers are copied into tables of
// their own: those of a cache line together, so that each line is read once.
#pragma once

#include <algorithm>
#include <cstdint>

#include "apply/apply.hpp"
#include "apply/strips.hpp"
#include "platform/huge_array.hpp"
#include "platform/threads.hpp"

namespace polysparse {

/// How k vectors are divided: into copies of `copied` vectors, each of groups of `together`.
struct VectorGroups {
    int64_t together, copied;

    /// For vectors of n_columns numbers of a size, in tables of up to `cached` bytes; together is k
    /// if nothing is gained otherwise.
    static VectorGroups of(int64_t k, int64_t n_columns, int64_t size, int64_t n_outputs,
                           int64_t cached) {
        const int64_t bytes = n_columns * size, line = cache_line / size;
        const bool stays = k * bytes <= cached;
        const bool is_reused = n_outputs >= worth_copying * n_columns;
        if (k == 1 || stays || !is_reused || bytes > most) return {k, k};
        int64_t together = 1;
        while (2 * together * bytes <= cached) together *= 2;
        return {together, std::max(together, line)};
    }

    // Bytes of a table that is read fast, and of one that is added to fast.
    static constexpr int64_t cached_reads = int64_t{1} << 23, cached_sums = int64_t{1} << 21;

  private:
    static constexpr int64_t cache_line = 64;          // bytes
    static constexpr int64_t most = int64_t{1} << 24;  // bytes of a vector of which that is true
    static constexpr int64_t worth_copying = 16;       // times that a number is read
};

/// Copies of some neighbouring vectors of a table with n rows, in groups.
template <class Value>
class GroupedVectors {
  public:
    /// Uninitialised. Throws bad_alloc.
    GroupedVectors(int64_t n, VectorGroups groups)
        : n_(n), together_(groups.together), numbers_(n * groups.copied) {}

    /// Sets the numbers of the first n_vectors to 0.
    void clear(int64_t n_vectors, int64_t n_threads) {
        EqualRanges(n_ * n_vectors, n_threads).run([&](int64_t, int64_t begin, int64_t end) {
            std::fill(numbers_.data() + begin, numbers_.data() + end, Value(0));
        });
    }

    /// The group that begins with copied vector c, of `count` vectors.
    VectorTable<Value> group(int64_t c, int64_t count) { return {numbers_.data() + c * n_, count}; }

    /// Calls step(copy, number) for each number of vectors [first, first + count) of a table: the
    /// places of its copy and of the number itself.
    template <class Other, class Step>
    void for_each(VectorTable<Other> table, int64_t first, int64_t count, int64_t n_threads,
                  const Step& step) {
        EqualRanges(n_, n_threads).run([&](int64_t, int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i)
                for (int64_t c = 0; c < count; c += together_) {
                    const int64_t width = std::min(together_, count - c);
                    Value* const copies = numbers_.data() + c * n_ + i * width;
                    for (int64_t u = 0; u < width; ++u) step(copies[u], table[i][first + c + u]);
                }
        });
    }

  private:
    int64_t n_, together_;
    HugeArray<Value> numbers_;
};

/// Calls multiply(from, to) for groups of the vectors in `from`, which have n_from numbers, so that
/// `to` becomes their products, which have n_to; `is_added`: these are added to it. False if a call
/// returns false. Throws bad_alloc, while no thread runs.
template <bool is_added, class Value, class Multiply>
bool by_groups(VectorGroups groups, VectorTable<const Value> from, int64_t n_from,
               VectorTable<Value> to, int64_t n_to, int64_t n_threads, const Multiply& multiply) {
    const int64_t k = to.n_vectors;
    if (groups.together >= k) return multiply(from, to);
    groups.copied = std::min(groups.copied, k);
    GroupedVectors<Value> sources(n_from, groups), results(n_to, groups);
    for (int64_t first = 0; first < k; first += groups.copied) {
        const int64_t count = std::min(groups.copied, k - first);
        sources.for_each(from, first, count, n_threads,
                         [](Value& copy, const Value& number) { copy = number; });
        if constexpr (is_added) results.clear(count, n_threads);
        for (int64_t c = 0; c < count; c += groups.together) {
            const int64_t width = std::min(groups.together, count - c);
            const VectorTable<Value> source = sources.group(c, width);
            if (!multiply({source.values, width}, results.group(c, width))) return false;
        }
        results.for_each(to, first, count, n_threads, [](const Value& copy, Value& number) {
            number = is_added ? number + copy : copy;
        });
    }
    return true;
}

}  // namespace polysparse
