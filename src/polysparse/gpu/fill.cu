// Filling: a block of threads makes a tile of outputs, whatever rows they fall in, neighbouring
// lanes neighbouring outputs. What begins in a tile is marked in bits, so that a lane finds what an
// output is part of by counting bits.
//
// By runs: what a run's outputs share is made once and kept in shared memory; a lane makes two
// outputs at a time. By table, of short
// rows, which have short runs: stored values are staged in shared memory with what each adds to a
// column, and a table has the tuples of all places.
namespace polysparse {

/// Whether tiles are so small that more of them are to be filled together.
template <class Value, int highest, int tile_outputs>
constexpr bool are_many = sizeof(Value) == 8 && highest == 2 && tile_outputs <= 2048;

/// Blocks that a multiprocessor is to run when it fills.
template <class Value, int highest, int tile_outputs>
constexpr int blocks_together = are_many<Value, highest, tile_outputs> ? 8 : 6;

/// What a block of threads fills, and from what.
template <class Value, class Index, class Out, class OutOffset, int highest>
struct Tile {
    const Rows<Index, Value>& x;
    const Targets<OutOffset>& out;
    const Basis& basis;
    const Ends<highest>& ends;
    Start here, next;  // where it begins and where the next one does
    int64 origin;      // its first output
    int n_here;
    Out* columns_out;
    Value* values_out;
};

/// Of 32 outputs: bits where something begins, how much begins before, less 1, and bits of biases.
using Mark = uint4;

/// Counts what begins before each mark, and returns how much there is. All threads take part.
template <int tile_outputs>
POLYSPARSE_DEVICE int count_marks(Mark* marks) {
    __shared__ int total;
    __syncthreads();
    if (threadIdx.x < 32) {
        constexpr int each = tile_outputs / 32 / 32;
        int count = 0;
#pragma unroll
        for (int j = 0; j < each; ++j) count += __popc(marks[threadIdx.x * each + j].x);
        int sum = count;
        for (int step = 1; step < 32; step *= 2) {
            const int other = __shfl_up_sync(0xffffffffu, sum, step);
            if (threadIdx.x >= step) sum += other;
        }
        if (threadIdx.x == 31) total = sum;
        sum -= count + 1;
#pragma unroll
        for (int j = 0; j < each; ++j) {
            Mark& mark = marks[threadIdx.x * each + j];
            mark.y = sum;
            sum += __popc(mark.x);
        }
    }
    __syncthreads();
    return total;
}

POLYSPARSE_DEVICE void put_mark(Mark* marks, int i) {
    atomicOr(&marks[i / 32u].x, 1u << i % 32u);
}

/// What output i is part of.
POLYSPARSE_DEVICE int marked_at(const Mark* marks, int i) {
    const Mark& mark = marks[i / 32u];
    return static_cast<int>(mark.y) + __popc(mark.x & (0xffffffffu >> (31 - i % 32u)));
}

constexpr int pair_step = 2 * block_threads;  // from a thread's pair of outputs to its next one

/// The bits of a thread's pair of outputs in its marks, and all bits up to the first.
struct Lane {
    uint32 first, second, bits;
    POLYSPARSE_DEVICE Lane()
        : first(1u << 2 * threadIdx.x % 32), second(2 * first), bits(2 * first - 1) {}
};

POLYSPARSE_DEVICE void store_pair(int* to, int a, int b) {
    __stcs(reinterpret_cast<int2*>(to), make_int2(a, b));
}
POLYSPARSE_DEVICE void store_pair(int64* to, int64 a, int64 b) {
    __stcs(reinterpret_cast<longlong2*>(to), make_longlong2(a, b));
}
POLYSPARSE_DEVICE void store_pair(float* to, float a, float b) {
    __stcs(reinterpret_cast<float2*>(to), make_float2(a, b));
}
POLYSPARSE_DEVICE void store_pair(double* to, double a, double b) {
    __stcs(reinterpret_cast<double2*>(to), make_double2(a, b));
}

/// Writes one output or two, which are not read again soon.
template <int count, class To, class From>
POLYSPARSE_DEVICE void store(To* to, const From* from) {
    if constexpr (count == 2)
        store_pair(to, static_cast<To>(from[0]), static_cast<To>(from[1]));
    else
        __stcs(to, static_cast<To>(from[0]));
}

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

/// A stored value with what its column adds as the first of k. Its size is an odd number of words,
/// so that neighbouring lanes read from different banks.
template <class Value, class Word, int highest>
struct Slot {
    static constexpr int unit = sizeof(Value) > sizeof(Word) ? sizeof(Value) : sizeof(Word);
    static constexpr int shifts_at = sizeof(Value) > sizeof(Word) ? sizeof(Value) : sizeof(Word);
    static constexpr int units = (shifts_at + highest * int(sizeof(Word)) + unit - 1) / unit;
    static constexpr int size = unit * (units | 1);

