// Rows as svmlight text, with the fewest digits that read back as the same values.
#pragma once

#include <cstdint>

#include "matrix/csr_view.hpp"

namespace polysparse {

// A space, an int64, a colon and a double; a label and the end of the line.
constexpr int64_t svmlight_bytes_per_value = 1 + 20 + 1 + 24;
constexpr int64_t svmlight_bytes_per_row = 24 + 1;

/// Writes all rows and returns the end of the text. Columns are numbered from `first_column`.
/// Without labels (null) every row has the label 0. `out` must have room for the bytes above.
template <class Value>
char* write_svmlight(const CsrView<Value>& x, const double* labels, int64_t first_column,
                     char* out);

}  // namespace polysparse
