// Products of a transposed expansion with vectors: few threads own what begins with a column of X,
// and read its rows in their order.
namespace polysparse {

constexpr int leads_together = 4;  // that are loaded before one of them is added

/// X by columns: [starts[j * n_chunks + k], ...) up to the next start are of `order`, the places of
/// what column j stores in the k-th chunk of rows, and of their `rows`.
struct ByColumns {
    const int64 *starts, *order, *rows;
    int64 n_chunks;
};

/// What `lanes` neighbouring threads have: the stored values of one column in one chunk of rows.
template <int lanes>
struct Unit {
    int64 lead, chunk, from, to;
    uint32 mask;

    /// Blocks that run at the same time have the same rows, so that these stay in the cache. So do
    /// the warps of a block; if lanes are fewer, they would wait for the most frequent column.
    POLYSPARSE_DEVICE Unit(const ByColumns& by, int64 n_features) {
        constexpr int n_units = block_threads / lanes;
        const int own = static_cast<int>(threadIdx.x) / lanes;
        const int64 unit = static_cast<int64>(blockIdx.x) * n_units + own;
        lead = (lanes == 32 ? unit : blockIdx.x) % n_features;
        chunk = lanes == 32 ? unit / n_features : blockIdx.x / n_features * n_units + own;
        mask = lanes == 32 ? 0xffffffffu
                           : ((1u << lanes % 32) - 1) << (threadIdx.x % 32 / lanes * lanes);
        from = to = 0;
        if (chunk >= by.n_chunks) return;
        from = by.starts[lead * by.n_chunks + chunk];
        to = by.starts[lead * by.n_chunks + chunk + 1];
    }
};

/// A stored value, and how many its row has from there on.
template <class Value>
struct Lead {
    int64 place;
    int length;
    Value scale;  // the value times the weight of the row
};

/// The lead that a lane looks up: number i of those of a column, if that is below `to`.
template <class Index, class Value>
POLYSPARSE_DEVICE Lead<Value> lead_at(const Rows<Index, Value>& x, const ByColumns& by,
                                      const Value* weights, int64 stride, int64 i, int64 to) {
    if (i >= to) return {0, 0, Value(0)};
    const int64 r = by.rows[i], place = by.order[i];
    return {place, static_cast<int>(x.offsets[r + 1] - place),
            x.values[place] * weights[r * stride]};
}

/// Adds what the tuples of degree d contribute that begin with a stored value, e places before the
/// row's last one. The lanes take turns; no two of them add to the same place.
template <int d, int highest, bool strict, int lanes, class Index, class Value>
POLYSPARSE_DEVICE void add_tuples(int64 e, Value scale, const Index* columns, const Value* values,
                                  const Basis& basis, const Ends<highest>& ends, int64 lead,
                                  Value* to) {
    if constexpr (d >= 2) {
        add_tuples<d - 1, highest, strict, lanes>(e, scale, columns, values, basis, ends, lead, to);
        if (d < basis.lowest) return;
        const int64 size = static_cast<int64>(degree_size<strict>(d - 1, strict ? e : e + 1));
        int64 q = size - 1 - threadIdx.x % lanes;
        if (q < 0) return;
        const uint64 first = ends.last[d] + shift_of<d, strict, uint64>(basis.n_features, lead);
        int places[d - 1];
        unrank_from_end<strict>(d - 1, static_cast<uint64>(q), places);
        for (; q >= 0; q -= lanes) {
            const uint64 column =
                first + column_of<d - 1, strict, uint64>(columns, basis.n_features, places);
            to[column] += product_of<d - 1>(values, places) * scale;
            if (q >= lanes) step_forward<d - 1, strict>(places, lanes);
        }
    }
}

/// The transposed expansion times a vector, without the bias. `lanes` neighbouring threads add up
/// what begins with one column, row after row. Each chunk of rows has a result of its own.
template <class Value, class Index, int highest, bool strict, int lanes>
__global__ void __launch_bounds__(block_threads)
    scatter(Rows<Index, Value> x, ByColumns by, Basis basis, Ends<highest> ends_of,
            const Value* __restrict__ weights, int64 stride, Value* __restrict__ out,
            int64 n_columns) {
    const int lane = threadIdx.x % lanes;
    const Unit<lanes> unit(by, basis.n_features);
    if (unit.from >= unit.to) return;
    out += unit.chunk * n_columns;
    // Each lane looks a lead up; then all of them add what one lead after the other contributes.
    Value alone = 0;
    for (int64 i = unit.from; i < unit.to; i += lanes) {
        const Lead<Value> own = lead_at(x, by, weights, stride, i + lane, unit.to);
        alone += own.scale;
        const int n_leads = static_cast<int>(min(unit.to - i, int64(lanes)));
        for (int t = 0; t < n_leads; ++t) {
            const int64 place = __shfl_sync(unit.mask, own.place, t, lanes);
            const int64 last = place + __shfl_sync(unit.mask, own.length, t, lanes) - 1;
            add_tuples<highest, highest, strict, lanes>(
                last - place, __shfl_sync(unit.mask, own.scale, t, lanes), x.columns + last,
                x.values + last, basis, ends_of, unit.lead, out);
            __syncwarp(unit.mask);
        }
    }
    for (int step = lanes / 2; step > 0; step /= 2)
        alone += __shfl_down_sync(unit.mask, alone, step, lanes);
    if (basis.lowest <= 1 && lane == 0)
        out[ends_of.last[1] + shift_of<1, strict, uint64>(basis.n_features, unit.lead)] = alone;
}

/// The same for pairs. Sums are made in shared memory.
template <class Value, class Index, bool strict, int lanes>
__global__ void __launch_bounds__(block_threads)
    scatter_pairs(Rows<Index, Value> x, ByColumns by, Basis basis, Ends<2> ends_of,
                  const Value* __restrict__ weights, int64 stride, Value* __restrict__ out,
                  int64 n_columns) {
    extern __shared__ __align__(16) char memory[];
    const int lane = threadIdx.x % lanes;
    const Unit<lanes> unit(by, basis.n_features);
    if (unit.from >= unit.to) return;
    out += unit.chunk * n_columns;
    Value* const sums = reinterpret_cast<Value*>(memory) + threadIdx.x / lanes * basis.n_features;
    for (int64 j = unit.lead + lane; j < basis.n_features; j += lanes) sums[j] = Value(0);
    __syncwarp(unit.mask);
    // The next leads are looked up, and what is behind some is loaded, before any of them is added.
    Value alone = 0;
    Lead<Value> next = lead_at(x, by, weights, stride, unit.from + lane, unit.to);
    for (int64 i = unit.from; i < unit.to; i += lanes) {
        const Lead<Value> own = next;
        next = lead_at(x, by, weights, stride, i + lanes + lane, unit.to);
        alone += own.scale;
        const int n_leads = static_cast<int>(min(unit.to - i, int64(lanes)));
        for (int first = 0; first < n_leads; first += leads_together) {
            const Index* columns[leads_together];
            const Value* values[leads_together];
            int lengths[leads_together];
            Index first_column[leads_together];
            Value first_value[leads_together];
#pragma unroll
            for (int v = 0; v < leads_together; ++v) {
                const int64 place = __shfl_sync(unit.mask, own.place, first + v, lanes);
                lengths[v] = __shfl_sync(unit.mask, own.length, first + v, lanes);
                columns[v] = x.columns + place;
                values[v] = x.values + place;
                if (lane + strict < lengths[v]) {
                    first_column[v] = columns[v][lane + strict];
                    first_value[v] = values[v][lane + strict];
                }
            }
#pragma unroll
            for (int v = 0; v < leads_together; ++v) {
                const Value scale = __shfl_sync(unit.mask, own.scale, first + v, lanes);
                if (lane + strict < lengths[v])
                    sums[first_column[v]] = fma(first_value[v], scale, sums[first_column[v]]);
                for (int u = lane + strict + lanes; u < lengths[v]; u += lanes)
                    sums[columns[v][u]] = fma(values[v][u], scale, sums[columns[v][u]]);
                __syncwarp(unit.mask);
            }
        }
    }
    for (int step = lanes / 2; step > 0; step /= 2)
        alone += __shfl_down_sync(unit.mask, alone, step, lanes);
    if (basis.lowest <= 1 && lane == 0)
        out[ends_of.last[1] + shift_of<1, strict, uint64>(basis.n_features, unit.lead)] = alone;
    const uint64 column =
        ends_of.last[2] + shift_of<2, strict, uint64>(basis.n_features, unit.lead);
    for (int64 j = unit.lead + strict + lane; j < basis.n_features; j += lanes)
        out[column + shift_of<1, strict, uint64>(basis.n_features, j)] = sums[j];
}

}  // namespace polysparse
