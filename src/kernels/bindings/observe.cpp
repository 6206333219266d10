#include "observe/observe.hpp"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>

#include <tuple>
#include <utility>

#include "bindings/arrays.hpp"
#include "bindings/gil.hpp"
#include "bindings/module.hpp"
#include "bindings/signals.hpp"
#include "observe/tally.hpp"

namespace polysparse {
namespace {

/// False if more than `most` columns were found, or memory ran out: the tally is as it was.
bool observe_rows(Tally<>& tally, const Basis& basis, In row_offsets, In columns, int64_t least,
                  int64_t most, int64_t n_threads, int64_t task) {
    require(row_offsets.size() > 0 && n_threads >= 1 && least >= 1, "malformed CSR arrays");
    const CsrPattern rows{indices_of(row_offsets), size_of(row_offsets) - 1, indices_of(columns)};
    require(rows.can_be_observed(size_of(columns)), "malformed row offsets");
    return run_without_gil(Observed::stopped, [&](const StopRequest& should_stop) {
               return observe_into(tally, basis, rows, least, most, n_threads, task, should_stop);
           }) == Observed::all;
}

void add(Tally<>& tally, Array<const int64_t> columns, Array<const int64_t> counts) {
    require(columns.size() == counts.size() && is_rising(columns.data(), size_of(columns)),
            "columns must rise");
    const WithoutGil released;
    tally.add_counts(columns.data(), counts.data(), size_of(columns));
}

std::tuple<uint64_t, int64_t, int64_t> choose(const Tally<>& tally, uint64_t min_count,
                                              int64_t max_columns, int64_t n_threads) {
    const Kept kept = tally.choose(min_count, max_columns, n_threads);
    return {kept.least, kept.n_ties, kept.n_columns};
}

/// The arrays are of the size that `choose` returned.
void write(const Tally<>& tally, uint64_t least, int64_t n_ties, Array<int64_t> columns,
           Array<int64_t> counts, int64_t n_threads) {
    require(columns.size() == counts.size() && n_threads >= 1, "arrays of unequal length");
    const WithoutGil released;
    tally.write({least, n_ties, size_of(columns)}, columns.data(), counts.data(), n_threads);
}

}  // namespace

void bind_observe(nb::module_& m) {
    using Alone = nb::call_guard<WithoutGil>;
    nb::class_<Tally<>>(m, "Tally", "In how many rows each column of an expansion occurs.")
        .def(nb::init<>())
        .def_prop_ro("n_entries", &Tally<>::n_entries)
        .def("observe", &observe_rows, nb::arg("basis"), nb::arg("row_offsets").noconvert(),
             nb::arg("columns").noconvert(), nb::arg("least"), nb::arg("most"),
             nb::arg("n_threads"), nb::arg("task"))
        .def("add", &add, nb::arg("columns").noconvert(), nb::arg("counts").noconvert())
        .def("add_all_of", &Tally<>::add_all_of, nb::arg("other"), Alone())
        .def(
            "take_all_of",
            [](Tally<>& tally, Tally<>& other) { tally.take_all_of(std::move(other)); },
            nb::arg("other"), Alone())
        .def("settle", &Tally<>::settle, Alone())
        .def("choose", &choose, nb::arg("min_count"), nb::arg("max_columns"), nb::arg("n_threads"),
             Alone())
        .def("write", &write, nb::arg("least"), nb::arg("n_ties"), nb::arg("columns").noconvert(),
             nb::arg("counts").noconvert(), nb::arg("n_threads"));
    m.def("observing_bytes", &observing_bytes, nb::arg("basis"), nb::arg("index_size"),
          nb::arg("n_threads"));
}

}  // namespace polysparse
