#include "search/search.hpp"

#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <new>
#include <tuple>
#include <vector>

#include "bindings/arrays.hpp"
#include "bindings/module.hpp"
#include "bindings/signals.hpp"
#include "search/score_test.hpp"

namespace polysparse {
namespace {

/// What a signal handler or `progress` raised stops a search. `progress` is called a few times a
/// second, with the share of the work that is done.
class WatchedProgress {
  public:
    WatchedProgress(nb::callable progress, const std::atomic<double>& done)
        : progress_(progress.ptr()), done_(&done) {}

    bool operator()() {
        if (raised_ || signals_()) return true;
        const auto now = std::chrono::steady_clock::now();
        if (now - called_ < std::chrono::milliseconds(200)) return false;
        called_ = now;
        const WithGil gil;
        PyObject* const share = PyFloat_FromDouble(done_->load(std::memory_order_relaxed));
        PyObject* const result =
            share == nullptr ? nullptr : PyObject_CallFunctionObjArgs(progress_, share, nullptr);
        Py_XDECREF(share);
        Py_XDECREF(result);
        raised_ = result == nullptr;
        return raised_;
    }

  private:
    PyObject* progress_;  // the caller holds it
    const std::atomic<double>* done_;
    Signals signals_;
    std::chrono::steady_clock::time_point called_ = std::chrono::steady_clock::now();
    bool raised_ = false;
};

/// What the last search has found, the best first.
struct Found {
    std::vector<Candidate> candidates;

