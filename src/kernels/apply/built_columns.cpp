#include "apply/built_columns.hpp"

#include <algorithm>
#include <vector>

#include "platform/processors.hpp"

namespace polysparse {
namespace {

/// Calls emit(row, value) for every row in which all features of a tuple are stored.
///
/// The rows of the rarest feature are looked up in those of the others. Values are multiplied from
/// the last feature to the first, as where a whole row is expanded.
class Product {
  public:
    Product(const TupleTable& tuples, int64_t t, const Sparse& x)
        : x_(x), members_(tuples[t]), degree_(tuples.degree(t)) {
        rarest_ = 0;
        for (int64_t k = 1; k < degree_; ++k)
            if (size(k) < size(rarest_)) rarest_ = k;
    }

    template <class Emit>
    void for_rows(std::vector<int64_t>& places, const Emit& emit) const {
        if (degree_ == 0) return;
        for (int64_t k = 0; k < degree_; ++k) places[k] = begin(k);
        for (int64_t p = begin(rarest_); p < end(rarest_); ++p) {
            const int32_t row = x_.others[p];
            bool is_there = true;
            for (int64_t k = 0; k < degree_ && is_there; ++k) {
                places[k] = k == rarest_ ? p : seek(places[k], end(k), row);
                if (places[k] == end(k)) return;
                is_there = x_.others[places[k]] == row;
            }
            if (!is_there) continue;
            double value = x_.values[places[degree_ - 1]];
            for (int64_t k = degree_ - 2; k >= 0; --k) value = x_.values[places[k]] * value;
            emit(row, value);
        }
    }

  private:
    int64_t begin(int64_t k) const { return x_.offsets[members_[k]]; }
    int64_t end(int64_t k) const { return x_.offsets[members_[k] + 1]; }
    int64_t size(int64_t k) const { return end(k) - begin(k); }

    /// The first place from `place` on whose row is not before `row`, in steps that double.
    int64_t seek(int64_t place, int64_t end, int32_t row) const {
        const int32_t* const rows = x_.others;
        if (place == end || rows[place] >= row) return place;
        int64_t step = 1;
        while (place + step < end && rows[place + step] < row) {
            place += step;
            step *= 2;
        }
        const int64_t last = std::min(place + step, end);
        return std::lower_bound(rows + place + 1, rows + last, row) - rows;
    }

    const Sparse& x_;
    const int64_t* members_;
    int64_t degree_, rarest_;
};

/// Calls work(t, places) for every tuple; places is room for a thread. Throws bad_alloc.
template <class Work>
bool for_tuples(const TupleTable& tuples, int64_t n_threads, const StopRequest& should_stop,
                const Work& work) {
    std::vector<std::vector<int64_t>> places(n_threads, std::vector<int64_t>(tuples.width));
    const auto run = [&](int64_t worker, int64_t t) { work(t, places[worker]); };
    return run_tasks(tuples.n, n_threads, run, should_stop);
}

/// out[b] += weight times the value of each b <= last of a row.
POLYSPARSE_INLINE void add_row(const Sparse& by_row, int64_t row, int64_t last, double weight,
                               double* __restrict out) {
    const int64_t end = by_row.offsets[row + 1];
    for (int64_t t = by_row.offsets[row]; t < end && by_row.others[t] <= last; ++t)
        out[by_row.others[t]] += weight * by_row.values[t];
}

}  // namespace

bool count_built(const TupleTable& tuples, const Sparse& x, int64_t* counts, int64_t n_threads,
                 const StopRequest& should_stop) {
    return for_tuples(tuples, n_threads, should_stop, [&](int64_t t, std::vector<int64_t>& places) {
        int64_t count = 0;
        Product(tuples, t, x).for_rows(places, [&](int32_t, double) { ++count; });
        counts[t] = count;
    });
}

bool fill_built(const TupleTable& tuples, const Sparse& x, const int64_t* offsets, int32_t* rows,
                double* values, int64_t n_threads, const StopRequest& should_stop) {
    return for_tuples(tuples, n_threads, should_stop, [&](int64_t t, std::vector<int64_t>& places) {
        int64_t to = offsets[t];
        Product(tuples, t, x).for_rows(places, [&](int32_t row, double value) {
            if (to >= offsets[t + 1]) return;
            rows[to] = row;
            values[to++] = value;
        });
    });
}

bool fill_column_gram(const Sparse& by_column, const Sparse& by_row, const double* weights,
                      int64_t first, int64_t stride, double* out, int64_t n_threads,
                      const StopRequest& should_stop) {
    const int64_t n = by_column.n;
    const auto fill_lead = [&](int64_t, int64_t task) {
        const int64_t lead = n - 1 - task;  // the longest ones first
        double* const own = out + lead * stride;
        std::fill_n(own, lead + 1, 0.0);
        for (int64_t p = by_column.offsets[lead]; p < by_column.offsets[lead + 1]; ++p) {
            const int32_t row = by_column.others[p];
            add_row(by_row, row, lead, weights[row] * by_column.values[p], own);
        }
    };
    if (!run_tasks(n - first, n_threads, fill_lead, should_stop, Order::in_order)) return false;
    for (int64_t a = first; a < n; ++a)
        for (int64_t b = 0; b < a; ++b) out[b * stride + a] = out[a * stride + b];
    return true;
}

bool multiply_each(const Sparse& matrix, const double* vector, double* out, int64_t n_threads,
                   const StopRequest& should_stop) {
    constexpr int64_t together = 64;
    const auto multiply = [&](int64_t, int64_t task) {
        const int64_t last = std::min(matrix.n, (task + 1) * together);
        for (int64_t c = task * together; c < last; ++c) {
            double sum = 0;
            for (int64_t p = matrix.offsets[c]; p < matrix.offsets[c + 1]; ++p)
                sum += matrix.values[p] * vector[matrix.others[p]];
            out[c] = sum;
        }
    };
    return run_tasks((matrix.n + together - 1) / together, n_threads, multiply, should_stop);
}

}  // namespace polysparse
