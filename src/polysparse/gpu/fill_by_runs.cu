// Tiles by runs: what a run's outputs share is made once and kept in shared memory; a lane makes
// two outputs at a time.
namespace polysparse {

/// What the outputs of a run share: the values of its leads, what a place in the tile lacks to be
/// that of a tail, and what its column lacks to be an output's.
template <class Value, class Word, int highest, int n_scales = (highest > 1 ? highest - 1 : 1)>
struct alignas(sizeof(Value) * n_scales + sizeof(Word) + 4 <= 16 ? 16 : 8) Shared {
    Value scales[n_scales];
    int tail;
    Word shift;
};

/// Sets the scales of a run, and adds up its shift. `last_column` and `last_value` are those of a
/// row of n stored values.
template <int k, bool strict, class Word, class Index, class Value>
POLYSPARSE_DEVICE Word take_leads(const int* leads, int n, const Index* last_column,
                                  const Value* last_value, int64 n_features, const uint64* ends,
                                  Value* scales) {
    if constexpr (k <= 1)
        return static_cast<Word>(ends[k]) - static_cast<Word>(n_features - 1);
    else {
        Word shift = 0;
        scales[0] = Value(1);
        if (leads[0] != n) {
            scales[0] = last_value[-leads[0]];
            shift =
                static_cast<Word>(ends[k] - ends[k - 1]) +
                shift_of<k, strict, Word>(n_features, static_cast<int64>(last_column[-leads[0]]));
        }
        return shift + take_leads<k - 1, strict, Word>(leads + 1, n, last_column, last_value,
                                                       n_features, ends, scales + 1);
    }
}

/// How a block of threads fills a tile by runs. Rows have fewer than 2^31 stored values, and so
/// have runs outputs: places in a tile are counted modulo 2^32.
template <bool strict, int tile_outputs, class Value, class Index, class Out, class OutOffset,
          int highest>
struct RunFill {
    using Word = typename WordOf<Out>::type;
    using Kept = Shared<Value, Word, highest>;
    using Found = Run<highest, uint32>;

    const Tile<Value, Index, Out, OutOffset, highest>& tile;
    Mark* marks;
    Kept* kept;  // what runs share
    int64 first_stored, n_rows_here;
    bool is_in_run;  // whether biases are part of runs
    const Index* columns;
    const Value* values;
    int lanes_log;  // 2^lanes_log threads look for the runs of a row

    /// The number of runs of a row of n stored values, but for a run of the bias alone.
    POLYSPARSE_DEVICE int64 count_runs_of_row(int n) const {
        const Basis& basis = tile.basis;
        if constexpr (!strict && highest <= 3) {
            int64 count = basis.lowest <= highest;
            if (highest > 1)
                count = static_cast<int64>(simplex_word<highest - 1, uint64>(uint64(n) + 1));
            if (basis.lowest > 1) count -= basis.lowest == 2 ? 1 : n + 1;
            return n == 0 && !is_in_run ? 0 : count;
        } else {
            return static_cast<int64>(count_runs<strict>(basis, n));
        }
    }

    /// Calls visit(row, n, last, u, run, start) for every run in the tile: the row in the tile, its
    /// length and last stored value, which run it is, and where it begins; before the tile if that
    /// is below 0. Calls visit_bias(start) for each bias that is not part of a run.
    template <class Visit, class VisitBias>
    POLYSPARSE_DEVICE void for_runs(Visit visit, VisitBias visit_bias) const {
        const Start here = tile.here, next = tile.next;
        const int lane = threadIdx.x & ((1 << lanes_log) - 1);
        for (int64 i = threadIdx.x >> lanes_log; i < n_rows_here; i += block_threads >> lanes_log) {
            const int64 r = here.row + i;
            const auto end = static_cast<uint32>(tile.out.offsets[r + 1] - tile.origin);
            const int64 row_end = tile.x.offsets[r + 1];
            const int n = static_cast<int>(row_end - tile.x.offsets[r]);
            const int64 count = count_runs_of_row(n);
            const int64 low = i == n_rows_here - 1 ? next.run : 0;
            int64 u = (i == 0 ? here.run : count - !(tile.basis.include_bias && !is_in_run)) - lane;
            if (u == count) {
                const int64 start = tile.out.offsets[r] - tile.origin;
                if (start < tile.n_here) visit_bias(static_cast<int>(start));
                u -= 1 << lanes_log;
            }
            for (; u >= low; u -= 1 << lanes_log) {
                Found run;
                run.behind = 0;
                find_run<highest, highest, strict>(n, static_cast<uint64>(u), n - !is_in_run, &run);
                const auto start = static_cast<int>(end - 1 - run.behind);
                if (start < tile.n_here)
                    visit(i, n, static_cast<int>(row_end - 1 - first_stored), u, run, start);
            }
        }
    }

