// Products with any columns, one output after the other: where strips of the result cannot be
// owned, or are too many. A warp has a row, or a part of a long one. An output is known by a key,
// which its values make from the last to the first.
namespace polysparse {

constexpr int most_stepped = 4;      // the highest degree whose tuples are stepped through
constexpr int lookups_together = 2;  // that a lane makes

/// An output: its value, and its column, or -1 if it is in none.
template <class Value>
struct Output {
    Value value;
    int64 column;
};

/// Keys that are hashes: a column is a bucket.
struct HashKeys {
    Hasher hasher;

    POLYSPARSE_DEVICE uint64 start() const { return hasher.salt; }
    POLYSPARSE_DEVICE uint64 of(int64 column) const {
        return hasher.mix(static_cast<uint64>(column));
    }
    /// The key of a tuple of k values, given that of its tail.
    POLYSPARSE_DEVICE uint64 join(int, uint64 own, uint64 tail) const {
        return Hasher::join(own, tail);
    }
    template <class Value>
    POLYSPARSE_DEVICE Output<Value> finish(int, uint64 key, Value value) const {
        return {hasher.is_negative(key) ? negative(value) : value, hasher.bucket(key)};
    }
};

/// Keys that are columns of a basis, all of them or chosen ones.
template <bool strict>
struct RankKeys {
    int64 n_features;
    const uint64* last;   // [d]: the last column of degree d
    const int64* chosen;  // nullptr for all
    const int64* starts;  // [c >> shift]: the first chosen column from there on
    int64 shift;

