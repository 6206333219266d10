#include "basis/groups.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "basis/simplex.hpp"

namespace polysparse {

GroupTable::GroupTable(const std::vector<int64_t>& sizes, bool has_powers, int64_t highest)
    : starts_(sizes.size() + 1), has_powers_(has_powers) {
    const auto n = static_cast<int64_t>(sizes.size());
    for (int64_t g = 0; g < n; ++g) {
        starts_[g + 1] = starts_[g] + sizes[g];
        group_of_.insert(group_of_.end(), sizes[g], static_cast<int32_t>(g));
    }
    counts_.resize((highest + 1) * (n + 1));
    std::fill_n(counts_.begin(), n + 1, 1);
    for (int64_t d = 1; d <= highest; ++d)
        for (int64_t g = n - 1; g >= 0; --g)
            counts_[d * (n + 1) + g] =
                count_from(d, g + 1) + static_cast<uint64_t>(sizes[g]) * count_from(d - 1, next(g));
    constexpr int64_t most_stored = int64_t{1} << 22;  // 32 MiB
    if (highest < 2 || n_features() > most_stored / (highest - 1)) return;
    depths_.reserve((highest - 1) * n_features());
    for (int64_t d = 2; d <= highest; ++d)
        for (int64_t j = 0; j < n_features(); ++j) depths_.push_back(find_depth(d, j));
}

namespace {

/// a * b, or the limit if that is less. Needs: a up to the limit.
int64_t multiply_up_to(int64_t limit, int64_t a, int64_t b) {
    return b > 0 && a > limit / b ? limit : a * b;
}

}  // namespace

int64_t GroupTable::most_tuples(int64_t d, int64_t n, int64_t limit) const {
    std::vector<int64_t> counts(d + 1);
    counts[0] = 1;
    const auto add = [&](int64_t e, int64_t size) {
        counts[e] = std::min(limit, counts[e] + multiply_up_to(limit, counts[e - 1], size));
    };
    for (int64_t g = 0; g < n_groups(); ++g) {
        if (has_powers(g))
            for (int64_t e = 1; e <= d; ++e) add(e, 1);
        else
            for (int64_t e = d; e >= 1; --e) add(e, std::min(n, size(g)));
    }
    return counts[d];
}

int64_t GroupTable::leading(int64_t d, uint64_t rest, int64_t first) const {
    // E_d falls from group to group, so the first group with no more than `rest` behind it leads.
    const int64_t last = n_groups() - 1;
    const int64_t group = last - largest_where(0, last - first, [&](int64_t n_behind) {
                              return count_from(d, last + 1 - n_behind) <= rest;
                          });
    const uint64_t within = rest - count_from(d, group + 1);
    return starts_[group + 1] - 1 - static_cast<int64_t>(within / count_from(d - 1, next(group)));
}

TermTable::TermTable(const GroupTable& groups, const std::vector<std::vector<int64_t>>& terms,
                     int64_t first_column)
    : slots_(groups.n_groups(), -1) {
    for (const std::vector<int64_t>& of_term : terms)
        for (const int64_t group : of_term) slots_[group] = 0;
    for (int32_t& slot : slots_)
        if (slot == 0) slot = static_cast<int32_t>(n_slots_++);
    for (const std::vector<int64_t>& of_term : terms) {
        Term term{{}, first_column};
        uint64_t n_columns = 1;
        for (auto group = of_term.rbegin(); group != of_term.rend(); ++group) {
            term.members.push_back({*group, slots_[*group], groups.start(*group), n_columns});
            n_columns *= static_cast<uint64_t>(groups.size(*group));
        }
        std::reverse(term.members.begin(), term.members.end());
        terms_.push_back(std::move(term));
        // Modulo 2^64: hashed columns need no numbers of columns.
        first_column = static_cast<int64_t>(static_cast<uint64_t>(first_column) + n_columns);
    }
}

int64_t TermTable::most_tails(const GroupTable& groups, int64_t d, int64_t n, int64_t limit) const {
    int64_t most = 0;
    for (const Term& term : terms_) {
        const auto k = static_cast<int64_t>(term.members.size());
        if (k <= d) continue;
        int64_t size = 1;
        for (int64_t m = k - d; m < k; ++m)
            size = multiply_up_to(limit, size, std::min(n, groups.size(term.members[m].group)));
        most = std::max(most, size);
    }
    return most;
}

int64_t TermTable::rank(const GroupTable& groups, const int64_t* tuple, int64_t k) const {
    const auto has_groups = [&](const Term& term) {
        return std::equal(term.members.begin(), term.members.end(), tuple, tuple + k,
                          [&](const Term::Member& member, int64_t feature) {
                              return member.group == groups.group_of(feature);
                          });
    };
    const auto term = std::find_if(terms_.begin(), terms_.end(), has_groups);
    if (term == terms_.end()) return -1;
    auto column = static_cast<uint64_t>(term->first_column);
    for (int64_t m = 0; m < k; ++m) {
        const Term::Member& member = term->members[m];
        column += static_cast<uint64_t>(tuple[m] - member.start) * member.stride;
    }
    return static_cast<int64_t>(column);
}

int64_t TermTable::unrank(int64_t column, int64_t* tuple) const {
    const auto behind = std::upper_bound(
        terms_.begin(), terms_.end(), column,
        [](int64_t wanted, const Term& term) { return wanted < term.first_column; });
    // A term whose groups are empty begins where the next one does, and is before it.
    const Term& term = *std::prev(behind);
    auto rest = static_cast<uint64_t>(column - term.first_column);
    for (const Term::Member& member : term.members) {
        *tuple++ = member.start + static_cast<int64_t>(rest / member.stride);
        rest %= member.stride;
    }
    return static_cast<int64_t>(term.members.size());
}

uint64_t TermTable::count_led_from(const GroupTable& groups, int64_t feature) const {
    uint64_t count = 0;
    for (const Term& term : terms_) {
        const Term::Member& lead = term.members.front();
        const int64_t end = lead.start + groups.size(lead.group);
        count += static_cast<uint64_t>(end - std::clamp(feature, lead.start, end)) * lead.stride;
    }
    return count;
}

}  // namespace polysparse
