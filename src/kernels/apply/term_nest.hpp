// The outputs of a row as nested runs, where terms are chosen: for each term a loop over the values
// of each of its groups, of which the last is a run.
#pragma once

#include <algorithm>
#include <cstdint>

#include "apply/nest.hpp"
#include "basis/basis.hpp"
#include "expand/row_shape.hpp"
#include "expand/term_rows.hpp"
#include "matrix/csr_view.hpp"
#include "platform/processors.hpp"

namespace polysparse {

/// Walks rows with increasing columns, and of the groups that the basis knows, for one worker.
template <class Index, class Value>
class TermNest {
  public:
    /// The basis must outlive it. Throws bad_alloc.
    TermNest(const Basis& basis, RowShape largest)
        : basis_(&basis), slices_(basis, largest), deep_(basis, largest, false) {
        if (basis.knows_groups()) slices_.set_groups(basis.row_groups);
    }

    /// All outputs that the first values of a row lead, and the bias if `has_bias`.
    template <class Sink>
    void walk(const LedRow<Index, Value>& row, bool has_bias, const Sink& sink) {
        if (has_bias && basis_->include_bias) sink.bias();
        const Row<Index, Value> whole{row.begin - row.before, row.n + row.before};
        shape_ =
            basis_->knows_groups() ? slices_.shape() : slices_.find(whole.begin.columns, whole.n);
        const bool is_tame = basis_->highest <= 2 || deep_.is_tame(row);
        for (const Term& term : basis_->terms->terms()) {
            const auto k = static_cast<int64_t>(term.members.size());
            RowSlice leads = shape_.slice(term.members[0]);
            leads.begin = std::max(leads.begin, row.before);
            leads.end = std::min(leads.end, row.before + row.leads);
            if (leads.begin >= leads.end || shape_.size(term) == 0) continue;
            const auto shift = static_cast<int64_t>(keys_of_row(whole).last_shift(term));
            if (k == 1)
                sink.run(whole.begin + leads.begin, leads.size(), shift, Value(1));
            else if (is_tame || k == 2)
                walk_members(whole, term, 0, leads, shift, Value(1), sink);
            else
                walk_one_by_one(whole, term, 0, leads, shift, sink);
        }
    }

  private:
    TermKeys<Index> keys_of_row(const Row<Index, Value>& row) const {
        return {basis_, row.begin.columns};
    }

    /// The tuples whose member m is one of some values, behind leads that shift and scale them.
    /// Needs: m is not the last member.
    template <class Sink>
    void walk_members(const Row<Index, Value>& row, const Term& term, int64_t m, RowSlice leads,
                      int64_t shift, Value scale, const Sink& sink) const {
        if (m + 2 == static_cast<int64_t>(term.members.size()))
            return walk_runs(row, term, m, leads, shift, scale, sink);
        const RowSlice next = shape_.slice(term.members[m + 1]);
        for (int64_t a = leads.begin; a < leads.end; ++a) {
            const auto more = static_cast<int64_t>(keys_of_row(row).lead(term, m, a));
            walk_members(row, term, m + 1, next, shift + more, scale * row.scale(a), sink);
        }
    }

    /// The same for the last member but one: what follows each value is a run.
    template <class Sink>
    POLYSPARSE_PER_PROCESSOR void walk_runs(const Row<Index, Value>& row, const Term& term,
                                            int64_t m, RowSlice leads, int64_t shift, Value scale,
                                            const Sink& sink) const {
        const TermKeys<Index> keys = keys_of_row(row);
        const RowSlice last = shape_.slice(term.members[m + 1]);
        for (int64_t a = leads.begin; a < leads.end; ++a)
            sink.run(row.begin + last.begin, last.size(),
                     shift + static_cast<int64_t>(keys.lead(term, m, a)), scale * row.scale(a));
    }

    /// The same, output by output, where a product of leads might overflow and the whole might not.
    template <class Sink>
    void walk_one_by_one(const Row<Index, Value>& row, const Term& term, int64_t m, RowSlice leads,
                         int64_t shift, const Sink& sink) {
        const TermKeys<Index> keys = keys_of_row(row);
        if (m + 1 == static_cast<int64_t>(term.members.size())) {
            for (int64_t t = leads.begin; t < leads.end; ++t)
                deep_.leads().put(row, t, shift, sink);
            return;
        }
        for (int64_t a = leads.begin; a < leads.end; ++a) {
            deep_.leads().push(row.scale(a));
            walk_one_by_one(row, term, m + 1, shape_.slice(term.members[m + 1]),
                            shift + static_cast<int64_t>(keys.lead(term, m, a)), sink);
            deep_.leads().pop();
        }
    }

    const Basis* basis_;
    TermSlices slices_;
    TermShape shape_{};            // of the row that is walked
    DeepNest<Index, Value> deep_;  // what rows with huge or tiny values need
};

}  // namespace polysparse
