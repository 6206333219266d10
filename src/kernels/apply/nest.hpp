// The outputs of a row as nested runs, for sinks that keep none of them.
//
// The recurrence of expand/walk.hpp makes a degree from the one below, which must be stored. What
// multiplies outputs with vectors does not need them to be: here each lead of a d-tuple is followed
// by the (d-1)-tuples of the row behind it, down to pairs, which a sink reads from the row as it is
// stored. Outputs and their columns are the same, and so is their order within a degree.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "basis/basis.hpp"
#include "expand/row_shape.hpp"
#include "matrix/csr_view.hpp"
#include "platform/processors.hpp"

namespace polysparse {

/// What a lead takes from the column of a pair: a simplex number.
template <class Index>
struct PairShifts {
    const Index* columns;
    int64_t deepest, shift;

    POLYSPARSE_INLINE int64_t operator()(int64_t a) const {
        return shift - static_cast<int64_t>(triangle(out_of_lanes(deepest - columns[a])));
    }
};

/// The same, where they are looked up.
struct KnownShifts {
    const uint64_t* depths;
    int64_t shift;

    POLYSPARSE_INLINE int64_t operator()(int64_t a) const {
        return shift - static_cast<int64_t>(depths[a]);
    }
};

/// Walks rows, for one worker.
template <class Index, class Value>
class Nest {
  public:
    /// For rows up to a shape, which only degrees above 2 need. The basis must outlive it. Throws
    /// bad_alloc.
    Nest(const Basis& basis, RowShape largest)
        : basis_(&basis),
          gap_(basis.interaction_only),
          width_(basis.highest > 2 ? n_stored(largest) : 0),
          depths_(width_ * std::max<int64_t>(basis.highest - 1, 0)),
          tame_(Tame::up_to(basis.highest)) {
        leads_.reserve(std::max<int64_t>(basis.highest, 0));
    }

    /// All outputs that the first values of a row lead, and the bias if `has_bias`.
    template <class Sink>
    POLYSPARSE_INLINE void walk(const LedRow<Index, Value>& row, bool has_bias, const Sink& sink) {
        const Basis& basis = *basis_;
        if (has_bias && basis.include_bias) sink.bias();
        if (basis.lowest <= 1 && basis.highest >= 1)
            sink.run(row.begin, row.leads, shift_of(1), Value(1));
        if (basis.lowest <= 2 && basis.highest >= 2) walk_pairs(row, sink);
        if (basis.highest > 2) walk_longer(row, sink);
    }

  private:
    /// Degrees above 2.
    template <class Sink>
    POLYSPARSE_APART void walk_longer(const LedRow<Index, Value>& row, const Sink& sink) {
        const int64_t lowest = std::max<int64_t>(basis_->lowest, 3), highest = basis_->highest;
        find_depths(std::integral_constant<int64_t, 2>{}, row);
        find_depths(std::integral_constant<int64_t, 3>{}, row);
        for (int64_t d = 4; d <= highest; ++d) find_depths(d, row);
        // The whole row decides, so that its parts round alike, however it is divided.
        const Value* const values = row.begin.values;
        const bool is_tame = std::all_of(values - row.before, values + row.n, tame_);
        for (int64_t d = lowest; d <= highest; ++d) {
            const int64_t last = std::min(row.leads, row.n - basis_->gap(d));
            if (is_tame)
                walk_behind(d, row, 0, last, shift_of(d), Value(1), sink);
            else
                walk_one_by_one(d, row, 0, last, shift_of(d), sink);
        }
    }

    /// If Degree is a compile-time constant its simplex numbers are written out. Distinct columns
    /// are at least as many as the values before them, unless they have changed.
    template <class Degree>
    POLYSPARSE_INLINE void find_depths(Degree d, const Row<Index, Value>& row) {
        uint64_t* const depths = depths_.data() + (d - 2) * width_;
        const int64_t of_first = deepest(d);
        for (int64_t a = 0; a < row.n; ++a) {
            const int64_t column = std::max<int64_t>(row.begin.columns[a], gap_ * a);
            depths[a] = simplex(d, out_of_lanes(of_first - column));
        }
    }

