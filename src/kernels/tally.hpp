// Which columns occur, and in how many rows: kept sorted, in little memory, and joined as it comes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <utility>
#include <vector>

#include "simplex.hpp"

namespace polysparse {

constexpr int64_t chunk_size = int64_t{1} << 16;  // entries of a chunk, where it is ours to choose

/// Rising columns and the number of rows that have each.
template <class Count>
struct Chunk {
    std::vector<int64_t> columns;
    std::vector<Count> counts;

    void clear() {
        columns.clear();
        counts.clear();
    }
    void append(int64_t column, Count count) {
        columns.push_back(column);
        counts.push_back(count);
    }
};

/// Chunks one after the other rise, too. A column may stand several times in a row, where one Count
/// is too small for its sum.
template <class Count>
using Run = std::vector<Chunk<Count>>;

template <class Count>
int64_t size_of(const Run<Count>& run) {
    int64_t size = 0;
    for (const Chunk<Count>& chunk : run) size += static_cast<int64_t>(chunk.columns.size());
    return size;
}

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

/// Both runs as one, with the counts of a column added. Memory: that of the runs, which is given
/// back as they are read.
template <class Count>
Run<Count> merge(Run<Count>&& left, Run<Count>&& right) {
    constexpr uint64_t most = std::numeric_limits<Count>::max();
    RunReader<Count> a(std::move(left)), b(std::move(right));
    Run<Count> out;
    Chunk<Count> room;
    room.columns.resize(2 * chunk_size);  // every step writes two, and keeps the second seldom
    room.counts.resize(2 * chunk_size);
    const auto put = [&](int64_t n) {
        out.push_back({{room.columns.begin(), room.columns.begin() + n},
                       {room.counts.begin(), room.counts.begin() + n}});
    };
    while (!a.at_end() && !b.at_end()) {
        const int64_t n_a = a.left_in_chunk(), n_b = b.left_in_chunk();
        int64_t i = 0, j = 0, n = 0;
        for (; i < n_a && j < n_b && n < chunk_size; ++n) {
            const int64_t from_a = a.columns()[i], from_b = b.columns()[j];
            const bool take_a = from_a <= from_b, take_b = from_b <= from_a;
            const uint64_t sum =
                (take_a ? a.counts()[i] : uint64_t{0}) + (take_b ? b.counts()[j] : uint64_t{0});
            room.columns[n] = take_a ? from_a : from_b;
            room.counts[n] = static_cast<Count>(std::min(sum, most));
            if (sum > most) {  // the rest stands behind it
                ++n;
                room.columns[n] = from_a;
                room.counts[n] = static_cast<Count>(sum - most);
            }
            i += take_a;
            j += take_b;
        }
        put(n);
        a.advance(i);
        b.advance(j);
    }
    for (RunReader<Count>* rest : {&a, &b}) {
        while (!rest->at_end()) {
            const int64_t n = std::min(rest->left_in_chunk(), chunk_size);
            out.push_back(
                {{rest->columns(), rest->columns() + n}, {rest->counts(), rest->counts() + n}});
            rest->advance(n);
        }
    }
    return out;
}

/// Which of the counted columns are kept: those in more than `least` rows, and of those in exactly
/// so many the first `n_ties`.
struct Kept {
    uint64_t least;
    int64_t n_ties;
    int64_t n_columns;  // that are kept in all
};

/// Counts of columns over many batches of rows. Runs are each more than twice as large as the next,
/// so that a column is merged a logarithmic number of times, and all of them have at most twice as
/// many entries as there are columns.
template <class Count = uint32_t>
class Tally {
  public:
    /// Needs: the run's columns rise.
    void add(Run<Count>&& run) {
        require_counts();
        runs_.push_back(std::move(run));
        while (runs_.size() > 1 && size_of(runs_[runs_.size() - 2]) <= 2 * size_of(runs_.back()))
            merge_last();
    }

    /// Needs: the columns rise.
    void add_counts(const int64_t* columns, const int64_t* counts, int64_t n) {
        constexpr int64_t most = std::numeric_limits<Count>::max();
        Run<Count> run;
        for (int64_t begin = 0; begin < n; begin += chunk_size) {
            run.emplace_back();
            for (int64_t i = begin; i < std::min(begin + chunk_size, n); ++i)
                for (int64_t rest = counts[i]; rest > 0; rest -= most)
                    run.back().append(columns[i], static_cast<Count>(std::min(rest, most)));
        }
        add(std::move(run));
    }

    void add_all_of(const Tally& other) { take_all_of(Tally(other)); }

    void take_all_of(Tally&& other) {
        for (Run<Count>& run : std::exchange(other.runs_, {})) add(std::move(run));
    }

    /// One run of all.
    void settle() {
        require_counts();
        while (runs_.size() > 1) merge_last();
    }

    int64_t n_entries() const {
        int64_t n = 0;
        for (const Run<Count>& run : runs_) n += size_of(run);
        return n;
    }

    /// Columns in at least `min_count` rows, or as many of the most frequent, ties in order.
    /// Needs: settled; so do the others below.
    Kept choose(uint64_t min_count, int64_t max_columns) const {
        const auto n_with = [&](uint64_t least) {
            int64_t n = 0;
            for_each([&](int64_t, uint64_t count) { n += count >= least; });
            return n;
        };
        const int64_t n = n_with(min_count);
        if (n <= max_columns) return {min_count, n, n};
        uint64_t largest = min_count;
        for_each([&](int64_t, uint64_t count) { largest = std::max(largest, count); });
        const auto least = static_cast<uint64_t>(
            largest_where(static_cast<int64_t>(min_count), static_cast<int64_t>(largest),
                          [&](int64_t limit) { return n_with(limit) >= max_columns; }));
        return {least, max_columns - n_with(least + 1), max_columns};
    }

    void write(Kept kept, int64_t* columns, int64_t* counts) const {
        for_each([&](int64_t column, uint64_t count) {
            if (count < kept.least || (count == kept.least && kept.n_ties-- <= 0)) return;
            *columns++ = column;
            *counts++ = static_cast<int64_t>(count);
        });
    }

    void clear() { runs_.clear(); }

  private:
    /// Runs that memory runs out for are half read: their counts are lost, and nothing more is said
    /// of them.
    void merge_last() {
        Run<Count> last = std::move(runs_.back());
        runs_.pop_back();
        is_lost_ = true;
        runs_.back() = merge(std::move(runs_.back()), std::move(last));
        is_lost_ = false;
    }

    void require_counts() const {
        if (is_lost_) throw std::runtime_error("counts were lost when memory ran out: begin anew");
    }

    /// Calls f(column, count) in order.
    template <class F>
    void for_each(const F& f) const {
        if (runs_.empty()) return;
        int64_t column = -1;
        uint64_t count = 0;
        for (const Chunk<Count>& chunk : runs_.front()) {
            for (size_t i = 0; i < chunk.columns.size(); ++i) {
                if (chunk.columns[i] != column) {
                    if (column >= 0) f(column, count);
                    column = chunk.columns[i];
                    count = 0;
                }
                count += chunk.counts[i];
            }
        }
        if (column >= 0) f(column, count);
    }

    std::vector<Run<Count>> runs_;
    bool is_lost_ = false;
};

}  // namespace polysparse
