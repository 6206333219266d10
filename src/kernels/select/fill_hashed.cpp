#include "select/fill_hashed.hpp"

#include <algorithm>
#include <new>
#include <type_traits>
#include <vector>

#include "expand/row_readers.hpp"
#include "select/hashed_row.hpp"
#include "select/long_hashed_row.hpp"

namespace polysparse {
namespace {

/// Rows that one worker makes, or all together.
struct HashedWork {
    HashedWork(const Basis& basis, const Hasher& hasher, int64_t task)
        : can_be_long(basis.highest > 1 && !basis.terms),
          // Those that are listed need memory for their outputs, not for all buckets.
          longest(std::max(4 * task, most_listed(hasher))),
          size_of(basis) {}

    bool is_long(RowShape shape) { return can_be_long && size_of(shape) > longest; }

    void add(RowShape shape, int64_t n_rows) {
        const bool is_short = !is_long(shape);
        RowShape& of_its_kind = is_short ? largest : largest_long;
        of_its_kind = larger(of_its_kind, shape);
        (is_short ? n_short : n_long) += n_rows;
    }

    int64_t n_workers(int64_t n_threads) const {
        return std::clamp<int64_t>(n_short, 1, n_threads);
    }

    bool can_be_long;
    int64_t longest;  // no longer row stays whole
    RowSizes size_of;
    RowShape largest, largest_long;
    int64_t n_short = 0, n_long = 0;
};

/// The reader of rows that may be long. Those of terms never are.
template <class Rows>
using LongRows = std::conditional_t<std::is_same_v<Rows, TermRows<int64_t>>, StoredRows, Rows>;

/// fill_hashed, where Rows reads the rows.
template <class Rows, class Value>
Appending fill_read_by(const Basis& basis, const Hasher& hasher, const CsrView<Value>& x,
                       const AppendTo<Value>& out, int64_t n_threads, int64_t wanted,
                       const StopRequest& should_stop) {
    const int64_t task = task_size(wanted);
    HashedWork work(basis, hasher, task);
    for (int64_t r = 0; r < x.n_rows; ++r) work.add(shape_of(x.row_offsets, r), 1);
    std::vector<HashedRow<Rows, Value>> makers;
    for (int64_t worker = 0; worker < work.n_workers(n_threads); ++worker)
        makers.emplace_back(basis, hasher, work.largest);
    if (work.n_long == 0) return append_rows(basis, x, makers, out, wanted, should_stop);
    LongHashedRow<LongRows<Rows>, Value> long_maker(basis, hasher, work.largest_long, task,
                                                    n_threads);

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
        while (last < x.n_rows && !work.is_long(shape_of(x.row_offsets, last))) ++last;
        Appending done = append(last, [&](const AppendTo<Value>& to) {
            return append_rows(basis, rows_of(x, first, last), makers, to, wanted, should_stop);
        });
        if (done != Appending::whole || last == x.n_rows) return done;
        done = append(last + 1, [&](const AppendTo<Value>& to) {
            return long_maker.fill(x, last, to, should_stop);
        });
        if (done != Appending::whole) return done;
    }
}

/// The bytes of makers whose rows Rows reads.
template <class Rows, class Value>
int64_t bytes_read_by(const Basis& basis, const Hasher& hasher, std::span<const RowsOfShape> rows,
                      int64_t n_threads, int64_t wanted) {
    const int64_t task = task_size(wanted);
    HashedWork work(basis, hasher, task);
    std::vector<RowsOfShape> whole;
    for (const RowsOfShape& some : rows) {
        work.add(some.shape, some.n_rows);
        if (!work.is_long(some.shape)) whole.push_back(some);
    }
    const WholeRows division(basis, static_cast<int64_t>(hasher.n_columns));
    const uint64_t each = HashedRow<Rows, Value>::bytes(basis, hasher, work.largest) +
                          task_bytes<Value>(division, whole, task);
    const uint64_t shared = work.n_long == 0
                                ? 0
                                : LongHashedRow<LongRows<Rows>, Value>::bytes(
                                      basis, hasher, work.largest_long, task, n_threads);
    return bytes_of_workers(each, work.n_workers(n_threads)) + bytes_of_workers(shared, 1);
}

}  // namespace

template <class Value>
Appending fill_hashed(const Basis& basis, const Hasher& hasher, const CsrView<Value>& x,
                      const AppendTo<Value>& out, int64_t n_threads, int64_t wanted,
                      const StopRequest& should_stop) {
    if (basis.groups && !is_countable(basis, largest_shape(x.row_offsets, x.n_rows)))
        throw std::bad_alloc();
    return with_row_reader<int64_t>(basis, [&]<class Rows>(std::type_identity<Rows>) {
        return fill_read_by<Rows>(basis, hasher, x, out, n_threads, wanted, should_stop);
    });
}

template <class Value>
int64_t hashing_bytes(const Basis& basis, const Hasher& hasher, std::span<const RowsOfShape> rows,
                      int64_t n_threads, int64_t wanted) {
    for (const RowsOfShape& some : rows)
        if (basis.groups && !is_countable(basis, some.shape))
            return bytes_of_workers(~uint64_t{0}, n_threads);
    return with_row_reader<int64_t>(basis, [&]<class Rows>(std::type_identity<Rows>) {
        return bytes_read_by<Rows, Value>(basis, hasher, rows, n_threads, wanted);
    });
}

template Appending fill_hashed(const Basis&, const Hasher&, const CsrView<float>&,
                               const AppendTo<float>&, int64_t, int64_t, const StopRequest&);
template Appending fill_hashed(const Basis&, const Hasher&, const CsrView<double>&,
                               const AppendTo<double>&, int64_t, int64_t, const StopRequest&);
template int64_t hashing_bytes<float>(const Basis&, const Hasher&, std::span<const RowsOfShape>,
                                      int64_t, int64_t);
template int64_t hashing_bytes<double>(const Basis&, const Hasher&, std::span<const RowsOfShape>,
                                       int64_t, int64_t);

}  // namespace polysparse
