// Makers of chosen rows for any basis.
#pragma once

#include <cstdint>
#include <new>
#include <type_traits>
#include <variant>
#include <vector>

#include "basis/basis.hpp"
#include "expand/row_readers.hpp"
#include "expand/row_shape.hpp"
#include "select/chosen_grouped_row.hpp"
#include "select/chosen_row.hpp"
#include "select/lookup.hpp"

namespace polysparse {

/// What makes chosen rows that Rows reads.
template <class Rows, class Table, class Value>
using ChosenMaker = std::conditional_t<std::is_same_v<Rows, StoredRows>, ChosenRow<Table, Value>,
                                       ChosenGroupedRow<Rows, Table, Value>>;

/// Calls f with n makers of chosen rows, up to a shape. Throws bad_alloc.
template <class Value, class F>
auto with_chosen_makers(const Basis& basis, const Lookup& lookup, RowShape largest, int64_t n,
                        const F& f) {
    if (basis.groups && !is_countable(basis, largest)) throw std::bad_alloc();
    return std::visit(
        [&]<class Table>(const Table& table) {
            return with_row_reader<int64_t>(basis, [&]<class Rows>(std::type_identity<Rows>) {
                std::vector<ChosenMaker<Rows, Table, Value>> makers;
                for (int64_t worker = 0; worker < n; ++worker)
                    makers.emplace_back(basis, table, largest);
                return f(makers);
            });
        },
        lookup);
}

}  // namespace polysparse
