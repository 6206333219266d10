#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "bindings/arrays.hpp"
#include "bindings/gil.hpp"
#include "bindings/module.hpp"
#include "bindings/signals.hpp"
#include "select/fill_chosen.hpp"
#include "select/fill_hashed.hpp"

namespace polysparse {
namespace {

void init_lookup(Lookup* self, const Basis& basis, Array<const int64_t> columns) {
    const int64_t* const begin = columns.data();
    const int64_t n = size_of(columns);
    require(n < int64_t{1} << 31 && is_rising(begin, n) &&
                (n == 0 || (begin[0] >= 0 && begin[n - 1] < basis.n_columns())),
            "columns must rise and be in the basis");
    const WithoutGil released;
    new (self) Lookup(make_lookup(basis, begin, n));
}

void hash(const Hasher& hasher, Tuples tuples, Array<int64_t> buckets, Array<int64_t> signs) {
    require(tuples.shape(0) == buckets.size() && tuples.shape(0) == signs.size(),
            "arrays of unequal length");
    const WithoutGil released;
    hash_all(hasher, table_of(tuples), buckets.data(), signs.data());
}

/// Defines a function that appends rows with `fill(basis, by, x, out, n_threads, task, stop)`,
/// where `by` says which columns there are. It returns the outputs written, or -1 if there is no
/// room for all.
template <class By, class Fill>
void def_append(nb::module_& m, const char* name, const char* by_name, const Fill& fill) {
    m.def(
        name,
        [fill](const Basis& basis, const By& by, In row_offsets, In columns, In values,
               Out out_offsets, Out out_columns, Out out_values, int64_t n_threads,
               int64_t task) -> int64_t {
            require(out_offsets.size() == row_offsets.size() &&
                        out_columns.size() == out_values.size() && n_threads >= 1,
                    "malformed CSR arrays");
            const OutIndices offsets = indices_of(out_offsets);
            const auto append = [&]<class Value>(const CsrView<Value>& x) {
                const AppendTo<Value> out{
                    offsets,
                    {data_of<int32_t>(out_columns), data_of<Value>(out_values)},
                    size_of(out_columns)};
                return run_without_gil(Appending::stopped, [&](const StopRequest& should_stop) {
                    return fill(basis, by, x, out, n_threads, task, should_stop);
                });
            };
            const Appending done = with_csr(row_offsets, columns, values, basis.n_features, append);
            return done == Appending::full ? -1 : offsets[size_of(out_offsets) - 1];
        },
        nb::arg("basis"), nb::arg(by_name), nb::arg("row_offsets").noconvert(),
        nb::arg("columns").noconvert(), nb::arg("values").noconvert(),
        nb::arg("out_offsets").noconvert(), nb::arg("out_columns").noconvert(),
        nb::arg("out_values").noconvert(), nb::arg("n_threads"), nb::arg("task"));
}

using RowLengths = std::vector<std::pair<int64_t, int64_t>>;

/// The bytes that `bytes_of(rows, value)` says, for values of a size.
template <class BytesOf>
int64_t bytes_for(const RowLengths& row_lengths, int64_t value_size, const BytesOf& bytes_of) {
    std::vector<RowsOfShape> rows;
    for (const auto& [length, n_rows] : row_lengths)
        rows.push_back({shape_storing(length), n_rows});
    return value_size == sizeof(float) ? bytes_of(rows, float{}) : bytes_of(rows, double{});
}

int64_t bytes_to_choose(const Basis& basis, int64_t n_columns, const RowLengths& row_lengths,
                        int64_t value_size, int64_t n_threads, int64_t task) {
    return bytes_for(row_lengths, value_size, [&]<class Value>(const auto& rows, Value) {
        return choosing_bytes<Value>(basis, n_columns, rows, n_threads, task);
    });
}

int64_t bytes_to_hash(const Basis& basis, const Hasher& hasher, const RowLengths& row_lengths,
                      int64_t value_size, int64_t n_threads, int64_t task) {
    return bytes_for(row_lengths, value_size, [&]<class Value>(const auto& rows, Value) {
        return hashing_bytes<Value>(basis, hasher, rows, n_threads, task);
    });
}

}  // namespace

void bind_select(nb::module_& m) {
    nb::class_<Lookup>(m, "Lookup", "Where chosen columns of a basis stand among each other.")
        .def("__init__", &init_lookup, nb::arg("basis"), nb::arg("columns").noconvert());
    def_append<Lookup>(m, "fill_chosen", "lookup",
                       [](auto&&... all) { return fill_chosen(all...); });
    m.def("choosing_bytes", &bytes_to_choose, nb::arg("basis"), nb::arg("n_columns"),
          nb::arg("row_lengths"), nb::arg("value_size"), nb::arg("n_threads"), nb::arg("task"));
    nb::class_<Hasher>(m, "Hasher", "Where monomials go, and with which sign.")
        .def(nb::init<int64_t, bool, uint64_t>(), nb::arg("n_columns"), nb::arg("alternate_sign"),
             nb::arg("seed"))
        .def("hash", &hash, nb::arg("tuples").noconvert(), nb::arg("buckets").noconvert(),
             nb::arg("signs").noconvert());
    def_append<Hasher>(m, "fill_hashed", "hasher",
                       [](auto&&... all) { return fill_hashed(all...); });
    m.def("hashing_bytes", &bytes_to_hash, nb::arg("basis"), nb::arg("hasher"),
          nb::arg("row_lengths"), nb::arg("value_size"), nb::arg("n_threads"), nb::arg("task"));
}

}  // namespace polysparse
