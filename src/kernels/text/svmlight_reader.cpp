#include "text/svmlight_reader.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "platform/processors.hpp"
#include "platform/threads.hpp"
#include "text/numbers.hpp"
#include "text/words.hpp"

namespace polysparse {
namespace {

POLYSPARSE_PER_PROCESSOR int64_t count_colons(const char* p, const char* end) {
    int64_t n = 0;
    while (p != end) {  // short stretches, so that bytes count bytes
        const char* const stop = p + std::min<int64_t>(end - p, 255);
        uint8_t n_here = 0;
        for (; p != stop; ++p) n_here += *p == ':';
        n += n_here;
    }
    return n;
}

/// Exact for text without a fault. If there is one, fill_lines still writes no more than was
/// counted: it needs a colon for each pair (two with a field), and the colon of a line's qid before
/// its first pair.
SvmlightCounts count_lines(const char* begin, const char* end, SvmlightLayout layout) {
    SvmlightCounts counts;
    counts.n_stored = count_colons(begin, end);
    for (const char* p = begin; p != end; p = skip_line(p, end)) {
        ++counts.n_lines;
        p = skip_blanks(p);
        if (at_line_end(p)) continue;
        ++counts.n_rows;
        if (layout.qid) counts.n_stored -= is_qid(layout.labels ? skip_blanks(skip_word(p)) : p);
    }
    const char* p = begin;
    while (p != end && (p = static_cast<const char*>(std::memchr(p, '#', end - p)))) {
        const char* const comment = p;
        p = skip_line(p, end);
        counts.n_stored -= count_colons(comment, p);
    }
    if (layout.fields) counts.n_stored /= 2;
    return counts;
}

/// Reads the pairs from p to the end of its line. Leaves p there, or at the word at fault.
template <bool has_fields>
POLYSPARSE_INLINE SvmlightFault read_pairs(const char*& p, SvmlightSlots& out) {
    while (true) {
        p = skip_blanks(p);
        if (at_line_end(p)) return SvmlightFault::none;
        int64_t field, index;
        double number;
        const char* const pair = has_fields ? read_index(p, field) : p;
        if (pair == nullptr) return SvmlightFault::field;
        const char* const value = read_index(pair, index);
        if (value == nullptr) return SvmlightFault::index;
        const char* const end = read_number(value, number);
        if (end == nullptr) return SvmlightFault::value;
        *out.indices++ = index;  // only now: a word without a colon has no slot
        *out.values++ = number;
        if constexpr (has_fields) *out.fields++ = field;
        p = end;
    }
}

/// Reads the row whose first word is p. Leaves p at the end of the line, or at the word at fault.
template <bool has_fields>
POLYSPARSE_INLINE SvmlightFault read_row(const char*& p, SvmlightLayout layout,
                                         SvmlightSlots& out) {
    if (layout.labels) {
        const char* const end = read_number(p, *out.labels);
        if (end == nullptr)
            return has_colon(p) ? SvmlightFault::label_missing : SvmlightFault::label;
        ++out.labels;
        p = skip_blanks(end);
    } else if (!has_colon(p)) {
        return SvmlightFault::label_unexpected;
    }
    if (is_qid(p) != layout.qid)
        return layout.qid ? SvmlightFault::qid_missing : SvmlightFault::qid_unexpected;
    if (layout.qid) {
        const char* const end = read_integer(p + 4, *out.qid);
        if (end == nullptr) return SvmlightFault::qid;
        ++out.qid;
        p = end;
    }
    return read_pairs<has_fields>(p, out);
}

/// Fills what count_lines counted, up to the first fault. Row ends count from `first_index`. Does
/// not allocate or throw.
template <bool has_fields>
SvmlightReport fill_lines(const char* p, const char* end, SvmlightLayout layout, SvmlightSlots out,
                          const int64_t* first_index) {
    for (int64_t line = 0; p != end; ++line, p = skip_line(p, end)) {
        p = skip_blanks(p);
        if (at_line_end(p)) continue;
        const SvmlightFault fault = read_row<has_fields>(p, layout, out);
        if (fault != SvmlightFault::none) return {fault, line, p, skip_word(p)};
        *out.row_ends++ = out.indices - first_index;
    }
    return {};
}

}  // namespace

std::optional<SvmlightLayout> find_layout(const char* p, const char* end) {
    for (; p != end; p = skip_line(p, end)) {
        p = skip_blanks(p);
        if (at_line_end(p)) continue;
        const bool labels = !has_colon(p);
        return SvmlightLayout{labels, is_qid(labels ? skip_blanks(skip_word(p)) : p)};
    }
    return std::nullopt;
}

SvmlightCounts skip_rows(const char*& p, const char* end, int64_t n_rows) {
    SvmlightCounts passed;
    while (p != end && passed.n_rows < n_rows) {
        passed.n_rows += !at_line_end(skip_blanks(p));
        p = skip_line(p, end);
        ++passed.n_lines;
    }
    return passed;
}

template <class Work>
void SvmlightText::for_each_piece(const Work& work) const {
    const int64_t n = std::ssize(cuts_) - 1;
    run_tasks(n, n, [&](int64_t, int64_t i) { work(i); });
}

SvmlightText::SvmlightText(const char* begin, const char* end, SvmlightLayout layout,
                           int64_t n_threads)
    : layout_(layout), cuts_(n_threads + 1, end), before_(n_threads + 1) {
    cuts_[0] = begin;
    for (int64_t i = 1; i < n_threads; ++i) {
        const char* const about = begin + (end - begin) / n_threads * i;
        cuts_[i] = about <= cuts_[i - 1] ? cuts_[i - 1] : skip_line(about - 1, end);
    }
    for_each_piece(
        [&](int64_t i) { before_[i + 1] = count_lines(cuts_[i], cuts_[i + 1], layout_); });
    for (int64_t i = 0; i < n_threads; ++i) {
        before_[i + 1].n_lines += before_[i].n_lines;
        before_[i + 1].n_rows += before_[i].n_rows;
        before_[i + 1].n_stored += before_[i].n_stored;
    }
}

SvmlightReport SvmlightText::fill(const SvmlightSlots& out) const {
    std::vector<SvmlightReport> reports(cuts_.size() - 1);
    for_each_piece([&](int64_t i) {
        const auto [n_lines, n_rows, n_stored] = before_[i];
        const SvmlightSlots piece{
            out.row_ends + n_rows,          out.indices + n_stored,
            out.values + n_stored,          out.labels + layout_.labels * n_rows,
            out.qid + layout_.qid * n_rows, out.fields + layout_.fields * n_stored};
        const auto fill_piece = layout_.fields ? fill_lines<true> : fill_lines<false>;
        reports[i] = fill_piece(cuts_[i], cuts_[i + 1], layout_, piece, out.indices);
        reports[i].line += n_lines;
    });
    for (const SvmlightReport& report : reports)
        if (report.fault != SvmlightFault::none) return report;
    return {};
}

}  // namespace polysparse
