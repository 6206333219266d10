// Which columns occur, and in how many rows: kept sorted, in little memory, and joined as it comes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <stdexcept>
#include <utility>
#include <vector>

#include "basis/simplex.hpp"
#include "platform/threads.hpp"

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

    /// What has not been read. Does not allocate.
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

/// Appends both runs, as one, to `out`, with the counts of a column added. Memory: that of the
/// runs, which is given back as they are read. If it throws bad_alloc, what is in `out` has been
/// read, and nothing else.
template <class Count>
void merge(RunReader<Count>& a, RunReader<Count>& b, Run<Count>& out) {
    constexpr uint64_t most = std::numeric_limits<Count>::max();
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
}

/// Which of the counted columns are kept: those in more than `least` rows, and of those in exactly
/// so many the first `n_ties`.
struct Kept {
    uint64_t least;
    int64_t n_ties;
    int64_t n_columns;  // that are kept in all
};

/// Counts of columns over many batches of rows, in runs. Each is more than twice as large as the
/// next, so that a column is merged a logarithmic number of times, and all of them have at most
/// twice as many entries as there are columns. If memory runs out nothing is lost: there are only
/// more runs than that.
template <class Count = uint32_t>
class Tally {
  public:
    /// Needs: the run's columns rise.
    void add(Run<Count>&& run) {
        runs_.reserve(runs_.size() + 1);
        runs_.push_back(std::move(run));
        merge_runs();
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
        runs_.reserve(runs_.size() + other.runs_.size());
        for (Run<Count>& run : other.runs_) runs_.push_back(std::move(run));
        other.runs_.clear();
        merge_runs();
    }

    /// One run of all.
    void settle() {
        while (runs_.size() > 1) merge_last();
    }

    int64_t n_entries() const {
        int64_t n = 0;
        for (const Run<Count>& run : runs_) n += size_of(run);
        return n;
    }

    /// Columns in at least `min_count` rows, or as many of the most frequent, ties in order.
    /// Needs: settled; so does `write`.
    Kept choose(uint64_t min_count, int64_t max_columns, int64_t n_threads) const {
        const auto count = [&](uint64_t least) {
            Numbers all;
            for (const Numbers& numbers : count_by_chunk(least, n_threads)) all += numbers;
            return all;
        };
        const Numbers first = count(min_count);
        const int64_t n = first.n_above + first.n_ties;
        if (n <= max_columns) return {min_count, n, n};
        const auto least = static_cast<uint64_t>(
            largest_where(static_cast<int64_t>(min_count), static_cast<int64_t>(first.largest),
                          [&](int64_t limit) {
                              const Numbers numbers = count(static_cast<uint64_t>(limit));
                              return numbers.n_above + numbers.n_ties >= max_columns;
                          }));
        return {least, max_columns - count(least).n_above, max_columns};
    }

    void write(Kept kept, int64_t* columns, int64_t* counts, int64_t n_threads) const {
        std::vector<Numbers> before{{}};  // each chunk
        for (const Numbers& numbers : count_by_chunk(kept.least, n_threads)) {
            before.push_back(before.back());
            before.back() += numbers;
        }
        const Numbers& all = before.back();
        if (all.n_above + std::min(all.n_ties, kept.n_ties) != kept.n_columns)
            throw std::logic_error("the tally has changed since its columns were chosen");
        const auto write_chunk = [&](int64_t, int64_t chunk) {
            int64_t n_ties = before[chunk].n_ties;
            int64_t place = before[chunk].n_above + std::min(n_ties, kept.n_ties);
            for_each_in(chunk, [&](int64_t column, uint64_t count) {
                if (count < kept.least || (count == kept.least && n_ties++ >= kept.n_ties)) return;
                columns[place] = column;
                counts[place++] = static_cast<int64_t>(count);
            });
        };
        auto never = [] { return false; };
        run_tasks(std::ssize(before) - 1, n_threads, write_chunk, never);
    }

  private:
    /// Merges runs until each is more than twice as large as the next.
    void merge_runs() {
        const auto is_larger = [](const Run<Count>& a, const Run<Count>& b) {
            return size_of(a) > size_of(b);
        };
        std::sort(runs_.begin(), runs_.end(), is_larger);
        for (size_t i = runs_.size(); i-- > 1;) {
            if (size_of(runs_[i - 1]) > 2 * size_of(runs_[i])) continue;
            while (runs_.size() > i) merge_last();
        }
    }

    void merge_last() {
        runs_.reserve(runs_.size() + 1);  // if memory runs out below, there is one run more
        RunReader<Count> b(std::move(runs_.back()));
        runs_.pop_back();
        RunReader<Count> a(std::move(runs_.back()));
        runs_.pop_back();
        Run<Count> out;
        try {
            merge(a, b, out);
        } catch (...) {
            runs_.push_back(std::move(out));
            runs_.push_back(a.rest());
            runs_.push_back(b.rest());
            throw;
        }
        runs_.push_back(std::move(out));
    }

    /// Columns in more than some number of rows, and in exactly so many; and the largest count.
    struct Numbers {
        int64_t n_above = 0, n_ties = 0;
        uint64_t largest = 0;

        void operator+=(const Numbers& other) {
            n_above += other.n_above;
            n_ties += other.n_ties;
            largest = std::max(largest, other.largest);
        }
    };

    std::vector<Numbers> count_by_chunk(uint64_t least, int64_t n_threads) const {
        std::vector<Numbers> numbers(runs_.empty() ? 0 : runs_.front().size());
        const auto count_chunk = [&](int64_t, int64_t chunk) {
            Numbers here;
            for_each_in(chunk, [&](int64_t, uint64_t count) {
                here.n_above += count > least;
                here.n_ties += count == least;
                here.largest = std::max(here.largest, count);
            });
            numbers[chunk] = here;
        };
        auto never = [] { return false; };
        run_tasks(std::ssize(numbers), n_threads, count_chunk, never);
        return numbers;
    }

    /// Calls f(column, count), in order, for the columns that begin in a chunk of the first run.
    template <class F>
    void for_each_in(int64_t chunk, const F& f) const {
        const Run<Count>& run = runs_.front();
        const std::vector<int64_t>& columns = run[chunk].columns;
        const size_t n = columns.size();
        size_t i = 0;
        while (i < n && begins_before(chunk, columns[i])) ++i;
        while (i < n) {
            const int64_t column = columns[i];
            uint64_t count = run[chunk].counts[i++];
            while (i < n && columns[i] == column) count += run[chunk].counts[i++];
            if (i == n) count += count_behind(chunk, column);
            f(column, count);
        }
    }

    /// Whether a column, the first of a chunk, stands at the end of what is before it.
    bool begins_before(int64_t chunk, int64_t column) const {
        const Run<Count>& run = runs_.front();
        while (chunk > 0 && run[chunk - 1].columns.empty()) --chunk;
        return chunk > 0 && run[chunk - 1].columns.back() == column;
    }

    /// The count of a column, the last of a chunk, at the beginning of what is behind it.
    uint64_t count_behind(int64_t chunk, int64_t column) const {
        const Run<Count>& run = runs_.front();
        uint64_t count = 0;
        for (++chunk; chunk < std::ssize(run); ++chunk)
            for (size_t i = 0; i < run[chunk].columns.size(); ++i) {
                if (run[chunk].columns[i] != column) return count;
                count += run[chunk].counts[i];
            }
        return count;
    }

    std::vector<Run<Count>> runs_;
};

}  // namespace polysparse
