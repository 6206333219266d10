// Sorted runs of columns and counts, and merging them in little memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "platform/slabs.hpp"

namespace polysparse {

constexpr int64_t chunk_size = int64_t{1} << 16;  // entries of a chunk that a merge writes

/// Rising columns, and the number of rows that have each.
template <class Count>
struct Chunk {
    std::vector<int64_t, SlabAllocator<int64_t>> columns;
    std::vector<Count, SlabAllocator<Count>> counts;

    /// Copies n entries to memory of an arena. Throws bad_alloc.
    static Chunk copy(const int64_t* columns, const Count* counts, int64_t n, SlabArena& arena) {
        return {{columns, columns + n, SlabAllocator<int64_t>(arena)},
                {counts, counts + n, SlabAllocator<Count>(arena)}};
    }
    void append(int64_t column, Count count) {
        columns.push_back(column);
        counts.push_back(count);
    }
};

/// Chunks whose columns rise from one to the next, too. A column is repeated where one Count is too
/// small for its sum.
template <class Count>
using Run = std::vector<Chunk<Count>>;

template <class Count>
int64_t size_of(const Run<Count>& run) {
    int64_t size = 0;
    for (const Chunk<Count>& chunk : run) size += static_cast<int64_t>(chunk.columns.size());
    return size;
}

/// A run that several tallies may hold. Only its last holder may change it.
template <class Count>
using SharedRun = std::shared_ptr<Run<Count>>;

/// Reads a run from the front and frees what has been read.
template <class Count>
class RunReader {
  public:
    explicit RunReader(Run<Count>&& run) : run_(std::move(run)) { skip_empty(); }

    bool at_end() const { return chunk_ == run_.size(); }
    int64_t left_in_chunk() const {
        return static_cast<int64_t>(run_[chunk_].columns.size()) - place_;
    }
    const int64_t* columns() const { return run_[chunk_].columns.data() + place_; }
    const Count* counts() const { return run_[chunk_].counts.data() + place_; }
    void advance(int64_t n) {
        place_ += n;
        skip_empty();
    }

    /// Takes what has not been read. Does not allocate.
    Run<Count> rest() {
        if (at_end()) return {};
        Chunk<Count>& first = run_[chunk_];
        first.columns.erase(first.columns.begin(), first.columns.begin() + place_);
        first.counts.erase(first.counts.begin(), first.counts.begin() + place_);
        run_.erase(run_.begin(), run_.begin() + static_cast<int64_t>(chunk_));
        return std::move(run_);
    }

  private:
    void skip_empty() {
        while (!at_end() && left_in_chunk() == 0) {
            run_[chunk_++] = {};
            place_ = 0;
        }
    }
    Run<Count> run_;
    size_t chunk_ = 0;
    int64_t place_ = 0;
};

/// Appends both runs, merged, to `out`; counts of the same column are added. Uses the memory of the
/// runs, which is freed as they are read. If it throws bad_alloc, `out` holds exactly what has been
/// read.
template <class Count>
void merge(RunReader<Count>& a, RunReader<Count>& b, Run<Count>& out) {
    constexpr uint64_t most = std::numeric_limits<Count>::max();
    Chunk<Count> buffer;
    buffer.columns.resize(2 * chunk_size);  // a step may write two entries
    buffer.counts.resize(2 * chunk_size);
    SlabArena arena;
    const auto put = [&](const int64_t* columns, const Count* counts, int64_t n) {
        out.push_back(Chunk<Count>::copy(columns, counts, n, arena));
    };
    while (!a.at_end() && !b.at_end()) {
        const int64_t n_a = a.left_in_chunk(), n_b = b.left_in_chunk();
        int64_t i = 0, j = 0, n = 0;
        for (; i < n_a && j < n_b && n < chunk_size; ++n) {
            const int64_t from_a = a.columns()[i], from_b = b.columns()[j];
            const bool take_a = from_a <= from_b, take_b = from_b <= from_a;
            const uint64_t sum =
                (take_a ? a.counts()[i] : uint64_t{0}) + (take_b ? b.counts()[j] : uint64_t{0});
            buffer.columns[n] = take_a ? from_a : from_b;
            buffer.counts[n] = static_cast<Count>(std::min(sum, most));
            if (sum > most) {  // the rest is a second entry
                ++n;
                buffer.columns[n] = from_a;
                buffer.counts[n] = static_cast<Count>(sum - most);
            }
            i += take_a;
            j += take_b;
        }
        put(buffer.columns.data(), buffer.counts.data(), n);
        a.advance(i);
        b.advance(j);
    }
    for (RunReader<Count>* rest : {&a, &b}) {
        while (!rest->at_end()) {
            const int64_t n = std::min(rest->left_in_chunk(), chunk_size);
            put(rest->columns(), rest->counts(), n);
            rest->advance(n);
        }
    }
}

}  // namespace polysparse
