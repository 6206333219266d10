// Index arithmetic of the GPU kernels: from a place in a row's outputs to a tuple of stored values,
// and on to an output column or a hash. The tests compile this file for the processor.
//
// A row's outputs are counted from their end. The tuples behind a given one do not depend on how
// long the row is: if a tuple's values are e_1 >= ... >= e_d places before the last stored one,
// then T_d(e_1) + T_{d-1}(e_2) + ... + T_1(e_d) tuples of degree d follow it, where
// T_k(n) = C(n + k - 1, k). Interactions have C(e, k) = T_k(e - (k - 1)) instead. So one table of
// tuples serves all rows that are short enough.
//
// Without interactions, the degrees need not be told apart: a row with a 1 in front of its stored
// values has, of the highest degree alone, all tuples of all degrees, in their order.
#pragma once

#ifdef __CUDACC__
#define POLYSPARSE_DEVICE __device__ __forceinline__
#else
#define POLYSPARSE_DEVICE inline
#include <cmath>
#endif

namespace polysparse {

using int64 = long long;
using uint64 = unsigned long long;
using uint32 = unsigned int;

// ------------------------------------------------------------------------------ simplex numbers

POLYSPARSE_DEVICE int trailing_zeros(uint64 n) {
#ifdef __CUDACC__
    return __ffsll(static_cast<int64>(n)) - 1;
#else
    return __builtin_ctzll(n);
#endif
}

/// The inverse of an odd number modulo 2^64, by Newton's steps.
POLYSPARSE_DEVICE uint64 inverse_of_odd(uint64 odd) {
    uint64 inverse = odd;
    for (int step = 0; step < 5; ++step) inverse *= 2 - odd * inverse;
    return inverse;
}

/// T_k(n), and 0 for n <= 0. T_0 is 1. Exact below 2^64: powers of two are shifted out of the
/// factors, and dividing by the odd rest is multiplying by its inverse.
POLYSPARSE_DEVICE uint64 simplex(int k, int64 n) {
    if (k == 0) return 1;
    if (n <= 0) return 0;
    uint64 terms = static_cast<uint64>(k), least = static_cast<uint64>(n);
    if (n - 1 < k) {  // C(n+k-1, k) = C(n+k-1, n-1)
        terms = static_cast<uint64>(n - 1);
        least = static_cast<uint64>(k) + 1;
    }
    uint64 value = 1;
    for (uint64 i = 1; i <= terms; ++i) {
        const int twos = trailing_zeros(i);
        const int own = value == 0 ? 64 : trailing_zeros(value);
        const int from_value = own < twos ? own : twos;
        value = (value >> from_value) * ((least + i - 1) >> (twos - from_value)) *
                inverse_of_odd(i >> twos);
    }
    return value;
}

/// T_k(n) modulo 2^32 or 2^64, for n >= -1, where the degree is known to the compiler.
template <int k, class Word>
POLYSPARSE_DEVICE Word simplex_word(Word n) {
    if constexpr (k == 1)
        return n;
    else if constexpr (k == 2)
        return (n | 1) * ((n + 1) >> 1);
    else if constexpr (k == 3)
        return simplex_word<2, Word>(n) * (n + 2) * static_cast<Word>(0xAAAAAAAAAAAAAAABULL);
    else if constexpr (k == 4) {  // T_2(n) * T_2(n + 2) / 6, where one of the two is even
        const uint64 a = simplex_word<2, uint64>(n), b = simplex_word<2, uint64>(uint64(n) + 2);
        return static_cast<Word>((a % 2 == 0 ? a / 2 * b : b / 2 * a) * 0xAAAAAAAAAAAAAAABULL);
    } else
        return static_cast<Word>(simplex(k, static_cast<int64>(n)));
}

/// The number of tuples of degree d of a row, by the number of its stored values.
template <bool strict>
POLYSPARSE_DEVICE uint64 degree_size(int d, int64 n) {
    return simplex(d, strict ? n - (d - 1) : n);
}

/// The same in floating point, which cannot overflow.
template <bool strict>
POLYSPARSE_DEVICE double degree_size_about(int d, int64 n) {
    double size = 1;
    for (int i = 1; i <= d; ++i)
        size *= (strict ? static_cast<double>(n) - d + i : static_cast<double>(n) + i - 1) / i;
    return size > 0 ? size : 0;
}

// ------------------------------------------------------------------------------------ unranking

/// The largest e with T_2(e) <= q.
POLYSPARSE_DEVICE int64 root_of_triangle(uint64 q) {
    int64 e = 0;
    if (q < 1u << 20)
        e = static_cast<int64>((sqrtf(8.0f * static_cast<float>(q) + 1.0f) - 1.0f) / 2.0f);
    else
        e = static_cast<int64>((sqrt(8.0 * static_cast<double>(q) + 1) - 1) / 2);
    while (simplex_word<2, uint64>(uint64(e)) > q) --e;
    while (simplex_word<2, uint64>(uint64(e) + 1) <= q) ++e;
    return e;
}

/// The largest e with T_3(e) <= q.
POLYSPARSE_DEVICE int64 root_of_tetrahedron(uint64 q) {
    int64 e = 0;
    if (q < 1u << 20)
        e = static_cast<int64>(cbrtf(6.0f * static_cast<float>(q)));
    else
        e = static_cast<int64>(cbrt(6.0 * static_cast<double>(q)));
    while (simplex_word<3, uint64>(uint64(e)) > q) --e;
    while (simplex_word<3, uint64>(uint64(e) + 1) <= q) ++e;
    return e;
}

/// The largest e with T_k(e) <= q. It is guessed in floating point and corrected exactly.
POLYSPARSE_DEVICE int64 root_of_simplex(int k, uint64 q) {
    if (k == 1) return static_cast<int64>(q);
    if (k == 2) return root_of_triangle(q);
    if (k == 3) return root_of_tetrahedron(q);
    if (q == 0) return 0;
    double factorial = 1;
    for (int i = 2; i <= k; ++i) factorial *= i;
    const double guess = pow(static_cast<double>(q) * factorial, 1.0 / k) - (k - 1) / 2.0;
    int64 e = guess > 1 ? static_cast<int64>(guess) : 1;
    while (simplex(k, e) > q) --e;
    while (simplex(k, e + 1) <= q) ++e;
    return e;
}

/// Writes how far each value of a tuple of degree d is from the row's last one, given how many
/// tuples of that degree follow it.
template <bool strict, class Place>
POLYSPARSE_DEVICE void unrank_from_end(int d, uint64 q, Place* places) {
    for (int k = d; k >= 1; --k) {
        const int64 e = root_of_simplex(k, q);
        q -= simplex(k, e);
        *places++ = static_cast<Place>(strict ? e + (k - 1) : e);
    }
}

/// Makes places those of the tuple that is `step` further on, and returns whether any but the last
/// one changed. Behind the last tuple of the degree, places are undefined.
template <int d, bool strict>
POLYSPARSE_DEVICE bool step_forward(int* places, int step) {
    places[d - 1] -= step;
    if constexpr (d == 1)
        return false;
    else {
        if (places[d - 1] >= 0) return false;
        do {
            // The next tuple of the places before the last one.
            bool is_found = false;
#pragma unroll
            for (int k = d - 2; k >= 0; --k) {
                if (is_found || (k > 0 && places[k] <= (strict ? d - 1 - k : 0))) continue;
                is_found = true;
                places[k] -= 1;
#pragma unroll
                for (int j = 1; j <= d - 2; ++j)
                    if (j > k) places[j] = places[j - 1] - strict;
            }
            places[d - 1] += places[d - 2] + !strict;
        } while (places[d - 1] < 0 && places[0] >= 0);
        return true;
    }
}

// ------------------------------------------------------------------------------------- columns

/// What sizes and columns follow from.
struct Basis {
    int64 n_features, lowest, highest, include_bias;
};

/// The unsigned type that columns of an index type are computed in.
template <class Index>
struct WordOf {
    using type = uint64;
};
template <>
struct WordOf<int> {
    using type = uint32;
};

/// What column j, as the first of a k-tuple, adds to the column of the tuple.
template <int k, bool strict, class Word>
POLYSPARSE_DEVICE Word shift_of(int64 n_features, int64 j) {
    const int64 depth = n_features - 1 - j - (strict ? k - 1 : 0);
    if (strict && depth <= 0) return 0;
    return Word(0) - simplex_word<k, Word>(static_cast<Word>(depth));
}

/// The number of outputs of a row with n stored values.
template <bool strict>
POLYSPARSE_DEVICE uint64 row_size(const Basis& basis, int64 n) {
    uint64 size = basis.include_bias != 0;
    if (n == 0 || basis.highest < basis.lowest) return size;
    if (!strict)
        return size + simplex(int(basis.highest), n + 1) - simplex(int(basis.lowest) - 1, n + 1);
    for (int d = int(basis.lowest); d <= basis.highest; ++d) size += degree_size<true>(d, n);
    return size;
}

/// The same, where the compiler knows the degree.
template <int highest, bool strict>
POLYSPARSE_DEVICE int64 count_outputs(const Basis& basis, int64 n) {
    if constexpr (!strict && highest <= 3) {
        if (n == 0 || basis.highest != highest) return basis.include_bias;
        return basis.include_bias +
               static_cast<int64>(simplex_word<highest, uint64>(uint64(n) + 1) -
                                  simplex(int(basis.lowest) - 1, n + 1));
    }
    return static_cast<int64>(row_size<strict>(basis, n));
}

template <bool strict>
POLYSPARSE_DEVICE double row_size_about(const Basis& basis, int64 n) {
    double size = basis.include_bias != 0;
    for (int d = int(basis.lowest); d <= basis.highest; ++d)
        size += degree_size_about<strict>(d, n);
    return size;
}

/// The degree of an output of a row, and how many outputs of that degree follow it.
struct Place {
    int degree;
    uint64 from_end;
};

/// The tuples of a row, without groups.
template <bool strict>
struct PlainRow {
    int64 n;  // stored values

