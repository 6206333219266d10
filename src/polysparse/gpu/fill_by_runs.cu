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

/// Fills a tile by runs. Shared memory has room for what `capacity` of them share.
template <bool strict, int tile_outputs, class Value, class Index, class Out, class OutOffset,
          int highest>
POLYSPARSE_DEVICE void fill_by_runs(const Tile<Value, Index, Out, OutOffset, highest>& tile,
                                    Mark* marks, char* memory, int capacity) {
    using Word = typename WordOf<Out>::type;
    using Kept = Shared<Value, Word, highest>;
    Kept* const kept = reinterpret_cast<Kept*>(memory);
    const int64* const offsets = tile.x.offsets;
    const OutOffset* const out_offsets = tile.out.offsets;
    const Basis& basis = tile.basis;
    const Start here = tile.here, next = tile.next;
    const int64 n_rows_here = next.row - here.row + 1;
    const bool is_in_run = is_bias_in_run<strict>(basis);
    const int64 first_stored = offsets[here.row];

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

    for (int w = threadIdx.x; w < tile_outputs / 32; w += block_threads)
        marks[w] = make_uint4(0, 0, 0, 0);
    __syncthreads();

    // Rows have fewer than 2^31 stored values, and so have runs outputs: places in a tile are
    // counted modulo 2^32. Calls visit(row, n, last, u, run, start) for every run in the tile: the
    // row in the tile, its length and last stored value, which run it is, and where it begins;
    // before the tile if that is below 0. Calls visit_bias(start) for each bias.
    int lanes_log = 5;  // of a row
    while (lanes_log > 0 && n_rows_here << lanes_log > block_threads) --lanes_log;
    const auto for_runs = [&](auto visit, auto visit_bias) {
        const int lane = threadIdx.x & ((1 << lanes_log) - 1);
        for (int64 i = threadIdx.x >> lanes_log; i < n_rows_here; i += block_threads >> lanes_log) {
            const int64 r = here.row + i;
            const auto end = static_cast<uint32>(out_offsets[r + 1] - tile.origin);
            const int64 row_end = offsets[r + 1];
            const int n = static_cast<int>(row_end - offsets[r]);
            int64 count = 0;
            if constexpr (!strict && highest <= 3) {
                count = basis.lowest <= highest;
                if (highest > 1)
                    count = static_cast<int64>(simplex_word<highest - 1, uint64>(uint64(n) + 1));
                if (basis.lowest > 1) count -= basis.lowest == 2 ? 1 : n + 1;
                if (n == 0 && !is_in_run) count = 0;
            } else {
                count = static_cast<int64>(count_runs<strict>(basis, n));
            }
            const int64 low = i == n_rows_here - 1 ? next.run : 0;
            int64 u = (i == 0 ? here.run : count - !(basis.include_bias && !is_in_run)) - lane;
            if (u == count) {
                const int64 start = out_offsets[r] - tile.origin;
                if (start < tile.n_here) visit_bias(static_cast<int>(start));
                u -= 1 << lanes_log;
            }
            for (; u >= low; u -= 1 << lanes_log) {
                Run<highest, uint32> run;
                run.behind = 0;
                find_run<highest, highest, strict>(n, static_cast<uint64>(u), n - !is_in_run, &run);
                const auto start = static_cast<int>(end - 1 - run.behind);
                if (start < tile.n_here)
                    visit(i, n, static_cast<int>(row_end - 1 - first_stored), u, run, start);
            }
        }
    };
    const auto mark = [&](int start, bool is_bias) {
        put_mark(marks, max(start, 0));
        if (is_bias && start >= 0)
            atomicOr(&marks[static_cast<uint32>(start) / 32].z,
                     1u << static_cast<uint32>(start) % 32);
    };
    const auto keep = [&](int k, int n, int last, const Run<highest, uint32>& run, int start) {
        Kept shared;
        shared.tail =
            static_cast<int>(static_cast<uint32>(last - run.tail) - static_cast<uint32>(start));
        shared.shift =
            take_leads<highest, strict, Word>(run.leads, n, columns + last, values + last,
                                              basis.n_features, tile.ends.last, shared.scales);
        kept[k] = shared;
    };
    int span = tile_outputs;  // outputs for whose runs there is room
    if (is_counted) {
        for_runs(
            [&](int64 i, int n, int last, int64 u, const auto& run, int start) {
                mark(start, run.tail == n);
                keep(static_cast<int>(last + 1 - u + i) - skipped, n, last, run, start);
            },
            [](int) {});
        count_marks<tile_outputs>(marks);
    } else {
        for_runs([&](int64, int n, int, int64, const auto& run,
                     int start) { mark(start, run.tail == n); },
                 [&](int start) { mark(start, true); });
        if (count_marks<tile_outputs>(marks) > capacity) span = capacity;
    }

    const Lane lane;
    for (int begin = 0; begin < tile.n_here; begin += span) {
        const int end = min(begin + span, tile.n_here);
        int before = 0;
        if (!is_counted) {
            if (begin > 0) __syncthreads();
            before = marked_at(marks, begin);
            for_runs(
                [&](int64, int n, int last, int64, const auto& run, int start) {
                    if (start < end && start + run.tail >= begin)
                        keep(marked_at(marks, max(start, 0)) - before, n, last, run, start);
                },
                [&](int start) {
                    if (start < begin || start >= end) return;
                    Kept& shared = kept[marked_at(marks, start) - before];
                    for (Value& scale : shared.scales) scale = Value(1);
                    shared.tail = 0;
                });
            __syncthreads();
        }
        int i = begin + 2 * static_cast<int>(threadIdx.x);
        const Mark* own_marks = marks + i / 32u;
        Out* column_to = tile.columns_out + i;
        Value* value_to = tile.values_out + i;
        // Makes pairs of outputs, or a single one.
        const auto make = [&](auto n_pairs, auto n_each) {
            constexpr int pairs = decltype(n_pairs)::value, each = decltype(n_each)::value;
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
            own_marks += pairs * (pair_step / 32);
            column_to += pairs * pair_step;
            value_to += pairs * pair_step;
            i += pairs * pair_step;
        };
        constexpr int together = are_many<Value, highest, tile_outputs> ? 1 : 2;
        while (i + (together - 1) * pair_step + 1 < end) make(Number<together>{}, Number<2>{});
        while (i + 1 < end) make(Number<1>{}, Number<2>{});
        if (i < end) make(Number<1>{}, Number<1>{});
    }
}

}  // namespace polysparse
