#include "expand/dense.hpp"

#include <algorithm>
#include <vector>

#include "expand/layout.hpp"
#include "expand/row_shape.hpp"
#include "expand/walk.hpp"
#include "platform/processors.hpp"

namespace polysparse {
namespace {

/// Dense tuples need no keys: their place says which they are.
struct NoKeys {
    static constexpr int64_t first_stored = 1;
    struct Lead {};

    template <class Degree>
    auto leads(Degree) const {
        return [](int64_t) { return Lead{}; };
    }
    template <class Row, class Place>
    Place first_end(const Row&, Place to, int64_t n) const {
        return to + n;
    }
};

/// One row.
template <class Value>
struct DenseRow {
    const Basis& basis;
    const Value* values;
    int64_t stride;
    Value scale(int64_t a) const { return values[a * stride]; }

    static constexpr bool all_lead = true;
};

template <class Value>
RowShape shape_of(const DenseRow<Value>& row) {
    return dense_shape(row.basis);
}

/// Sink: an output row, contiguous.
template <class Value>
struct ToRow {
    Value* out;

    static constexpr bool holds_degrees = true;

    void bias() const { *out = 1; }

    template <class Role>
    void first(Role, const DenseRow<Value>& row, NoKeys, int64_t from, Value* to) const {
        for (int64_t j = from; j < row.basis.n_features; ++j) *to++ = row.scale(j);
    }
    template <class Role>
    POLYSPARSE_INLINE void run(Role, const Value* __restrict tail, int64_t n, NoKeys::Lead,
                               Value scale, Value* __restrict to) const {
        for (int64_t t = 0; t < n; ++t) to[t] = tail[t] * scale;
    }
};

/// Columns of `height` rows, each contiguous.
template <class Value>
struct Columns {
    Value* values;
    int64_t stride;
    Columns operator+(int64_t n) const { return {values + n * stride, stride}; }
    Columns operator-(int64_t n) const { return {values - n * stride, stride}; }
};

/// One feature of a panel of rows.
template <class Value>
struct Feature {
    const Value* values;
    int64_t stride;
    Value operator[](int64_t r) const { return values[r * stride]; }
};

/// Several rows at once.
template <class Value>
struct DensePanel {
    const Basis& basis;
    DenseView<const Value> x;
    int64_t first;
    Feature<Value> scale(int64_t a) const { return {x.at(first, a), x.row_stride}; }

    static constexpr bool all_lead = true;
};

template <class Value>
RowShape shape_of(const DensePanel<Value>& panel) {
    return dense_shape(panel.basis);
}

/// Sink: a panel of output columns.
template <class Value>
struct ToColumns {
    Value* bias_column;
    int64_t height;

    static constexpr bool holds_degrees = true;

    void bias() const { std::fill_n(bias_column, height, Value(1)); }

    template <class Role>
    void first(Role, const DensePanel<Value>& panel, NoKeys, int64_t from,
               Columns<Value> to) const {
        for (int64_t j = from; j < panel.basis.n_features; ++j) {
            const Feature<Value> feature = panel.scale(j);
            for (int64_t r = 0; r < height; ++r) to.values[r] = feature[r];
            to = to + 1;
        }
    }
    template <class Role>
    POLYSPARSE_INLINE void run(Role, Columns<Value> tail, int64_t n, NoKeys::Lead,
                               Feature<Value> scale, Columns<Value> to) const {
        for (int64_t t = 0; t < n; ++t) {
            const Value* __restrict from = (tail + t).values;
            Value* __restrict out = (to + t).values;
            for (int64_t r = 0; r < height; ++r) out[r] = from[r] * scale[r];
        }
    }
};

/// Rows [first, last) of an output whose rows are contiguous.
template <class Value>
POLYSPARSE_PER_PROCESSOR void fill_dense_rows(const Basis& basis, DenseView<const Value> x,
                                              DenseView<Value> out, int64_t first, int64_t last,
                                              Value* scratch, BufferSizes buffers) {
    for (int64_t r = first; r < last; ++r) {
        const DenseRow<Value> row{basis, x.at(r, 0), x.column_stride};
        const ToRow<Value> sink{out.at(r, 0)};
        const Layout<Value*> layout{first_held<ToRow<Value>>(basis),
                                    out.at(r, 0) + basis.include_bias, scratch,
                                    scratch + buffers.even};
        walk_row(basis, row, NoKeys{}, layout, sink);
    }
}

/// Rows [first, last) of an output whose columns are contiguous.
template <class Value>
POLYSPARSE_PER_PROCESSOR void fill_dense_columns(const Basis& basis, DenseView<const Value> x,
                                                 DenseView<Value> out, int64_t first, int64_t last,
                                                 Value* scratch, BufferSizes buffers) {
    const int64_t height = last - first;
    const DensePanel<Value> panel{basis, x, first};
    const ToColumns<Value> sink{out.at(first, 0), height};
    const Columns<Value> even{scratch, height};
    const Columns<Value> held{out.at(first, basis.include_bias), out.column_stride};
    const Layout<Columns<Value>> layout{first_held<ToColumns<Value>>(basis), held, even,
                                        even + buffers.even};
    walk_row(basis, panel, NoKeys{}, layout, sink);
}

}  // namespace

template <class Value>
bool fill_dense(const Basis& basis, DenseView<const Value> x, DenseView<Value> out, int64_t n_rows,
                int64_t n_threads, const StopRequest& should_stop) {
    const bool by_rows = out.column_stride == 1;
    constexpr int64_t share = int64_t{1} << 18;  // values that one task fills, about
    const int64_t rows_of_a_share = share / std::max<int64_t>(basis.n_columns(), 1) + 1;
    const int64_t height = by_rows ? rows_of_a_share : std::clamp<int64_t>(rows_of_a_share, 8, 512);
    const BufferSizes buffers = buffers_for<NoKeys, ToRow<Value>>(basis, dense_shape(basis));
    const int64_t scratch_rows = by_rows ? 1 : std::min(height, n_rows);
    std::vector<std::vector<Value>> scratch(n_threads);
    for (auto& one : scratch) one.resize(buffers.total() * scratch_rows);

    const auto fill_task = [&](int64_t worker, int64_t task) {
        const int64_t first = task * height, last = std::min(first + height, n_rows);
        const auto fill_panel = by_rows ? &fill_dense_rows<Value> : &fill_dense_columns<Value>;
        fill_panel(basis, x, out, first, last, scratch[worker].data(), buffers);
    };
    return run_tasks((n_rows + height - 1) / height, n_threads, fill_task, should_stop);
}

template bool fill_dense(const Basis&, DenseView<const float>, DenseView<float>, int64_t, int64_t,
                         const StopRequest&);
template bool fill_dense(const Basis&, DenseView<const double>, DenseView<double>, int64_t, int64_t,
                         const StopRequest&);

}  // namespace polysparse
