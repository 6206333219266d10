#include "apply/apply.hpp"

#include <algorithm>
#include <type_traits>
#include <utility>
#include <variant>

#include "apply/apply_listed.hpp"
#include "bindings/arrays.hpp"
#include "bindings/module.hpp"
#include "bindings/signals.hpp"
#include "platform/thread_pool.hpp"

namespace polysparse {
namespace {

using InVectors = Vectors<nb::ro>;
using OutVectors = Vectors<>;

/// How many vectors of n numbers there are side by side.
template <class SomeVectors>
int64_t count_vectors(const SomeVectors& vectors, int64_t n, nb::dlpack::dtype dtype) {
    require((vectors.ndim() == 1 || vectors.ndim() == 2) &&
                static_cast<int64_t>(vectors.shape(0)) == n && vectors.dtype() == dtype,
            "vectors of a wrong shape or dtype");
    return vectors.ndim() == 1 ? 1 : static_cast<int64_t>(vectors.shape(1));
}

int64_t n_columns_of(const Basis& basis) {
    return basis.n_columns();
}
int64_t n_columns_of(const Lookup& lookup) {
    return std::visit([](const auto& table) { return table.n_columns(); }, lookup);
}
int64_t n_columns_of(const Hasher& hasher) {
    return static_cast<int64_t>(hasher.n_columns);
}

/// Which columns there are; the basis stands for all of its own.
using Kept = std::variant<const Basis*, const Lookup*, const Hasher*>;

/// An expansion to multiply with, which is not built. It refers to what it was made from. Solvers
/// multiply many times: threads wait for the next product.
class Expansion {
  public:
    template <class By>
    Expansion(const Basis& basis, const By& by, In row_offsets, In columns, In values)
        : basis_(basis),
          by_(&by),
          row_offsets_(std::move(row_offsets)),
          columns_(std::move(columns)),
          values_(std::move(values)) {
        require(row_offsets_.size() > 0 && have_known_length(basis, row_offsets_),
                "malformed CSR arrays");
    }

    template <bool is_transposed>
    void multiply(InVectors vectors, OutVectors out, int64_t n_outputs, int64_t n_threads,
                  int64_t task) const {
        std::visit(
            [&](const auto* by) {
                multiply_by<is_transposed>(*by, vectors, out, {n_outputs, n_threads, task});
            },
            by_);
    }

  private:
    template <bool is_transposed, class By>
    void multiply_by(const By& by, const InVectors& vectors, const OutVectors& out,
                     const Effort& effort) const {
        const int64_t n_rows = std::max<int64_t>(size_of(row_offsets_) - 1, 0);
        const int64_t n_columns = n_columns_of(by);
        const int64_t k = count_vectors(out, is_transposed ? n_columns : n_rows, values_.dtype());
        require(count_vectors(vectors, is_transposed ? n_rows : n_columns, values_.dtype()) == k &&
                    effort.n_outputs >= 0 && effort.n_threads >= 1,
                "as many vectors as results, and some work and threads, are needed");
        const auto product = [&]<class Value>(const CsrView<Value>& x) {
            const VectorTable<const Value> from{static_cast<const Value*>(vectors.data()), k};
            const VectorTable<Value> to{static_cast<Value*>(out.data()), k};
            run_without_gil(false, pool_, [&](const StopRequest& should_stop) {
                const auto apply_to = [&](const auto&... by) {
                    if constexpr (is_transposed)
                        return apply_transposed(basis_, by..., x, from, to, effort, should_stop);
                    else
                        return apply(basis_, by..., x, from, to, effort, should_stop);
                };
                if constexpr (std::is_same_v<By, Basis>)
                    return apply_to();
                else
                    return apply_to(by);
            });
        };
        with_csr(row_offsets_, columns_, values_, basis_.n_features, product);
    }

    const Basis& basis_;
    Kept by_;
    In row_offsets_, columns_, values_;
    mutable ThreadPool pool_;
};

template <class By>
void def_init(nb::class_<Expansion>& bound) {
    bound.def(nb::init<const Basis&, const By&, In, In, In>(), nb::keep_alive<1, 2>(),
              nb::keep_alive<1, 3>(), nb::arg("basis"), nb::arg("by"),
              nb::arg("row_offsets").noconvert(), nb::arg("columns").noconvert(),
              nb::arg("values").noconvert());
}

template <bool is_transposed>
void def_product(nb::class_<Expansion>& bound, const char* name) {
    bound.def(name, &Expansion::multiply<is_transposed>, nb::arg("vectors").noconvert(),
              nb::arg("out").noconvert(), nb::arg("n_outputs"), nb::arg("n_threads"),
              nb::arg("task"));
}

}  // namespace

void bind_apply(nb::module_& m) {
    nb::class_<Expansion> bound(m, "Expansion", "An expansion to multiply with.");
    def_init<Basis>(bound);
    def_init<Lookup>(bound);
    def_init<Hasher>(bound);
    def_product<false>(bound, "apply");
    def_product<true>(bound, "apply_transposed");
}

}  // namespace polysparse