    POLYSPARSE_DEVICE uint64 start() const { return 0; }
    POLYSPARSE_DEVICE uint64 of(int64 column) const { return static_cast<uint64>(column); }
    POLYSPARSE_DEVICE uint64 join(int k, uint64 own, uint64 tail) const {
        const auto column = static_cast<int64>(own);
        if (k == 1) return tail + shift_of<1, strict, uint64>(n_features, column);
        if (k == 2) return tail + shift_of<2, strict, uint64>(n_features, column);
        if (k == 3) return tail + shift_of<3, strict, uint64>(n_features, column);
        return tail - simplex(k, n_features - 1 - column - (strict ? k - 1 : 0));
    }
    template <class Value>
    POLYSPARSE_DEVICE Output<Value> finish(int d, uint64 key, Value value) const {
        const auto column = static_cast<int64>(last[d] + key);
        if (chosen == nullptr) return {value, column};
        const int64 from = starts[column >> shift], to = starts[(column >> shift) + 1];
        if (from == to) return {value, -1};
        const int64 place = last_at_most(chosen, from, to - 1, column);
        return {value, chosen[place] == column ? place : -1};
    }
};

template <bool is_hashed, bool strict>
struct KeysOf {
    using type = HashKeys;
};
template <bool strict>
struct KeysOf<false, strict> {
    using type = RankKeys<strict>;
};

/// A row's values and what keys take of its columns, with a 1 in front.
template <class Value>
struct TupleStage {
    Value values[most_staged + 1];
    uint64 keys[most_staged + 1];
};

/// Rows, or parts of them of up to `size` outputs: part t is of the row whose `items` it is among.
/// Those from `first` on and before `end` are multiplied.
struct Parts {
    const int64* items;  // nullptr if each row is one
    int64 first, end, size;
};

/// Visits the outputs of one degree that are [begin, end) from its end.
template <int d, bool strict, class Keys, class Index, class Value, class Visit>
POLYSPARSE_DEVICE void step_through(int degree, int64 begin, int64 end, const Index* columns,
                                    const Value* values, const Keys& keys, Visit visit) {
    if (degree != d) {
        if constexpr (d > 1)
            step_through<d - 1, strict>(degree, begin, end, columns, values, keys, visit);
        return;
    }
    int64 q = end - 1 - threadIdx.x % 32;
    if (q < begin) return;
    int places[d];
    unrank_from_end<strict>(d, static_cast<uint64>(q), places);
    Value held[d];
    uint64 own[d];
    bool is_changed = true;  // besides the last place
    for (; q >= begin; q -= 32) {
#pragma unroll
        for (int j = 0; j < d; ++j)
            if (is_changed || j == d - 1) {
                held[j] = values[-places[j]];
                own[j] = keys.of(static_cast<int64>(columns[-places[j]]));
            }
        Value value = held[d - 1];
        uint64 key = keys.join(1, own[d - 1], keys.start());
#pragma unroll
        for (int j = d - 2; j >= 0; --j) {
            value = times(held[j], value);
            key = keys.join(d - j, own[j], key);
        }
        visit(keys.finish(d, key, value));
        if (q - 32 >= begin) is_changed = step_forward<d, strict>(places, 32);
    }
}

/// Visits the outputs of a row that are [begin, end) from its end, each unranked by itself.
template <int highest, bool strict, class Keys, class Index, class Value, class Visit>
POLYSPARSE_DEVICE void unrank_each(const Basis& basis, int64 n, int64 begin, int64 end,
                                   const Index* columns, const Value* values, const Keys& keys,
                                   Visit visit) {
    for (int64 q = begin + threadIdx.x % 32; q < end; q += 32) {
        const Place place = place_from_end<strict>(basis, n, static_cast<uint64>(q));
        int places[highest];
        unrank_from_end<strict>(place.degree, place.from_end, places);
        Value value = Value(1);
        uint64 key = keys.start();
        for (int j = place.degree - 1; j >= 0; --j) {
            value = times(values[-places[j]], value);
            key =
                keys.join(place.degree - j, keys.of(static_cast<int64>(columns[-places[j]])), key);
        }
        visit(keys.finish(place.degree, key, value));
    }
}

/// Visits the outputs of a row, or of a part of it. All lanes of the warp call it, and take turns.
/// Short rows are looked up in a table of tuples.
template <int highest, bool strict, class Keys, class Index, class Value, class Visit>
POLYSPARSE_DEVICE void for_outputs(const Rows<Index, Value>& x, const Basis& basis,
                                   const Keys& keys,
                                   const typename EntryOf<highest>::type* __restrict__ table,
                                   int longest, TupleStage<Value>& stage, int64 r, int64 begin,
                                   int64 part, Visit visit) {
    using Entry = typename EntryOf<highest>::type;
    const int lane = threadIdx.x % 32;
    const int64 row_begin = x.offsets[r], row_end = x.offsets[r + 1], n = row_end - row_begin;
    const Index* const last_column = x.columns + row_end - 1;
    const Value* const last_value = x.values + row_end - 1;
    const bool is_looked_up = n + !strict <= longest && n <= most_staged;
    int64 size = count_outputs<highest, strict>(basis, n);
    if (highest > most_stepped && !is_looked_up)
        return unrank_each<highest, strict>(basis, n, begin, min(begin + part, size), last_column,
                                            last_value, keys, visit);
    const bool is_bias_apart = basis.include_bias && (strict || basis.lowest > 1 || !is_looked_up);
    size -= is_bias_apart;
    const int64 end = min(begin + part, size);
    if (is_bias_apart && begin == 0 && lane == 0) visit(keys.finish(0, keys.start(), Value(1)));
    // Calls visit_degree(d, begin, end) for each degree, from the highest on.
    const auto for_degrees = [&](auto visit_degree) {
        int64 before = 0;
        for (int d = int(basis.highest); d >= basis.lowest; --d) {
            const int64 here = static_cast<int64>(degree_size<strict>(d, n));
            visit_degree(d, max(begin - before, int64(0)), min(end - before, here));
            before += here;
        }
    };
    if (!is_looked_up) {
        if constexpr (highest <= most_stepped)
            for_degrees([&](int d, int64 from, int64 to) {
                step_through<highest, strict>(d, from, to, last_column, last_value, keys, visit);
            });
        return;
    }
    for (int a = lane; a < n; a += 32) {
        stage.values[a + 1] = x.values[row_begin + a];
        stage.keys[a + 1] = keys.of(static_cast<int64>(x.columns[row_begin + a]));
    }
    if (lane == 0) {
        stage.values[0] = Value(1);
        stage.keys[0] = 0;
    }
    __syncwarp();
    const auto look_up = [&](const Entry* entries, int64 from, int64 to) {
#pragma unroll lookups_together
        for (int q = static_cast<int>(from) + lane; q < static_cast<int>(to); q += 32) {
            const Entry entry = __ldg(entries + q);
            Value value = Value(1);
            uint64 key = keys.start();
            int d = 0;
#pragma unroll
            for (int j = highest - 1; j >= 0; --j) {
                const int e =
                    static_cast<int>(entry >> (place_bits<highest> * j)) & no_place<highest>;
                const int at = strict && e == no_place<highest> ? 0 : static_cast<int>(n) - e;
                value = times(stage.values[at], value);
                if (at > 0) {
                    key = keys.join(highest - j, stage.keys[at], key);
                    ++d;
                }
            }
            visit(keys.finish(d, key, value));
        }
    };
    if constexpr (strict)
        for_degrees([&](int d, int64 from, int64 to) {
            look_up(table, from, to);
            table += degree_size<true>(d, longest);
        });
    else
        look_up(table, begin, end);
}

/// Calls visit_part(item, row, begin) for the part that the warp has, if it has one.
template <class VisitPart>
POLYSPARSE_DEVICE void for_part(const Parts& parts, int64 n_rows, VisitPart visit_part) {
    const int64 item = parts.first + static_cast<int64>(blockIdx.x) * (block_threads / 32) +
                       static_cast<int>(threadIdx.x) / 32;
    if (item >= parts.end) return;
    if (parts.items == nullptr) return visit_part(item, item, int64(0));
    const int64 r = last_at_most(parts.items, 0, n_rows - 1, item);
    visit_part(item, r, (item - parts.items[r]) * parts.size);
}

/// The expansion times `vectors` vectors. The sums of parts go to `out` one behind the other.
template <class Value, class Index, int highest, bool strict, bool is_hashed, int vectors>
__global__ void __launch_bounds__(block_threads)
    dot_tuples(Rows<Index, Value> x, Basis basis, typename KeysOf<is_hashed, strict>::type keys,
               const typename EntryOf<highest>::type* __restrict__ table, int longest, Parts parts,
               const Value* __restrict__ coefficients, int64 stride, Value* __restrict__ out,
               int64 out_stride) {
    __shared__ TupleStage<Value> stages[block_threads / 32];
    for_part(parts, x.n_rows, [&](int64 item, int64 r, int64 begin) {
        Value sums[vectors] = {};
        for_outputs<highest, strict>(
            x, basis, keys, table, longest, stages[threadIdx.x / 32], r, begin, parts.size,
            [&](const Output<Value>& output) {
                if (output.column < 0) return;
#pragma unroll
                for (int v = 0; v < vectors; ++v)
                    sums[v] = fma(output.value, __ldg(coefficients + output.column * stride + v),
                                  sums[v]);
            });
        __syncwarp();
#pragma unroll
        for (int v = 0; v < vectors; ++v) {
            for (int step = 16; step > 0; step /= 2)
                sums[v] += __shfl_down_sync(0xffffffffu, sums[v], step);
            if (threadIdx.x % 32 == 0) out[item * out_stride + v] = sums[v];
        }
    });
}

// ------------------------------------------------------------------------------------ fixed point
//
// Sums of integers do not depend on their order. Each column has a scale of its own: with the
// largest of its terms below 2^E, a term is a whole number of 2^(E - term_bits), but for a
// remainder of half of that. They are added to a word of 64 bits. The thread that makes it wrap
// around sees that, and counts it: a sum is 2^64 for each wrap, and the word. There is room for
// 2^36 terms. So a sum of n terms is off by n * 2^-58 times the largest of them at most, before it
// is rounded: a sum in floating point may be off by n * 2^-53 times the sum of all of them. Terms
// that are not finite are added in floating point, which gives the same in any order, too.

constexpr int term_bits = 58;

/// Of each column its sum, which has terms that are not finite at first, the word of all others,
/// how often it wrapped around, and 1 + the exponent of the largest, or 0 if there is none.
struct FixedSums {
    double* sums;
    uint64* words;
    uint32 *wraps, *tops;
};

/// 2^e, for e from -1022 to 1023.
POLYSPARSE_DEVICE double power_of_two(int e) {
    return __longlong_as_double(static_cast<int64>(1023 + e) << 52);
}

/// a * 2^e. In two steps, because 2^e itself may not be a number.
POLYSPARSE_DEVICE double scaled(double a, int e) {
    return a * power_of_two(e >> 1) * power_of_two(e - (e >> 1));
}

/// The exponent E of the scale of a column.
POLYSPARSE_DEVICE int exponent_of(uint32 top) {
    return static_cast<int>(top) - 1 - 1022;
}

/// The transposed expansion times `vectors` vectors. First tops are found, then terms are added.
template <class Value, class Index, int highest, bool strict, bool is_hashed, int vectors,
          bool is_first>
__global__ void __launch_bounds__(block_threads)
    scatter_tuples(Rows<Index, Value> x, Basis basis, typename KeysOf<is_hashed, strict>::type keys,
                   const typename EntryOf<highest>::type* __restrict__ table, int longest,
                   Parts parts, const Value* __restrict__ weights, int64 stride, FixedSums to) {
    __shared__ TupleStage<Value> stages[block_threads / 32];
    for_part(parts, x.n_rows, [&](int64, int64 r, int64 begin) {
        double own[vectors];
#pragma unroll
        for (int v = 0; v < vectors; ++v) own[v] = static_cast<double>(weights[r * stride + v]);
        for_outputs<highest, strict>(
            x, basis, keys, table, longest, stages[threadIdx.x / 32], r, begin, parts.size,
            [&](const Output<Value>& output) {
                if (output.column < 0) return;
#pragma unroll
                for (int v = 0; v < vectors; ++v) {
                    const int64 at = output.column * vectors + v;
                    const double term = static_cast<double>(output.value) * own[v];
                    const auto bits = static_cast<uint64>(__double_as_longlong(term)) << 1;
                    const auto top = static_cast<uint32>(bits >> 53) + 1;
                    if (bits == 0) continue;
                    if (is_first) {
                        if (top == 2048)
                            atomicAdd(to.sums + at, term);
                        else if (top > __ldcg(to.tops + at))
                            atomicMax(to.tops + at, top);
                    } else if (top < 2048) {
                        const int e = term_bits - exponent_of(__ldg(to.tops + at));
                        const int64 t = __double2ll_rn(scaled(term, e));
                        const auto before =
                            static_cast<int64>(atomicAdd(to.words + at, static_cast<uint64>(t)));
                        const auto after = static_cast<int64>(static_cast<uint64>(before) +
                                                              static_cast<uint64>(t));
                        if (((before ^ after) & (t ^ after)) < 0)
                            atomicAdd(to.wraps + at, t < 0 ? ~uint32(0) : uint32(1));
                    }
                }
            });
    });
}

/// Adds what was counted to the sums, and clears it.
__global__ void finish_sums(FixedSums to, int64 n) {
    const int64 c = static_cast<int64>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (c >= n || to.tops[c] == 0) return;
    const double sum = scaled(static_cast<double>(static_cast<int>(to.wraps[c])), 64) +
                       static_cast<double>(static_cast<int64>(to.words[c]));
    to.sums[c] += scaled(sum, exponent_of(to.tops[c]) - term_bits);
    to.words[c] = 0;
    to.wraps[c] = to.tops[c] = 0;
}

}  // namespace polysparse
