// The one file that knows Python: which array is which, the dtype table, the GIL, exceptions.
// Every argument was checked by the Python side; what is asserted here guards memory, not users.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "basis/simplex.hpp"
#include "expand/dense.hpp"
#include "expand/fill.hpp"
#include "expand/sizes.hpp"
#include "matrix/csr_view.hpp"
#include "observe/observe.hpp"
#include "observe/tally.hpp"
#include "select/append_rows.hpp"
#include "select/hash.hpp"
#include "select/hashed_row.hpp"
#include "select/lookup.hpp"
#include "text/svmlight_reader.hpp"
#include "text/svmlight_writer.hpp"

namespace nb = nanobind;
using namespace polysparse;

namespace {

using In = nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Out = nb::ndarray<nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Tuples = nb::ndarray<const int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using OutTuples = nb::ndarray<int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Columns = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using OutColumns = nb::ndarray<int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using OutDoubles = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Doubles = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using OutBytes = nb::ndarray<uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Text = nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

/// Calls f with a value of the array's element type.
template <class F>
auto with_index(nb::dlpack::dtype dtype, F&& f) {
    if (dtype == nb::dtype<int32_t>()) return f(int32_t{});
    if (dtype == nb::dtype<int64_t>()) return f(int64_t{});
    throw nb::type_error("index arrays must be int32 or int64");
}
template <class F>
auto with_value(nb::dlpack::dtype dtype, F&& f) {
    if (dtype == nb::dtype<float>()) return f(float{});
    if (dtype == nb::dtype<double>()) return f(double{});
    throw nb::type_error("values must be float32 or float64");
}

template <class T, class Array>
auto data_of(const Array& array) {
    if (array.dtype() != nb::dtype<T>()) throw nb::type_error("arrays of unequal dtype");
    return static_cast<std::conditional_t<std::is_same_v<Array, In>, const T*, T*>>(array.data());
}

void require(bool holds, const char* what) {
    if (!holds) throw nb::value_error(what);
}

/// Calls f with the CSR matrix of these arrays.
template <class F>
auto with_csr(const In& row_offsets, const In& columns, const In& values, int64_t n_columns,
              F&& f) {
    require(row_offsets.size() > 0 && columns.size() == values.size(), "malformed CSR arrays");
    return with_index(row_offsets.dtype(), [&](auto offset) {
        return with_index(columns.dtype(), [&](auto index) {
            return with_value(values.dtype(), [&](auto value) {
                using Offset = decltype(offset);
                using Index = decltype(index);
                using Value = decltype(value);
                return f(CsrView<Offset, Index, Value>{
                    static_cast<int64_t>(row_offsets.size()) - 1, n_columns,
                    data_of<Offset>(row_offsets), data_of<Index>(columns), data_of<Value>(values)});
            });
        });
    });
}

/// Asks Python, a few times a second, whether a signal handler raised. To be called without the
/// GIL by the thread that entered the kernel.
class Signals {
  public:
    bool operator()() {
        const auto now = std::chrono::steady_clock::now();
        if (raised_ || now - asked_ < std::chrono::milliseconds(50)) return raised_;
        asked_ = now;
        nb::gil_scoped_acquire gil;
        raised_ = PyErr_CheckSignals() != 0;
        return raised_;
    }

