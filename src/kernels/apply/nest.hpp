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
    /// Those of the values from `first` on.
    POLYSPARSE_INLINE KnownShifts from(int64_t first) const { return {depths + first, shift}; }
};

// *Followers* of a row have
//     followers.next(a)    the first value that may follow value a; all later ones may, too
//     followers.last(d)    one past the last value that leads a d-tuple
//     followers.pairs(row, first, last, shifts, scale, sink)
//                          the pairs that values [first, last) lead, as runs: that of value a has
//                          shift shifts(a)

/// Values are followed by those that come `gap` later.
struct GapFollowers {
    int64_t gap, n;

    POLYSPARSE_INLINE int64_t next(int64_t a) const { return a + gap; }
    POLYSPARSE_INLINE int64_t last(int64_t d) const { return n - (d - 1) * gap; }

    template <class Index, class Value, class Sink>
    POLYSPARSE_INLINE void pairs(const Row<Index, Value>& row, int64_t first, int64_t last,
                                 KnownShifts shifts, Value scale, const Sink& sink) const {
        const Row<Index, Value> rest{row.begin + first, row.n - first};
        sink.pairs(rest, last - first, gap, shifts.from(first), scale);
    }
};

/// Walks the degrees above 2 of rows, for one worker.
template <class Index, class Value>
class DeepNest {
  public:
    /// For rows up to a shape, of which depths are known for degrees from 2 on if has_depths. The
    /// basis must outlive it. Throws bad_alloc.
    DeepNest(const Basis& basis, RowShape largest, bool has_depths)
        : basis_(&basis),
          width_(has_depths ? n_stored(largest) : 0),
          depths_(width_ * std::max<int64_t>(basis.highest - 1, 0)),
          tame_(Tame::up_to(basis.highest)) {
        leads_.reserve(std::max<int64_t>(basis.highest, 0));
    }

    /// What the values of a row take from the columns of the d-tuples they lead, for who walks the
    /// row to write. Needs: has_depths.
    uint64_t* depths(int64_t d) { return depths_.data() + (d - 2) * width_; }
    const uint64_t* depths(int64_t d) const { return depths_.data() + (d - 2) * width_; }

    /// All tuples of more than two that the first values of a row lead. Needs: depths.
    template <class Followers, class Sink>
    POLYSPARSE_INLINE void walk(const LedRow<Index, Value>& row, Followers followers,
                                const Sink& sink) {
        const bool is_tame = this->is_tame(row);
        for (int64_t d = std::max<int64_t>(basis_->lowest, 3); d <= basis_->highest; ++d) {
            const int64_t last = std::min(row.leads, followers.last(d));
            if (is_tame)
                walk_behind(d, row, followers, 0, last, shift_of(d), Value(1), sink);
            else
                walk_one_by_one(d, row, followers, 0, last, shift_of(d), sink);
        }
    }

    /// From the last column of a d-tuple to its output column, if no lead took anything from it.
    int64_t shift_of(int64_t d) const {
        return static_cast<int64_t>(basis_->degree_end[d]) - basis_->n_features;
    }

    /// Whether products of leads may be made before they are multiplied with the last value. The
    /// whole row decides, so that its parts round alike, however it is divided.
    bool is_tame(const LedRow<Index, Value>& row) const {
        const Value* const values = row.begin.values;
        return std::all_of(values - row.before, values + row.n, tame_);
    }

    /// Leads of an output that is made by itself: none overflows before the whole does.
    class Leads {
      public:
        void reserve(int64_t n) { values_.reserve(n); }
        void push(Value value) { values_.push_back(value); }
        void pop() { values_.pop_back(); }

        /// The output that ends with value t of a row.
        template <class Sink>
        void put(const Row<Index, Value>& row, int64_t t, int64_t shift, const Sink& sink) const {
            Value value = row.scale(t);
            for (size_t i = values_.size(); i > 0; --i) value = values_[i - 1] * value;
            const ConstSlots<Index, Value> last_one{row.begin.columns + t, &value};
            sink.run(last_one, 1, shift, Value(1));
        }

      private:
        std::vector<Value> values_;
    };

    Leads& leads() { return leads_; }

  private:
    // What has the inner loops is called apart, and compiled for each generation of processors.

    /// The triples that values [a, last) lead, behind leads that shift and scale them.
    template <class Followers, class Sink>
    POLYSPARSE_PER_PROCESSOR void walk_triples(const Row<Index, Value>& row, Followers followers,
                                               int64_t a, int64_t last, int64_t shift, Value scale,
                                               const Sink& sink) const {
        const uint64_t* const of_pairs = depths_.data();
        const uint64_t* const of_triples = of_pairs + width_;
        for (; a < last; ++a) {
            const KnownShifts shifts{of_pairs, shift - static_cast<int64_t>(of_triples[a])};
            followers.pairs(row, followers.next(a), followers.last(2), shifts, scale * row.scale(a),
                            sink);
        }
    }

