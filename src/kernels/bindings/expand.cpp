#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <utility>
#include <vector>

#include "bindings/arrays.hpp"
#include "bindings/gil.hpp"
#include "bindings/module.hpp"
#include "bindings/signals.hpp"
#include "expand/alike_rows.hpp"
#include "expand/dense.hpp"
#include "expand/fill.hpp"
#include "expand/row_offsets.hpp"

namespace polysparse {
namespace {

std::vector<std::pair<int64_t, int64_t>> py_count_row_lengths(In row_offsets) {
    require(row_offsets.size() > 0, "row_offsets is empty");
    return count_row_lengths(indices_of(row_offsets), size_of(row_offsets) - 1);
}

/// Whether rows end within the columns. Assumes that the offsets do not fall.
bool are_within(In row_offsets, In columns) {
    const int64_t n_rows = size_of(row_offsets) - 1;
    return n_rows >= 0 && indices_of(row_offsets)[0] >= 0 &&
           indices_of(row_offsets)[n_rows] <= size_of(columns);
}

bool py_fill_row_offsets(const Basis& basis, In row_offsets, In columns, Out out_offsets,
                         int64_t n_threads) {
    require(row_offsets.size() > 0 && out_offsets.size() == row_offsets.size() && n_threads >= 1,
            "row offsets of unequal length");
    require(!basis.groups || are_within(row_offsets, columns), "malformed CSR arrays");
    require(have_known_length(basis, row_offsets), "malformed CSR arrays");
    const WithoutGil released;
    return fill_row_offsets(basis, indices_of(row_offsets), size_of(row_offsets) - 1,
                            indices_of(columns), indices_of(out_offsets), n_threads);
}

std::pair<bool, std::vector<int32_t>> py_compare_groups(const Basis& basis, In row_offsets,
                                                        In columns, int64_t n_threads) {
    require(basis.groups != nullptr && n_threads >= 1 && are_within(row_offsets, columns),
            "malformed CSR arrays");
    RowsInCommon rows;
    {
        const WithoutGil released;
        rows = compare_groups(basis, indices_of(row_offsets), size_of(row_offsets) - 1,
                              indices_of(columns), n_threads);
    }
    return {rows.are_distinct, std::move(rows.row_groups)};
}

std::pair<std::vector<int64_t>, int64_t> py_count_outputs(const Basis& basis, In row_offsets,
                                                          In columns, int64_t n_threads) {
    require(basis.groups != nullptr && n_threads >= 1 && are_within(row_offsets, columns),
            "malformed CSR arrays");
    require(have_known_length(basis, row_offsets), "malformed CSR arrays");
    OutputCounts counts;
    {
        const WithoutGil released;
        counts = count_outputs(basis, indices_of(row_offsets), size_of(row_offsets) - 1,
                               indices_of(columns), n_threads);
    }
    return {std::move(counts.by_degree), counts.largest_row};
}

void py_fill(const Basis& basis, In row_offsets, In columns, In values, int64_t n_columns,
             Out out_offsets, Out out_columns, Out out_values, int64_t n_threads, int64_t task) {
    require(out_offsets.size() == row_offsets.size() && out_columns.size() == out_values.size() &&
                n_columns == basis.n_features && n_threads >= 1 && row_offsets.size() > 0 &&
                have_known_length(basis, row_offsets),
            "malformed CSR arrays");
    with_csr(row_offsets, columns, values, n_columns, [&]<class Value>(const CsrView<Value>& x) {
        with_index(out_columns.dtype(), [&]<class OutIndex>(OutIndex) {
            const OutIndex* const offsets = data_of<OutIndex>(out_offsets);
            require(offsets[x.n_rows] == size_of(out_columns),
                    "the output is not of the counted size");
            const Slots<OutIndex, Value> out{data_of<OutIndex>(out_columns),
                                             data_of<Value>(out_values)};
            run_without_gil(false, [&](const StopRequest& should_stop) {
                return fill(basis, x, offsets, out, n_threads, task, should_stop);
            });
        });
    });
}

using InTable = nb::ndarray<nb::ro, nb::ndim<2>, nb::device::cpu>;
using OutTable = nb::ndarray<nb::ndim<2>, nb::device::cpu>;

void py_fill_dense(const Basis& basis, InTable x, OutTable out, int64_t n_threads) {
    require(x.shape(0) == out.shape(0) && static_cast<int64_t>(x.shape(1)) == basis.n_features &&
                n_threads >= 1 && x.dtype() == out.dtype() &&
                (out.stride(0) == 1 || out.stride(1) == 1 || out.size() == 0),
            "malformed dense arrays");
    if (out.size() == 0) return;
    require(static_cast<int64_t>(out.shape(1)) == basis.n_columns() && !basis.groups,
            "malformed dense arrays");
    with_value(x.dtype(), [&]<class Value>(Value) {
        const DenseView<const Value> from{static_cast<const Value*>(x.data()), x.stride(0),
                                          x.stride(1)};
        const DenseView<Value> to{static_cast<Value*>(out.data()), out.stride(0), out.stride(1)};
        run_without_gil(false, [&](const StopRequest& should_stop) {
            return fill_dense(basis, from, to, static_cast<int64_t>(out.shape(0)), n_threads,
                              should_stop);
        });
    });
}

}  // namespace

void bind_expand(nb::module_& m) {
    m.def("count_row_lengths", &py_count_row_lengths, nb::arg("row_offsets").noconvert());
    m.def("fill_row_offsets", &py_fill_row_offsets, nb::arg("basis"),
          nb::arg("row_offsets").noconvert(), nb::arg("columns").noconvert(),
          nb::arg("out_offsets").noconvert(), nb::arg("n_threads"));
    m.def("compare_groups", &py_compare_groups, nb::arg("basis"),
          nb::arg("row_offsets").noconvert(), nb::arg("columns").noconvert(), nb::arg("n_threads"));
    m.def("count_outputs", &py_count_outputs, nb::arg("basis"), nb::arg("row_offsets").noconvert(),
          nb::arg("columns").noconvert(), nb::arg("n_threads"));
    m.def("fill", &py_fill, nb::arg("basis"), nb::arg("row_offsets").noconvert(),
          nb::arg("columns").noconvert(), nb::arg("values").noconvert(), nb::arg("n_columns"),
          nb::arg("out_offsets").noconvert(), nb::arg("out_columns").noconvert(),
          nb::arg("out_values").noconvert(), nb::arg("n_threads"), nb::arg("task"));
    m.def("fill_dense", &py_fill_dense, nb::arg("basis"), nb::arg("x").noconvert(),
          nb::arg("out").noconvert(), nb::arg("n_threads"));
}

}  // namespace polysparse