    POLYSPARSE_DEVICE uint64 size(int d) const { return degree_size<strict>(d, n); }
    template <class P>
    POLYSPARSE_DEVICE void unrank(int d, uint64 q, P* places) const {
        unrank_from_end<strict>(d, q, places);
    }
};

/// Where output q of a row is, counted from the row's last one. Degree 0 is the bias.
template <class Row>
POLYSPARSE_DEVICE Place place_from_end(const Basis& basis, const Row& row, uint64 q) {
    for (int d = int(basis.highest); d >= basis.lowest; --d) {
        const uint64 size = row.size(d);
        if (q < size) return {d, q};
        q -= size;
    }
    return {0, 0};
}

// ------------------------------------------------------------------------------------------ runs
//
// A run is outputs that follow one another and differ in their last value alone, their tail; what
// they share are its leads. The bias is part of the run of degree 1, if that comes right behind it
// in the order of places; otherwise it is a run of its own, before all others.

template <bool strict>
POLYSPARSE_DEVICE bool is_bias_in_run(const Basis& basis) {
    return !strict && basis.include_bias && basis.lowest <= 1;
}

/// The number of runs of a row of n stored values, but for a run of the bias alone.
template <bool strict>
POLYSPARSE_DEVICE uint64 count_runs(const Basis& basis, int64 n) {
    if (basis.highest < basis.lowest) return 0;
    if (n == 0) return is_bias_in_run<strict>(basis);
    if constexpr (strict) {
        uint64 count = 0;
        for (int d = int(basis.lowest); d <= basis.highest; ++d)
            count += degree_size<true>(d - 1, n - 1);
        return count;
    }
    const uint64 left_out = basis.lowest <= 1 ? 0 : simplex(int(basis.lowest) - 2, n + 1);
    return simplex(int(basis.highest) - 1, n + 1) - left_out;
}

/// Which run output q of a row is in, both counted from the row's end.
template <bool strict>
POLYSPARSE_DEVICE uint64 run_from_end(const Basis& basis, int64 n, uint64 q) {
    const Place place = place_from_end(basis, PlainRow<strict>{n}, q);
    if (place.degree == 0) return count_runs<strict>(basis, n) - is_bias_in_run<strict>(basis);
    uint64 run = 0;
    for (int d = int(basis.highest); strict && d > place.degree; --d)
        run += degree_size<true>(d - 1, n - 1);
    uint64 rest = strict ? place.from_end : q;
    for (int k = strict ? place.degree : int(basis.highest); k > 1; --k) {
        const int64 e = root_of_simplex(k, rest);
        rest -= simplex(k, e);
        run += simplex(k - 1, e);
    }
    return run;
}

/// What a run is made from. Places are counted from the row's last value; in front of all is a 1,
/// for degrees below the highest.
template <int highest, class Word>
struct Run {
    int leads[highest > 1 ? highest - 1 : 1];
    int tail;     // of its first output
    Word behind;  // outputs of the row that follow its first one, modulo 2^32 or 2^64
};

/// How many outputs of degree k follow the first one with these leads, less its tail.
template <int k, bool strict, class Word>
POLYSPARSE_DEVICE Word behind_leads(const int* leads) {
    if constexpr (k <= 1)
        return 0;
    else
        return simplex_word<k, Word>(static_cast<Word>(leads[0] - (strict ? k - 1 : 0))) +
               behind_leads<k - 1, strict, Word>(leads + 1);
}

/// Unranks d places, counted from the end, where the compiler knows d.
template <int d, bool strict>
POLYSPARSE_DEVICE void unrank_places(uint64 q, int* places) {
    if constexpr (d == 1)
        places[0] = static_cast<int>(q);
    else if constexpr (d > 1) {
        const int64 e = root_of_simplex(d, q);
        places[0] = static_cast<int>(strict ? e + (d - 1) : e);
        uint64 before = 0;
        if constexpr (d <= 3)
            before = simplex_word<d, uint64>(static_cast<uint64>(e));
        else
            before = simplex(d, e);
        unrank_places<d - 1, strict>(q - before, places + 1);
    }
}

/// Finds run u, counted from the end of a row of n stored values. `most` is the largest place of a
/// tail: n - 1, or that of the 1 if the bias is in the run.
template <int d, int highest, bool strict, class Word>
POLYSPARSE_DEVICE void find_run(int64 n, uint64 u, int most, Run<highest, Word>* run) {
    if constexpr (strict && d > 1) {
        const uint64 n_runs = n < d ? 0 : simplex_word<d - 1, uint64>(uint64(n + 1 - d));
        if (u >= n_runs) {
            run->leads[highest - d] = static_cast<int>(n);
            run->behind += n < d ? 0 : simplex_word<d, Word>(static_cast<Word>(n + 1 - d));
            return find_run<d - 1, highest, strict>(n, u - n_runs, most, run);
        }
    }
    run->tail = most;
    if constexpr (d > 1) {
        int* const leads = run->leads + (highest - d);
        unrank_places<d - 1, strict>(u, leads);
#pragma unroll
        for (int j = 0; strict && j < d - 1; ++j) ++leads[j];
        const int next = leads[d - 2] - strict;
        if (next < most) run->tail = next;
        run->behind += behind_leads<d, strict, Word>(leads);
    }
    run->behind += static_cast<Word>(run->tail);
}

// ---------------------------------------------------------------------------------------- groups
//
// With groups, which values may follow another depends on their groups, so the tuples of each row
// are counted. Counted from the end, they follow each other as they do without groups: those behind
// a tuple are those with a later lead, and those with the same lead and a later tail.

constexpr int64 most_counted = int64(1) << 60;  // more are counted as so many

POLYSPARSE_DEVICE int64 add_counts(int64 a, int64 b) {
    return a + b < most_counted ? a + b : most_counted;
}
POLYSPARSE_DEVICE int64 multiply_counts(int64 a, int64 b) {
    return b > 0 && a > most_counted / b ? most_counted : a * b;
}

/// The tuples of a row of n stored values in groups: led[(k - 2) * stride + a] is the number of
/// k-tuples that value a or a later one leads.
struct GroupedRow {
    int64* led;
    int64 stride, n;