    int64_t size() const { return std::ssize(candidates); }
    void write(Array<int64_t> columns, Array<int64_t> counts, Array<int64_t> targets,
               Array<double> scores) const {
        require(size_of(columns) == size() && size_of(counts) == size() &&
                    size_of(targets) == size() && size_of(scores) == size(),
                "arrays of unequal length");
        for (int64_t i = 0; i < size(); ++i) {
            columns.data()[i] = candidates[i].column;
            counts.data()[i] = candidates[i].n_rows;
            targets.data()[i] = candidates[i].target;
            scores.data()[i] = candidates[i].score;
        }
    }
};

/// Rows and columns of a search, checked.
struct CheckedRows {
    SearchedColumns columns;
    SearchedRows rows;
};
CheckedRows check_rows(const Basis& basis, const In& row_offsets, const In& columns,
                       const Array<const double>& values, const Array<const int64_t>& features,
                       const Array<const uint8_t>& uses, const Array<const double>& weights) {
    const int64_t n_rows = size_of(row_offsets) - 1, n_columns = size_of(features);
    require(n_rows >= 0, "malformed CSR arrays");
    const Indices offsets = indices_of(row_offsets);
    const int64_t n_stored = offsets[n_rows] - offsets[0];
    constexpr int64_t limit = int64_t{1} << 31;
    require(offsets[0] >= 0 && n_stored >= 0 && offsets[n_rows] <= size_of(columns) &&
                n_stored < limit && n_columns < limit && n_rows < limit,
            "malformed row offsets");
    require(size_of(values) == 0 || size_of(values) == size_of(columns), "too few values");
    require(size_of(uses) == n_columns && (size_of(weights) == 0 || size_of(weights) == n_rows),
            "arrays of unequal length");
    require(basis.terms == nullptr, "cannot be searched");
    for (int64_t j = 0; j < n_columns; ++j)
        require(features.data()[j] >= 0 && features.data()[j] < basis.n_features,
                "features are not of the basis");
    return {{n_columns, features.data(), reinterpret_cast<const Use*>(uses.data())},
            {n_rows, offsets, indices_of(columns), size_of(values) == 0 ? nullptr : values.data()}};
}

/// Null if there are none.
const double* data_or_null(const Array<const double>& weights) {
    return size_of(weights) == 0 ? nullptr : weights.data();
}

/// False if too many columns tie, or memory ran out.
bool search_into(Found& found, const Basis& basis, In row_offsets, In columns,
                 Array<const double> values, Array<const int64_t> features,
                 Array<const uint8_t> uses, Table<const double> targets,
                 Array<const double> weights, std::tuple<double, double> total_and_largest,
                 int64_t score, bool is_signed, bool needs_among, int64_t k, int64_t least,
                 int64_t most, int64_t n_threads, nb::callable progress) {
    require(n_threads >= 1 && least >= 1 && k >= 1 && score >= 0 && score <= 2, "out of range");
    const auto [searched, rows] =
        check_rows(basis, row_offsets, columns, values, features, uses, weights);
    require(static_cast<int64_t>(targets.shape(0)) == rows.n && targets.shape(1) >= 1,
            "arrays of unequal length");
    const ScoredTargets scored{static_cast<Score>(score),
                               static_cast<int64_t>(targets.shape(1)),
                               targets.data(),
                               data_or_null(weights),
                               std::get<0>(total_and_largest),
                               std::get<1>(total_and_largest),
                               is_signed};
    std::atomic<double> done{0};
    ThreadPool pool;
    const auto work = [&](const StopRequest& should_stop) {
        const Searching how{k, most, needs_among, {least, n_threads, &should_stop, &done}};
        return search(basis, searched, rows, scored, how, found.candidates);
    };
    return run_without_gil(Searched::stopped, pool, work, WatchedProgress(progress, done)) ==
           Searched::all;
}

// ------------------------------------------------------------------------------------ score tests

/// A score test, with the arrays that it was made of checked.
std::unique_ptr<ScoreTest> make_test(const Basis& basis, In row_offsets, In columns,
                                     Array<const double> values, Array<const int64_t> features,
                                     Array<const uint8_t> uses, Array<const double> weights,
                                     double least_information, int64_t least, int64_t n_threads) {
    require(n_threads >= 1 && least >= 2 && basis.highest <= most_members, "out of range");
    const auto [searched, rows] =
        check_rows(basis, row_offsets, columns, values, features, uses, weights);
    ThreadPool pool;
    std::unique_ptr<ScoreTest> test;
    const auto work = [&](const StopRequest& should_stop) {
        try {
            test = std::make_unique<ScoreTest>(basis, searched, rows, data_or_null(weights),
                                               least_information, least, n_threads, should_stop);
        } catch (const Stopped&) {
            return Searched::stopped;
        } catch (const std::bad_alloc&) {
            return Searched::full;
        }
        return test->add_pairs(n_threads, should_stop);
    };
    if (run_without_gil(Searched::stopped, pool, work) != Searched::all) throw std::bad_alloc();
    return test;
}

/// How many interactions are tested, or -1 if memory ran out.
int64_t find_leaders(const ScoreTest& test, Table<const double> residuals, int64_t k, int64_t most,
                     int64_t n_threads, nb::callable progress, Found& found) {
    require(static_cast<int64_t>(residuals.shape(0)) == test.n_rows() && residuals.shape(1) == 1 &&
                k >= 1 && n_threads >= 1,
            "arrays of unequal length");
    std::atomic<double> done{0};
    int64_t n_tested = 0;
    ThreadPool pool;
    const auto work = [&](const StopRequest& should_stop) {
        return test.find_leaders({residuals.data(), 1}, k, most, n_threads, should_stop, done,
                                 found.candidates, n_tested);
    };
    const Searched ended =
        run_without_gil(Searched::stopped, pool, work, WatchedProgress(progress, done));
    return ended == Searched::all ? n_tested : -1;
}

/// False if memory ran out.
bool find_maxima(const ScoreTest& test, Table<const double> residuals,
                 Array<const int64_t> excluded, int64_t n_threads, nb::callable progress,
                 Array<double> maxima) {
    const auto n = static_cast<int64_t>(residuals.shape(1));
    require(static_cast<int64_t>(residuals.shape(0)) == test.n_rows() && n >= 1 &&
                size_of(maxima) == n && n_threads >= 1,
            "arrays of unequal length");
    const std::vector<int64_t> sorted(excluded.data(), excluded.data() + size_of(excluded));
    require(std::ranges::is_sorted(sorted), "columns are not sorted");
    std::atomic<double> done{0};
    ThreadPool pool;
    const auto work = [&](const StopRequest& should_stop) {
        return test.find_maxima({residuals.data(), n}, sorted, n_threads, should_stop, done,
                                maxima.data());
    };
    return run_without_gil(Searched::stopped, pool, work, WatchedProgress(progress, done)) ==
           Searched::all;
}

}  // namespace

void bind_search(nb::module_& m) {
    nb::class_<Found>(m, "Found", "The columns with the largest scores, the largest first.")
        .def(nb::init<>())
        .def_prop_ro("size", &Found::size)
        .def("search", &search_into, nb::arg("basis"), nb::arg("row_offsets").noconvert(),
             nb::arg("columns").noconvert(), nb::arg("values").noconvert(),
             nb::arg("features").noconvert(), nb::arg("uses").noconvert(),
             nb::arg("targets").noconvert(), nb::arg("weights").noconvert(),
             nb::arg("total_and_largest"), nb::arg("score"), nb::arg("is_signed"),
             nb::arg("needs_among"), nb::arg("k"), nb::arg("least"), nb::arg("most"),
             nb::arg("n_threads"), nb::arg("progress"))
        .def("write", &Found::write, nb::arg("columns").noconvert(), nb::arg("counts").noconvert(),
             nb::arg("targets").noconvert(), nb::arg("scores").noconvert());
    nb::class_<ScoreTest>(m, "ScoreTest", "Score tests of all interactions of some rows.")
        .def(nb::new_(&make_test), nb::arg("basis"), nb::arg("row_offsets").noconvert(),
             nb::arg("columns").noconvert(), nb::arg("values").noconvert(),
             nb::arg("features").noconvert(), nb::arg("uses").noconvert(),
             nb::arg("weights").noconvert(), nb::arg("least_information"), nb::arg("least"),
             nb::arg("n_threads"))
        .def("find_leaders", &find_leaders, nb::arg("residuals").noconvert(), nb::arg("k"),
             nb::arg("most"), nb::arg("n_threads"), nb::arg("progress"), nb::arg("found"))
        .def("find_maxima", &find_maxima, nb::arg("residuals").noconvert(),
             nb::arg("excluded").noconvert(), nb::arg("n_threads"), nb::arg("progress"),
             nb::arg("maxima").noconvert());
}

}  // namespace polysparse
