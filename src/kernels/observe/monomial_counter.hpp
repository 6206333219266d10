// Counting, for every monomial, the rows that have it: a visitor of the walk by prefixes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <type_traits>
#include <utility>
#include <vector>

#include "basis/basis.hpp"
#include "observe/prefix_walk.hpp"
#include "observe/runs.hpp"
#include "observe/transposed.hpp"
#include "platform/processors.hpp"
#include "platform/slabs.hpp"

namespace polysparse {

/// Columns and counts as they are found. One check for both arrays: this is the innermost loop.
template <class Count>
class FoundColumns {
  public:
    int64_t size() const { return static_cast<int64_t>(size_); }

    POLYSPARSE_INLINE void append(int64_t column, Count count) {
        if (size_ == counts_.size()) grow();
        columns_[size_] = column;
        counts_[size_++] = count;
    }

    /// Takes all of them, to memory of an arena. Throws bad_alloc.
    Chunk<Count> take(SlabArena& arena) {
        Chunk<Count> all = Chunk<Count>::copy(columns_.data(), counts_.data(), size(), arena);
        size_ = 0;
        return all;
    }

  private:
    POLYSPARSE_APART void grow() {
        const size_t size = std::max<size_t>(2 * size_, 64);
        columns_.resize(size);
        counts_.resize(size);  // the last, because its size is that of both
    }

    std::vector<int64_t> columns_;
    std::vector<Count> counts_;
    size_t size_ = 0;  // how many are in use
};

/// The members of a prefix, and the output columns of what extends it.
class Prefix {
  public:
    explicit Prefix(int64_t highest) : members_(highest + 1), first_equal_(highest + 1) {}

    /// Makes a column the last of a prefix of m + 1.
    void set(int64_t m, int64_t column) {
        members_[m] = column;
        first_equal_[m] = m > 0 && members_[m - 1] == column ? first_equal_[m - 1] : m;
    }

    /// The output column of a monomial of degree k is this plus its last input column. Others are
    /// in the prefix. The depths of equal members of the prefix add up in one step: T_lo(n) + ... +
    /// T_hi(n) is T_hi(n + 1) - T_{lo-1}(n + 1). So the cost does not grow with the degree alone.
    uint64_t base(const Basis& basis, const PlainFollowers&, int64_t k) const {
        uint64_t base = basis.degree_end[k] - static_cast<uint64_t>(basis.n_features);
        for (int64_t m = k - 2; m >= 0;) {
            const int64_t first = first_equal_[m];
            if (first == m) {
                base -= basis.depth(k - m, members_[m]);
            } else {  // no gaps: interactions have no equal members
                const int64_t n = basis.n_features - members_[m];
                base -= simplex(k - first, n) - simplex(k - m - 1, n);
            }
            m = first - 1;
        }
        return base;
    }

    /// With groups there is no such step, but degrees are limited.
    uint64_t base(const Basis& basis, const GroupedFollowers&, int64_t k) const {
        uint64_t base = basis.degree_end[k] - static_cast<uint64_t>(basis.n_features);
        for (int64_t m = 0; m < k - 1; ++m) base -= basis.groups->depth(k - m, members_[m]);
        return base;
    }

    /// Other followers know by themselves.
    template <class Followers>
    uint64_t base(const Basis&, const Followers& followers, int64_t k) const {
        return followers.base_of(k, members_.data());
    }

  private:
    std::vector<int64_t> members_;
    std::vector<int64_t> first_equal_;  // [m]: the first member that equals member m
};

/// Lists columns and counts of all monomials that are visited.
template <class Column, class Count>
class MonomialCounter {
  public:
    using Span = polysparse::Span;

    /// The arena holds what is taken. All references must outlive the counter.
    MonomialCounter(const Basis& basis, const Transposed<Column>& x, SlabArena& arena)
        : x_(&x), prefix_(basis.highest), found_(basis.highest + 1), arena_(&arena) {}

    /// Takes what was found of a degree since the last time.
    Chunk<Count> take(int64_t degree) {
        Chunk<Count> all = found_[degree].take(*arena_);
        n_reported_ -= std::ssize(all.columns);
        return all;
    }

    int64_t n_found() {
        int64_t n_found = 0;
        for (const FoundColumns<Count>& found : found_) n_found += found.size();
        return n_found - std::exchange(n_reported_, n_found);
    }

    template <class Followers>
    bool start_lead(const Basis& basis, const Followers& followers, int64_t,
                    const Tail<Column>* tails, int64_t n) {
        if (basis.lowest <= 1) {
            const uint64_t base = prefix_.base(basis, followers, 1);
            found_[1].append(static_cast<int64_t>(base + tails->column), static_cast<Count>(n));
        }
        return true;
    }

    POLYSPARSE_INLINE void set_prefix(int64_t m, int64_t column) { prefix_.set(m, column); }
    POLYSPARSE_INLINE bool enters(int64_t, size_t) const { return true; }

    // Only counters of the walk matter.
    struct Row {};
    template <class AnySpan>
    POLYSPARSE_INLINE Row row_of(const AnySpan&) const {
        return {};
    }
    template <bool is_last>
    POLYSPARSE_INLINE void add(uint32_t, uint32_t, Row) const {}
    POLYSPARSE_INLINE Span next(Row, uint32_t t, uint32_t end) const { return {t, end}; }

    struct Results {
        FoundColumns<Count>* found;
        const Column* names;
        uint64_t base;
        bool are_wanted;

        POLYSPARSE_INLINE bool accept(uint32_t number, Count n_rows) const {
            if (are_wanted) found->append(static_cast<int64_t>(base + names[number]), n_rows);
            return true;
        }
        POLYSPARSE_INLINE void drop(uint32_t) const {}
    };
    template <bool is_last, class Followers>
    POLYSPARSE_INLINE Results results(const Basis& basis, const Followers& followers, int64_t k,
                                      int64_t) {
        return {&found_[k], x_->names.data(), prefix_.base(basis, followers, k),
                is_last || k >= basis.lowest};
    }

    template <class AnySpan>
    POLYSPARSE_INLINE void enter_row(int64_t, const AnySpan&) const {}
    POLYSPARSE_INLINE bool enters_row(int64_t, uint32_t) const { return true; }
    template <class Followers>
    void found_in_row(const Basis& basis, const Followers& followers, int64_t k, uint32_t begin,
                      uint32_t end) {
        const uint64_t base = prefix_.base(basis, followers, k);
        const Column* const columns = &x_->columns[0];
        FoundColumns<Count>& found = found_[k];
        for (uint32_t t = begin; t < end; ++t)
            found.append(static_cast<int64_t>(base + columns[t]), 1);
    }

  private:
    const Transposed<Column>* x_;
    Prefix prefix_;
    std::vector<FoundColumns<Count>> found_;  // [degree]
    int64_t n_reported_ = 0;                  // how much of found_ the watch knows of
    SlabArena* arena_;                        // for what is taken
};

}  // namespace polysparse