    POLYSPARSE_DEVICE int64 count(int k, int64 a) const {
        return k == 1 ? n - a : a == n ? 0 : led[(k - 2) * stride + a];
    }
    POLYSPARSE_DEVICE uint64 size(int d) const { return static_cast<uint64>(count(d, 0)); }

    /// Counts the tuples that value a leads, up to a degree; the first value that may follow it is
    /// `next`. Those of all later values have been counted.
    POLYSPARSE_DEVICE void count_led(int64 highest, int64 a, int64 next) const {
        for (int k = 2; k <= highest; ++k)
            led[(k - 2) * stride + a] = add_counts(count(k, a + 1), count(k - 1, next));
    }

    /// As unrank_from_end.
    template <class P>
    POLYSPARSE_DEVICE void unrank(int d, uint64 q, P* places) const {
        int64 lead = 0;
        for (int k = d; k > 1; --k) {
            int64 last = n - 1;
            while (lead < last) {
                const int64 middle = last - (last - lead) / 2;
                if (static_cast<uint64>(count(k, middle)) > q)
                    lead = middle;
                else
                    last = middle - 1;
            }
            q -= static_cast<uint64>(count(k, lead + 1));
            *places++ = static_cast<P>(n - 1 - lead);
        }
        if (d > 0) *places = static_cast<P>(q);
    }
};

/// The number of outputs of a row.
POLYSPARSE_DEVICE int64 count_outputs(const Basis& basis, const GroupedRow& row) {
    int64 count = basis.include_bias;
    for (int d = int(basis.lowest); d <= basis.highest; ++d)
        count = add_counts(count, row.count(d, 0));
    return count;
}

// ----------------------------------------------------------------------------------------- terms

/// A group of a term: its features, and how many columns each of them is apart from the next one.
struct Member {
    int64 begin, end;
    uint64 stride;
};

/// Where the members of a term begin, which are those up to the next term's, and its columns.
struct Term {
    int64 first_member;
    uint64 first_column;
};

/// The first of n increasing columns that is not below `bound`.
template <class Index>
POLYSPARSE_DEVICE int64 first_at_least(const Index* columns, int64 n, int64 bound) {
    int64 low = 0;
    while (low < n) {
        const int64 middle = low + (n - low) / 2;
        if (static_cast<int64>(columns[middle]) < bound)
            low = middle + 1;
        else
            n = middle;
    }
    return low;
}

/// Values [begin, end) of a row.
struct Slice {
    int64 begin, end;
};

/// The values of a row, of n columns, that are members of a term.
template <class Index>
POLYSPARSE_DEVICE Slice slice_of(const Member& member, const Index* columns, int64 n) {
    const int64 begin = first_at_least(columns, n, member.begin);
    return {begin, begin + first_at_least(columns + begin, n - begin, member.end)};
}

/// The terms of a basis, and one behind them.
struct TermTable {
    const Term* terms;
    const Member* members;
    int64 n_terms;

