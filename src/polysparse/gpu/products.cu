// Products of an expansion with vectors: some threads have a row.
namespace polysparse {

constexpr int most_staged = 63;  // values of a row

/// Adds up what the columns of a tuple of degree d contribute; places are counted from `last`.
template <int d, bool strict, class Word, class Index, class P>
POLYSPARSE_DEVICE Word column_of(const Index* last, int64 n_features, const P* places) {
    if constexpr (d == 0)
        return 0;
    else
        return shift_of<d, strict, Word>(n_features, last[-places[0]]) +
               column_of<d - 1, strict, Word>(last, n_features, places + 1);
}

/// x_1 * (x_2 * (...)): associating to the right decides the last bit.
template <int d, class Value, class P>
POLYSPARSE_DEVICE Value product_of(const Value* last, const P* places) {
    if constexpr (d == 0)
        return Value(1);
    else if constexpr (d == 1)
        return last[-places[0]];
    else
        return times(last[-places[0]], product_of<d - 1>(last, places + 1));
}

/// Adds up term(value, column) for the outputs of a row that are [begin, end) from its end. The
/// lanes of a warp take turns. Short rows are staged in `memory`, by the whole warp.
template <int highest, bool strict, class Index, class Value, class Word>
struct RowStage {
    Value values[most_staged + 1];
    Word shifts[highest][most_staged + 1];

