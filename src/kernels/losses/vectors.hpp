// Sums and updates of long vectors. All return false if they were stopped.
#pragma once

#include <cstdint>

#include "losses/sums.hpp"

namespace polysparse {

/// Writes the sum of a * b to `sum`.
bool dot(int64_t n, const double* a, const double* b, double* sum, const Work& work);

/// Writes the sum of weights * (x - shift)^2 to `sum`.
bool weighted_squares(int64_t n, const double* weights, const double* x, double shift, double* sum,
                      const Work& work);

/// x = a * x + b * (y - shift)
bool combine(int64_t n, double a, double* x, double b, const double* y, double shift,
             const Work& work);

/// out = x * (y - shift)
bool multiply(int64_t n, const double* x, const double* y, double shift, double* out,
              const Work& work);

/// Writes the inner products of x and k vectors, the rows of a table, to `sums`.
bool dots(int64_t n, int64_t k, const double* table, const double* x, double* sums,
          const Work& work);

/// Adds the sum of k vectors, the rows of a table, times factors to `out`.
bool add_rows(int64_t n, int64_t k, const double* factors, const double* table, double* out,
              const Work& work);

/// x = 0, whatever its type, which takes n bytes.
bool clear(int64_t n, void* x, const Work& work);

/// x = factor * x + shift
bool rescale(int64_t n, double* x, double factor, double shift, const Work& work);

/// out = (x + shift)^(3/4), or 1 where x + shift is not positive.
bool raise_shifted(int64_t n, const double* x, double shift, double* out, const Work& work);

/// Sums of squares of n columns become those about their means, and their sums the means. There are
/// k numbers for each column, side by side, and k totals: the weights of all rows.
bool center(int64_t n, int64_t k, double* squares, double* sums, const double* totals,
            const Work& work);

/// out = x / y; writes the sum of x * out to `sum`.
bool divide(int64_t n, const double* x, const double* y, double* out, double* sum,
            const Work& work);

}  // namespace polysparse
