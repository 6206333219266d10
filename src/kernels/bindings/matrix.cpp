#include <nanobind/stl/tuple.h>

#include <tuple>

#include "bindings/arrays.hpp"
#include "bindings/gil.hpp"
#include "bindings/module.hpp"
#include "matrix/inspect.hpp"

namespace polysparse {
namespace {

std::tuple<CsrFault, int64_t, bool, int64_t, bool> py_inspect(In row_offsets, In columns, In values,
                                                              int64_t n_columns,
                                                              int64_t n_threads) {
    require(n_threads >= 1, "n_threads must be positive");
    return with_csr(row_offsets, columns, values, n_columns, [&](const auto& x) {
        const WithoutGil released;
        const CsrReport report = inspect(x, size_of(columns), n_threads);
        return std::tuple{report.fault, report.where, report.increasing, report.stored_zeros,
                          report.finite};
    });
}

}  // namespace

void bind_matrix(nb::module_& m) {
    nb::enum_<CsrFault>(m, "CsrFault", "What makes a CSR matrix unusable.")
        .value("none", CsrFault::none)
        .value("first_offset", CsrFault::first_offset)
        .value("falling_offset", CsrFault::falling_offset)
        .value("last_offset", CsrFault::last_offset)
        .value("column_range", CsrFault::column_range);
    m.def("inspect", &py_inspect, nb::arg("row_offsets").noconvert(),
          nb::arg("columns").noconvert(), nb::arg("values").noconvert(), nb::arg("n_columns"),
          nb::arg("n_threads"));
}

}  // namespace polysparse