    POLYSPARSE_DEVICE void mark(int start, bool is_bias) const {
        put_mark(marks, max(start, 0));
        if (is_bias && start >= 0)
            atomicOr(&marks[static_cast<uint32>(start) / 32].z,
                     1u << static_cast<uint32>(start) % 32);
    }

    /// Keeps what a run's outputs share as number k.
    POLYSPARSE_DEVICE void keep(int k, int n, int last, const Found& run, int start) const {
        Kept shared;
        shared.tail =
            static_cast<int>(static_cast<uint32>(last - run.tail) - static_cast<uint32>(start));
        shared.shift =
            take_leads<highest, strict, Word>(run.leads, n, columns + last, values + last,
                                              tile.basis.n_features, tile.ends.last, shared.scales);
        kept[k] = shared;
    }

    /// Marks and keeps all runs, of rows that have n + 1 runs each, without those `skipped` before
    /// the tile.
    POLYSPARSE_DEVICE void mark_and_keep(int skipped) const {
        for_runs(
            [&](int64 i, int n, int last, int64 u, const Found& run, int start) {
                mark(start, run.tail == n);
                keep(static_cast<int>(last + 1 - u + i) - skipped, n, last, run, start);
            },
            [](int) {});
        count_marks<tile_outputs>(marks);
    }

    /// Marks all runs, and returns how many there are.
    POLYSPARSE_DEVICE int mark_runs() const {
        for_runs([&](int64, int n, int, int64, const Found& run,
                     int start) { mark(start, run.tail == n); },
                 [&](int start) { mark(start, true); });
        return count_marks<tile_outputs>(marks);
    }

    /// Keeps the runs of outputs [begin, end), less `before` in number.
    POLYSPARSE_DEVICE void keep_between(int begin, int end, int before) const {
        for_runs(
            [&](int64, int n, int last, int64, const Found& run, int start) {
                if (start < end && start + run.tail >= begin)
                    keep(marked_at(marks, max(start, 0)) - before, n, last, run, start);
            },
            [&](int start) {
                if (start < begin || start >= end) return;
                Kept& shared = kept[marked_at(marks, start) - before];
                for (Value& scale : shared.scales) scale = Value(1);
                shared.tail = 0;
            });
    }

    /// Makes `each` outputs from i on, and as many from each of the next `pairs` steps on.
    template <int pairs, int each>
    POLYSPARSE_DEVICE void make(const Lane& lane, int before, int i, const Mark* own_marks,
                                Out* column_to, Value* value_to) const {
        const Kept* shared[pairs][each];
        Value made[pairs][each];
        Word column[pairs][each];
        bool is_bias[pairs][each];
#pragma unroll
        for (int p = 0; p < pairs; ++p) {
            const Mark mark = own_marks[p * (pair_step / 32)];
            const int k = static_cast<int>(mark.y) + __popc(mark.x & lane.bits) - before;
#pragma unroll
            for (int v = 0; v < each; ++v) {
                shared[p][v] = kept + k + (v == 1 && (mark.x & lane.second) != 0);
                const int at = shared[p][v]->tail + i + p * pair_step + v;
                is_bias[p][v] = (mark.z & (v == 0 ? lane.first : lane.second)) != 0;
                made[p][v] = Value(1);
                column[p][v] = 0;
                if (!is_bias[p][v]) {
                    made[p][v] = __ldg(values + at);
                    column[p][v] = static_cast<Word>(__ldg(columns + at));
                }
            }
        }
#pragma unroll
        for (int p = 0; p < pairs; ++p) {
#pragma unroll
            for (int v = 0; v < each; ++v) {
#pragma unroll
                for (int j = highest - 2; j >= 0; --j)
                    made[p][v] = times(shared[p][v]->scales[j], made[p][v]);
                if (!is_bias[p][v]) column[p][v] += shared[p][v]->shift;
            }
            store<each>(column_to + p * pair_step, column[p]);
            store<each>(value_to + p * pair_step, made[p]);
        }
    }

