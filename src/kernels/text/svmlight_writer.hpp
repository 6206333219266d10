// Rows as svmlight text, with the shortest digits that bring every value back.
#pragma once

#include <charconv>
#include <cstdint>

#include "matrix/csr_view.hpp"

namespace polysparse {

// A space, an int64, a colon and a double; a label and the line's end.
constexpr int64_t svmlight_bytes_per_value = 1 + 20 + 1 + 24;
constexpr int64_t svmlight_bytes_per_row = 24 + 1;

template <class Number>
char* write_number(char* to, Number number) {
    return std::to_chars(to, to + 24, number).ptr;
}

/// Writes all rows and returns the end of the text. Columns are numbered from `first_column`;
/// without labels (null) every row has the label 0. `out` must have room for the bytes above.
template <class Offset, class Index, class Value>
char* write_svmlight(const CsrView<Offset, Index, Value>& x, const double* labels,
                     int64_t first_column, char* out) {
    for (int64_t r = 0; r < x.n_rows; ++r) {
        out = write_number(out, labels == nullptr ? 0.0 : labels[r]);
        for (int64_t t = x.row_offsets[r]; t < x.row_offsets[r + 1]; ++t) {
            *out++ = ' ';
            out = write_number(out, static_cast<int64_t>(x.columns[t]) + first_column);
            *out++ = ':';
            out = write_number(out, x.values[t]);
        }
        *out++ = '\n';
    }
    return out;
}

}  // namespace polysparse
