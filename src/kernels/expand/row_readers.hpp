// Which class reads the rows of a basis.
#pragma once

#include <type_traits>

#include "basis/basis.hpp"
#include "expand/grouped_rows.hpp"
#include "expand/row_shape.hpp"
#include "expand/term_rows.hpp"

namespace polysparse {

/// Calls f(std::type_identity<Rows>) with the class that reads the rows of a basis.
template <class Index, class F>
auto with_row_reader(const Basis& basis, const F& f) {
    if (basis.terms) return f(std::type_identity<TermRows<Index>>{});
    if (basis.groups) return f(std::type_identity<GroupedRows<Index>>{});
    return f(std::type_identity<StoredRows>{});
}

}  // namespace polysparse