    /// The same for d-tuples, d > 2.
    template <class Followers, class Sink>
    void walk_behind(int64_t d, const Row<Index, Value>& row, Followers followers, int64_t a,
                     int64_t last, int64_t shift, Value scale, const Sink& sink) const {
        if (d == 3) return walk_triples(row, followers, a, last, shift, scale, sink);
        const uint64_t* const depths = depths_.data() + (d - 2) * width_;
        for (; a < last; ++a)
            walk_behind(d - 1, row, followers, followers.next(a), followers.last(d - 1),
                        shift - static_cast<int64_t>(depths[a]), scale * row.scale(a), sink);
    }

    /// The same, d > 1, output by output, where a product of leads might overflow and the whole
    /// might not.
    template <class Followers, class Sink>
    void walk_one_by_one(int64_t d, const Row<Index, Value>& row, Followers followers, int64_t a,
                         int64_t last, int64_t shift, const Sink& sink) {
        for (; a < last; ++a) {
            const int64_t next = followers.next(a);
            const int64_t next_shift = shift - static_cast<int64_t>(depths_[(d - 2) * width_ + a]);
            leads_.push(row.scale(a));
            if (d > 2)
                walk_one_by_one(d - 1, row, followers, next, followers.last(d - 1), next_shift,
                                sink);
            for (int64_t t = next; d == 2 && t < row.n; ++t) leads_.put(row, t, next_shift, sink);
            leads_.pop();
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

    const Basis* basis_;
    int64_t width_;
    std::vector<uint64_t> depths_;
    Tame tame_;
    Leads leads_;
};

/// Walks rows, for one worker.
template <class Index, class Value>
class Nest {
  public:
    /// For rows up to a shape, which only degrees above 2 need. The basis must outlive it. Throws
    /// bad_alloc.
    Nest(const Basis& basis, RowShape largest)
        : basis_(&basis), gap_(basis.interaction_only), deep_(basis, largest, basis.highest > 2) {}

    /// All outputs that the first values of a row lead, and the bias if `has_bias`.
    template <class Sink>
    POLYSPARSE_INLINE void walk(const LedRow<Index, Value>& row, bool has_bias, const Sink& sink) {
        const Basis& basis = *basis_;
        if (has_bias && basis.include_bias) sink.bias();
        if (basis.lowest <= 1 && basis.highest >= 1)
            sink.run(row.begin, row.leads, deep_.shift_of(1), Value(1));
        if (basis.lowest <= 2 && basis.highest >= 2) walk_pairs(row, sink);
        if (basis.highest > 2) walk_longer(row, sink);
    }

  private:
    template <class Sink>
    POLYSPARSE_PER_PROCESSOR void walk_pairs(const LedRow<Index, Value>& row,
                                             const Sink& sink) const {
        sink.pairs(row, std::min(row.leads, row.n - gap_), gap_,
                   PairShifts<Index>{row.begin.columns, deepest(2), deep_.shift_of(2)}, Value(1));
    }

    template <class Sink>
    POLYSPARSE_APART void walk_longer(const LedRow<Index, Value>& row, const Sink& sink) {
        find_depths(std::integral_constant<int64_t, 2>{}, row);
        find_depths(std::integral_constant<int64_t, 3>{}, row);
        for (int64_t d = 4; d <= basis_->highest; ++d) find_depths(d, row);
        deep_.walk(row, GapFollowers{gap_, row.n}, sink);
    }

    /// If Degree is a compile-time constant its simplex numbers are written out. Distinct columns
    /// are at least as many as the values before them, unless they have changed.
    template <class Degree>
    POLYSPARSE_INLINE void find_depths(Degree d, const Row<Index, Value>& row) {
        uint64_t* const depths = deep_.depths(d);
        const int64_t of_first = deepest(d);
        for (int64_t a = 0; a < row.n; ++a) {
            const int64_t column = std::max<int64_t>(row.begin.columns[a], gap_ * a);
            depths[a] = simplex(d, out_of_lanes(of_first - column));
        }
    }

    /// The depth of the first feature, as the first of a d-tuple.
    int64_t deepest(int64_t d) const { return basis_->n_features - 1 - basis_->gap(d); }

    const Basis* basis_;
    int64_t gap_;  // from a value to those that may follow it
    DeepNest<Index, Value> deep_;
};

}  // namespace polysparse
