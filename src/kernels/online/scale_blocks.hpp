// Values of features, divided by scales that grow from block to block.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "matrix/csr_view.hpp"

namespace polysparse {

/// Values of blocks: those of block b begin at starts[b], and end where the next block begins. In
/// it, a value may be up to limits[b] times as large as the scale of its feature.
struct ValueBlocks {
    int64_t n;
    const int64_t* starts;
    const double* limits;
    Indices columns;
    const double* values;
};

/// The scale of each feature: 0 before it occurs.
struct Scales {
    int64_t n_features;
    double* scales;
};

/// Scales that grew, and what they were before, in order.
struct ScaleChanges {
    int64_t n, capacity;
    int64_t* features;
    double* before;

    bool has_room(int64_t n_more) const { return n + n_more <= capacity; }
};

/// Writes the values of a block, divided by the scales of their features. Returns whether all are
/// within the limit.
template <class Index>
bool divide_block(const Index* columns, const double* values, int64_t n, double limit,
                  const Scales& scales, float* out) {
    const auto last = static_cast<uint64_t>(scales.n_features - 1);
    bool is_beyond = false;
    for (int64_t i = 0; i < n; ++i) {
        const auto column = std::min(static_cast<uint64_t>(columns[i]), last);  // X may change
        const double scale = scales.scales[column];
        is_beyond |= std::abs(values[i]) > limit * scale;
        out[i] = static_cast<float>(values[i] / scale);
    }
    return !is_beyond;
}

/// Lets the scales of features grow whose values are beyond the limit. A feature that occurs for
/// the first time gets its largest value, another one its largest value divided by the limit.
/// Needs: changes has room for n.
template <class Index>
void grow_scales(const Index* columns, const double* values, int64_t n, double limit,
                 const Scales& scales, ScaleChanges& changes) {
    const auto last = static_cast<uint64_t>(scales.n_features - 1);
    const int64_t begin = changes.n;
    for (int64_t i = 0; i < n; ++i) {
        const auto column = std::min(static_cast<uint64_t>(columns[i]), last);
        const double size = std::abs(values[i]), scale = scales.scales[column];
        if (!(size > limit * scale)) continue;
        changes.features[changes.n] = static_cast<int64_t>(column);
        changes.before[changes.n++] = scale > 0 ? size / limit : size;  // what it becomes
    }
    for (int64_t c = begin; c < changes.n; ++c) {
        double& scale = scales.scales[changes.features[c]];
        const double grown = std::max(scale, changes.before[c]);
        changes.before[c] = scale;
        scale = grown;
    }
}

/// Writes the values of blocks from the first one on, divided by the scales of their features,
/// which grow first. Returns the block at which changes have no more room, or the number of blocks.
/// Needs: an empty list of changes has room for all values of a block.
inline int64_t scale_blocks(const ValueBlocks& blocks, int64_t first, const Scales& scales,
                            ScaleChanges& changes, float* out) {
    if (scales.n_features == 0) return blocks.n;
    return blocks.columns.visit([&](const auto* columns) {
        for (int64_t b = first; b < blocks.n; ++b) {
            const int64_t begin = blocks.starts[b], n = blocks.starts[b + 1] - begin;
            const double limit = blocks.limits[b];
            const auto* const own = columns + begin;
            const double* const values = blocks.values + begin;
            if (divide_block(own, values, n, limit, scales, out + begin)) continue;
            if (!changes.has_room(n)) return b;
            grow_scales(own, values, n, limit, scales, changes);
            divide_block(own, values, n, limit, scales, out + begin);
        }
        return blocks.n;
    });
}

}  // namespace polysparse
