// Tiles by table, of short rows, which have short runs: stored values are staged in shared memory
// with what each adds to a column, and a table has the tuples of all places.
namespace polysparse {

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

}  // namespace polysparse
