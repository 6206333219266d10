// A few columns of an expansion, built: what a solver needs that only looks at some of them.
#pragma once

#include <cstdint>

#include "basis/basis.hpp"
#include "platform/threads.hpp"

namespace polysparse {

/// A matrix by columns: those of column c are at [offsets[c], offsets[c + 1]), and rows increase.
/// The same struct describes one by rows, with rows and columns exchanged.
struct Sparse {
    int64_t n;  // columns
    const int64_t* offsets;
    const int32_t* others;  // the row of each value
    const double* values;
};

/// Writes the number of rows in which all features of each tuple are stored. False if stopped.
bool count_built(const TupleTable& tuples, const Sparse& x, int64_t* counts, int64_t n_threads,
                 const StopRequest& should_stop);

/// Writes the rows and the values of the product of the features of each tuple, from offsets[t] on.
/// At most offsets[t + 1] - offsets[t] are written, if x has changed since they were counted.
bool fill_built(const TupleTable& tuples, const Sparse& x, const int64_t* offsets, int32_t* rows,
                double* values, int64_t n_threads, const StopRequest& should_stop);

/// Inner products of columns, with weights of the rows: element a * stride + b of `out` and its
/// mirror image, for a >= first and all b <= a. The matrix is given by columns and by rows. Each
/// sum is that of one thread, in the order of rows.
bool fill_column_gram(const Sparse& by_column, const Sparse& by_row, const double* weights,
                      int64_t first, int64_t stride, double* out, int64_t n_threads,
                      const StopRequest& should_stop);

/// out[c] = the sum of values * vector over column c. With a matrix by rows, that is the product
/// with a vector of coefficients.
bool multiply_each(const Sparse& matrix, const double* vector, double* out, int64_t n_threads,
                   const StopRequest& should_stop);

}  // namespace polysparse
