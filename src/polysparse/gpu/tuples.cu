// One output after the other: products with any columns, where strips of the result cannot be
// owned, or are too many, and all that is made with groups and terms. A warp has a row, or a part
// of a long one. An output is known by a key (keys.cu).
namespace polysparse {

constexpr int most_stepped = 4;      // the highest degree whose tuples are stepped through
constexpr int lookups_together = 2;  // that a lane makes

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

/// Visits the outputs of a row that are [begin, end) from its end, each unranked by itself, with
/// their places from there.
template <int highest, class Row, class Keys, class Index, class Value, class Visit>
POLYSPARSE_DEVICE void unrank_each(const Basis& basis, const Row& row, int64 begin, int64 end,
                                   const Index* columns, const Value* values, const Keys& keys,
                                   Visit visit) {
    for (int64 q = begin + threadIdx.x % 32; q < end; q += 32) {
        const Place place = place_from_end(basis, row, static_cast<uint64>(q));
        int places[highest];
        row.unrank(place.degree, place.from_end, places);
        Value value = Value(1);
        uint64 key = keys.start();
        for (int j = place.degree - 1; j >= 0; --j) {
            value = times(values[-places[j]], value);
            key =
                keys.join(place.degree - j, keys.of(static_cast<int64>(columns[-places[j]])), key);
        }
        visit(keys.finish(place.degree, key, value), q);
    }
}

/// The tuples of rows of up to `longest` values, by their places.
template <int highest, bool strict>
struct PlainTuples {
    const typename EntryOf<highest>::type* table;
    int longest;
};

/// The tuples of rows with groups: as in GroupedRow, for all stored values.
struct GroupedTuples {
    int64* led;
    int64 n_stored;

