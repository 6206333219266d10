#include "apply/apply.hpp"

#include <algorithm>
#include <variant>

#include "apply/apply_listed.hpp"
#include "bindings/arrays.hpp"
#include "bindings/module.hpp"
#include "bindings/signals.hpp"

namespace polysparse {
namespace {

using InVectors = Table<nb::ro>;
using OutVectors = Table<>;

int64_t n_columns_of(const Basis& basis) {
    return basis.n_columns();
}
int64_t n_columns_of(const Lookup& lookup) {
    return std::visit([](const auto& table) { return table.n_columns(); }, lookup);
}
int64_t n_columns_of(const Hasher& hasher) {
    return static_cast<int64_t>(hasher.n_columns);
}

/// Calls product(x, from, to, effort, stop). `by`: which columns there are, the basis for all.
template <class By, class Product>
void multiply(const By& by, const Basis& basis, In row_offsets, In columns, In values,
              InVectors vectors, OutVectors out, bool is_transposed, Effort effort,
              const Product& product) {
    const auto n_rows = static_cast<size_t>(std::max<int64_t>(size_of(row_offsets) - 1, 0));
    const auto n_columns = static_cast<size_t>(n_columns_of(by));
    require(vectors.shape(0) == (is_transposed ? n_rows : n_columns) &&
                out.shape(0) == (is_transposed ? n_columns : n_rows) &&
                vectors.shape(1) == out.shape(1) && vectors.dtype() == values.dtype() &&
                out.dtype() == values.dtype() && effort.n_outputs >= 0 && effort.n_threads >= 1,
            "vectors of a wrong shape or dtype");
    const auto k = static_cast<int64_t>(out.shape(1));
    with_csr(row_offsets, columns, values, basis.n_features,
             [&]<class Value>(const CsrView<Value>& x) {
                 const VectorTable<const Value> from{static_cast<const Value*>(vectors.data()), k};
                 const VectorTable<Value> to{static_cast<Value*>(out.data()), k};
                 run_without_gil(false, [&](const StopRequest& should_stop) {
                     return product(x, from, to, effort, should_stop);
                 });
             });
}

/// Defines both products in the columns that By describes.
template <class By>
void def_products(nb::module_& m) {
    const auto def = [&](const char* name, bool is_transposed) {
        m.def(
            name,
            [is_transposed](const Basis& basis, const By& by, In row_offsets, In columns, In values,
                            InVectors vectors, OutVectors out, int64_t n_outputs, int64_t n_threads,
                            int64_t task) {
                const auto product = [&](const auto&... all) {
                    return is_transposed ? apply_transposed(basis, by, all...)
                                         : apply(basis, by, all...);
                };
                multiply(by, basis, row_offsets, columns, values, vectors, out, is_transposed,
                         {n_outputs, n_threads, task}, product);
            },
            nb::arg("basis"), nb::arg("by"), nb::arg("row_offsets").noconvert(),
            nb::arg("columns").noconvert(), nb::arg("values").noconvert(),
            nb::arg("vectors").noconvert(), nb::arg("out").noconvert(), nb::arg("n_outputs"),
            nb::arg("n_threads"), nb::arg("task"));
    };
    def("apply", false);
    def("apply_transposed", true);
}

}  // namespace

void bind_apply(nb::module_& m) {
    def_products<Basis>(m);
    def_products<Lookup>(m);
    def_products<Hasher>(m);
}

}  // namespace polysparse