  private:
    std::chrono::steady_clock::time_point asked_ = std::chrono::steady_clock::now();
    bool raised_ = false;
};

/// Runs work(signals) without the GIL; if it was stopped, raises what the signal handler raised.
template <class Work>
void run_without_gil(const Work& work) {
    bool whole;
    {
        Signals signals;
        nb::gil_scoped_release release;
        whole = work(signals);
    }
    if (!whole) throw nb::python_error();
}

std::tuple<CsrFault, int64_t, bool, int64_t> py_inspect(In row_offsets, In columns, In values,
                                                        int64_t n_columns, int64_t n_threads) {
    require(n_threads >= 1, "n_threads must be positive");
    return with_csr(row_offsets, columns, values, n_columns, [&](const auto& x) {
        nb::gil_scoped_release release;
        const CsrReport report = inspect(x, static_cast<int64_t>(columns.size()), n_threads);
        return std::tuple{report.fault, report.where, report.rising, report.stored_zeros};
    });
}

std::vector<std::pair<int64_t, int64_t>> py_count_row_lengths(In row_offsets) {
    require(row_offsets.size() > 0, "row_offsets is empty");
    return with_index(row_offsets.dtype(), [&](auto offset) {
        return count_row_lengths(data_of<decltype(offset)>(row_offsets),
                                 static_cast<int64_t>(row_offsets.size()) - 1);
    });
}

void py_fill_row_offsets(const Basis& basis, In row_offsets, Out out_offsets) {
    require(row_offsets.size() > 0 && out_offsets.size() == row_offsets.size(),
            "row offsets of unequal length");
    with_index(row_offsets.dtype(), [&](auto offset) {
        with_index(out_offsets.dtype(), [&](auto out) {
            fill_row_offsets(basis, data_of<decltype(offset)>(row_offsets),
                             static_cast<int64_t>(row_offsets.size()) - 1,
                             data_of<decltype(out)>(out_offsets));
        });
    });
}

void py_fill(const Basis& basis, In row_offsets, In columns, In values, int64_t n_columns,
             Out out_offsets, Out out_columns, Out out_values, int64_t n_threads, int64_t task) {
    require(out_offsets.size() == row_offsets.size() && out_columns.size() == out_values.size() &&
                n_columns == basis.n_features && n_threads >= 1,
            "malformed CSR arrays");
    with_csr(row_offsets, columns, values, n_columns, [&](const auto& x) {
        with_index(out_columns.dtype(), [&](auto out_index) {
            using OutIndex = decltype(out_index);
            using Value = std::remove_cvref_t<decltype(*x.values)>;
            const OutIndex* offsets = data_of<OutIndex>(out_offsets);
            require(static_cast<uint64_t>(offsets[x.n_rows]) == out_columns.size(),
                    "the output is not of the counted size");
            const Slots<OutIndex, Value> out{data_of<OutIndex>(out_columns),
                                             data_of<Value>(out_values)};
            run_without_gil([&](Signals& signals) {
                return fill(basis, x, offsets, out, n_threads, task, signals);
            });
        });
    });
}

using Lookup = std::variant<BitLookup, HashLookup>;

void py_lookup_init(Lookup* self, const Basis& basis, Columns columns) {
    const auto n = static_cast<int64_t>(columns.size());
    const int64_t n_basis_columns = basis.highest < basis.lowest
                                        ? basis.include_bias
                                        : static_cast<int64_t>(basis.degree_end[basis.highest]);
    const int64_t* const begin = columns.data();
    require(n < int64_t{1} << 31 &&
                std::adjacent_find(begin, begin + n, std::greater_equal<>()) == begin + n &&
                (n == 0 || (begin[0] >= 0 && begin[n - 1] < n_basis_columns)),
            "columns must rise and be in the basis");
    nb::gil_scoped_release release;
    if (BitLookup::bytes(n_basis_columns) <= 20 * n + 1024)
        new (self) Lookup(std::in_place_type<BitLookup>, begin, n, n_basis_columns);
    else
        new (self) Lookup(std::in_place_type<HashLookup>, begin, n);
}

/// Outputs written, or -1 if there is no room for all. Of the matrix's longest row, `row_maker(n)`
/// gets the stored values.
template <class X, class MakeRowMaker>
int64_t select_rows(const Basis& basis, const X& x, const Out& out_offsets, const Out& out_columns,
                    const Out& out_values, int64_t n_threads, int64_t task,
                    const MakeRowMaker& row_maker) {
    using Value = std::remove_cvref_t<decltype(*x.values)>;
    require(out_offsets.size() == static_cast<size_t>(x.n_rows) + 1 &&
                out_columns.size() == out_values.size() && n_threads >= 1,
            "malformed CSR arrays");
    const Slots<int32_t, Value> out{data_of<int32_t>(out_columns), data_of<Value>(out_values)};
    const auto n_slots = static_cast<int64_t>(out_columns.size());
    return with_index(out_offsets.dtype(), [&](auto out_offset) {
        auto* const offsets = data_of<decltype(out_offset)>(out_offsets);
        bool is_full = false;
        run_without_gil([&](Signals& signals) {
            int64_t longest = 0;
            for (int64_t r = 0; r < x.n_rows; ++r)
                longest = std::max<int64_t>(longest, x.row_offsets[r + 1] - x.row_offsets[r]);
            using RowMaker = decltype(row_maker(longest, Value{}));
            std::vector<RowMaker> rows;
            const int64_t n_workers =
                RowMaker::divides_rows ? n_threads : std::clamp<int64_t>(x.n_rows, 1, n_threads);
            for (int64_t worker = 0; worker < n_workers; ++worker)
                rows.push_back(row_maker(longest, Value{}));
            const Selection selection =
                fill_selected(basis, x, rows, offsets, out, n_slots, task, signals);
            is_full = selection == Selection::full;
            return selection != Selection::stopped;
        });
        return is_full ? int64_t{-1} : static_cast<int64_t>(offsets[x.n_rows]);
    });
}

int64_t py_fill_chosen(const Basis& basis, const Lookup& lookup, In row_offsets, In columns,
                       In values, Out out_offsets, Out out_columns, Out out_values,
                       int64_t n_threads, int64_t task) {
    return with_csr(row_offsets, columns, values, basis.n_features, [&](const auto& x) {
        return std::visit(
            [&]<class L>(const L& table) {
                return select_rows(basis, x, out_offsets, out_columns, out_values, n_threads, task,
                                   [&]<class Value>(int64_t longest, Value) {
                                       return ChosenRow<L, Value>(basis, table, longest);
                                   });
            },
            lookup);
    });
}

int64_t py_fill_hashed(const Basis& basis, const Hasher& hasher, In row_offsets, In columns,
                       In values, Out out_offsets, Out out_columns, Out out_values,
                       int64_t n_threads, int64_t task) {
    return with_csr(row_offsets, columns, values, basis.n_features, [&](const auto& x) {
        return select_rows(basis, x, out_offsets, out_columns, out_values, n_threads, task,
                           [&]<class Value>(int64_t longest, Value) {
                               return HashedRow<Value>(basis, hasher, longest);
                           });
    });
}

/// Rows of `tuples` are rising and padded behind with -1. Writes buckets and whether they are
/// negative.
void py_hash(const Hasher& hasher, Tuples tuples, OutColumns buckets, OutColumns signs) {
    require(tuples.shape(0) == buckets.size() && tuples.shape(0) == signs.size(),
            "arrays of unequal length");
    const auto width = static_cast<int64_t>(tuples.shape(1));
    nb::gil_scoped_release release;
    for (size_t i = 0; i < buckets.size(); ++i) {
        const int64_t* tuple = tuples.data() + i * width;
        int64_t k = 0;
        while (k < width && tuple[k] >= 0) ++k;
        const uint64_t h = hasher(tuple, k);
        buckets.data()[i] = hasher.bucket(h);
        signs.data()[i] = hasher.is_negative(h) ? -1 : 1;
    }
}

/// False if more than `most` columns were found, or memory ran out: the tally is as it was.
bool py_tally_observe(Tally<>& tally, const Basis& basis, In row_offsets, In columns, int64_t most,
                      int64_t n_threads, int64_t task) {
    require(row_offsets.size() > 0 && n_threads >= 1, "malformed CSR arrays");
    return with_index(row_offsets.dtype(), [&](auto offset) {
        return with_index(columns.dtype(), [&](auto index) {
            const auto* const offsets = data_of<decltype(offset)>(row_offsets);
            const auto n_rows = static_cast<int64_t>(row_offsets.size()) - 1;
            require(0 <= offsets[0] && offsets[0] <= offsets[n_rows] &&
                        static_cast<uint64_t>(offsets[n_rows]) <= columns.size() &&
                        n_rows < int64_t{1} << 32 &&
                        offsets[n_rows] - offsets[0] < int64_t{1} << 32,
                    "malformed row offsets");
            bool is_full = false;
            run_without_gil([&](Signals& signals) {
                Run<uint32_t> run;
                try {
                    if (!observe(basis, offsets, n_rows, data_of<decltype(index)>(columns), most,
                                 n_threads, task, signals, run))
                        return false;
                    tally.add(std::move(run));
                } catch (const std::bad_alloc&) {
                    is_full = true;
                }
                return true;
            });
            return !is_full;
        });
    });
}

void py_tally_add(Tally<>& tally, Columns columns, Columns counts) {
    const int64_t *const begin = columns.data(), *const end = begin + columns.size();
    require(columns.size() == counts.size() &&
                std::adjacent_find(begin, end, std::greater_equal<>()) == end,
            "columns must rise");
    nb::gil_scoped_release release;
    tally.add_counts(columns.data(), counts.data(), static_cast<int64_t>(columns.size()));
}

/// The arrays are of the size that `choose` told.
void py_tally_write(const Tally<>& tally, uint64_t least, int64_t n_ties, OutColumns columns,
                    OutColumns counts, int64_t n_threads) {
    const auto n = static_cast<int64_t>(columns.size());
    require(columns.size() == counts.size() && n_threads >= 1, "arrays of unequal length");
    nb::gil_scoped_release release;
    tally.write({least, n_ties, n}, columns.data(), counts.data(), n_threads);
}

void py_fill_dense(const Basis& basis, nb::ndarray<nb::ro, nb::ndim<2>, nb::device::cpu> x,
                   nb::ndarray<nb::ndim<2>, nb::device::cpu> out, int64_t n_threads) {
    const auto n_rows = static_cast<int64_t>(out.shape(0));
    const auto n_columns = static_cast<int64_t>(out.shape(1));
    require(x.shape(0) == out.shape(0) && static_cast<int64_t>(x.shape(1)) == basis.n_features &&
                n_threads >= 1 && x.dtype() == out.dtype() &&
                (out.stride(0) == 1 || out.stride(1) == 1 || out.size() == 0),
            "malformed dense arrays");
    if (out.size() == 0) return;
    with_value(x.dtype(), [&](auto value) {
        using Value = decltype(value);
        const DenseView<const Value> from{static_cast<const Value*>(x.data()), x.stride(0),
                                          x.stride(1)};
        const DenseView<Value> to{static_cast<Value*>(out.data()), out.stride(0), out.stride(1)};
        run_without_gil([&](Signals& signals) {
            return fill_dense(basis, from, to, n_rows, n_columns, n_threads, signals);
        });
    });
}

/// Rows of `tuples` are rising and padded behind with -1.
void py_rank(const Basis& basis, Tuples tuples, OutColumns out) {
    require(tuples.shape(0) == out.size(), "arrays of unequal length");
    const auto width = static_cast<int64_t>(tuples.shape(1));
    nb::gil_scoped_release release;
    for (size_t i = 0; i < out.size(); ++i) {
        const int64_t* tuple = tuples.data() + i * width;
        int64_t k = 0;
        while (k < width && tuple[k] >= 0) ++k;
        out.data()[i] = k == 0 ? 0 : basis.rank(tuple, k);
    }
}

void py_unrank(const Basis& basis, Columns columns, OutTuples out) {
    const auto width = static_cast<int64_t>(out.shape(1));
    require(out.shape(0) == columns.size() && width >= basis.highest, "arrays of unequal length");
    nb::gil_scoped_release release;
    for (size_t i = 0; i < columns.size(); ++i) {
        int64_t* tuple = out.data() + i * width;
        const int64_t k = basis.unrank(columns.data()[i], tuple);
        std::fill(tuple + k, tuple + width, -1);
    }
}

/// Begin and end of text that may be parsed: its newline at the end is what stops the parser.
std::pair<const char*, const char*> lines_of(const Text& text) {
    const char* const begin = reinterpret_cast<const char*>(text.data());
    const char* const end = begin + text.size();
    require(begin == end || end[-1] == '\n', "text must end in a newline");
    return {begin, end};
}

/// Whether rows have labels, and a qid; None if there is no row.
std::optional<std::pair<bool, bool>> py_svmlight_layout(Text text) {
    const auto [begin, end] = lines_of(text);
    const auto layout = find_layout(begin, end);
    if (!layout) return std::nullopt;
    return std::pair{layout->labels, layout->qid};
}

/// Bytes, lines and rows passed.
std::tuple<int64_t, int64_t, int64_t> py_svmlight_skip(Text text, int64_t n_rows) {
    const auto [begin, end] = lines_of(text);
    nb::gil_scoped_release release;
    const char* p = begin;
    const SvmlightCounts passed = skip_rows(p, end, n_rows);
    return {p - begin, passed.n_lines, passed.n_rows};
}

void py_svmlight_init(SvmlightText* self, Text text, bool labels, bool qid, int64_t n_threads) {
    const auto [begin, end] = lines_of(text);
    require(n_threads >= 1, "n_threads must be positive");
    nb::gil_scoped_release release;
    new (self) SvmlightText(begin, end, {labels, qid}, n_threads);
}

/// The first fault, its line from 0, and the bytes [begin, end) of the word at fault.
std::tuple<SvmlightFault, int64_t, int64_t, int64_t> py_svmlight_fill(
    const SvmlightText& text, OutColumns row_offsets, OutColumns indices, OutDoubles values,
    OutDoubles labels, OutColumns qid) {
    const auto n_rows = static_cast<size_t>(text.counts().n_rows);
    const auto n_stored = static_cast<size_t>(text.counts().n_stored);
    require(row_offsets.size() == n_rows + 1 && indices.size() == n_stored &&
                values.size() == n_stored && labels.size() == n_rows * text.layout().labels &&
                qid.size() == n_rows * text.layout().qid,
            "the output is not of the counted size");
    nb::gil_scoped_release release;
    row_offsets.data()[0] = 0;
    const SvmlightReport report = text.fill(
        {row_offsets.data() + 1, indices.data(), values.data(), labels.data(), qid.data()});
    if (report.fault == SvmlightFault::none) return {report.fault, 0, 0, 0};
    return {report.fault, report.line, report.begin - text.begin(), report.end - text.begin()};
}

/// Bytes of text written to `out`; `labels` is empty if there are none.
int64_t py_write_svmlight(In row_offsets, In columns, In values, Doubles labels,
                          int64_t first_column, OutBytes out) {
    const auto n_rows = static_cast<int64_t>(row_offsets.size()) - 1;
    const auto n_stored = static_cast<int64_t>(columns.size());
    require(n_rows >= 0 && columns.size() == values.size() &&
                (labels.size() == 0 || static_cast<int64_t>(labels.size()) == n_rows) &&
                static_cast<int64_t>(out.size()) >=
                    n_stored * svmlight_bytes_per_value + n_rows * svmlight_bytes_per_row,
            "malformed CSR arrays, or too little room");
    return with_csr(row_offsets, columns, values, 0, [&](const auto& x) {
        require(x.row_offsets[0] == 0 && x.row_offsets[n_rows] == n_stored &&
                    std::is_sorted(x.row_offsets, x.row_offsets + n_rows + 1),
                "malformed row offsets");
        nb::gil_scoped_release release;
        char* const begin = reinterpret_cast<char*>(out.data());
        const double* const label = labels.size() == 0 ? nullptr : labels.data();
        return static_cast<int64_t>(write_svmlight(x, label, first_column, begin) - begin);
    });
}

}  // namespace

