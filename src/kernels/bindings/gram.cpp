#include "apply/gram.hpp"

#include "bindings/arrays.hpp"
#include "bindings/module.hpp"
#include "bindings/signals.hpp"

namespace polysparse {
namespace {

void py_fill_gram(const Basis& basis, In x_offsets, In x_columns, In x_values, In z_offsets,
                  In z_columns, In z_values, int64_t n_columns, bool is_symmetric, Out out,
                  int64_t n_threads) {
    require(n_columns < int64_t{1} << 31 && n_threads >= 1, "malformed CSR arrays");
    require(!basis.groups || n_columns == basis.n_features, "groups of other features");
    with_csr(x_offsets, x_columns, x_values, n_columns, [&]<class Value>(const CsrView<Value>& x) {
        require(size_of(z_offsets) > 0 && z_columns.size() == z_values.size(),
                "malformed CSR arrays");
        const CsrView<Value> z{size_of(z_offsets) - 1, n_columns, indices_of(z_offsets),
                               indices_of(z_columns), data_of<Value>(z_values)};
        require(size_of(out) == x.n_rows * z.n_rows && (!is_symmetric || x.n_rows == z.n_rows),
                "the output is not of the counted size");
        Value* const to = data_of<Value>(out);
        run_without_gil(false, [&](const StopRequest& should_stop) {
            return fill_gram(basis, x, z, is_symmetric, to, n_threads, should_stop);
        });
    });
}

void py_fill_row_norms(const Basis& basis, In row_offsets, In columns, In values, Out out,
                       int64_t n_threads) {
    require(n_threads >= 1, "n_threads must be positive");
    with_csr(row_offsets, columns, values, basis.n_features,
             [&]<class Value>(const CsrView<Value>& x) {
                 require(size_of(out) == x.n_rows, "the output is not of the counted size");
                 Value* const to = data_of<Value>(out);
                 run_without_gil(false, [&](const StopRequest& should_stop) {
                     return fill_row_norms(basis, x, to, n_threads, should_stop);
                 });
             });
}

}  // namespace

void bind_gram(nb::module_& m) {
    m.def("fill_gram", &py_fill_gram, nb::arg("basis"), nb::arg("x_offsets").noconvert(),
          nb::arg("x_columns").noconvert(), nb::arg("x_values").noconvert(),
          nb::arg("z_offsets").noconvert(), nb::arg("z_columns").noconvert(),
          nb::arg("z_values").noconvert(), nb::arg("n_columns"), nb::arg("is_symmetric"),
          nb::arg("out").noconvert(), nb::arg("n_threads"));
    m.def("fill_row_norms", &py_fill_row_norms, nb::arg("basis"),
          nb::arg("row_offsets").noconvert(), nb::arg("columns").noconvert(),
          nb::arg("values").noconvert(), nb::arg("out").noconvert(), nb::arg("n_threads"));
}

}  // namespace polysparse