    POLYSPARSE_DEVICE int degree(int64 t) const {
        return static_cast<int>(terms[t + 1].first_member - terms[t].first_member);
    }
    /// The number of outputs of a row that are of term t.
    template <class Index>
    POLYSPARSE_DEVICE int64 size(int64 t, const Index* columns, int64 n) const {
        int64 size = 1;
        for (int64 m = terms[t].first_member; m < terms[t + 1].first_member && size > 0; ++m) {
            const Slice slice = slice_of(members[m], columns, n);
            size = multiply_counts(size, slice.end - slice.begin);
        }
        return size;
    }
};

// ---------------------------------------------------------------------------------------- hashes

/// The hash function of src/kernels/select/hash.hpp, which is frozen.
struct Hasher {
    uint64 n_columns, sign_bit, salt;

    static POLYSPARSE_DEVICE uint64 mix_bits(uint64 z) {
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
        return z ^ (z >> 31);
    }
    POLYSPARSE_DEVICE uint64 mix(uint64 column) const { return mix_bits(salt + column); }
    static POLYSPARSE_DEVICE uint64 join(uint64 mixed, uint64 tail) {
        return (tail ^ mixed) * 0xD1342543DE82EF95ULL;
    }
    POLYSPARSE_DEVICE uint64 lead(uint64 column, uint64 tail) const {
        return join(mix(column), tail);
    }
    POLYSPARSE_DEVICE int bucket(uint64 h) const {
        return static_cast<int>(((h >> 32) * n_columns) >> 32);
    }
    POLYSPARSE_DEVICE bool is_negative(uint64 h) const { return ((h ^ (h >> 16)) & sign_bit) != 0; }
};

}  // namespace polysparse
