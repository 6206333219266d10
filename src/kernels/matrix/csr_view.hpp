// A CSR matrix that the caller owns. Whether an index is int32 or int64 is known at run time, so
// that only the loops that need to know are compiled for both.
#pragma once

#include <cstdint>
#include <type_traits>

#include "matrix/slots.hpp"
#include "platform/processors.hpp"

namespace polysparse {

/// An array of int32 or int64 that somebody else owns.
template <class Void>
class AnyIndices {
    template <class T>
    using Element = std::conditional_t<std::is_const_v<Void>, const T, T>;

  public:
    AnyIndices(Element<int32_t>* data) : data_(data), is_wide_(false) {}
    AnyIndices(Element<int64_t>* data) : data_(data), is_wide_(true) {}

    int64_t operator[](int64_t i) const {
        return is_wide_ ? as<int64_t>()[i] : int64_t{as<int32_t>()[i]};
    }
    void set(int64_t i, int64_t value) const {
        if (is_wide_)
            as<int64_t>()[i] = value;
        else
            as<int32_t>()[i] = static_cast<int32_t>(value);
    }

    /// The elements from number n on.
    AnyIndices operator+(int64_t n) const {
        return visit([n](auto* data) { return AnyIndices(data + n); });
    }

    /// Needs: T is the type of the elements.
    template <class T>
    Element<T>* as() const {
        return static_cast<Element<T>*>(data_);
    }

    /// Calls f with a typed pointer to the array.
    template <class F>
    auto visit(const F& f) const {
        return is_wide_ ? f(as<int64_t>()) : f(as<int32_t>());
    }

    /// Copies elements [begin, begin + n).
    template <class T>
    POLYSPARSE_INLINE void copy(int64_t begin, int64_t n, T* __restrict to) const {
        if (is_wide_)
            for (int64_t i = 0; i < n; ++i) to[i] = static_cast<T>(as<int64_t>()[begin + i]);
        else
            for (int64_t i = 0; i < n; ++i) to[i] = static_cast<T>(as<int32_t>()[begin + i]);
    }

  private:
    Void* data_;
    bool is_wide_;
};

using Indices = AnyIndices<const void>;
using OutIndices = AnyIndices<void>;

/// Row r is columns[row_offsets[r] .. row_offsets[r + 1]) and the values beside them.
template <class Value>
struct CsrView {
    int64_t n_rows;
    int64_t n_columns;
    Indices row_offsets;
    Indices columns;
    const Value* values;
};

/// Rows [first, last).
template <class Value>
CsrView<Value> rows_of(const CsrView<Value>& x, int64_t first, int64_t last) {
    return {last - first, x.n_columns, x.row_offsets + first, x.columns, x.values};
}

/// Whether offsets begin with 0, never fall, and end with n_stored.
inline bool are_whole_offsets(const Indices& row_offsets, int64_t n_rows, int64_t n_stored) {
    int64_t end = 0;
    for (int64_t r = 0; r <= n_rows; ++r) {
        if (row_offsets[r] < end || (r == 0 && row_offsets[0] != 0)) return false;
        end = row_offsets[r];
    }
    return end == n_stored;
}

/// One row, its columns of a known type.
template <class Index, class Value>
struct Row {
    ConstSlots<Index, Value> begin;
    int64_t n;
    ConstSlots<Index, Value> end() const { return begin + n; }
    Value scale(int64_t a) const { return begin.values[a]; }
    int64_t n_leads() const { return n; }

    static constexpr bool all_lead = true;
};

/// The part of a row from one of its values to the end, of whose tuples only those led by the first
/// few values are wanted.
template <class Index, class Value>
struct LedRow : Row<Index, Value> {
    int64_t leads;
    int64_t before = 0;  // values of the row ahead of these
    int64_t n_leads() const { return leads; }

    static constexpr bool all_lead = false;
};

/// Needs: Index is the type of the columns.
template <class Index, class Value>
Row<Index, Value> row_of(const CsrView<Value>& x, int64_t r) {
    const int64_t start = x.row_offsets[r];
    return {{x.columns.template as<Index>() + start, x.values + start},
            x.row_offsets[r + 1] - start};
}

}  // namespace polysparse
