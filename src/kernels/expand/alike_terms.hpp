// Terms of rows that are alike, with one value of each group that a term has. Which values an
// output is made of is the same for all rows, so it is found once, and rows are neither copied nor
// looked at twice. Outputs of neighbouring terms that differ only in their last group, and those
// follow each other in a row, are a run: eight at a time are made.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "basis/basis.hpp"
#include "expand/term_rows.hpp"
#include "matrix/csr_view.hpp"
#include "matrix/slots.hpp"
#include "platform/processors.hpp"

namespace polysparse {

/// How all outputs of a row are made. The column of an output is a constant, plus its last input
/// column, plus each other one times a factor of its own; modulo 2^(bits of an OutIndex).
template <class OutIndex>
class AlikeTerms {
  public:
    using Column = std::make_unsigned_t<OutIndex>;

    /// Whether rows of a basis can be made so.
    static bool can_make(const Basis& basis) {
        if (!basis.terms || basis.row_groups.empty()) return false;
        const std::vector<RowSlice> slices = slices_of(basis);
        return std::all_of(slices.begin(), slices.end(),
                           [](RowSlice slice) { return slice.size() <= 1; });
    }

    /// Needs: can_make. Throws bad_alloc.
    explicit AlikeTerms(const Basis& basis)
        : n_stored_(static_cast<int64_t>(basis.row_groups.size())), has_bias_(basis.include_bias) {
        const std::vector<RowSlice> slices = slices_of(basis);
        for (const Term& term : basis.terms->terms()) {
            const bool is_whole = std::all_of(
                term.members.begin(), term.members.end(),
                [&](const Term::Member& member) { return slices[member.slot].size() == 1; });
            if (is_whole) add(term, slices);
        }
        lay_out();
    }

    /// Values of a row.
    int64_t n_stored() const { return n_stored_; }
    /// Outputs of a row.
    int64_t n_outputs() const { return has_bias_ + n_made_; }
    /// Whether runs are long enough for groups of lanes. If not, rows are made output by output.
    bool has_runs() const { return n_made_ >= 2 * static_cast<int64_t>(runs_.size()); }

    /// One row, run by run. `spill`: see ToSlots.
    template <bool spill, class Index, class Value>
    POLYSPARSE_INLINE void fill_row(ConstSlots<Index, Value> row,
                                    Slots<OutIndex, Value> out) const {
        if (has_bias_) out = fill_bias(out);
        for (const Run& run : runs_) {
            fill_run<spill>(run, row, out);
            out = out + run.n;
        }
    }

    /// Rows one behind the other, output by output.
    template <class Index, class Value>
    POLYSPARSE_INLINE void fill_rows(ConstSlots<Index, Value> rows, int64_t n_rows,
                                     Slots<OutIndex, Value> out) const {
        const int64_t step = n_outputs();
        if (has_bias_) {
            for (int64_t r = 0; r < n_rows; ++r) fill_bias(out + r * step);
            out = out + 1;
        }
        for (const Run& run : runs_)
            for (int64_t t = 0; t < run.n; ++t, out = out + 1) {
                if (run.n_leads == 1)
                    fill_pairs(run, t, rows, n_rows, step, out);
                else
                    for (int64_t r = 0; r < n_rows; ++r)
                        fill_some<1>(run, t, rows + r * n_stored_, out + (r * step - t));
            }
    }

  private:
    /// Outputs whose leads are the same, and whose last values are neighbors.
    struct Run {
        int64_t first_lead, n_leads;  // places of the leads, in leads_
        int64_t last;                 // the place of the first last value
        int64_t n;
        int64_t table;  // where its constants are; then the factors of each lead, `width` apart
        int64_t width;  // n, in whole groups of lanes
    };

    static std::vector<RowSlice> slices_of(const Basis& basis) {
        std::vector<RowSlice> slices(basis.terms->n_slots());
        find_slices(*basis.terms, basis.row_groups.data(),
                    static_cast<int64_t>(basis.row_groups.size()), slices);
        return slices;
    }