    POLYSPARSE_DEVICE GroupedRow row(int64 begin, int64 end) const {
        return {led + begin, n_stored, end - begin};
    }
};

/// What kernels take of the tuples of a basis of some kind.
template <int highest, int kind>
struct TuplesOf {
    using type = PlainTuples<highest, kind == interactions>;
};
template <int highest>
struct TuplesOf<highest, grouped> {
    using type = GroupedTuples;
};
template <int highest>
struct TuplesOf<highest, of_terms> {
    using type = TermTable;
};

/// Visits the outputs of a row, or of a part of it. All lanes of the warp call it, and take turns.
/// Short rows are looked up in a table of tuples.
template <int highest, bool strict, class Keys, class Index, class Value, class Visit>
POLYSPARSE_DEVICE void for_outputs(const Rows<Index, Value>& x, const Basis& basis,
                                   const Keys& keys, const PlainTuples<highest, strict>& tuples,
                                   TupleStage<Value>& stage, int64 r, int64 begin, int64 part,
                                   Visit visit) {
    using Entry = typename EntryOf<highest>::type;
    const Entry* table = tuples.table;
    const int longest = tuples.longest;
    const int lane = threadIdx.x % 32;
    const int64 row_begin = x.offsets[r], row_end = x.offsets[r + 1], n = row_end - row_begin;
    const Index* const last_column = x.columns + row_end - 1;
    const Value* const last_value = x.values + row_end - 1;
    const bool is_looked_up = n + !strict <= longest && n <= most_staged;
    int64 size = count_outputs<highest, strict>(basis, n);
    if (highest > most_stepped && !is_looked_up)
        return unrank_each<highest>(basis, PlainRow<strict>{n}, begin, min(begin + part, size),
                                    last_column, last_value, keys, visit);
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

/// The same with groups. Visits each output with its place from the end of the row.
template <int highest, class Keys, class Index, class Value, class Visit>
POLYSPARSE_DEVICE void for_outputs(const Rows<Index, Value>& x, const Basis& basis,
                                   const Keys& keys, const GroupedTuples& tuples,
                                   TupleStage<Value>&, int64 r, int64 begin, int64 part,
                                   Visit visit) {
    const int64 row_end = x.offsets[r + 1];
    const GroupedRow row = tuples.row(x.offsets[r], row_end);
    unrank_each<highest>(basis, row, begin, min(begin + part, count_outputs(basis, row)),
                         x.columns + row_end - 1, x.values + row_end - 1, keys, visit);
}

/// Output q of a term, counted from the term's last one.
template <class Keys, class Index, class Value>
POLYSPARSE_DEVICE Output<Value> output_of_term(const TermTable& table, int64 t, uint64 q,
                                               const Keys& keys, const Index* columns,
                                               const Value* values, int64 n) {
    Value value = Value(1);
    uint64 key = keys.start();
    for (int64 m = table.terms[t + 1].first_member - 1; m >= table.terms[t].first_member; --m) {
        const Slice slice = slice_of(table.members[m], columns, n);
        const auto size = static_cast<uint64>(slice.end - slice.begin);
        const uint64 from_end = size == 1 ? 0 : q % size;
        if (size > 1) q /= size;
        const int64 at = slice.end - 1 - static_cast<int64>(from_end);
        value = times(values[at], value);
        key = keys.join(table.members[m], static_cast<int64>(columns[at]), key);
    }
    return keys.finish(table.terms[t].first_column, key, value);
}

/// The same with terms. Each lane has a term, and then each an output of all of their terms.
template <int highest, class Keys, class Index, class Value, class Visit>
POLYSPARSE_DEVICE void for_outputs(const Rows<Index, Value>& x, const Basis& basis,
                                   const Keys& keys, const TermTable& tuples,
                                   TupleStage<Value>& stage, int64 r, int64 begin, int64 part,
                                   Visit visit) {
    const int lane = threadIdx.x % 32;
    const int64 n = x.offsets[r + 1] - x.offsets[r], end = begin + part;
    const Index* const columns = x.columns + x.offsets[r];
    const Value* const values = x.values + x.offsets[r];
    int64 before = 0;  // outputs of later terms
    for (int64 last = tuples.n_terms - 1; last >= 0 && before < end; last -= 32) {
        int64 sum = lane <= last ? tuples.size(last - lane, columns, n) : 0;
        for (int step = 1; step < 32; step *= 2) {
            const int64 other = __shfl_up_sync(0xffffffffu, sum, step);
            if (lane >= step) sum += other;
        }
        stage.keys[lane + 1] = static_cast<uint64>(before + sum);
        if (lane == 0) stage.keys[0] = static_cast<uint64>(before);
        __syncwarp();
        const int64 behind = before + __shfl_sync(0xffffffffu, sum, 31);
        for (int64 q = max(begin, before) + lane; q < min(end, behind); q += 32) {
            const int64 t = last_at_most(stage.keys, 0, 31, q);
            const uint64 of_term = static_cast<uint64>(q) - stage.keys[t];
            visit(output_of_term(tuples, last - t, of_term, keys, columns, values, n), q);
        }
        __syncwarp();
        before = behind;
    }
    if (basis.include_bias && begin <= before && before < end && lane == 0)
        visit(keys.finish(0, keys.start(), Value(1)), before);
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
template <class Value, class Index, int highest, int kind, bool is_hashed, int vectors>
__global__ void __launch_bounds__(block_threads)
    dot_tuples(Rows<Index, Value> x, Basis basis, typename KeysOf<kind, is_hashed>::type keys,
               typename TuplesOf<highest, kind>::type tuples, Parts parts,
               const Value* __restrict__ coefficients, int64 stride, Value* __restrict__ out,
               int64 out_stride) {
    __shared__ TupleStage<Value> stages[block_threads / 32];
    for_part(parts, x.n_rows, [&](int64 item, int64 r, int64 begin) {
        Value sums[vectors] = {};
        for_outputs<highest>(x, basis, keys, tuples, stages[threadIdx.x / 32], r, begin, parts.size,
                             [&](const Output<Value>& output, int64 = 0) {
                                 if (output.column < 0) return;
#pragma unroll
                                 for (int v = 0; v < vectors; ++v)
                                     sums[v] = fma(output.value,
                                                   __ldg(coefficients + output.column * stride + v),
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

/// The outputs of rows with groups or terms, whose places are those of the rows' outputs.
template <class Value, class Index, class Out, class OutOffset, int highest, int kind,
          bool is_hashed>
__global__ void __launch_bounds__(block_threads)
    fill_tuples(Rows<Index, Value> x, Basis basis, typename KeysOf<kind, is_hashed>::type keys,
                typename TuplesOf<highest, kind>::type tuples, Parts parts,
                const OutOffset* __restrict__ offsets, Out* __restrict__ columns_out,
                Value* __restrict__ values_out) {
    __shared__ TupleStage<Value> stages[block_threads / 32];
    for_part(parts, x.n_rows, [&](int64, int64 r, int64 begin) {
        const int64 last = static_cast<int64>(offsets[r + 1]) - 1;
        for_outputs<highest>(x, basis, keys, tuples, stages[threadIdx.x / 32], r, begin, parts.size,
                             [&](const Output<Value>& output, int64 q) {
                                 columns_out[last - q] = static_cast<Out>(output.column);
                                 values_out[last - q] = output.value;
                             });
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
template <class Value, class Index, int highest, int kind, bool is_hashed, int vectors,
          bool is_first>
__global__ void __launch_bounds__(block_threads)
    scatter_tuples(Rows<Index, Value> x, Basis basis, typename KeysOf<kind, is_hashed>::type keys,
                   typename TuplesOf<highest, kind>::type tuples, Parts parts,
                   const Value* __restrict__ weights, int64 stride, FixedSums to) {
    __shared__ TupleStage<Value> stages[block_threads / 32];
    for_part(parts, x.n_rows, [&](int64, int64 r, int64 begin) {
        double own[vectors];
#pragma unroll
        for (int v = 0; v < vectors; ++v) own[v] = static_cast<double>(weights[r * stride + v]);
        for_outputs<highest>(
            x, basis, keys, tuples, stages[threadIdx.x / 32], r, begin, parts.size,
            [&](const Output<Value>& output, int64 = 0) {
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
