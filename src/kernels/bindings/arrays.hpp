// NumPy arrays as the kernels see them. Python has checked every argument; what is required here
// guards memory, not users.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <iterator>
#include <type_traits>

#include "basis/basis.hpp"
#include "matrix/csr_view.hpp"

namespace polysparse {

namespace nb = nanobind;

template <class... Options>
using Array = nb::ndarray<Options..., nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class... Options>
using Table = nb::ndarray<Options..., nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class... Options>
using Vectors = nb::ndarray<Options..., nb::c_contig, nb::device::cpu>;  // one, or a table of them

using In = Array<nb::ro>;  // of a dtype that is looked at
using Out = Array<>;

inline void require(bool holds, const char* what) {
    if (!holds) throw nb::value_error(what);
}

template <class SomeArray>
int64_t size_of(const SomeArray& array) {
    return static_cast<int64_t>(array.size());
}

/// The elements, if they are of type T.
template <class T, class SomeArray>
auto data_of(const SomeArray& array) {
    using Element = std::conditional_t<std::is_same_v<SomeArray, In>, const T, T>;
    if (array.dtype() != nb::dtype<T>()) throw nb::type_error("arrays of unequal dtype");
    return static_cast<Element*>(array.data());
}

/// Calls f with a value of the dtype.
template <class F>
auto with_index(nb::dlpack::dtype dtype, const F& f) {
    if (dtype == nb::dtype<int32_t>()) return f(int32_t{});
    if (dtype == nb::dtype<int64_t>()) return f(int64_t{});
    throw nb::type_error("index arrays must be int32 or int64");
}
template <class F>
auto with_value(nb::dlpack::dtype dtype, const F& f) {
    if (dtype == nb::dtype<float>()) return f(float{});
    if (dtype == nb::dtype<double>()) return f(double{});
    throw nb::type_error("values must be float32 or float64");
}

inline Indices indices_of(const In& array) {
    return with_index(array.dtype(),
                      [&]<class T>(T) { return Indices(static_cast<const T*>(array.data())); });
}
inline OutIndices indices_of(const Out& array) {
    return with_index(array.dtype(),
                      [&]<class T>(T) { return OutIndices(static_cast<T*>(array.data())); });
}

/// Whether rows have as many values as the basis knows of, if it does.
inline bool have_known_length(const Basis& basis, const In& row_offsets) {
    const Indices offsets = indices_of(row_offsets);
    const int64_t n = std::ssize(basis.row_groups), n_rows = size_of(row_offsets) - 1;
    return n == 0 || offsets[n_rows] - offsets[0] == n * n_rows;
}

/// Calls f with the CSR matrix of these arrays.
template <class F>
auto with_csr(const In& row_offsets, const In& columns, const In& values, int64_t n_columns,
              const F& f) {
    require(row_offsets.size() > 0 && columns.size() == values.size(), "malformed CSR arrays");
    return with_value(values.dtype(), [&]<class Value>(Value) {
        return f(CsrView<Value>{size_of(row_offsets) - 1, n_columns, indices_of(row_offsets),
                                indices_of(columns), data_of<Value>(values)});
    });
}

/// Rising tuples, each padded with -1.
using Tuples = Table<const int64_t>;

inline TupleTable table_of(const Tuples& tuples) {
    return {tuples.data(), static_cast<int64_t>(tuples.shape(0)),
            static_cast<int64_t>(tuples.shape(1))};
}

}  // namespace polysparse
