#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <tuple>
#include <vector>

#include "bindings/arrays.hpp"
#include "bindings/module.hpp"
#include "bindings/signals.hpp"
#include "online/ftrl.hpp"
#include "online/scale_blocks.hpp"
#include "platform/thread_pool.hpp"

namespace polysparse {
namespace {

using Floats = Array<float>;
using InFloats = Array<const float>;
using Doubles = Array<double>;
using InDoubles = Array<const double>;

/// Learns from rows, or scores them. Threads wait for the next rows.
class OnlineLearner {
  public:
    OnlineLearner(int64_t n_columns, int64_t k, bool has_intercept, int64_t loss, float l1,
                  float l2)
        : columns_{nullptr, nullptr, n_columns},
          table_{k, has_intercept, static_cast<OnlineLoss>(loss), l1, l2} {
        require(n_columns >= 0 && n_columns < INT32_MAX && k >= 1 && loss >= 0 && loss <= 3,
                "malformed learner");
    }

    /// Rows are to be expanded from now on. Otherwise they are expanded already.
    void set_hasher(const Basis& basis, const Hasher& hasher) {
        columns_ = {&basis, &hasher, static_cast<int64_t>(hasher.n_columns)};
    }

    int64_t learn(In row_offsets, In columns, In values, InDoubles targets, InDoubles weights,
                  Array<const int64_t> ends, std::vector<Floats> states, InFloats rates,
                  InFloats betas, Doubles losses, Doubles row_losses, Doubles scores,
                  Array<int64_t> n_done, int64_t n_threads) {
        const CsrView<float> x = rows_of(row_offsets, columns, values);
        const int64_t n_blocks = size_of(ends), n = std::ssize(states);
        require(size_of(targets) == x.n_rows && size_of(weights) == x.n_rows &&
                    size_of(row_losses) == x.n_rows && size_of(scores) == x.n_rows * table_.k &&
                    size_of(rates) == n_blocks * n && size_of(betas) == n_blocks && n >= 1 &&
                    size_of(losses) == n && size_of(n_done) == 1 && n_threads >= 1,
                "arrays of unequal size");
        int64_t end = 0;
        for (int64_t b = 0; b < n_blocks; end = ends.data()[b++])
            require(ends.data()[b] > end && ends.data()[b] <= x.n_rows, "malformed blocks");
        if (table_.loss == OnlineLoss::classes)
            for (int64_t r = 0; r < x.n_rows; ++r)
                require(targets.data()[r] >= 0 && targets.data()[r] < table_.k, "no such class");
        std::vector<float*> tables;
        for (const Floats& state : states) {
            require_table(state);
            tables.push_back(state.data());
        }
        const OnlineRows rows{x, targets.data(), weights.data(), n_blocks, ends.data()};
        const Learners learners{n, tables.data(), rates.data(), betas.data(), losses.data()};
        const Progress progress{row_losses.data(), scores.data(), n_done.data()};
        run_without_gil(false, pool_, [&](const StopRequest& should_stop) {
            return polysparse::learn(columns_, table_, rows, learners, progress, n_threads,
                                     should_stop);
        });
        return n_blocks;
    }

    void score(In row_offsets, In columns, In values, InFloats state, float rate, float beta,
               Doubles scores, int64_t n_threads) {
        const CsrView<float> x = rows_of(row_offsets, columns, values);
        require_table(state);
        require(size_of(scores) == x.n_rows * table_.k && n_threads >= 1, "arrays of unequal size");
        run_without_gil(false, pool_, [&](const StopRequest& should_stop) {
            return polysparse::score(columns_, table_, x, state.data(), rate, beta, scores.data(),
                                     n_threads, should_stop);
        });
    }

