#include "select/fill_hashed.hpp"

#include <algorithm>
#include <vector>

#include "select/hashed_row.hpp"
#include "select/long_hashed_row.hpp"

namespace polysparse {

template <class Value>
Appending fill_hashed(const Basis& basis, const Hasher& hasher, const CsrView<Value>& x,
                      const AppendTo<Value>& out, int64_t n_threads, int64_t wanted,
                      const StopRequest& should_stop) {
    const int64_t task = wanted > 0 ? wanted : outputs_of_a_task;
    // Those that are listed need memory for their outputs, not for all buckets, and stay whole.
    const int64_t longest = std::max(4 * task, HashedRow<Value>::most_listed(hasher));
    RowSizes size_of(basis);
    const auto is_long = [&](int64_t r) {
        return basis.highest > 1 && size_of(shape_of(x.row_offsets, r)) > longest;
    };
    RowShape largest, largest_long;
    int64_t n_short = 0;
    for (int64_t r = 0; r < x.n_rows; ++r) {
        const bool is_short = !is_long(r);
        RowShape& of_its_kind = is_short ? largest : largest_long;
        of_its_kind = larger(of_its_kind, shape_of(x.row_offsets, r));
        n_short += is_short;
    }
    const int64_t n_workers = std::clamp<int64_t>(n_short, 1, n_threads);
    std::vector<HashedRow<Value>> makers;
    for (int64_t worker = 0; worker < n_workers; ++worker)
        makers.emplace_back(basis, hasher, largest);
    if (n_short == x.n_rows) return append_rows(basis, x, makers, out, wanted, should_stop);
    LongHashedRow<Value> long_maker(basis, hasher, largest_long, task, n_threads);

    int64_t first = 0, n_outputs = 0;  // the rows from `first` on are still to be appended
    const auto append = [&](int64_t last, const auto& fill) {
        const Appending done = fill(
            AppendTo<Value>{out.offsets + first, out.slots + n_outputs, out.n_slots - n_outputs});
        if (done != Appending::whole) return done;
        out.offsets.set(first, 0);
        for (int64_t r = first; n_outputs > 0 && r <= last; ++r)
            out.offsets.set(r, out.offsets[r] + n_outputs);
        first = last;
        n_outputs = out.offsets[last];
        return done;
    };
    while (true) {
        int64_t last = first;
        while (last < x.n_rows && !is_long(last)) ++last;
        Appending done = append(last, [&](const AppendTo<Value>& room) {
            return append_rows(basis, rows_of(x, first, last), makers, room, wanted, should_stop);
        });
        if (done != Appending::whole || last == x.n_rows) return done;
        done = append(last + 1, [&](const AppendTo<Value>& room) {
            return long_maker.fill(x, last, room, should_stop);
        });
        if (done != Appending::whole) return done;
    }
}

template Appending fill_hashed(const Basis&, const Hasher&, const CsrView<float>&,
                               const AppendTo<float>&, int64_t, int64_t, const StopRequest&);
template Appending fill_hashed(const Basis&, const Hasher&, const CsrView<double>&,
                               const AppendTo<double>&, int64_t, int64_t, const StopRequest&);

}  // namespace polysparse