    // What has the inner loops is called apart, and compiled for each generation of processors.

    template <class Sink>
    POLYSPARSE_PER_PROCESSOR void walk_pairs(const LedRow<Index, Value>& row,
                                             const Sink& sink) const {
        sink.pairs(row, std::min(row.leads, row.n - gap_), gap_,
                   PairShifts<Index>{row.begin.columns, deepest(2), shift_of(2)}, Value(1));
    }

    /// The triples that values [a, last) lead, behind leads that shift and scale them.
    template <class Sink>
    POLYSPARSE_PER_PROCESSOR void walk_triples(const Row<Index, Value>& row, int64_t a,
                                               int64_t last, int64_t shift, Value scale,
                                               const Sink& sink) const {
        const uint64_t* const of_pairs = depths_.data();
        const uint64_t* const of_triples = of_pairs + width_;
        for (; a < last; ++a) {
            const int64_t next = a + gap_;
            const Row<Index, Value> rest{row.begin + next, row.n - next};
            const KnownShifts shifts{of_pairs + next, shift - static_cast<int64_t>(of_triples[a])};
            sink.pairs(rest, rest.n - gap_, gap_, shifts, scale * row.scale(a));
        }
    }

    /// The same for d-tuples, d > 2.
    template <class Sink>
    void walk_behind(int64_t d, const Row<Index, Value>& row, int64_t a, int64_t last,
                     int64_t shift, Value scale, const Sink& sink) const {
        if (d == 3) return walk_triples(row, a, last, shift, scale, sink);
        const uint64_t* const depths = depths_.data() + (d - 2) * width_;
        for (; a < last; ++a)
            walk_behind(d - 1, row, a + gap_, row.n - basis_->gap(d - 1),
                        shift - static_cast<int64_t>(depths[a]), scale * row.scale(a), sink);
    }

    /// The same, d > 1, output by output, where a product of leads might overflow and the whole
    /// might not.
    template <class Sink>
    void walk_one_by_one(int64_t d, const Row<Index, Value>& row, int64_t a, int64_t last,
                         int64_t shift, const Sink& sink) {
        for (; a < last; ++a) {
            const int64_t next = a + gap_;
            const int64_t next_shift = shift - static_cast<int64_t>(depths_[(d - 2) * width_ + a]);
            leads_.push_back(row.scale(a));
            if (d > 2)
                walk_one_by_one(d - 1, row, next, row.n - basis_->gap(d - 1), next_shift, sink);
            for (int64_t t = next; d == 2 && t < row.n; ++t) {
                Value value = row.scale(t);
                for (size_t i = leads_.size(); i > 0; --i) value = leads_[i - 1] * value;
                const ConstSlots<Index, Value> last_one{row.begin.columns + t, &value};
                sink.run(last_one, 1, next_shift, Value(1));
            }
            leads_.pop_back();
        }
    }

    /// Whether no product of values like this one overflows, or loses digits below the smallest
    /// normal number.
    struct Tame {
        Value least, most;
        bool operator()(Value value) const {
            const Value size = std::abs(value);
            return size >= least && size <= most;
        }
        static Tame up_to(int64_t degree) {
            using Limits = std::numeric_limits<Value>;
            const Value root = Value(1) / static_cast<Value>(std::max<int64_t>(degree, 1));
            return {2 * std::pow(Limits::min(), root), std::pow(Limits::max(), root) / 2};
        }
    };

    /// From the last column of a d-tuple to its output column, if no lead took anything from it.
    int64_t shift_of(int64_t d) const {
        return static_cast<int64_t>(basis_->degree_end[d]) - basis_->n_features;
    }
    /// The depth of the first feature, as the first of a d-tuple.
    int64_t deepest(int64_t d) const { return basis_->n_features - 1 - basis_->gap(d); }

    const Basis* basis_;
    int64_t gap_;  // from a value to those that may follow it
    int64_t width_;
    std::vector<uint64_t> depths_;  // what values take from columns of the d-tuples they lead
    Tame tame_;
    std::vector<Value> leads_;  // of the outputs that are walked one by one
};

}  // namespace polysparse
