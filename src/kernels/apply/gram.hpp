// Inner products of rows of an expansion with all columns of a basis, by closed form.
//
// The inner product of two expanded rows is a sum over degrees: that of all monomials of degree d
// of the products x_j z_j (complete homogeneous symmetric polynomials), or of those of distinct
// factors (elementary ones). Both follow from their values without one of the products, degree by
// degree: S_d += x_j z_j * S_{d-1}, with increasing d for the first and falling d for the second.
//
// If features are in groups, the sum of the products x_j z_j of a group takes the place of a single
// one. Chosen terms are products of such sums.
#pragma once

#include <cstdint>

#include "basis/basis.hpp"
#include "matrix/csr_view.hpp"
#include "platform/threads.hpp"

namespace polysparse {

/// Fills `out`, x.n_rows by z.n_rows, with the inner products of expanded rows. Unless there are
/// groups, only the degrees, the bias and the kind of the basis are read, and x may have fewer
/// columns than it. `is_symmetric` says that z is x, which halves the
/// work. Sums are of doubles, in the order of columns. False if stopped. Needs: x.n_columns is
/// z.n_columns and below 2^31, increasing columns, no stored zeros. Memory: 4 bytes for each column
/// and worker, 72 for each stored value of eight rows. Throws bad_alloc before any thread starts.
template <class Value>
bool fill_gram(const Basis& basis, const CsrView<Value>& x, const CsrView<Value>& z,
               bool is_symmetric, Value* out, int64_t n_threads, const StopRequest& should_stop);

/// Fills `out` with the Euclidean norm of every expanded row. False if stopped.
template <class Value>
bool fill_row_norms(const Basis& basis, const CsrView<Value>& x, Value* out, int64_t n_threads,
                    const StopRequest& should_stop);

}  // namespace polysparse
