// Rows in chunks whose results are made apart and added in the end, so that threads need not wait
// for each other. How many there are depends on the matrix alone, and so do the bits of the result.
#pragma once

#include <algorithm>
#include <cstdint>

#include "apply/apply.hpp"
#include "platform/huge_array.hpp"
#include "platform/threads.hpp"

namespace polysparse {

/// Into how many chunks to divide the rows: at most 32, and so few that adding their results is
/// little beside the work, and that these have no more than n_kept numbers in all, unless there are
/// two.
template <class Value>
int64_t count_chunks(int64_t n_outputs, int64_t n_columns, int64_t n_vectors, int64_t n_kept) {
    // A large result is fresh memory each time, which takes longer to come by than to add.
    const int64_t n_numbers = n_columns * n_vectors;
    const bool is_large = n_numbers * static_cast<int64_t>(sizeof(Value)) >> 24 > 0;
    const int64_t by_work = n_outputs / ((is_large ? 16 : 4) * n_columns + 1);
    int64_t n_chunks = 1;
    while (n_chunks < 32 && 2 * n_chunks <= by_work &&
           (n_chunks == 1 || 2 * n_chunks * n_numbers <= n_kept))
        n_chunks *= 2;
    return n_chunks;
}

/// The results of chunks. That of the first is where the sum will be.
template <class Value>
class ChunkResults {
  public:
    /// Zeros, but for the first, which is what it is. Throws bad_alloc.
    ChunkResults(int64_t n_chunks, int64_t n_columns, VectorTable<Value> first, int64_t n_threads)
        : n_chunks_(n_chunks),
          n_numbers_(n_columns * first.n_vectors),
          first_(first),
          others_((n_chunks - 1) * n_numbers_) {
        const int64_t n = (n_chunks - 1) * n_numbers_;
        EqualRanges(n, n_threads).run([&](int64_t, int64_t begin, int64_t end) {
            std::fill(others_.data() + begin, others_.data() + end, Value(0));
        });
    }

    int64_t count() const { return n_chunks_; }

    VectorTable<Value> operator[](int64_t chunk) {
        if (chunk == 0) return first_;
        return {others_.data() + (chunk - 1) * n_numbers_, first_.n_vectors};
    }

    /// Adds the others to the first. False if it was stopped.
    bool add(int64_t n_threads, const StopRequest& should_stop) {
        if (n_chunks_ == 1) return true;
        constexpr int64_t together = 1 << 12;  // numbers of the result
        const auto add_task = [&](int64_t, int64_t task) {
            const int64_t begin = task * together, end = std::min(begin + together, n_numbers_);
            for (int64_t chunk = 1; chunk < n_chunks_; ++chunk) {
                const Value* const numbers = (*this)[chunk].values;
                for (int64_t i = begin; i < end; ++i) first_.values[i] += numbers[i];
            }
        };
        return run_tasks((n_numbers_ - 1) / together + 1, n_threads, add_task, should_stop);
    }

  private:
    int64_t n_chunks_, n_numbers_;
    VectorTable<Value> first_;
    HugeArray<Value> others_;
};

}  // namespace polysparse
