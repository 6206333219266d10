// Counts the tuples of rows with groups or terms. A thread has a row.
namespace polysparse {

/// Fills what GroupedTuples have. `groups` has the group of each feature, and its complement if a
/// tuple may have the feature more than once.
template <class Index>
__global__ void count_led(const int64* __restrict__ offsets, const Index* __restrict__ columns,
                          int64 n_rows, int64 highest, const int* __restrict__ groups,
                          GroupedTuples tuples) {
    const int64 r = static_cast<int64>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (r >= n_rows) return;
    const int64 begin = offsets[r];
    const GroupedRow row = tuples.row(begin, offsets[r + 1]);
    int64 next = row.n;  // the first value of the group behind
    int group_behind = 0;
    for (int64 a = row.n - 1; a >= 0; --a) {
        const int group = groups[columns[begin + a]];
        if (group != group_behind) next = a + 1;
        group_behind = group;
        row.count_led(highest, a, group < 0 ? a : next);
    }
}

/// The number of a row's outputs.
template <class Index>
POLYSPARSE_DEVICE int64 count_row(const Basis& basis, const GroupedTuples& tuples, int64 begin,
                                  int64 end, const Index*) {
    return count_outputs(basis, tuples.row(begin, end));
}
template <class Index>
POLYSPARSE_DEVICE int64 count_row(const Basis& basis, const TermTable& tuples, int64 begin,
                                  int64 end, const Index* columns) {
    int64 count = basis.include_bias;
    for (int64 t = 0; t < tuples.n_terms; ++t)
        if (tuples.degree(t) >= basis.lowest && tuples.degree(t) <= basis.highest)
            count = add_counts(count, tuples.size(t, columns + begin, end - begin));
    return count;
}

template <class Index, int kind>
__global__ void count_rows(const int64* __restrict__ offsets, const Index* __restrict__ columns,
                           int64 n_rows, Basis basis, typename TuplesOf<1, kind>::type tuples,
                           int64* __restrict__ counts) {
    const int64 r = static_cast<int64>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (r < n_rows) counts[r] = count_row(basis, tuples, offsets[r], offsets[r + 1], columns);
}

}  // namespace polysparse
