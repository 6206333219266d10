#include "select/fill_hashed.hpp"

#include <algorithm>
#include <vector>

#include "select/hashed_row.hpp"

namespace polysparse {

template <class Value>
Appending fill_hashed(const Basis& basis, const Hasher& hasher, const CsrView<Value>& x,
                      const AppendTo<Value>& out, int64_t n_threads, int64_t wanted,
                      const StopRequest& should_stop) {
    const RowShape largest = largest_shape(x.row_offsets, x.n_rows);
    const int64_t n_workers = std::clamp<int64_t>(x.n_rows, 1, n_threads);  // rows stay whole
    std::vector<HashedRow<Value>> makers;
    for (int64_t worker = 0; worker < n_workers; ++worker)
        makers.emplace_back(basis, hasher, largest);
    return append_rows(basis, x, makers, out, wanted, should_stop);
}

template Appending fill_hashed(const Basis&, const Hasher&, const CsrView<float>&,
                               const AppendTo<float>&, int64_t, int64_t, const StopRequest&);
template Appending fill_hashed(const Basis&, const Hasher&, const CsrView<double>&,
                               const AppendTo<double>&, int64_t, int64_t, const StopRequest&);

}  // namespace polysparse
