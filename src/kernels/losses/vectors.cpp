#include "losses/vectors.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace polysparse {
namespace {

constexpr int64_t length = int64_t{1} << 13;        // of a stretch
constexpr int64_t table_length = int64_t{1} << 10;  // of a stretch of many vectors

POLYSPARSE_PER_PROCESSOR double dot(const double* __restrict a, const double* __restrict b,
                                    int64_t begin, int64_t end) {
    LaneSum sum;
    for_places(begin, end,
               [&](int64_t i, int64_t u) POLYSPARSE_INLINE_LAMBDA { sum.parts[u] += a[i] * b[i]; });
    return sum.total();
}

POLYSPARSE_PER_PROCESSOR double weighted_squares(const double* __restrict weights,
                                                 const double* __restrict x, double shift,
                                                 int64_t begin, int64_t end) {
    LaneSum sum;
    for_places(begin, end, [&](int64_t i, int64_t u) POLYSPARSE_INLINE_LAMBDA {
        const double own = x[i] - shift;
        sum.parts[u] += weights[i] * (own * own);
    });
    return sum.total();
}

POLYSPARSE_PER_PROCESSOR double divide(const double* __restrict x, const double* __restrict y,
                                       double* __restrict out, int64_t begin, int64_t end) {
    LaneSum sum;
    for_places(begin, end, [&](int64_t i, int64_t u) POLYSPARSE_INLINE_LAMBDA {
        out[i] = x[i] / y[i];
        sum.parts[u] += x[i] * out[i];
    });
    return sum.total();
}

POLYSPARSE_PER_PROCESSOR void raise_shifted(const double* __restrict x, double shift,
                                            double* __restrict out, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
        const double own = x[i] + shift, root = std::sqrt(own > 0 ? own : 1);
        out[i] = root * std::sqrt(root);
    }
}

POLYSPARSE_INLINE void center_at(double& square, double& sum, double total) {
    const double rest = square - sum * sum / total;
    square = rest < 0 ? 0 : rest;  // rounding; what is not a number stays so
    sum /= total;
}

POLYSPARSE_PER_PROCESSOR void center(double* __restrict squares, double* __restrict sums,
                                     double total, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) center_at(squares[i], sums[i], total);
}

/// Writes the sum of what `part` says of stretches.
template <class Part>
bool sum_of(int64_t n, double* sum, const Work& work, const Part& part) {
    *sum = 0;
    return sum_stretches(
        n, length, work, 1, sum,
        [&](int64_t, int64_t begin, int64_t end, double* own) { *own = part(begin, end); });
}

/// x += factor * y
POLYSPARSE_PER_PROCESSOR void add(double* __restrict x, double factor, const double* __restrict y,
                                  int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) x[i] += factor * y[i];
}

}  // namespace

bool dot(int64_t n, const double* a, const double* b, double* sum, const Work& work) {
    return sum_of(n, sum, work, [&](int64_t begin, int64_t end) { return dot(a, b, begin, end); });
}

bool weighted_squares(int64_t n, const double* weights, const double* x, double shift, double* sum,
                      const Work& work) {
    return sum_of(n, sum, work, [&](int64_t begin, int64_t end) {
        return weighted_squares(weights, x, shift, begin, end);
    });
}

bool divide(int64_t n, const double* x, const double* y, double* out, double* sum,
            const Work& work) {
    return sum_of(n, sum, work,
                  [&](int64_t begin, int64_t end) { return divide(x, y, out, begin, end); });
}

bool combine(int64_t n, double a, double* x, double b, const double* y, double shift,
             const Work& work) {
    return for_stretches(n, length, work, [&](int64_t, int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) x[i] = a * x[i] + b * (y[i] - shift);
    });
}

bool dots(int64_t n, int64_t k, const double* table, const double* x, double* sums,
          const Work& work) {
    std::fill_n(sums, k, 0.0);
    return sum_stretches(n, table_length, work, k, sums,
                         [&](int64_t, int64_t begin, int64_t end, double* own) {
                             for (int64_t i = 0; i < k; ++i)
                                 own[i] = dot(table + i * n, x, begin, end);
                         });
}

bool add_rows(int64_t n, int64_t k, const double* factors, const double* table, double* out,
              const Work& work) {
    return for_stretches(n, table_length, work, [&](int64_t, int64_t begin, int64_t end) {
        for (int64_t i = 0; i < k; ++i) add(out, factors[i], table + i * n, begin, end);
    });
}

bool clear(int64_t n, void* x, const Work& work) {
    constexpr int64_t n_bytes = length * static_cast<int64_t>(sizeof(double));
    return for_stretches(n, n_bytes, work, [&](int64_t, int64_t begin, int64_t end) {
        std::memset(static_cast<char*>(x) + begin, 0, end - begin);
    });
}

bool rescale(int64_t n, double* x, double factor, double shift, const Work& work) {
    return for_stretches(n, length, work, [&](int64_t, int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) x[i] = factor * x[i] + shift;
    });
}

bool raise_shifted(int64_t n, const double* x, double shift, double* out, const Work& work) {
    return for_stretches(n, length, work, [&](int64_t, int64_t begin, int64_t end) {
        raise_shifted(x, shift, out, begin, end);
    });
}

bool center(int64_t n, int64_t k, double* squares, double* sums, const double* totals,
            const Work& work) {
    return for_stretches(n, length, work, [&](int64_t, int64_t begin, int64_t end) {
        if (k == 1) return center(squares, sums, totals[0], begin, end);
        for (int64_t i = begin * k; i < end * k; ++i) center_at(squares[i], sums[i], totals[i % k]);
    });
}

bool multiply(int64_t n, const double* x, const double* y, double shift, double* out,
              const Work& work) {
    return for_stretches(n, length, work, [&](int64_t, int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) out[i] = x[i] * (y[i] - shift);
    });
}

}  // namespace polysparse
