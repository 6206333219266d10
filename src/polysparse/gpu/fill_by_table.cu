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

/// How a block of threads fills a tile by table. Of each row, outputs that are looked up together
/// are a segment: all of them or, for interactions, those of one degree.
template <bool strict, int tile_outputs, class Value, class Index, class Out, class OutOffset,
          int highest>
struct TableFill {
    using Word = typename WordOf<Out>::type;
    using Entry = typename EntryOf<highest>::type;
    using In = Slot<Value, Word, highest>;

    const Tile<Value, Index, Out, OutOffset, highest>& tile;
    Mark* marks;
    char* slots;       // slot 0 is the 1 in front of interactions; other rows have one for it each
    int2* segments;    // of each segment its last place in the tile, and its last slot
    int* table_parts;  // of each segment of interactions, where its degree begins in the table
    const Entry* __restrict__ table;
    int longest;
    int64 first, first_stored;
    int n_rows_here;
    int* is_over;  // whether a row is too long for the table

    /// Calls visit(row, begin, end, n) for all rows in the tile that have outputs, if none is too
    /// long. 2^lanes_log threads call it for each row.
    template <class Visit>
    POLYSPARSE_DEVICE void for_rows(int lanes_log, Visit visit) const {
        for (int i = static_cast<int>(threadIdx.x) >> lanes_log; i < n_rows_here;
             i += block_threads >> lanes_log) {
            const int64 r = first + i;
            const int begin = static_cast<int>(tile.out.offsets[r] - tile.origin);
            const int end = static_cast<int>(tile.out.offsets[r + 1] - tile.origin);
            const int n = static_cast<int>(tile.x.offsets[r + 1] - tile.x.offsets[r]);
            if (n >= longest) {
                *is_over = 1;
                return;
            }
            if (begin < tile.n_here && end > max(begin, 0)) visit(i, begin, end, n);
        }
    }

    /// Calls visit(degree, begin, end) for the segments of a row.
    template <class Visit>
    POLYSPARSE_DEVICE void for_segments(int n, int begin, int end, Visit visit) const {
        const Basis& basis = tile.basis;
        if constexpr (strict) {
            for (int d = int(basis.highest); d >= 0; --d) {
                if (d > 0 ? d < basis.lowest : !basis.include_bias) continue;
                const int size = static_cast<int>(degree_size<true>(d, n));
                if (end - size < tile.n_here && end > 0 && size > 0) visit(d, end - size, end);
                end -= size;
            }
        } else {
            visit(highest, begin, end);
        }
    }

    /// Whether each row has one segment, so that these need not be counted.
    POLYSPARSE_DEVICE bool is_counted() const { return !strict && tile.basis.include_bias; }

    /// Marks where segments begin, and returns how many there are.
    POLYSPARSE_DEVICE int mark_segments() const {
        for_rows(0, [&](int, int begin, int end, int n) {
            for_segments(n, begin, end, [&](int, int from, int) { put_mark(marks, max(from, 0)); });
        });
        return count_marks<tile_outputs>(marks);
    }

    /// Writes the segments of row i, whose slots begin at `front`. One thread calls it.
    POLYSPARSE_DEVICE void put_segments(int i, int begin, int end, int n, char* front) const {
        if (!strict) In::put_one(front, tile.ends);
        for_segments(n, begin, end, [&](int d, int from, int to) {
            const int k = is_counted() ? i : marked_at(marks, max(from, 0));
            if (is_counted()) put_mark(marks, max(from, 0));
            segments[k] = make_int2(to - 1, static_cast<int>(front - slots) + n * In::size);
            if (strict) {
                int start = 0;
                for (int e = highest; e > d; --e)
                    start += static_cast<int>(degree_size<true>(e, longest));
                table_parts[k] = start;
            }
        });
    }

