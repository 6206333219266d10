// The kernels that fill: all columns, and hashed ones.
namespace polysparse {

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
          int tile_outputs, int run_bytes, int slot_bytes>
__global__ void __launch_bounds__(block_threads, blocks_together<Value, highest, tile_outputs>)
    fill_all(const Filling<Value, Index, Out, OutOffset, highest> all) {
    using Word = typename WordOf<Out>::type;
    static_assert(sizeof(Shared<Value, Word, highest>) == run_bytes);  // as in engine.py
    static_assert(Slot<Value, Word, highest>::size == slot_bytes);
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
        const PlainRow<strict> row{end - x.offsets[r]};
        const Place place =
            place_from_end(basis, row, static_cast<uint64>(out.offsets[r + 1] - 1 - at));
        int64 places[highest > 0 ? highest : 1];
        row.unrank(place.degree, place.from_end, places);
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
