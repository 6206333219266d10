// Rows restricted to the groups of a term, one term at a time.
//
// A term of k groups is all of a smaller basis: that of its groups alone, of degree k, without
// powers. So to count a term is to count that basis in the rows that have all of its groups.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "basis/basis.hpp"
#include "matrix/own_columns.hpp"
#include "observe/csr_pattern.hpp"
#include "platform/huge_array.hpp"
#include "platform/threads.hpp"

namespace polysparse {

/// The basis whose monomials are those of a term, in its columns. Features are those of its groups,
/// renumbered. Throws bad_alloc.
inline Basis basis_of_term(const GroupTable& groups, const Term& term) {
    const auto k = static_cast<int64_t>(term.members.size());
    std::vector<int64_t> sizes;
    int64_t n_features = 0;
    for (const Term::Member& member : term.members) {
        sizes.push_back(groups.size(member.group));
        n_features += sizes.back();
    }
    std::vector<uint64_t> degree_end(k + 1);
    degree_end[k] = static_cast<uint64_t>(term.first_column) +
                    static_cast<uint64_t>(sizes[0]) * term.members[0].stride;
    return {n_features,
            k,
            k,
            true,
            false,
            std::move(degree_end),
            std::make_shared<const GroupTable>(sizes, false, k)};
}

/// Bytes that TermPatterns may need per stored value.
constexpr int64_t term_patterns_bytes(int64_t index_size) {
    return 2 * index_size + 12 + 8;
}

/// The rows of a matrix by the groups that terms have, in the order of the rows.
template <class Index>
class TermPatterns {
  public:
    /// Needs: rows as `observe` needs them. Copies the columns, and the basis must outlive it.
    /// Throws bad_alloc.
    TermPatterns(const Basis& basis, const CsrPattern& rows, const Index* columns,
                 int64_t n_threads)
        : groups_(basis.groups.get()),
          table_(basis.terms.get()),
          all_(rows.row_offsets[rows.n_rows] - rows.row_offsets[0]),
          first_(table_->n_slots() + 1) {
        list_slices(rows, columns, basis.n_features, n_threads);
        reserve();
    }

    /// The rows that have all groups of a term, with the features of basis_of_term. Valid until the
    /// next call.
    CsrPattern restricted_to(const Term& term) {
        row_offsets_.assign(1, 0);
        columns_.clear();
        std::vector<const Slice*> next;
        for (const Term::Member& member : term.members) next.push_back(begin(member));
        for (; next[0] != end(term.members[0]); ++next[0])
            if (have_row(term, next[0]->row, next)) append_row(term, next);
        return {row_offsets_.data(), static_cast<int64_t>(row_offsets_.size()) - 1,
                columns_.data()};
    }

  private:
    /// Stored values [begin, end) of a row: those in one group.
    struct Slice {
        uint32_t row, begin, end;
    };

    const Slice* begin(const Term::Member& member) const { return &slices_[first_[member.slot]]; }
    const Slice* end(const Term::Member& member) const { return &slices_[first_[member.slot + 1]]; }

    int64_t n_slices(const Term::Member& member) const { return end(member) - begin(member); }

    /// Calls f(slot, slice) for the groups of row r that terms have.
    template <class F>
    void for_each_slice(int64_t r, int64_t begin, int64_t end, const F& f) {
        for (int64_t t = begin; t < end;) {
            const int64_t group = groups_->group_of(all_[t]), from = t;
            const int64_t behind = groups_->start(group) + groups_->size(group);
            while (t < end && all_[t] < behind) ++t;
            if (const int64_t slot = table_->slot_of(group); slot >= 0)
                f(slot, Slice{static_cast<uint32_t>(r), static_cast<uint32_t>(from),
                              static_cast<uint32_t>(t)});
        }
    }