    void add(const Term& term, const std::vector<RowSlice>& slices) {
        const auto n_leads = static_cast<int64_t>(term.members.size()) - 1;
        const auto place = [&](int64_t m) { return slices[term.members[m].slot].begin; };
        bool goes_on = !runs_.empty() && runs_.back().n_leads == n_leads &&
                       runs_.back().last + runs_.back().n == place(n_leads);
        for (int64_t m = 0; goes_on && m < n_leads; ++m)
            goes_on = leads_[runs_.back().first_lead + m] == place(m);
        if (!goes_on) {
            runs_.push_back(
                {static_cast<int64_t>(leads_.size()), n_leads, place(n_leads), 0, 0, 0});
            for (int64_t m = 0; m < n_leads; ++m) leads_.push_back(place(m));
        }
        ++runs_.back().n;
        ++n_made_;
        auto constant = static_cast<uint64_t>(term.first_column);
        for (const Term::Member& member : term.members)
            constant -= static_cast<uint64_t>(member.start) * member.stride;
        table_.push_back(static_cast<Column>(constant));
        for (int64_t m = 0; m < n_leads; ++m)
            table_.push_back(static_cast<Column>(term.members[m].stride));
    }

    /// From the numbers of each output to those of each lead.
    void lay_out() {
        std::vector<Column> laid_out;
        const Column* from = table_.data();
        for (Run& run : runs_) {
            run.table = static_cast<int64_t>(laid_out.size());
            run.width = (run.n + lanes - 1) / lanes * lanes;
            laid_out.resize(laid_out.size() + (run.n_leads + 1) * run.width);
            for (int64_t t = 0; t < run.n; ++t)
                for (int64_t m = 0; m <= run.n_leads; ++m)
                    laid_out[run.table + m * run.width + t] = *from++;
        }
        table_ = std::move(laid_out);
    }

    template <class Value>
    POLYSPARSE_INLINE static Slots<OutIndex, Value> fill_bias(Slots<OutIndex, Value> out) {
        *out.columns = 0;
        *out.values = 1;
        return out + 1;
    }

    /// Outputs [t, t + n) of a run.
    template <int64_t n, class Index, class Value>
    POLYSPARSE_INLINE void fill_some(const Run& run, int64_t t, ConstSlots<Index, Value> row,
                                     Slots<OutIndex, Value> out) const {
        const Column* table = table_.data() + run.table + t;
        const ConstSlots<Index, Value> last = row + (run.last + t);
        Column columns[n];
        Value values[n];
        for (int64_t u = 0; u < n; ++u)
            columns[u] = table[u] + static_cast<Column>(last.columns[u]);
        for (int64_t u = 0; u < n; ++u) values[u] = last.values[u];
        const Column* factors = table + run.n_leads * run.width;
        for (int64_t m = run.n_leads - 1; m >= 0; --m, factors -= run.width) {
            const int64_t lead = leads_[run.first_lead + m];
            const auto column = static_cast<Column>(row.columns[lead]);
            const Value scale = row.values[lead];
            for (int64_t u = 0; u < n; ++u) columns[u] += factors[u] * column;
            for (int64_t u = 0; u < n; ++u) values[u] = values[u] * scale;
        }
        std::copy_n(columns, n, reinterpret_cast<Column*>(out.columns) + t);
        std::copy_n(values, n, out.values + t);
    }

    template <bool spill, class Index, class Value>
    POLYSPARSE_INLINE void fill_run(const Run& run, ConstSlots<Index, Value> row,
                                    Slots<OutIndex, Value> out) const {
        constexpr int64_t together = spill ? lanes : 1;
        for (int64_t t = 0; t < run.n; t += together) fill_some<together>(run, t, row, out);
    }

    /// Output t of a run of pairs, in rows one behind the other.
    template <class Index, class Value>
    POLYSPARSE_INLINE void fill_pairs(const Run& run, int64_t t, ConstSlots<Index, Value> rows,
                                      int64_t n_rows, int64_t step,
                                      Slots<OutIndex, Value> out) const {
        const Column constant = table_[run.table + t], factor = table_[run.table + run.width + t];
        const ConstSlots<Index, Value> lead = rows + leads_[run.first_lead];
        const ConstSlots<Index, Value> last = rows + (run.last + t);
        for (int64_t r = 0; r < n_rows; ++r) {
            const int64_t from = r * n_stored_;
            out.columns[r * step] =
                static_cast<OutIndex>(constant + factor * static_cast<Column>(lead.columns[from]) +
                                      static_cast<Column>(last.columns[from]));
            out.values[r * step] = last.values[from] * lead.values[from];
        }
    }

    int64_t n_stored_;
    bool has_bias_;
    int64_t n_made_ = 0;  // outputs without the bias
    std::vector<Run> runs_;
    std::vector<int64_t> leads_;
    std::vector<Column> table_;
};

}  // namespace polysparse