  private:
    CsrView<float> rows_of(const In& row_offsets, const In& columns, const In& values) const {
        require(row_offsets.size() > 0 && columns.size() == values.size(), "malformed CSR arrays");
        if (columns_.basis != nullptr)
            require(have_known_length(*columns_.basis, row_offsets), "malformed CSR arrays");
        const int64_t n_columns =
            columns_.basis == nullptr ? columns_.n_columns : columns_.basis->n_features;
        return {size_of(row_offsets) - 1, n_columns, indices_of(row_offsets), indices_of(columns),
                data_of<float>(values)};
    }

    template <class State>
    void require_table(const State& state) const {
        require(size_of(state) == 2 * table_.k * (columns_.n_columns + 1),
                "the state is not of the right size");
    }

    OnlineColumns columns_;
    FtrlTable table_;
    ThreadPool pool_;
};

/// Returns the next block, and the number of changes.
std::tuple<int64_t, int64_t> py_scale_blocks(Array<const int64_t> starts, InDoubles limits,
                                             In columns, InDoubles values, int64_t first,
                                             Doubles scales, Array<int64_t> features,
                                             Doubles before, Floats out) {
    const int64_t n = size_of(limits);
    require(size_of(starts) == n + 1 && columns.size() == values.size() &&
                out.size() == values.size() && features.size() == before.size() && first >= 0,
            "arrays of unequal size");
    int64_t end = 0, most = 0;
    for (int64_t b = 0; b <= n; end = starts.data()[b++]) {
        require(starts.data()[b] >= end, "malformed blocks");
        if (b > 0) most = std::max(most, starts.data()[b] - end);
    }
    require(end <= size_of(values) && most <= size_of(before), "malformed blocks");
    const WithoutGil released;
    const ValueBlocks blocks{n, starts.data(), limits.data(), indices_of(columns), values.data()};
    ScaleChanges changes{0, size_of(before), features.data(), before.data()};
    const int64_t next =
        scale_blocks(blocks, first, {size_of(scales), scales.data()}, changes, out.data());
    return {next, changes.n};
}

}  // namespace

void bind_online(nb::module_& m) {
    m.def("scale_blocks", &py_scale_blocks, nb::arg("starts").noconvert(),
          nb::arg("limits").noconvert(), nb::arg("columns").noconvert(),
          nb::arg("values").noconvert(), nb::arg("first"), nb::arg("scales").noconvert(),
          nb::arg("features").noconvert(), nb::arg("before").noconvert(),
          nb::arg("out").noconvert());
    nb::class_<OnlineLearner>(m, "OnlineLearner", "Learns from rows with FTRL-proximal.")
        .def(nb::init<int64_t, int64_t, bool, int64_t, float, float>(), nb::arg("n_columns"),
             nb::arg("k"), nb::arg("has_intercept"), nb::arg("loss"), nb::arg("l1"), nb::arg("l2"))
        .def("set_hasher", &OnlineLearner::set_hasher, nb::keep_alive<1, 2>(),
             nb::keep_alive<1, 3>(), nb::arg("basis"), nb::arg("hasher"))
        .def("learn", &OnlineLearner::learn, nb::arg("row_offsets").noconvert(),
             nb::arg("columns").noconvert(), nb::arg("values").noconvert(),
             nb::arg("targets").noconvert(), nb::arg("weights").noconvert(),
             nb::arg("ends").noconvert(), nb::arg("states").noconvert(),
             nb::arg("rates").noconvert(), nb::arg("betas").noconvert(),
             nb::arg("losses").noconvert(), nb::arg("row_losses").noconvert(),
             nb::arg("scores").noconvert(), nb::arg("n_done").noconvert(), nb::arg("n_threads"))
        .def("score", &OnlineLearner::score, nb::arg("row_offsets").noconvert(),
             nb::arg("columns").noconvert(), nb::arg("values").noconvert(),
             nb::arg("state").noconvert(), nb::arg("rate"), nb::arg("beta"),
             nb::arg("scores").noconvert(), nb::arg("n_threads"));
}

}  // namespace polysparse