    /// Copies the columns, and sorts the slices of all rows by slot, stably.
    void list_slices(const CsrPattern& rows, const Index* columns, int64_t n_features,
                     int64_t n_threads) {
        std::vector<std::vector<uint32_t>> places(n_threads,
                                                  std::vector<uint32_t>(table_->n_slots()));
        const int64_t first = rows.row_offsets[0];
        const auto for_each_row = [&](int64_t part, const auto& f) {
            const int64_t stop = rows.n_rows * (part + 1) / n_threads;
            for (int64_t r = rows.n_rows * part / n_threads; r < stop; ++r)
                f(r, rows.row_offsets[r] - first, rows.row_offsets[r + 1] - first);
        };
        run_tasks(n_threads, n_threads, [&](int64_t, int64_t part) {
            for_each_row(part, [&](int64_t r, int64_t begin, int64_t end) {
                copy_increasing(columns + first + begin, end - begin, n_features, &all_[begin]);
                for_each_slice(r, begin, end,
                               [&](int64_t slot, const Slice&) { ++places[part][slot]; });
            });
        });
        uint32_t place = 0;
        for (int64_t slot = 0; slot < table_->n_slots(); ++slot) {
            first_[slot] = place;
            for (std::vector<uint32_t>& here : places) place += std::exchange(here[slot], place);
        }
        first_.back() = place;
        slices_ = HugeArray<Slice>(place);
        run_tasks(n_threads, n_threads, [&](int64_t, int64_t part) {
            for_each_row(part, [&](int64_t r, int64_t begin, int64_t end) {
                for_each_slice(r, begin, end, [&](int64_t slot, const Slice& slice) {
                    slices_[places[part][slot]++] = slice;
                });
            });
        });
    }

    /// Reserves memory for the restriction to any of the terms.
    void reserve() {
        std::vector<int64_t> n_stored(table_->n_slots());
        for (int64_t slot = 0; slot < table_->n_slots(); ++slot)
            for (uint32_t i = first_[slot]; i < first_[slot + 1]; ++i)
                n_stored[slot] += slices_[i].end - slices_[i].begin;
        int64_t most_rows = 0, most_stored = 0;
        for (const Term& term : table_->terms()) {
            int64_t of_term = 0, rows_of_term = n_slices(term.members[0]);
            for (const Term::Member& member : term.members) {
                of_term += n_stored[member.slot];
                rows_of_term = std::min(rows_of_term, n_slices(member));
            }
            most_stored = std::max(most_stored, of_term);
            most_rows = std::max(most_rows, rows_of_term);
        }
        row_offsets_.reserve(most_rows + 1);
        columns_.reserve(most_stored);
    }

    /// Whether all groups of a term but the first are in a row. Moves `next` to the row.
    bool have_row(const Term& term, uint32_t row, std::vector<const Slice*>& next) const {
        for (size_t m = 1; m < next.size(); ++m) {
            const Slice* const stop = end(term.members[m]);
            while (next[m] != stop && next[m]->row < row) ++next[m];
            if (next[m] == stop || next[m]->row != row) return false;
        }
        return true;
    }

    void append_row(const Term& term, const std::vector<const Slice*>& slices) {
        int64_t start = 0;  // of the group in the restricted features
        for (size_t m = 0; m < slices.size(); ++m) {
            const Term::Member& member = term.members[m];
            for (uint32_t t = slices[m]->begin; t < slices[m]->end; ++t)
                columns_.push_back(static_cast<Index>(all_[t] - member.start + start));
            start += groups_->size(member.group);
        }
        row_offsets_.push_back(static_cast<int64_t>(columns_.size()));
    }

    const GroupTable* groups_;
    const TermTable* table_;
    HugeArray<Index> all_;         // columns of all stored values
    std::vector<uint32_t> first_;  // [slot]: its first slice; and the end
    HugeArray<Slice> slices_{0};   // by slot
    std::vector<int64_t> row_offsets_;
    std::vector<Index> columns_;
};

}  // namespace polysparse
