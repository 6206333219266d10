#include "basis/basis.hpp"

#include <nanobind/stl/vector.h>

#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "bindings/arrays.hpp"
#include "bindings/gil.hpp"
#include "bindings/module.hpp"

namespace polysparse {
namespace {

void init(Basis* self, int64_t n_features, int64_t lowest, int64_t highest, bool interaction_only,
          bool include_bias, std::vector<uint64_t> degree_end) {
    require(lowest >= 1 && highest < static_cast<int64_t>(degree_end.size()),
            "degree_end is too short");
    new (self)
        Basis{n_features, lowest, highest, interaction_only, include_bias, std::move(degree_end)};
}

/// Divides the features of a basis into groups of these sizes.
void set_groups(Basis& basis, const std::vector<int64_t>& sizes, bool has_powers) {
    require(basis.highest >= 0, "groups of no degree");
    int64_t n_features = 0;
    for (const int64_t size : sizes) {
        require(size >= 0 && size <= basis.n_features - n_features, "groups of too many features");
        n_features += size;
    }
    require(n_features == basis.n_features, "groups of too few features");
    const WithoutGil released;
    basis.groups = std::make_shared<GroupTable>(sizes, has_powers, basis.highest);
}

/// Chooses the monomials of a basis with groups: terms are increasing groups.
void set_terms(Basis& basis, const std::vector<std::vector<int64_t>>& terms) {
    require(basis.groups != nullptr, "terms need groups");
    for (const std::vector<int64_t>& term : terms)
        require(!term.empty() && is_rising(term.data(), static_cast<int64_t>(term.size())) &&
                    term.front() >= 0 && term.back() < basis.groups->n_groups() &&
                    static_cast<int64_t>(term.size()) <= basis.highest,
                "terms are not of groups");
    basis.terms = std::make_shared<TermTable>(*basis.groups, terms, basis.include_bias);
}

/// Sets what all rows that are expanded have in common: see Basis.
void set_rows(Basis& basis, bool are_distinct, std::vector<int32_t> row_groups) {
    require(basis.groups != nullptr, "rows need groups");
    const int64_t n = std::ssize(row_groups);
    for (int64_t a = 0, begin = 0; a < n; ++a) {
        const int64_t group = row_groups[a];
        require(group >= 0 && group < basis.groups->n_groups(), "rows are not of groups");
        if (a > 0 && group != row_groups[a - 1]) begin = a;
        require((a == 0 || group >= row_groups[a - 1]) && a - begin < basis.groups->size(group) &&
                    (a == begin || !are_distinct),
                "rows are not of groups");
    }
    basis.rows_are_distinct = are_distinct;
    basis.row_groups = std::move(row_groups);
}

void rank(const Basis& basis, Tuples tuples, Array<int64_t> out) {
    require(tuples.shape(0) == out.size(), "arrays of unequal length");
    const WithoutGil released;
    rank_all(basis, table_of(tuples), out.data());
}

void unrank(const Basis& basis, Array<const int64_t> columns, Table<int64_t> out) {
    const auto width = static_cast<int64_t>(out.shape(1));
    require(out.shape(0) == columns.size() && width >= basis.highest, "arrays of unequal length");
    const WithoutGil released;
    unrank_all(basis, columns.data(), size_of(columns), width, out.data());
}

}  // namespace

void bind_basis(nb::module_& m) {
    nb::class_<Basis>(m, "Basis", "The monomials of an expansion, as the kernels see them.")
        .def("__init__", &init, nb::arg("n_features"), nb::arg("lowest"), nb::arg("highest"),
             nb::arg("interaction_only"), nb::arg("include_bias"), nb::arg("degree_end"))
        .def("set_groups", &set_groups, nb::arg("sizes"), nb::arg("has_powers"))
        .def("set_terms", &set_terms, nb::arg("terms"))
        .def("set_rows", &set_rows, nb::arg("are_distinct"), nb::arg("row_groups"))
        .def("rank", &rank, nb::arg("tuples").noconvert(), nb::arg("out").noconvert())
        .def("unrank", &unrank, nb::arg("columns").noconvert(), nb::arg("out").noconvert());
}

}  // namespace polysparse
