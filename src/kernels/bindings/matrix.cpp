#include <nanobind/stl/tuple.h>

#include <tuple>

#include "bindings/arrays.hpp"
#include "bindings/gil.hpp"
#include "bindings/module.hpp"
#include "matrix/distinct.hpp"
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

int64_t py_number_distinct(Array<const uint64_t> values, Array<int32_t> numbers,
                           Array<int64_t> firsts) {
    require(numbers.size() == values.size(), "a number for each value is needed");
    require(firsts.size() < size_t{1} << 31, "numbers must fit into 32 bits");
    const WithoutGil released;
    return number_distinct(values.data(), size_of(values), size_of(firsts), numbers.data(),
                           firsts.data());
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
    m.def("number_distinct", &py_number_distinct, nb::arg("values").noconvert(),
          nb::arg("numbers").noconvert(), nb::arg("firsts").noconvert());
}

}  // namespace polysparse