    template <int k>
    POLYSPARSE_DEVICE void put_shifts(int slot, int64 n_features, int64 column) {
        if constexpr (k <= highest) {
            shifts[k - 1][slot] = shift_of<k, strict, Word>(n_features, column);
            put_shifts<k + 1>(slot, n_features, column);
        }
    }
    POLYSPARSE_DEVICE void put(const Index* columns, const Value* row, int n, int64 n_features,
                               const Ends<highest>& ends) {
        const int lane = threadIdx.x % 32;
        if (lane == 0) {
            values[0] = Value(1);
            for (int k = 1; k <= highest; ++k)
                shifts[k - 1][0] = static_cast<Word>(ends.last[k - 1] - ends.last[k]);
        }
        for (int a = lane; a < n; a += 32) {
            values[a + 1] = row[a];
            put_shifts<1>(a + 1, n_features, static_cast<int64>(columns[a]));
        }
    }
};

/// The sum over one degree of a row that is not staged.
template <int d, int highest, bool strict, class Index, class Value>
POLYSPARSE_DEVICE Value dot_long(int degree, int64 begin, int64 end, const Index* columns,
                                 const Value* values, int64 n_features, const Ends<highest>& ends,
                                 const Value* coefficients, int64 stride) {
    if (degree != d) {
        if constexpr (d > 1)
            return dot_long<d - 1, highest, strict>(degree, begin, end, columns, values, n_features,
                                                    ends, coefficients, stride);
        return Value(0);
    }
    // Forwards: from `end` - 1 tuples behind it down to `begin`.
    const int lane = threadIdx.x % 32;
    int64 q = end - 1 - lane;
    if (q < begin) return Value(0);
    int places[d];
    unrank_from_end<strict>(d, static_cast<uint64>(q), places);
    Value sum = 0;
    for (; q >= begin; q -= 32) {
        const uint64 column =
            ends.last[d] + column_of<d, strict, uint64>(columns, n_features, places);
        sum += product_of<d>(values, places) * coefficients[static_cast<int64>(column) * stride];
        if (q - 32 >= begin) step_forward<d, strict>(places, 32);
    }
    return sum;
}

/// The expansion times a vector: a warp for each row or, if there are `items`, for each part of
/// a row of up to `part` outputs, whose sums go to `out` one behind the other.
template <class Value, class Index, class Out, int highest, bool strict>
__global__ void __launch_bounds__(block_threads)
    dot_rows(Rows<Index, Value> x, Basis basis, Ends<highest> ends_of,
             const typename EntryOf<highest>::type* __restrict__ table, int longest,
             const int64* __restrict__ items, int64 n_items, int64 part,
             const Value* __restrict__ coefficients, int64 stride, Value* __restrict__ out,
             int64 out_stride) {
    using Entry = typename EntryOf<highest>::type;
    using Word = typename WordOf<Out>::type;
    __shared__ RowStage<highest, strict, Index, Value, Word> stages[block_threads / 32];
    RowStage<highest, strict, Index, Value, Word>& stage = stages[threadIdx.x / 32];
    const int lane = threadIdx.x % 32;
    const int64 item = static_cast<int64>(blockIdx.x) * (block_threads / 32) + threadIdx.x / 32;
    if (item >= n_items) return;
    const int64 r = items == nullptr ? item : last_at_most(items, 0, x.n_rows - 1, item);
    const int64 row_begin = x.offsets[r], row_end = x.offsets[r + 1], n = row_end - row_begin;
    const bool is_bias_apart =
        basis.include_bias && (strict || basis.lowest > 1 || n + 1 > longest || n > most_staged);
    const int64 size = count_outputs<highest, strict>(basis, n) - is_bias_apart;
    int64 begin = 0, end = size;  // from the end of the row
    if (items != nullptr) {
        begin = (item - items[r]) * part;
        end = min(begin + part, size);
    }
    Value sum = 0;
    if (is_bias_apart && begin == 0 && lane == 0) sum = coefficients[0];
    if (n + !strict <= longest && n <= most_staged) {
        stage.put(x.columns + row_begin, x.values + row_begin, static_cast<int>(n),
                  basis.n_features, ends_of);
        __syncwarp();
        const auto add = [&](const Entry* entries, int from, int to) {
#pragma unroll 4
            for (int q = from + lane; q < to; q += 32) {
                const Entry entry = __ldg(entries + q);
                Value value = Value(1);
                Word column = static_cast<Word>(ends_of.last[highest]);
#pragma unroll
                for (int j = highest - 1; j >= 0; --j) {
                    const int e =
                        static_cast<int>(entry >> (place_bits<highest> * j)) & no_place<highest>;
                    const int at = strict && e == no_place<highest> ? 0 : static_cast<int>(n) - e;
                    value = j == highest - 1 ? stage.values[at] : stage.values[at] * value;
                    column += stage.shifts[highest - 1 - j][at];
                }
                sum += value * coefficients[static_cast<int64>(column) * stride];
            }
        };
        if (strict) {
            int64 before = 0;
            for (int d = highest; d >= basis.lowest; --d) {
                const int64 here = static_cast<int64>(degree_size<true>(d, n));
                add(table, static_cast<int>(max(begin - before, int64(0))),
                    static_cast<int>(min(end - before, here)));
                table += degree_size<true>(d, longest);
                before += here;
            }
        } else {
            add(table, static_cast<int>(begin), static_cast<int>(end));
        }
    } else {
        int64 before = 0;
        for (int d = highest; d >= basis.lowest; --d) {
            const int64 here = static_cast<int64>(degree_size<strict>(d, n));
            sum += dot_long<highest, highest, strict>(
                d, max(begin - before, int64(0)), min(end - before, here), x.columns + row_end - 1,
                x.values + row_end - 1, basis.n_features, ends_of, coefficients, stride);
            before += here;
        }
    }
    for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffffu, sum, step);
    if (lane == 0) out[item * out_stride] = sum;
}

