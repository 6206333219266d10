#include "apply/built_columns.hpp"
#include "bindings/arrays.hpp"
#include "bindings/module.hpp"
#include "bindings/signals.hpp"
#include "losses/coordinate_descent.hpp"

namespace polysparse {
namespace {

using Offsets = Array<const int64_t>;
using Places = Array<const int32_t>;
using InVector = Array<const double>;
using OutVector = Array<double>;

Sparse sparse_of(const Offsets& offsets, const Places& others, const InVector& values) {
    require(offsets.size() > 0 && others.size() == values.size(), "malformed arrays of columns");
    const int64_t n = size_of(offsets) - 1;
    require(offsets.data()[0] == 0 && offsets.data()[n] == size_of(others),
            "malformed arrays of columns");
    return {n, offsets.data(), others.data(), values.data()};
}

void py_count_built(Tuples tuples, Offsets offsets, Places rows, InVector values,
                    Array<int64_t> counts, int64_t n_threads) {
    const Sparse x = sparse_of(offsets, rows, values);
    require(counts.size() == tuples.shape(0) && n_threads >= 1, "a count for each tuple is needed");
    run_without_gil(false, [&](const StopRequest& should_stop) {
        return count_built(table_of(tuples), x, counts.data(), n_threads, should_stop);
    });
}

void py_fill_built(Tuples tuples, Offsets offsets, Places rows, InVector values, Offsets to,
                   Array<int32_t> out_rows, OutVector out_values, int64_t n_threads) {
    const Sparse x = sparse_of(offsets, rows, values);
    require(to.size() == tuples.shape(0) + 1 && n_threads >= 1 &&
                out_rows.size() == out_values.size() &&
                to.data()[to.size() - 1] == size_of(out_rows),
            "the output is not of the counted size");
    run_without_gil(false, [&](const StopRequest& should_stop) {
        return fill_built(table_of(tuples), x, to.data(), out_rows.data(), out_values.data(),
                          n_threads, should_stop);
    });
}

void py_fill_column_gram(Offsets column_offsets, Places rows, InVector values, Offsets row_offsets,
                         Places columns, InVector row_values, InVector weights, int64_t first,
                         Table<double> out, int64_t n_threads) {
    const int64_t n_rows = size_of(weights), n = size_of(column_offsets) - 1;
    const Sparse by_column = sparse_of(column_offsets, rows, values);
    const Sparse by_row = sparse_of(row_offsets, columns, row_values);
    require(by_row.n == n_rows && first >= 0 && first <= n && n_threads >= 1 &&
                static_cast<int64_t>(out.shape(0)) >= n && static_cast<int64_t>(out.shape(1)) >= n,
            "the output is not of the right size");
    run_without_gil(false, [&](const StopRequest& should_stop) {
        return fill_column_gram(by_column, by_row, weights.data(), first,
                                static_cast<int64_t>(out.shape(1)), out.data(), n_threads,
                                should_stop);
    });
}

void py_multiply_each(Offsets offsets, Places others, InVector values, InVector vector,
                      OutVector out, int64_t n_threads) {
    const Sparse matrix = sparse_of(offsets, others, values);
    require(size_of(out) == matrix.n && n_threads >= 1, "the output is not of the right size");
    run_without_gil(false, [&](const StopRequest& should_stop) {
        return multiply_each(matrix, vector.data(), out.data(), n_threads, should_stop);
    });
}

int64_t py_descend(Table<const double> hessian, InVector l1, InVector l2, OutVector gradient,
                   OutVector w, double tol, int64_t most) {
    const int64_t n = size_of(w), stride = static_cast<int64_t>(hessian.shape(1));
    require(l1.size() == w.size() && l2.size() == w.size() && gradient.size() == w.size() &&
                static_cast<int64_t>(hessian.shape(0)) >= n && stride >= n,
            "vectors of unequal size");
    const ElasticNet problem{n,         stride,          hessian.data(), l1.data(),
                             l2.data(), gradient.data(), w.data()};
    int64_t n_passes = 0;
    run_without_gil(false, [&](const StopRequest& should_stop) {
        return descend(problem, tol, most, &n_passes, should_stop);
    });
    return n_passes;
}

}  // namespace

void bind_active(nb::module_& m) {
    m.def("count_built", &py_count_built, nb::arg("tuples").noconvert(),
          nb::arg("offsets").noconvert(), nb::arg("rows").noconvert(),
          nb::arg("values").noconvert(), nb::arg("counts").noconvert(), nb::arg("n_threads"));
    m.def("fill_built", &py_fill_built, nb::arg("tuples").noconvert(),
          nb::arg("offsets").noconvert(), nb::arg("rows").noconvert(),
          nb::arg("values").noconvert(), nb::arg("to").noconvert(), nb::arg("out_rows").noconvert(),
          nb::arg("out_values").noconvert(), nb::arg("n_threads"));
    m.def("fill_column_gram", &py_fill_column_gram, nb::arg("column_offsets").noconvert(),
          nb::arg("rows").noconvert(), nb::arg("values").noconvert(),
          nb::arg("row_offsets").noconvert(), nb::arg("columns").noconvert(),
          nb::arg("row_values").noconvert(), nb::arg("weights").noconvert(), nb::arg("first"),
          nb::arg("out").noconvert(), nb::arg("n_threads"));
    m.def("multiply_each", &py_multiply_each, nb::arg("offsets").noconvert(),
          nb::arg("others").noconvert(), nb::arg("values").noconvert(),
          nb::arg("vector").noconvert(), nb::arg("out").noconvert(), nb::arg("n_threads"));
    m.def("descend", &py_descend, nb::arg("hessian").noconvert(), nb::arg("l1").noconvert(),
          nb::arg("l2").noconvert(), nb::arg("gradient").noconvert(), nb::arg("w").noconvert(),
          nb::arg("tol"), nb::arg("most"));
}

}  // namespace polysparse
