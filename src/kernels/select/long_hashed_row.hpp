// A hashed row that is too long for one task.
//
// The degrees below the highest have few outputs, and one thread sums them. Those of the highest
// are summed a stretch at a time, by one thread or by several: these list pieces of the stretch,
// and distribute each by ranges of buckets; then every range is summed by one of them, from one
// piece after the other. So outputs of one bucket are summed in the order of the basis.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <memory>
#include <vector>

#include "basis/basis.hpp"
#include "expand/layout.hpp"
#include "expand/row_shape.hpp"
#include "expand/walk.hpp"
#include "matrix/csr_view.hpp"
#include "matrix/slots.hpp"
#include "platform/processors.hpp"
#include "platform/threads.hpp"
#include "select/append_rows.hpp"
#include "select/hash.hpp"
#include "select/mixed_rows.hpp"
#include "select/output_piece.hpp"
#include "select/to_buckets.hpp"

namespace polysparse {

/// Makes long rows of degree 2 and more, one at a time. Rows reads them; they have no terms.
template <class Rows, class Value>
class LongHashedRow {
  public:
    /// For rows up to a shape. The basis must outlive it. Throws bad_alloc.
    LongHashedRow(const Basis& basis, const Hasher& hasher, RowShape largest, int64_t piece_size,
                  int64_t n_threads)
        : basis_(&basis),
          hasher_(hasher),
          piece_size_(piece_size),
          n_threads_(n_threads),
          rows_(basis, largest),
          scratch_(basis, largest),
          sums_(std::make_unique_for_overwrite<Value[]>(hasher.n_columns)),
          seen_(std::make_unique_for_overwrite<uint64_t[]>(hasher.n_columns / 64 + 1)) {
        scratch_.clear();
        sums().clear(hasher.n_columns);
        for (int64_t i = 0; i < n_pieces(n_threads); ++i)
            pieces_.emplace_back(piece_size, ranges_of(hasher));
    }

    /// What one takes: 8 bytes per bucket, 16 per tuple of a degree below the highest and, for each
    /// thread of those that share, 52 per output of a piece, for doubles.
    static uint64_t bytes(const Basis& basis, const Hasher& hasher, RowShape largest,
                          int64_t piece_size, int64_t n_threads) {
        return MixedRows<Rows, Value>::bytes(basis, largest) + Tails::bytes(basis, largest) +
               HashedSums<Value>::bytes(hasher.n_columns) +
               n_pieces(n_threads) * OutputPiece<Value>::bytes(piece_size, ranges_of(hasher));
    }

    /// Writes row r to `out`, its length to the second of the offsets.
    Appending fill(const CsrView<Value>& x, int64_t r, const AppendTo<Value>& out,
                   const StopRequest& should_stop) {
        const AnyRow row = rows_.read(x, r, hasher_);
        ToBuckets<Value, HashedSums<Value>> sink{hasher_, sums()};
        const Place tail_end = walk_lower(*basis_, row, rows_.keys(), scratch_.layout(), sink);
        const int64_t size = degree_size(*basis_, basis_->highest, shape_of(row));
        const int64_t stretch = piece_size_ * std::max<int64_t>(1, std::ssize(pieces_));
        for (int64_t begin = 0; begin < size; begin += stretch)
            if (!sum_stretch(row, tail_end, begin, std::min(begin + stretch, size), should_stop))
                return Appending::stopped;
        const int64_t n_outputs = sums().count(n_columns());
        if (n_outputs > out.n_slots) return Appending::full;
        sums().take(n_columns(), out.slots);
        out.offsets.set(1, n_outputs);
        return Appending::whole;
    }

  private:
    using AnyRow = typename MixedRows<Rows, Value>::Read;
    using Place = Slots<uint64_t, Value>;
    using Tails = Scratch<HashKeys, ToBuckets<Value, HashedSums<Value>>>;

    /// Fewer than 4 threads do not share a row: to distribute its outputs takes as long as to sum
    /// them.
    static int64_t n_pieces(int64_t n_threads) { return n_threads < 4 ? 0 : 2 * n_threads; }

    /// Ranges share no word of HashedSums::seen.
    static ColumnRanges ranges_of(const Hasher& hasher) {
        return ColumnRanges(static_cast<int64_t>(hasher.n_columns));
    }

    int64_t n_columns() const { return static_cast<int64_t>(hasher_.n_columns); }
    HashedSums<Value> sums() const { return {sums_.get(), seen_.get()}; }

    /// Outputs [begin, end) of the highest degree. False if stopped.
    bool sum_stretch(const AnyRow& row, Place tail_end, int64_t begin, int64_t end,
                     const StopRequest& should_stop) {
        if (pieces_.empty()) {
            walk_outputs(*basis_, hasher_, row, rows_.keys(), tail_end, begin, end, sums());
            return !should_stop();
        }
        const int64_t n_pieces = (end - begin + piece_size_ - 1) / piece_size_;
        const auto list = [&](int64_t, int64_t piece) {
            const int64_t from = begin + piece * piece_size_;
            const int64_t to = std::min(from + piece_size_, end);
            list_outputs(*basis_, hasher_, row, rows_.keys(), tail_end, from, to, pieces_[piece]);
        };
        const auto add = [&](int64_t, int64_t range) {
            HashedSums<Value> sums = this->sums();
            for (int64_t piece = 0; piece < n_pieces; ++piece)
                pieces_[piece].give(range, [&](auto... outputs) { sums.put(outputs...); });
        };
        return run_tasks(n_pieces, n_threads_, list, should_stop) &&
               run_tasks(ranges_of(hasher_).count(), n_threads_, add, should_stop);
    }

    /// Puts outputs [begin, end) of the highest degree.
    template <class Outputs>
    POLYSPARSE_PER_PROCESSOR static Outputs walk_outputs(const Basis& basis, const Hasher& hasher,
                                                         const AnyRow& row, HashKeys keys,
                                                         Place tail_end, int64_t begin, int64_t end,
                                                         Outputs outputs) {
        ToBuckets<Value, Outputs> sink{hasher, outputs};
        walk_part(basis, basis.highest, row, keys, tail_end, begin, end, tail_end, sink);
        return sink.outputs;
    }

    /// The same, listed in a piece and distributed.
    POLYSPARSE_PER_PROCESSOR static void list_outputs(const Basis& basis, const Hasher& hasher,
                                                      const AnyRow& row, HashKeys keys,
                                                      Place tail_end, int64_t begin, int64_t end,
                                                      OutputPiece<Value>& piece) {
        walk_outputs(basis, hasher, row, keys, tail_end, begin, end,
                     HashedList<Value>{piece.list()});
        piece.distribute(end - begin);
    }

    const Basis* basis_;
    Hasher hasher_;
    int64_t piece_size_, n_threads_;
    MixedRows<Rows, Value> rows_;
    Tails scratch_;
    std::unique_ptr<Value[]> sums_;
    std::unique_ptr<uint64_t[]> seen_;
    std::vector<OutputPiece<Value>> pieces_;  // none if one thread sums what it makes
};

}  // namespace polysparse
