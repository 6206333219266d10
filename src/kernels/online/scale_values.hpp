// Values of features, divided by the largest ones that were seen.
#pragma once

#include <cmath>
#include <cstdint>

#include "matrix/csr_view.hpp"

namespace polysparse {

/// Writes n values, divided by the scales of their features. A feature whose scale is 0 has not
/// occurred before: its scale becomes the size of this value. Columns that are not below n_features
/// are left out.
inline void scale_values(int64_t n, const Indices& columns, const double* values,
                         int64_t n_features, double* scales, float* out) {
    columns.visit([&](const auto* own) {
        for (int64_t i = 0; i < n; ++i) {
            const auto column = static_cast<int64_t>(own[i]);
            if (column < 0 || column >= n_features) continue;  // X has changed meanwhile
            double& scale = scales[column];
            if (scale == 0) scale = std::abs(values[i]);
            out[i] = static_cast<float>(values[i] / scale);
        }
    });
}

}  // namespace polysparse
