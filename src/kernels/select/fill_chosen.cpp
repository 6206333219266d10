#include "select/fill_chosen.hpp"

#include <type_traits>

#include "select/chosen_makers.hpp"

namespace polysparse {

template <class Value>
Appending fill_chosen(const Basis& basis, const Lookup& lookup, const CsrView<Value>& x,
                      const AppendTo<Value>& out, int64_t n_threads, int64_t wanted,
                      const StopRequest& should_stop) {
    const RowShape largest = largest_shape(x.row_offsets, x.n_rows);
    return with_chosen_makers<Value>(basis, lookup, largest, n_threads, [&](auto& makers) {
        return append_rows(basis, x, makers, out, wanted, should_stop);
    });
}

template <class Value>
int64_t choosing_bytes(const Basis& basis, int64_t n_columns, std::span<const RowsOfShape> rows,
                       int64_t n_threads, int64_t wanted) {
    RowShape largest;
    for (const auto& [shape, n_rows] : rows) largest = larger(largest, shape);
    if (basis.groups && !is_countable(basis, largest))
        return bytes_of_workers(~uint64_t{0}, n_threads);
    const uint64_t each =
        with_row_reader<int64_t>(basis, [&]<class Rows>(std::type_identity<Rows>) -> uint64_t {
            using Maker = ChosenMaker<Rows, HashLookup, Value>;
            const typename Maker::Division division(basis, n_columns);
            return Maker::bytes(basis, largest) +
                   task_bytes<Value>(division, rows, task_size(wanted));
        });
    return bytes_of_workers(each, n_threads);
}

template Appending fill_chosen(const Basis&, const Lookup&, const CsrView<float>&,
                               const AppendTo<float>&, int64_t, int64_t, const StopRequest&);
template Appending fill_chosen(const Basis&, const Lookup&, const CsrView<double>&,
                               const AppendTo<double>&, int64_t, int64_t, const StopRequest&);
template int64_t choosing_bytes<float>(const Basis&, int64_t, std::span<const RowsOfShape>, int64_t,
                                       int64_t);
template int64_t choosing_bytes<double>(const Basis&, int64_t, std::span<const RowsOfShape>,
                                        int64_t, int64_t);

}  // namespace polysparse
