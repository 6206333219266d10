// Where the degrees of a row are stored while it is walked.
//
// A sink that holds its degrees has them one behind the other from the lowest degree of the basis
// up, at their final place. Other degrees are stored only as tails, in two buffers: each is made
// from the one before, so even and odd degrees take turns.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "basis/basis.hpp"
#include "expand/row_shape.hpp"
#include "platform/processors.hpp"

namespace polysparse {

template <class Place>
struct Layout {
    int64_t first_held;  // the lowest degree that is not in a buffer
    Place held;          // where that degree begins
    Place even, odd;     // the buffers

    /// Where P_d begins, if P_{d-1} ends at `end`.
    POLYSPARSE_INLINE Place next(int64_t d, Place end) const {
        if (d < first_held) return d % 2 == 0 ? even : odd;
        return d == first_held ? held : end;
    }

    Place first() const { return next(1, held); }

    /// Where P_d begins, for any d.
    template <class Shape>
    Place begin(const Basis& basis, int64_t d, const Shape& shape) const {
        Place place = held;
        for (int64_t e = first_held; e < d; ++e) place = place + degree_size(basis, e, shape);
        return next(d, place);
    }
    template <class Shape>
    Place end(const Basis& basis, int64_t d, const Shape& shape) const {
        return begin(basis, d, shape) + degree_size(basis, d, shape);
    }
};

template <class Sink>
int64_t first_held(const Basis& basis) {
    return Sink::holds_degrees ? basis.lowest : std::numeric_limits<int64_t>::max();
}

/// Tuples that the buffers must hold.
struct BufferSizes {
    int64_t even = 0, odd = 0;
    int64_t total() const { return even + odd; }
};

/// No row up to a shape has more tuples of degree d that must be stored, where there are groups.
/// Too large to allocate if they cannot be counted.
inline int64_t most_stored(const Basis& basis, int64_t d, RowShape shape) {
    constexpr int64_t few = int64_t{1} << 12;  // not worth a look at the groups
    const int64_t all = countable_degree_size(basis, d, shape);
    if (d < 2 || all <= few) return all;
    const int64_t n = n_stored(shape);
    if (basis.terms)
        return std::min(all, basis.terms->most_tails(*basis.groups, d, n, uncountable));
    return std::min(all, basis.groups->most_tuples(d, n, uncountable));
}

/// For rows up to a shape. A P_1 that is stored has space even if no other degree is made from it.
/// Terms are made each by itself, from tuples that stay in the buffers.
template <class Keys, class Sink>
BufferSizes buffers_for(const Basis& basis, RowShape shape) {
    const int64_t last = Sink::holds_degrees && !basis.terms
                             ? std::min(basis.lowest - 1, basis.highest)
                             : std::max<int64_t>(basis.highest - 1, 1);
    BufferSizes buffers;
    for (int64_t d = Keys::first_stored; d <= last; ++d) {
        int64_t& size = d % 2 == 0 ? buffers.even : buffers.odd;
        size = std::max(size,
                        basis.groups ? most_stored(basis, d, shape) : degree_size(basis, d, shape));
    }
    return buffers;
}

/// The buffers of a sink whose places are Slots, with lanes behind each for groups that go past the
/// end. The basis must outlive it. Throws bad_alloc.
template <class Keys, class Sink>
class Scratch {
  public:
    using Place = typename Sink::Place;

    Scratch(const Basis& basis, RowShape largest)
        : basis_(&basis), buffers_(buffers_for<Keys, Sink>(basis, largest)), arrays_(size()) {}

    static uint64_t bytes(const Basis& basis, RowShape largest) {
        return Place::Arrays::bytes(size(buffers_for<Keys, Sink>(basis, largest)));
    }

    /// Sets every slot to zero, so that no group reads values that are slow to multiply.
    void clear() { arrays_.clear(size()); }

    int64_t size() const { return size(buffers_); }

    /// The layout of a row whose held degrees begin at `held`.
    Layout<Place> layout(Place held = {}) const {
        const Place even = arrays_.slots();
        return {first_held<Sink>(*basis_), held, even, even + buffers_.even + lanes};
    }

  private:
    static int64_t size(BufferSizes buffers) { return buffers.total() + 2 * lanes; }

    const Basis* basis_;
    BufferSizes buffers_;
    typename Place::Arrays arrays_;
};

}  // namespace polysparse
