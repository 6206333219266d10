// What follows a stored value in the terms of a basis. All terms are counted in one transposed
// matrix; only followers differ from term to term.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "basis/basis.hpp"
#include "observe/csr_pattern.hpp"
#include "observe/prefix_walk.hpp"
#include "observe/transposed.hpp"
#include "platform/huge_array.hpp"
#include "platform/processors.hpp"
#include "platform/threads.hpp"

namespace polysparse {

/// Which stored values may follow another, in one term: those of its row in the term's next group.
struct TermFollowers {
    const Term* term;
    const Span* spans;  // [t]

    uint32_t first(uint32_t t) const { return spans[t].begin; }
    uint32_t end(uint32_t t, uint32_t) const { return spans[t].end; }
    void prefetch_first(uint32_t t) const { prefetch(spans + t); }

    /// The column of a monomial of degree k is this plus its last input column. Needs: k is the
    /// degree of the term.
    uint64_t base_of(int64_t k, const int64_t* prefix) const {
        auto base = static_cast<uint64_t>(term->first_column - term->members.back().start);
        for (int64_t m = 0; m < k - 1; ++m)
            base +=
                static_cast<uint64_t>(prefix[m] - term->members[m].start) * term->members[m].stride;
        return base;
    }
};

/// Bytes that TermIndex may need per stored value.
constexpr int64_t term_index_bytes = 12 + 8;

/// The rows of a transposed matrix by the groups that terms have.
template <class Column>
class TermIndex {
  public:
    /// The basis and x, of these rows, must outlive it. Throws bad_alloc.
    TermIndex(const Basis& basis, const CsrPattern& rows, const Transposed<Column>& x,
              int64_t n_threads)
        : groups_(basis.groups.get()),
          table_(basis.terms.get()),
          columns_(x.columns.data()),
          n_threads_(n_threads),
          first_(table_->n_slots() + 1),
          spans_(rows.row_offsets[rows.n_rows] - rows.row_offsets[0]) {
        list_slices(rows);
    }

    /// The followers in a term. They are valid until the next call.
    TermFollowers followers(const Term& term) {
        for (size_t m = 0; m + 1 < term.members.size(); ++m)
            link(term.members[m], term.members[m + 1]);
        return {&term, spans_.data()};
    }

    /// No more rows have all groups of a term.
    int64_t most_rows(const Term& term) const {
        int64_t most = n_slices(term.members[0]);
        for (const Term::Member& member : term.members) most = std::min(most, n_slices(member));
        return most;
    }

  private:
    /// Those of a row that are in one group.
    struct Slice {
        uint32_t row;
        Span stored;
    };

    const Slice* begin(const Term::Member& member) const {
        return slices_.data() + first_[member.slot];
    }
    const Slice* end(const Term::Member& member) const {
        return slices_.data() + first_[member.slot + 1];
    }
    int64_t n_slices(const Term::Member& member) const { return end(member) - begin(member); }

    /// Lets each value of a group be followed by those of another group in its row.
    void link(const Term::Member& from, const Term::Member& to) {
        const EqualRanges ranges(n_slices(from), n_threads_);
        ranges.run([&](int64_t, int64_t first, int64_t last) {
            const auto is_before = [](const Slice& a, const Slice& b) { return a.row < b.row; };
            const Slice* const stop = begin(from) + last;
            const Slice* next = begin(to);
            if (first > 0) next = std::lower_bound(next, end(to), begin(from)[first], is_before);
            for (const Slice* slice = begin(from) + first; slice != stop; ++slice) {
                while (next != end(to) && next->row < slice->row) ++next;
                const bool has_row = next != end(to) && next->row == slice->row;
                const Span followers = has_row ? next->stored : Span{0, 0};
                for (uint32_t t = slice->stored.begin; t < slice->stored.end; ++t)
                    spans_[t] = followers;
            }
        });
    }

    /// Calls f(slot, slice) for the groups of row r, values [begin, end), that terms have.
    template <class F>
    void for_each_slice(int64_t r, int64_t begin, int64_t end, const F& f) const {
        for (int64_t t = begin; t < end;) {
            const int64_t group = groups_->group_of(static_cast<int64_t>(columns_[t])), from = t;
            const auto behind = static_cast<uint64_t>(groups_->start(group) + groups_->size(group));
            while (t < end && columns_[t] < behind) ++t;
            if (const int64_t slot = table_->slot_of(group); slot >= 0)
                f(slot, Slice{static_cast<uint32_t>(r),
                              {static_cast<uint32_t>(from), static_cast<uint32_t>(t)}});
        }
    }

    /// Sorts the slices of all rows by slot, stably.
    void list_slices(const CsrPattern& rows) {
        std::vector<std::vector<uint32_t>> places(n_threads_,
                                                  std::vector<uint32_t>(table_->n_slots()));
        const int64_t first = rows.row_offsets[0];
        const auto for_each = [&](int64_t part, const auto& f) {
            const int64_t stop = rows.n_rows * (part + 1) / n_threads_;
            for (int64_t r = rows.n_rows * part / n_threads_; r < stop; ++r)
                for_each_slice(r, rows.row_offsets[r] - first, rows.row_offsets[r + 1] - first, f);
        };
        run_tasks(n_threads_, n_threads_, [&](int64_t, int64_t part) {
            for_each(part, [&](int64_t slot, const Slice&) { ++places[part][slot]; });
        });
        uint32_t place = 0;
        for (int64_t slot = 0; slot < table_->n_slots(); ++slot) {
            first_[slot] = place;
            for (std::vector<uint32_t>& here : places) place += std::exchange(here[slot], place);
        }
        first_.back() = place;
        slices_ = HugeArray<Slice>(place);
        run_tasks(n_threads_, n_threads_, [&](int64_t, int64_t part) {
            for_each(part, [&](int64_t slot, const Slice& slice) {
                slices_[places[part][slot]++] = slice;
            });
        });
    }

    const GroupTable* groups_;
    const TermTable* table_;
    const Column* columns_;  // of all stored values
    int64_t n_threads_;
    std::vector<uint32_t> first_;  // [slot]: its first slice; and the end
    HugeArray<Slice> slices_{0};   // by slot
    HugeArray<Span> spans_;        // [t]: what follows stored value t
};

}  // namespace polysparse
