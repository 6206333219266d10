#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>

#include <optional>
#include <tuple>
#include <utility>

#include "bindings/arrays.hpp"
#include "bindings/gil.hpp"
#include "bindings/module.hpp"
#include "text/svmlight_reader.hpp"
#include "text/svmlight_writer.hpp"

namespace polysparse {
namespace {

using Text = Array<const uint8_t>;

/// Begin and end of text that can be parsed. The parser relies on the newline at the end.
std::pair<const char*, const char*> lines_of(const Text& text) {
    const char* const begin = reinterpret_cast<const char*>(text.data());
    const char* const end = begin + text.size();
    require(begin == end || end[-1] == '\n', "text must end in a newline");
    return {begin, end};
}

/// Whether rows have labels, and a qid; None if there is no row.
std::optional<std::pair<bool, bool>> layout(Text text) {
    const auto [begin, end] = lines_of(text);
    const auto found = find_layout(begin, end);
    if (!found) return std::nullopt;
    return std::pair{found->labels, found->qid};
}

/// Bytes, lines and rows passed.
std::tuple<int64_t, int64_t, int64_t> skip(Text text, int64_t n_rows) {
    const auto [begin, end] = lines_of(text);
    const WithoutGil released;
    const char* p = begin;
    const SvmlightCounts passed = skip_rows(p, end, n_rows);
    return {p - begin, passed.n_lines, passed.n_rows};
}

void init(SvmlightText* self, Text text, bool labels, bool qid, int64_t n_threads, bool fields) {
    const auto [begin, end] = lines_of(text);
    require(n_threads >= 1, "n_threads must be positive");
    const WithoutGil released;
    new (self) SvmlightText(begin, end, {labels, qid, fields}, n_threads);
}

/// The first fault, its line from 0, and the bytes [begin, end) of the word at fault.
std::tuple<SvmlightFault, int64_t, int64_t, int64_t> fill(const SvmlightText& text,
                                                          Array<int64_t> row_offsets,
                                                          Array<int64_t> indices,
                                                          Array<double> values,
                                                          Array<double> labels, Array<int64_t> qid,
                                                          std::optional<Array<int64_t>> fields) {
    const auto [n_lines, n_rows, n_stored] = text.counts();
    require(size_of(row_offsets) == n_rows + 1 && size_of(indices) == n_stored &&
                size_of(values) == n_stored && size_of(labels) == n_rows * text.layout().labels &&
                size_of(qid) == n_rows * text.layout().qid &&
                (fields ? size_of(*fields) : 0) == n_stored * text.layout().fields,
            "the output is not of the counted size");
    const WithoutGil released;
    row_offsets.data()[0] = 0;
    const SvmlightReport report =
        text.fill({row_offsets.data() + 1, indices.data(), values.data(), labels.data(), qid.data(),
                   fields ? fields->data() : nullptr});
    if (report.fault == SvmlightFault::none) return {report.fault, 0, 0, 0};
    return {report.fault, report.line, report.begin - text.begin(), report.end - text.begin()};
}

/// Bytes of text written to `out`; `labels` is empty if there are none.
int64_t write(In row_offsets, In columns, In values, Array<const double> labels,
              int64_t first_column, Array<uint8_t> out) {
    return with_csr(row_offsets, columns, values, 0, [&](const auto& x) -> int64_t {
        const int64_t n_stored = size_of(columns);
        require((labels.size() == 0 || size_of(labels) == x.n_rows) &&
                    size_of(out) >=
                        n_stored * svmlight_bytes_per_value + x.n_rows * svmlight_bytes_per_row,
                "malformed CSR arrays, or too little room");
        require(are_whole_offsets(x.row_offsets, x.n_rows, n_stored), "malformed row offsets");
        const WithoutGil released;
        char* const begin = reinterpret_cast<char*>(out.data());
        const double* const label = labels.size() == 0 ? nullptr : labels.data();
        return write_svmlight(x, label, first_column, begin) - begin;
    });
}

}  // namespace

void bind_text(nb::module_& m) {
    nb::enum_<SvmlightFault>(m, "SvmlightFault", "Which word of a line cannot be right.")
        .value("none", SvmlightFault::none)
        .value("label", SvmlightFault::label)
        .value("label_missing", SvmlightFault::label_missing)
        .value("label_unexpected", SvmlightFault::label_unexpected)
        .value("qid", SvmlightFault::qid)
        .value("qid_missing", SvmlightFault::qid_missing)
        .value("qid_unexpected", SvmlightFault::qid_unexpected)
        .value("field", SvmlightFault::field)
        .value("index", SvmlightFault::index)
        .value("value", SvmlightFault::value);
    nb::class_<SvmlightText>(m, "SvmlightText", "Lines that were counted; the text is not copied.")
        .def("__init__", &init, nb::arg("text").noconvert(), nb::arg("labels"), nb::arg("qid"),
             nb::arg("n_threads"), nb::arg("fields") = false, nb::keep_alive<1, 2>())
        .def_prop_ro("n_lines", [](const SvmlightText& text) { return text.counts().n_lines; })
        .def_prop_ro("n_rows", [](const SvmlightText& text) { return text.counts().n_rows; })
        .def_prop_ro("n_stored", [](const SvmlightText& text) { return text.counts().n_stored; })
        .def("fill", &fill, nb::arg("row_offsets").noconvert(), nb::arg("indices").noconvert(),
             nb::arg("values").noconvert(), nb::arg("labels").noconvert(),
             nb::arg("qid").noconvert(), nb::arg("fields").noconvert() = nb::none());
    m.attr("SVMLIGHT_BYTES_PER_VALUE") = svmlight_bytes_per_value;
    m.attr("SVMLIGHT_BYTES_PER_ROW") = svmlight_bytes_per_row;
    m.def("write_svmlight", &write, nb::arg("row_offsets").noconvert(),
          nb::arg("columns").noconvert(), nb::arg("values").noconvert(),
          nb::arg("labels").noconvert(), nb::arg("first_column"), nb::arg("out").noconvert());
    m.def("svmlight_layout", &layout, nb::arg("text").noconvert());
    m.def("svmlight_skip", &skip, nb::arg("text").noconvert(), nb::arg("n_rows"));
}

}  // namespace polysparse
