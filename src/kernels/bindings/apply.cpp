#include "apply/apply.hpp"
#include "bindings/arrays.hpp"
#include "bindings/module.hpp"
#include "bindings/signals.hpp"

namespace polysparse {
namespace {

using InVectors = Table<nb::ro>;
using OutVectors = Table<>;

/// Defines a function that multiplies with `product(basis, x, vectors, out, effort, stop)`. `rows`
/// says which of the two tables has a row for each row of x.
template <class Product>
void def_product(nb::module_& m, const char* name, const char* vectors_name, bool by_columns,
                 const Product& product) {
    m.def(
        name,
        [product, by_columns](const Basis& basis, In row_offsets, In columns, In values,
                              InVectors vectors, OutVectors out, int64_t n_outputs,
                              int64_t n_threads, int64_t task) {
            const auto n_rows = static_cast<int64_t>(row_offsets.size()) - 1;
            const auto height = [](const auto& table) {
                return static_cast<int64_t>(table.shape(0));
            };
            require(vectors.shape(1) == out.shape(1) && n_threads >= 1 && n_outputs >= 0 &&
                        height(by_columns ? vectors : InVectors(out)) == basis.n_columns() &&
                        height(by_columns ? InVectors(out) : vectors) == n_rows,
                    "vectors of wrong lengths");
            with_csr(row_offsets, columns, values, basis.n_features,
                     [&]<class Value>(const CsrView<Value>& x) {
                         require(vectors.dtype() == nb::dtype<Value>() &&
                                     out.dtype() == nb::dtype<Value>(),
                                 "arrays of unequal dtype");
                         const auto k = static_cast<int64_t>(out.shape(1));
                         const VectorTable<const Value> from{
                             static_cast<const Value*>(vectors.data()), k};
                         const VectorTable<Value> to{static_cast<Value*>(out.data()), k};
                         run_without_gil(false, [&](const StopRequest& should_stop) {
                             return product(basis, x, from, to,
                                            Effort{n_outputs, n_threads, task}, should_stop);
                         });
                     });
        },
        nb::arg("basis"), nb::arg("row_offsets").noconvert(), nb::arg("columns").noconvert(),
        nb::arg("values").noconvert(), nb::arg(vectors_name).noconvert(),
        nb::arg("out").noconvert(), nb::arg("n_outputs"), nb::arg("n_threads"), nb::arg("task"));
}

}  // namespace

void bind_apply(nb::module_& m) {
    def_product(m, "apply", "coefficients", true, [](auto&&... all) { return apply(all...); });
    def_product(m, "apply_transposed", "weights", false,
                [](auto&&... all) { return apply_transposed(all...); });
}

}  // namespace polysparse