    /// Puts a row's n stored values into slots. 2^lanes_log threads call it.
    POLYSPARSE_DEVICE void put_values(int lanes_log, int lane, int64 row_begin, int n,
                                      char* front) const {
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
                In::template put<strict>(slot, tile.basis.n_features,
                                         static_cast<int64>(column[v]));
            }
        }
    }

    /// Puts all rows of the tile into shared memory.
    POLYSPARSE_DEVICE void put_rows() const {
        int lanes_log = 5;
        while (lanes_log > 0 && n_rows_here << lanes_log > block_threads) --lanes_log;
        for_rows(lanes_log, [&](int i, int begin, int end, int n) {
            const int lane = threadIdx.x & ((1 << lanes_log) - 1);
            const int64 row_begin = tile.x.offsets[first + i];
            char* const front =
                slots + (static_cast<int>(row_begin - first_stored) + i + 1) * In::size;
            if (lane == 0) put_segments(i, begin, end, n, front);
            put_values(lanes_log, lane, row_begin, n, front);
        });
    }

    /// Makes a thread's outputs, which are block_threads apart.
    POLYSPARSE_DEVICE void write_outputs() const {
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
            const Entry entry = __ldg(table + segment.x - i + (strict ? table_parts[k] : 0));
            Value value = Value(1);
            Word column = base;
#pragma unroll
            for (int j = highest - 1; j >= 0; --j) {
                const int e =
                    static_cast<int>(entry >> (place_bits<highest> * j)) & no_place<highest>;
                int at = segment.y - e * In::size;
                if (strict && e == no_place<highest>) at = 0;
                value =
                    j == highest - 1 ? In::value(slots + at) : times(In::value(slots + at), value);
                column += In::shift(slots + at, highest - j);
            }
            __stcs(own_columns + round * block_threads, static_cast<Out>(column));
            __stcs(own_values + round * block_threads, value);
        };
        const int n_here = tile.n_here;
        if (n_here == tile_outputs) {
#pragma unroll 4
            for (int round = 0; round < tile_outputs / block_threads; ++round) look_up(round);
        } else {
            for (int round = 0; round * block_threads + static_cast<int>(threadIdx.x) < n_here;
                 ++round)
                look_up(round);
        }
    }

    /// Writes biases, where the table has other outputs in their place.
    POLYSPARSE_DEVICE void write_biases() const {
        for_rows(0, [&](int, int begin, int, int) {
            if (begin < 0) return;
            tile.columns_out[begin] = 0;
            tile.values_out[begin] = Value(1);
        });
    }
};

/// Fills a tile by table. If shared memory has no room for all of its rows, or one of them is too
/// long, does nothing and returns false. `longest` is the length of rows that the table has, with
/// the 1 in front.
template <bool strict, int tile_outputs, class Value, class Index, class Out, class OutOffset,
          int highest>
POLYSPARSE_DEVICE bool fill_by_table(const Tile<Value, Index, Out, OutOffset, highest>& tile,
                                     Mark* marks, char* slots, const Capacity& capacity,
                                     const typename EntryOf<highest>::type* __restrict__ table,
                                     int longest) {
    using Fill = TableFill<strict, tile_outputs, Value, Index, Out, OutOffset, highest>;
    __shared__ int is_over;
    const int64 first = tile.here.row, first_stored = tile.x.offsets[first];
    if (tile.x.offsets[tile.next.row + 1] - first_stored + tile.next.row - first + 2 >
        capacity.values)
        return false;
    int2* const segments = reinterpret_cast<int2*>(slots + capacity.values * Fill::In::size);
    const Fill fill{
        tile,    marks,   slots, segments,     reinterpret_cast<int*>(segments + capacity.segments),
        table,   longest, first, first_stored, static_cast<int>(tile.next.row - first) + 1,
        &is_over};

    for (int w = threadIdx.x; w < tile_outputs / 32; w += block_threads) marks[w].x = 0;
    if (threadIdx.x == 0) {
        is_over = 0;
        Fill::In::put_one(slots, tile.ends);
    }
    __syncthreads();
    if (!fill.is_counted()) {
        if (fill.mark_segments() > capacity.segments || is_over) return false;
    } else if (fill.n_rows_here > capacity.segments) {
        return false;
    }
    fill.put_rows();
    if (fill.is_counted())
        count_marks<tile_outputs>(marks);
    else
        __syncthreads();
    if (is_over) return false;
    fill.write_outputs();
    if (!strict && tile.basis.include_bias && tile.basis.lowest > 1) {
        __syncthreads();
        fill.write_biases();
    }
    return true;
}

}  // namespace polysparse