NB_MODULE(_kernels, m) {
    m.doc() = "Native kernels of polysparse; see src/kernels. Not a public interface.";
    nb::class_<Basis>(m, "Basis", "The monomials of an expansion, as the kernels see them.")
        .def(
            "__init__",
            [](Basis* self, int64_t n_features, int64_t lowest, int64_t highest,
               bool interaction_only, bool include_bias, std::vector<uint64_t> degree_end) {
                require(lowest >= 1 && highest < static_cast<int64_t>(degree_end.size()),
                        "degree_end is too short");
                new (self) Basis{n_features,       lowest,       highest,
                                 interaction_only, include_bias, std::move(degree_end)};
            },
            nb::arg("n_features"), nb::arg("lowest"), nb::arg("highest"),
            nb::arg("interaction_only"), nb::arg("include_bias"), nb::arg("degree_end"))
        .def("rank", &py_rank, nb::arg("tuples").noconvert(), nb::arg("out").noconvert())
        .def("unrank", &py_unrank, nb::arg("columns").noconvert(), nb::arg("out").noconvert());
    nb::enum_<CsrFault>(m, "CsrFault", "What makes a CSR matrix unusable.")
        .value("none", CsrFault::none)
        .value("first_offset", CsrFault::first_offset)
        .value("falling_offset", CsrFault::falling_offset)
        .value("last_offset", CsrFault::last_offset)
        .value("column_range", CsrFault::column_range);
    m.def("inspect", &py_inspect, nb::arg("row_offsets").noconvert(),
          nb::arg("columns").noconvert(), nb::arg("values").noconvert(), nb::arg("n_columns"),
          nb::arg("n_threads"));
    m.def("count_row_lengths", &py_count_row_lengths, nb::arg("row_offsets").noconvert());
    m.def("fill_row_offsets", &py_fill_row_offsets, nb::arg("basis"),
          nb::arg("row_offsets").noconvert(), nb::arg("out_offsets").noconvert());
    m.def("fill", &py_fill, nb::arg("basis"), nb::arg("row_offsets").noconvert(),
          nb::arg("columns").noconvert(), nb::arg("values").noconvert(), nb::arg("n_columns"),
          nb::arg("out_offsets").noconvert(), nb::arg("out_columns").noconvert(),
          nb::arg("out_values").noconvert(), nb::arg("n_threads"), nb::arg("task"));
    m.def("fill_dense", &py_fill_dense, nb::arg("basis"), nb::arg("x").noconvert(),
          nb::arg("out").noconvert(), nb::arg("n_threads"));
    nb::class_<Lookup>(m, "Lookup", "Where chosen columns of a basis stand among each other.")
        .def("__init__", &py_lookup_init, nb::arg("basis"), nb::arg("columns").noconvert());
    m.def("fill_chosen", &py_fill_chosen, nb::arg("basis"), nb::arg("lookup"),
          nb::arg("row_offsets").noconvert(), nb::arg("columns").noconvert(),
          nb::arg("values").noconvert(), nb::arg("out_offsets").noconvert(),
          nb::arg("out_columns").noconvert(), nb::arg("out_values").noconvert(),
          nb::arg("n_threads"), nb::arg("task"));
    nb::class_<Hasher>(m, "Hasher", "Where monomials go, and with which sign.")
        .def(nb::init<int64_t, bool, uint64_t>(), nb::arg("n_columns"), nb::arg("alternate_sign"),
             nb::arg("seed"))
        .def("hash", &py_hash, nb::arg("tuples").noconvert(), nb::arg("buckets").noconvert(),
             nb::arg("signs").noconvert());
    m.def("fill_hashed", &py_fill_hashed, nb::arg("basis"), nb::arg("hasher"),
          nb::arg("row_offsets").noconvert(), nb::arg("columns").noconvert(),
          nb::arg("values").noconvert(), nb::arg("out_offsets").noconvert(),
          nb::arg("out_columns").noconvert(), nb::arg("out_values").noconvert(),
          nb::arg("n_threads"), nb::arg("task"));
    nb::class_<Tally<>>(m, "Tally", "In how many rows each column of an expansion occurs.")
        .def(nb::init<>())
        .def_prop_ro("n_entries", &Tally<>::n_entries)
        .def("observe", &py_tally_observe, nb::arg("basis"), nb::arg("row_offsets").noconvert(),
             nb::arg("columns").noconvert(), nb::arg("most"), nb::arg("n_threads"), nb::arg("task"))
        .def("add", &py_tally_add, nb::arg("columns").noconvert(), nb::arg("counts").noconvert())
        .def("add_all_of", &Tally<>::add_all_of, nb::arg("other"),
             nb::call_guard<nb::gil_scoped_release>())
        .def(
            "take_all_of",
            [](Tally<>& tally, Tally<>& other) { tally.take_all_of(std::move(other)); },
            nb::arg("other"), nb::call_guard<nb::gil_scoped_release>())
        .def("settle", &Tally<>::settle, nb::call_guard<nb::gil_scoped_release>())
        .def(
            "choose",
            [](const Tally<>& tally, uint64_t min_count, int64_t max_columns, int64_t n_threads) {
                const Kept kept = tally.choose(min_count, max_columns, n_threads);
                return std::tuple{kept.least, kept.n_ties, kept.n_columns};
            },
            nb::arg("min_count"), nb::arg("max_columns"), nb::arg("n_threads"),
            nb::call_guard<nb::gil_scoped_release>())
        .def("write", &py_tally_write, nb::arg("least"), nb::arg("n_ties"),
             nb::arg("columns").noconvert(), nb::arg("counts").noconvert(), nb::arg("n_threads"));
    m.def("observing_bytes", &observing_bytes, nb::arg("basis"), nb::arg("index_size"),
          nb::arg("n_threads"));
    nb::enum_<SvmlightFault>(m, "SvmlightFault", "Which word of a line cannot be right.")
        .value("none", SvmlightFault::none)
        .value("label", SvmlightFault::label)
        .value("label_missing", SvmlightFault::label_missing)
        .value("label_unexpected", SvmlightFault::label_unexpected)
        .value("qid", SvmlightFault::qid)
        .value("qid_missing", SvmlightFault::qid_missing)
        .value("qid_unexpected", SvmlightFault::qid_unexpected)
        .value("index", SvmlightFault::index)
        .value("value", SvmlightFault::value);
    nb::class_<SvmlightText>(m, "SvmlightText", "Lines that were counted; the text is not copied.")
        .def("__init__", &py_svmlight_init, nb::arg("text").noconvert(), nb::arg("labels"),
             nb::arg("qid"), nb::arg("n_threads"), nb::keep_alive<1, 2>())
        .def_prop_ro("n_lines", [](const SvmlightText& text) { return text.counts().n_lines; })
        .def_prop_ro("n_rows", [](const SvmlightText& text) { return text.counts().n_rows; })
        .def_prop_ro("n_stored", [](const SvmlightText& text) { return text.counts().n_stored; })
        .def("fill", &py_svmlight_fill, nb::arg("row_offsets").noconvert(),
             nb::arg("indices").noconvert(), nb::arg("values").noconvert(),
             nb::arg("labels").noconvert(), nb::arg("qid").noconvert());
    m.attr("SVMLIGHT_BYTES_PER_VALUE") = svmlight_bytes_per_value;
    m.attr("SVMLIGHT_BYTES_PER_ROW") = svmlight_bytes_per_row;
    m.def("write_svmlight", &py_write_svmlight, nb::arg("row_offsets").noconvert(),
          nb::arg("columns").noconvert(), nb::arg("values").noconvert(),
          nb::arg("labels").noconvert(), nb::arg("first_column"), nb::arg("out").noconvert());
    m.def("svmlight_layout", &py_svmlight_layout, nb::arg("text").noconvert());
    m.def("svmlight_skip", &py_svmlight_skip, nb::arg("text").noconvert(), nb::arg("n_rows"));
}
