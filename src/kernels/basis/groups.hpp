// Groups of features, of which a monomial takes at most one member each, and terms: chosen sets of
// groups whose members are multiplied.
#pragma once

#include <cstdint>
#include <vector>

namespace polysparse {

/// Features 0, 1, ... in groups of neighbors. E_d(g) is the number of monomials of degree d in
/// groups g, g + 1, ..., modulo 2^64: a symmetric polynomial of the sizes of the groups.
///
///     E_0(g) = 1, E_d(G) = 0 for d > 0, E_d(g) = E_d(g + 1) + size(g) E_{d-1}(next(g))
///
/// next(g) is the first group that may follow a member of g: g itself if a power of the member is a
/// monomial, which only a group of one allows, otherwise g + 1.
class GroupTable {
  public:
    /// For degrees up to `highest`. Needs: sizes that are not negative. Throws bad_alloc.
    GroupTable(const std::vector<int64_t>& sizes, bool has_powers, int64_t highest);

    int64_t n_groups() const { return static_cast<int64_t>(starts_.size()) - 1; }
    int64_t n_features() const { return starts_.back(); }
    int64_t group_of(int64_t feature) const { return group_of_[feature]; }
    const int32_t* groups_of_features() const { return group_of_.data(); }
    int64_t start(int64_t group) const { return starts_[group]; }
    int64_t size(int64_t group) const { return starts_[group + 1] - starts_[group]; }
    /// Whether a monomial may have a feature of this group more than once.
    bool has_powers(int64_t group) const { return has_powers_ && size(group) == 1; }
    int64_t next(int64_t group) const { return group + !has_powers(group); }

    /// E_d(g). Needs: d up to the highest degree.
    uint64_t count_from(int64_t d, int64_t group) const {
        return counts_[d * (n_groups() + 1) + group];
    }

    /// How many d-tuples are led by a feature after this one, modulo 2^64.
    uint64_t depth(int64_t d, int64_t feature) const {
        if (const uint64_t* const known = depths(d)) return known[feature];
        return find_depth(d, feature);
    }
    /// [feature]: the same, for d >= 2; null if there are too many to be stored.
    const uint64_t* depths(int64_t d) const {
        return d < 2 || depths_.empty() ? nullptr : depths_.data() + (d - 2) * n_features();
    }

    /// depth(d, feature) of a group's members is `constant` - feature * `factor`, modulo 2^64.
    struct LinearDepth {
        uint64_t constant, factor;
    };
    LinearDepth depth_in(int64_t d, int64_t group) const {
        const uint64_t factor = count_from(d - 1, next(group));
        const auto last = static_cast<uint64_t>(starts_[group + 1] - 1);
        return {count_from(d, group + 1) + last * factor, factor};
    }

    /// How many d-tuples are led by this feature or one after it.
    uint64_t count_led_from(int64_t d, int64_t feature) const {
        return depth(d, feature) + count_from(d - 1, next(group_of(feature)));
    }

    /// No row of n values has more d-tuples, up to a limit: E_d with groups of at most n features.
    int64_t most_tuples(int64_t d, int64_t n, int64_t limit) const;

    /// The feature that leads the d-tuple which has `rest` d-tuples behind it. Needs: there is one,
    /// led by a member of group `first` or a later one.
    int64_t leading(int64_t d, uint64_t rest, int64_t first) const;

  private:
    uint64_t find_depth(int64_t d, int64_t feature) const {
        const LinearDepth of_group = depth_in(d, group_of(feature));
        return of_group.constant - static_cast<uint64_t>(feature) * of_group.factor;
    }

    std::vector<int32_t> group_of_;  // [feature]
    std::vector<int64_t> starts_;    // [group]: its first feature; then the number of features
    bool has_powers_;
    std::vector<uint64_t> counts_;  // [degree][group]
    std::vector<uint64_t> depths_;  // [degree - 2][feature]
};

/// One chosen set of groups. A column of the term has a member of each; the last one varies
/// fastest.
struct Term {
    struct Member {
        int64_t group, slot;  // the slot is its number among the groups that some term has
        int64_t start;        // the first feature of the group
        uint64_t stride;      // columns from one of its features to the next
    };
    std::vector<Member> members;  // in the order of the features
    int64_t first_column;
};

/// The terms of a basis, in the order of their columns, degrees increasing.
class TermTable {
  public:
    /// Terms as increasing groups; their columns begin with `first_column`, and are numbered modulo
    /// 2^64. Throws bad_alloc.
    TermTable(const GroupTable& groups, const std::vector<std::vector<int64_t>>& terms,
              int64_t first_column);

    const std::vector<Term>& terms() const { return terms_; }
    /// How many groups some term has.
    int64_t n_slots() const { return n_slots_; }
    /// The number of a group among these, or -1 if no term has it.
    int64_t slot_of(int64_t group) const { return slots_[group]; }

    /// No row of n values has more tuples of the last d groups of a term, and of others before
    /// them, up to a limit.
    int64_t most_tails(const GroupTable& groups, int64_t d, int64_t n, int64_t limit) const;

    /// The column of an increasing tuple, or -1 if no term has its groups.
    int64_t rank(const GroupTable& groups, const int64_t* tuple, int64_t k) const;
    int64_t unrank(int64_t column, int64_t* tuple) const;

    /// How many columns are led by this feature or one after it.
    uint64_t count_led_from(const GroupTable& groups, int64_t feature) const;

  private:
    std::vector<Term> terms_;
    std::vector<int32_t> slots_;  // [group]
    int64_t n_slots_ = 0;
};

}  // namespace polysparse