    /// Makes outputs [begin, end), whose runs are kept, less `before` in number: pairs of them, or
    /// a single one.
    POLYSPARSE_DEVICE void write_outputs(const Lane& lane, int begin, int end, int before) const {
        int i = begin + 2 * static_cast<int>(threadIdx.x);
        const Mark* own_marks = marks + i / 32u;
        Out* column_to = tile.columns_out + i;
        Value* value_to = tile.values_out + i;
        const auto step = [&](int pairs) {
            own_marks += pairs * (pair_step / 32);
            column_to += pairs * pair_step;
            value_to += pairs * pair_step;
            i += pairs * pair_step;
        };
        constexpr int together = are_many<Value, highest, tile_outputs> ? 1 : 2;
        for (; i + (together - 1) * pair_step + 1 < end; step(together))
            make<together, 2>(lane, before, i, own_marks, column_to, value_to);
        for (; i + 1 < end; step(1)) make<1, 2>(lane, before, i, own_marks, column_to, value_to);
        if (i < end) make<1, 1>(lane, before, i, own_marks, column_to, value_to);
    }
};

/// Fills a tile by runs. Shared memory has room for what `capacity` of them share.
template <bool strict, int tile_outputs, class Value, class Index, class Out, class OutOffset,
          int highest>
POLYSPARSE_DEVICE void fill_by_runs(const Tile<Value, Index, Out, OutOffset, highest>& tile,
                                    Mark* marks, char* memory, int capacity) {
    using Fill = RunFill<strict, tile_outputs, Value, Index, Out, OutOffset, highest>;
    const int64* const offsets = tile.x.offsets;
    const Start here = tile.here, next = tile.next;
    const int64 first_stored = offsets[here.row], n_rows_here = next.row - here.row + 1;
    const bool is_in_run = is_bias_in_run<strict>(tile.basis);

    // Where rows have n + 1 runs each, these need not be counted.
    bool is_counted = false;
    int skipped = 0;
    if constexpr (!strict && highest == 2) {
        skipped = static_cast<int>(offsets[here.row + 1] - first_stored - here.run);
        const int64 last_length = offsets[next.row + 1] - first_stored;
        is_counted = is_in_run && last_length + n_rows_here - next.run - skipped <= capacity;
    }
    const Index* columns = tile.x.columns + first_stored;
    const Value* values = tile.x.values + first_stored;
    asm("" : "+l"(columns), "+l"(values));  // they are kept, not computed again for each output
    int lanes_log = 5;
    while (lanes_log > 0 && n_rows_here << lanes_log > block_threads) --lanes_log;
    const Fill fill{tile,         marks,       reinterpret_cast<typename Fill::Kept*>(memory),
                    first_stored, n_rows_here, is_in_run,
                    columns,      values,      lanes_log};

    for (int w = threadIdx.x; w < tile_outputs / 32; w += block_threads)
        marks[w] = make_uint4(0, 0, 0, 0);
    __syncthreads();
    int span = tile_outputs;  // outputs for whose runs there is room
    if (is_counted)
        fill.mark_and_keep(skipped);
    else if (fill.mark_runs() > capacity)
        span = capacity;

    const Lane lane;
    for (int begin = 0; begin < tile.n_here; begin += span) {
        const int end = min(begin + span, tile.n_here);
        int before = 0;
        if (!is_counted) {
            if (begin > 0) __syncthreads();
            before = marked_at(marks, begin);
            fill.keep_between(begin, end, before);
            __syncthreads();
        }
        fill.write_outputs(lane, begin, end, before);
    }
}

}  // namespace polysparse
