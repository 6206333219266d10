// Which columns occur, and in how many rows: sorted, in little memory, and merged as they come.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <stdexcept>
#include <utility>
#include <vector>

#include "basis/simplex.hpp"
#include "observe/runs.hpp"
#include "platform/threads.hpp"

namespace polysparse {

/// Which of the counted columns are kept: those in more than `least` rows, and the first `n_ties`
/// of those in exactly `least` rows.
struct Kept {
    uint64_t least;
    int64_t n_ties;
    int64_t n_columns;  // kept in all
};

/// Counts of columns over many batches of rows, in runs. Each run is more than twice as large as
/// the next, so that a column is merged a logarithmic number of times and there are at most twice
/// as many entries as columns. If memory runs out nothing is lost; there are then more runs.
///
/// A copy shares its runs with the original, and costs no memory until one of them merges a run
/// that the other still holds. Two threads must not use one tally at once.
template <class Count = uint32_t>
class Tally {
  public:
    /// Needs: the run's columns rise.
    void add(Run<Count>&& run) {
        runs_.reserve(runs_.size() + 1);
        runs_.push_back(std::make_shared<Run<Count>>(std::move(run)));
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
        for (SharedRun<Count>& run : other.runs_) runs_.push_back(std::move(run));
        other.runs_.clear();
        merge_runs();
    }

    /// Merges everything into one run.
    void settle() {
        while (runs_.size() > 1) merge_last();
    }

    int64_t n_entries() const {
        int64_t n = 0;
        for (const SharedRun<Count>& run : runs_) n += size_of(*run);
        return n;
    }

    /// Keeps the columns in at least `min_count` rows. If there are more than `max_columns`, the
    /// most frequent; of equally frequent ones the first. Needs: settled; so does `write`.
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

    /// Writes what `choose` kept, in the order of the columns.
    void write(Kept kept, int64_t* columns, int64_t* counts, int64_t n_threads) const {
        std::vector<Numbers> before{{}};  // totals before each chunk
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
        run_tasks(std::ssize(before) - 1, n_threads, write_chunk);
    }

  private:
    /// Merges runs until each is more than twice as large as the next.
    void merge_runs() {
        const auto is_larger = [](const SharedRun<Count>& a, const SharedRun<Count>& b) {
            return size_of(*a) > size_of(*b);
        };
        std::sort(runs_.begin(), runs_.end(), is_larger);
        for (size_t i = runs_.size(); i-- > 1;) {
            if (size_of(*runs_[i - 1]) > 2 * size_of(*runs_[i])) continue;
            while (runs_.size() > i) merge_last();
        }
    }

    /// If memory runs out nothing is lost: the two runs are then three.
    void merge_last() {
        const size_t last = runs_.size() - 1;
        runs_.reserve(runs_.size() + 1);
        const auto merged = std::make_shared<Run<Count>>();
        own(runs_[last - 1]);
        own(runs_[last]);
        RunReader<Count> a(std::move(*runs_[last - 1])), b(std::move(*runs_[last]));
        try {
            merge(a, b, *merged);
        } catch (...) {
            *runs_[last - 1] = a.rest();
            *runs_[last] = b.rest();
            runs_.push_back(merged);
            throw;
        }
        runs_.pop_back();
        runs_.back() = merged;
    }

    /// Copies a run, unless no other tally holds it. Throws bad_alloc, and has then changed
    /// nothing.
    static void own(SharedRun<Count>& run) {
        bool is_shared;
        {
            const SharedRun<Count> second = run;
            is_shared = second.use_count() > 2;
        }  // Letting go of it waits for whatever other holders read before they let go.
        if (is_shared) run = std::make_shared<Run<Count>>(*run);
    }

    /// How many columns are in more than some number of rows, and in exactly so many; and the
    /// largest count.
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
        std::vector<Numbers> numbers(runs_.empty() ? 0 : runs_.front()->size());
        const auto count_chunk = [&](int64_t, int64_t chunk) {
            Numbers here;
            for_each_in(chunk, [&](int64_t, uint64_t count) {
                here.n_above += count > least;
                here.n_ties += count == least;
                here.largest = std::max(here.largest, count);
            });
            numbers[chunk] = here;
        };
        run_tasks(std::ssize(numbers), n_threads, count_chunk);
        return numbers;
    }

    /// Calls f(column, count), in order, for the columns whose first entry is in a chunk.
    template <class F>
    void for_each_in(int64_t chunk, const F& f) const {
        const Run<Count>& run = *runs_.front();
        const auto& columns = run[chunk].columns;
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

    /// Whether a column, the first of a chunk, is also the last of what comes before.
    bool begins_before(int64_t chunk, int64_t column) const {
        const Run<Count>& run = *runs_.front();
        while (chunk > 0 && run[chunk - 1].columns.empty()) --chunk;
        return chunk > 0 && run[chunk - 1].columns.back() == column;
    }

    /// What a column, the last of a chunk, counts in the chunks behind it.
    uint64_t count_behind(int64_t chunk, int64_t column) const {
        const Run<Count>& run = *runs_.front();
        uint64_t count = 0;
        for (++chunk; chunk < std::ssize(run); ++chunk)
            for (size_t i = 0; i < run[chunk].columns.size(); ++i) {
                if (run[chunk].columns[i] != column) return count;
                count += run[chunk].counts[i];
            }
        return count;
    }

    std::vector<SharedRun<Count>> runs_;
};

}  // namespace polysparse