    static POLYSPARSE_DEVICE Value& value(char* slot) { return *reinterpret_cast<Value*>(slot); }
    static POLYSPARSE_DEVICE Word& shift(char* slot, int k) {
        return *reinterpret_cast<Word*>(slot + shifts_at + (k - 1) * int(sizeof(Word)));
    }

    template <bool strict, int k = 1>
    static POLYSPARSE_DEVICE void put(char* slot, int64 n_features, int64 column) {
        if constexpr (k <= highest) {
            shift(slot, k) = shift_of<k, strict, Word>(n_features, column);
            put<strict, k + 1>(slot, n_features, column);
        }
    }
    /// The 1 in front: a tuple that it leads has the column of the rest, of a lower degree.
    static POLYSPARSE_DEVICE void put_one(char* slot, const Ends<highest>& ends) {
        value(slot) = Value(1);
#pragma unroll
        for (int k = 1; k <= highest; ++k)
            shift(slot, k) = static_cast<Word>(ends.last[k - 1] - ends.last[k]);
    }
};

/// How much of a tile fits into shared memory: runs or, by table, stored values and rows, which for
/// interactions are degrees of rows.
struct Capacity {
    int64 runs, values, segments;
};

/// Fills a tile by table. If that has no place for all of its rows, does nothing and returns false.
/// `longest` is the length of rows that the table has, with the 1 in front.
template <bool strict, int tile_outputs, class Value, class Index, class Out, class OutOffset,
          int highest>
POLYSPARSE_DEVICE bool fill_by_table(const Tile<Value, Index, Out, OutOffset, highest>& tile,
                                     Mark* marks, char* slots, const Capacity& capacity,
                                     const typename EntryOf<highest>::type* __restrict__ table,
                                     int longest) {
    using Word = typename WordOf<Out>::type;
    using Entry = typename EntryOf<highest>::type;
    using In = Slot<Value, Word, highest>;
    __shared__ int is_over;
    // Of each segment its last place in the tile, and its last slot; of each segment of
    // interactions, where its part of the table begins.
    int2* const segments = reinterpret_cast<int2*>(slots + capacity.values * In::size);
    int* const parts = reinterpret_cast<int*>(segments + capacity.segments);
    const int64* const offsets = tile.x.offsets;
    const OutOffset* const out_offsets = tile.out.offsets;
    const Basis& basis = tile.basis;
    const int64 first = tile.here.row, first_stored = offsets[first];
    const int n_here = tile.n_here;
    // Slot 0 is the 1 in front of interactions; other rows have a slot for it each.
    if (offsets[tile.next.row + 1] - first_stored + tile.next.row - first + 2 > capacity.values)
        return false;
    const int n_rows_here = static_cast<int>(tile.next.row - first) + 1;

    for (int w = threadIdx.x; w < tile_outputs / 32; w += block_threads) marks[w].x = 0;
    if (threadIdx.x == 0) {
        is_over = 0;
        In::put_one(slots, tile.ends);
    }
    __syncthreads();

    // Calls visit(row, begin, end, n) for all rows in the tile that have outputs, if none is too
    // long. So many threads call it for each row.
    const auto for_rows = [&](int lanes_log, auto visit) {
        for (int i = static_cast<int>(threadIdx.x) >> lanes_log; i < n_rows_here;
             i += block_threads >> lanes_log) {
            const int64 r = first + i;
            const int begin = static_cast<int>(out_offsets[r] - tile.origin);
            const int end = static_cast<int>(out_offsets[r + 1] - tile.origin);
            const int n = static_cast<int>(offsets[r + 1] - offsets[r]);
            if (n >= longest) {
                is_over = 1;
                return;
            }
            if (begin < n_here && end > max(begin, 0)) visit(i, begin, end, n);
        }
    };
    // Calls visit(degree, begin, end) for the outputs of a row that are looked up together.
    const auto for_segments = [&](int n, int begin, int end, auto visit) {
        if constexpr (strict) {
            for (int d = int(basis.highest); d >= 0; --d) {
                if (d > 0 ? d < basis.lowest : !basis.include_bias) continue;
                const int size = static_cast<int>(block_size<true>(d, n));
                if (end - size < n_here && end > 0 && size > 0) visit(d, end - size, end);
                end -= size;
            }
        } else {
            visit(highest, begin, end);
        }
    };
    const bool is_counted = !strict && basis.include_bias;  // a segment a row
    if (!is_counted) {
        for_rows(0, [&](int, int begin, int end, int n) {
            for_segments(n, begin, end, [&](int, int from, int) { put_mark(marks, max(from, 0)); });
        });
        if (count_marks<tile_outputs>(marks) > capacity.segments || is_over) return false;
    } else if (n_rows_here > capacity.segments) {
        return false;
    }

    int lanes_log = 5;
    while (lanes_log > 0 && n_rows_here << lanes_log > block_threads) --lanes_log;
    for_rows(lanes_log, [&](int i, int begin, int end, int n) {
        const int lane = threadIdx.x & ((1 << lanes_log) - 1);
        const int64 row_begin = offsets[first + i];
        char* const front = slots + (static_cast<int>(row_begin - first_stored) + i + 1) * In::size;
        if (lane == 0) {
            if (!strict) In::put_one(front, tile.ends);
            for_segments(n, begin, end, [&](int d, int from, int to) {
                const int k = is_counted ? i : marked_at(marks, max(from, 0));
                if (is_counted) put_mark(marks, max(from, 0));
                segments[k] = make_int2(to - 1, static_cast<int>(front - slots) + n * In::size);
                if (strict) {
                    int start = 0;
                    for (int e = highest; e > d; --e)
                        start += static_cast<int>(block_size<true>(e, longest));
                    parts[k] = start;
                }
            });
        }
        constexpr int together = 4;
        for (int a = lane; a < n; a += together << lanes_log) {
            Value value[together];
            Index column[together];
#pragma unroll
            for (int v = 0; v < together; ++v) {
                const int64 t = row_begin + min(a + (v << lanes_log), n - 1);
                value[v] = tile.x.values[t];
                column[v] = tile.x.columns[t];
            }
#pragma unroll
            for (int v = 0; v < together; ++v) {
                if (a + (v << lanes_log) >= n) break;
                char* const slot = front + (a + (v << lanes_log) + 1) * In::size;
                In::value(slot) = value[v];
                In::template put<strict>(slot, basis.n_features, static_cast<int64>(column[v]));
            }
        }
    });
    if (is_counted)
        count_marks<tile_outputs>(marks);
    else
        __syncthreads();
    if (is_over) return false;

    const Word base = static_cast<Word>(tile.ends.last[highest]);
    const uint32 lane_bits = 0xffffffffu >> (31 - threadIdx.x % 32);
    const Mark* const own_marks = marks + threadIdx.x / 32;
    Out* const own_columns = tile.columns_out + threadIdx.x;
    Value* const own_values = tile.values_out + threadIdx.x;
    const auto look_up = [&](int round) {
        const int i = round * block_threads + static_cast<int>(threadIdx.x);
        const Mark& mark = own_marks[round * (block_threads / 32)];
        const int k = static_cast<int>(mark.y) + __popc(mark.x & lane_bits);
        const int2 segment = segments[k];
        const int q = segment.x - i + (strict ? parts[k] : 0);
        const Entry entry = __ldg(table + q);
        Value value = Value(1);
        Word column = base;
#pragma unroll
        for (int j = highest - 1; j >= 0; --j) {
            const int e = static_cast<int>(entry >> (place_bits<highest> * j)) & no_place<highest>;
            int at = segment.y - e * In::size;
            if (strict && e == no_place<highest>) at = 0;
            value = j == highest - 1 ? In::value(slots + at) : times(In::value(slots + at), value);
            column += In::shift(slots + at, highest - j);
        }
        __stcs(own_columns + round * block_threads, static_cast<Out>(column));
        __stcs(own_values + round * block_threads, value);
    };
    constexpr int n_rounds = tile_outputs / block_threads;
    if (n_here == tile_outputs) {
#pragma unroll 4
        for (int round = 0; round < n_rounds; ++round) look_up(round);
    } else {
        for (int round = 0; round * block_threads + static_cast<int>(threadIdx.x) < n_here; ++round)
            look_up(round);
    }
    if (!strict && basis.include_bias && basis.lowest > 1) {
        __syncthreads();  // the table has other outputs in their place
        for_rows(0, [&](int, int begin, int, int) {
            if (begin < 0) return;
            tile.columns_out[begin] = 0;
            tile.values_out[begin] = Value(1);
        });
    }
    return true;
}

/// Brings what the tile `ahead` further on needs to the level-2 cache, if rows begin in it.
template <class Index, class Value, class OutOffset>
POLYSPARSE_DEVICE void fetch_ahead(const Rows<Index, Value>& x, const Targets<OutOffset>& out,
                                   const Start* starts, int ahead) {
    if (threadIdx.x < block_threads - 32 || blockIdx.x + ahead >= gridDim.x) return;
    starts += blockIdx.x + ahead;
    const int64 first = starts[0].row + 1, last = starts[1].row + 1;
    const int64 from = x.offsets[first], to = x.offsets[last];
    const auto fetch = [](const void* at) { asm volatile("prefetch.global.L2 [%0];" ::"l"(at)); };
    for (int64 t = from + threadIdx.x % 32 * 16; t < min(to, from + 2048); t += 512) {
        fetch(x.values + t);
        fetch(x.columns + t);
    }
    for (int64 r = first + threadIdx.x % 32 * 16; r < min(last, first + 2048); r += 512) {
        fetch(x.offsets + r);
        fetch(out.offsets + r);
    }
}

/// What to fill, and from what. The table has rows of up to `longest` values, with the 1 in front,
/// or is not used.
template <class Value, class Index, class Out, class OutOffset, int highest>
struct Filling {
    Rows<Index, Value> x;
    Targets<OutOffset> out;
    const Start* starts;
    Basis basis;
    Ends<highest> ends;
    const typename EntryOf<highest>::type* table;
    int64 longest;
    Capacity capacity;
    Out* columns_out;
    Value* values_out;
};

/// All columns, by table if there is one.
template <class Value, class Index, class Out, class OutOffset, int highest, bool strict,
          int tile_outputs>
__global__ void __launch_bounds__(block_threads, blocks_together<Value, highest, tile_outputs>)
    fill_all(const Filling<Value, Index, Out, OutOffset, highest> all) {
    extern __shared__ __align__(16) char memory[];
    __shared__ Mark marks[tile_outputs / 32];
    const int64 begin = static_cast<int64>(blockIdx.x) * tile_outputs;
    const int n_here =
        static_cast<int>(min(all.out.total - begin, static_cast<int64>(tile_outputs)));
    const Tile<Value, Index, Out, OutOffset, highest> tile{all.x,
                                                           all.out,
                                                           all.basis,
                                                           all.ends,
                                                           all.starts[blockIdx.x],
                                                           all.starts[blockIdx.x + 1],
                                                           begin,
                                                           n_here,
                                                           all.columns_out + begin,
                                                           all.values_out + begin};
    constexpr int ahead = 150 * blocks_together<Value, highest, tile_outputs>;
    if constexpr (highest > 1) {
        if (all.longest > 0) {
            if (fill_by_table<strict, tile_outputs>(tile, marks, memory, all.capacity, all.table,
                                                    static_cast<int>(all.longest)))
                return fetch_ahead(all.x, all.out, all.starts, ahead);
            __syncthreads();
        }
    }
    fill_by_runs<strict, tile_outputs>(tile, marks, memory, static_cast<int>(all.capacity.runs));
    fetch_ahead(all.x, all.out, all.starts, ahead);
}

// ----------------------------------------------------------------------------------------- hashing

/// Every output's bucket, and its value with its sign, in the order of the basis.
template <class Value, class Index, int highest, bool strict>
__global__ void fill_hashed(Rows<Index, Value> x, Targets<int64> out, const Start* starts,
                            Basis basis, Hasher hasher, int64 tile_outputs, int* buckets_out,
                            Value* values_out) {
    const int64 tile_begin = static_cast<int64>(blockIdx.x) * tile_outputs;
    const int64 first = starts[blockIdx.x].row, last = starts[blockIdx.x + 1].row;
    const int n_here =
        static_cast<int>(min(out.total - tile_begin, static_cast<int64>(tile_outputs)));
    for (int i = threadIdx.x; i < n_here; i += blockDim.x) {
        const int64 at = tile_begin + i;
        const int64 r = last_at_most(out.offsets, first, last, at), end = x.offsets[r + 1];
        const Place place = place_from_end<strict>(
            basis, end - x.offsets[r], static_cast<uint64>(out.offsets[r + 1] - 1 - at));
        int64 places[highest > 0 ? highest : 1];
        unrank_from_end<strict>(place.degree, place.from_end, places);
        Value value = Value(1);
        uint64 h = hasher.salt;
        for (int j = place.degree - 1; j >= 0; --j) {
            const int64 t = end - 1 - places[j];
            value = times(x.values[t], value);
            h = hasher.lead(static_cast<uint64>(x.columns[t]), h);
        }
        buckets_out[tile_begin + i] = hasher.bucket(h);
        values_out[tile_begin + i] = hasher.is_negative(h) ? negative(value) : value;
    }
}

/// Sums of values, each from one head to the next, in their order.
template <class Value>
__global__ void sum_between(const int64* heads, int64 n_heads, int64 end, const int64* order,
                            const Value* values, Value* sums) {
    const int64 k = static_cast<int64>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (k >= n_heads) return;
    const int64 last = k + 1 < n_heads ? heads[k + 1] : end;
    Value sum = values[order[heads[k]]];
    for (int64 t = heads[k] + 1; t < last; ++t) sum = plus(sum, values[order[t]]);
    sums[k] = sum;
}

}  // namespace polysparse