/// The expansion of degree 2 times `vectors` vectors, for rows of up to `longest` values,
/// an odd number, so that rows are staged in different banks. `pair_lanes` neighbouring threads
/// have a row. A lane has the pairs whose second value is the j-th, and those whose is the j-th
/// from the end: that is equally many for each.
template <class Value, class Index, class Out, bool strict, int vectors, int stored_bytes>
__global__ void __launch_bounds__(block_threads)
    dot_pairs(Rows<Index, Value> x, Basis basis, Ends<2> ends, int longest,
              const Value* __restrict__ coefficients, int64 stride, Value* __restrict__ out,
              int64 out_stride) {
    using Word = typename WordOf<Out>::type;
    struct Stored {
        Value value;
        Word shift;  // as the first of a pair
    };
    static_assert(sizeof(Stored) == stored_bytes);  // as in products.py
    constexpr int n_groups = block_threads / pair_lanes;
    extern __shared__ __align__(16) char memory[];
    const int lane = threadIdx.x % pair_lanes;
    const uint32 mask = ((1u << pair_lanes) - 1) << (threadIdx.x % 32 / pair_lanes * pair_lanes);
    Stored* const leads =
        reinterpret_cast<Stored*>(memory) + static_cast<int>(threadIdx.x) / pair_lanes * longest;
    const int64 r = static_cast<int64>(blockIdx.x) * n_groups + threadIdx.x / pair_lanes;
    if (r >= x.n_rows) return;
    const int64 begin = x.offsets[r];
    const int n = static_cast<int>(x.offsets[r + 1] - begin);
    const Value* const values = x.values + begin;
    const Index* const columns = x.columns + begin;
    // The column of a pair is the shift of its first and the column of its second value.
    const auto last = static_cast<Word>(basis.n_features - 1);
    const Word second = static_cast<Word>(ends.last[2]) - last;
    const Word alone = static_cast<Word>(ends.last[1]) - last;
    for (int a = lane; a < n; a += pair_lanes)
        leads[a] = {values[a], second + shift_of<2, strict, Word>(basis.n_features, columns[a])};
    __syncwarp(mask);
    Value sums[vectors] = {};
    const auto add = [&](Value value, Word column) {
#pragma unroll
        for (int v = 0; v < vectors; ++v)
            sums[v] =
                fma(value, __ldg(coefficients + static_cast<int64>(column) * stride + v), sums[v]);
    };
    if (basis.include_bias && lane == 0) add(Value(1), 0);
    for (int near = lane; 2 * near < n; near += pair_lanes) {
        const int far = n - 1 - near, of_far = far + !strict;
        const int count = of_far + (near == far ? 0 : near + !strict);
        const Value near_value = leads[near].value, far_value = leads[far].value;
        const auto near_column = static_cast<Word>(columns[near]);
        const auto far_column = static_cast<Word>(columns[far]);
        if (basis.lowest <= 1) {
            add(far_value, alone + far_column);
            if (near != far) add(near_value, alone + near_column);
        }
#pragma unroll 4
        for (int t = 0; t < count; ++t) {
            const bool is_far = t < of_far;
            const Stored lead = leads[is_far ? t : t - of_far];
            add(lead.value * (is_far ? far_value : near_value),
                lead.shift + (is_far ? far_column : near_column));
        }
    }
#pragma unroll
    for (int v = 0; v < vectors; ++v) {
        for (int step = pair_lanes / 2; step > 0; step /= 2)
            sums[v] += __shfl_down_sync(mask, sums[v], step, pair_lanes);
        if (lane == 0) out[r * out_stride + v] = sums[v];
    }
}

/// The parts of each row, behind a 0.
template <bool strict>
__global__ void count_parts(const int64* offsets, int64 n_rows, Basis basis, int64 part,
                            int64* counts) {
    const int64 r = static_cast<int64>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (r == 0) counts[0] = 0;
    if (r >= n_rows) return;
    const int64 size = static_cast<int64>(row_size<strict>(basis, offsets[r + 1] - offsets[r]));
    counts[r + 1] = max((size + part - 1) / part, int64(1));
}

/// Adds up the sums of each row's parts, in their order.
template <class Value>
__global__ void add_parts(const int64* items, int64 n_rows, const Value* sums, int64 sums_stride,
                          Value* out, int64 stride) {
    const int64 r = static_cast<int64>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (r >= n_rows) return;
    Value sum = 0;
    for (int64 t = items[r]; t < items[r + 1]; ++t) sum += sums[t * sums_stride];
    out[r * stride] = sum;
}

}  // namespace polysparse
