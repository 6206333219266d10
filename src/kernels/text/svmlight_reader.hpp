// Text in the svmlight (libsvm) format as the arrays of a CSR matrix: counted first, then filled.
//
//     [label] [qid:N] index:value index:value ... [# comment]
//
// Text is empty or ends in '\n'. That newline stops every loop below: whatever the bytes before it
// are, nothing past it is read. Cost: linear in the text, also where it is malformed.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <optional>
#include <system_error>
#include <vector>

#include "platform/processors.hpp"
#include "platform/threads.hpp"

namespace polysparse {

/// What every row of a file has, or has not.
struct SvmlightLayout {
    bool labels;
    bool qid;
};

struct SvmlightCounts {
    int64_t n_lines = 0;
    int64_t n_rows = 0;    // lines that hold more than blanks and a comment
    int64_t n_stored = 0;  // index:value pairs
};

/// Which word of a line cannot be right.
enum class SvmlightFault {
    none,
    label,             // not a number
    label_missing,     // but other rows have one
    label_unexpected,  // for other rows have none
    qid,               // not an integer
    qid_missing,
    qid_unexpected,
    index,  // not a non-negative int64 and a colon
    value   // not a number
};

struct SvmlightReport {
    SvmlightFault fault = SvmlightFault::none;
    int64_t line = 0;             // counted from 0
    const char* begin = nullptr;  // the word at fault
    const char* end = nullptr;
};

/// Where the next row goes. `labels` and `qid` are touched only if the layout has them.
struct SvmlightSlots {
    int64_t* row_ends;
    int64_t* indices;
    double* values;
    double* labels;
    int64_t* qid;
};

inline bool is_blank(char c) {
    return c == ' ' || c == '\t';
}
inline bool is_digit(char c) {
    return static_cast<unsigned char>(c - '0') < 10;
}
inline bool at_line_end(const char* p) {
    return *p == '\n' || *p == '#' || (*p == '\r' && p[1] == '\n');
}
inline bool at_word_end(const char* p) {
    return is_blank(*p) || at_line_end(p);
}
inline const char* skip_blanks(const char* p) {
    while (is_blank(*p)) ++p;
    return p;
}
inline const char* skip_word(const char* p) {
    while (!at_word_end(p)) ++p;
    return p;
}
inline const char* skip_line(const char* p, const char* end) {
    return static_cast<const char*>(std::memchr(p, '\n', end - p)) + 1;
}
inline bool has_colon(const char* word) {
    const char* const end = skip_word(word);
    return std::find(word, end, ':') != end;
}
inline bool is_qid(const char* word) {
    return word[0] == 'q' && word[1] == 'i' && word[2] == 'd' && word[3] == ':';
}

/// The layout of the first row, or nothing if there is no row.
inline std::optional<SvmlightLayout> find_layout(const char* p, const char* end) {
    for (; p != end; p = skip_line(p, end)) {
        p = skip_blanks(p);
        if (at_line_end(p)) continue;
        const bool labels = !has_colon(p);
        return SvmlightLayout{labels, is_qid(labels ? skip_blanks(skip_word(p)) : p)};
    }
    return std::nullopt;
}

/// Moves p past the next n_rows rows, or to the end; counts what was passed, but no pairs.
inline SvmlightCounts skip_rows(const char*& p, const char* end, int64_t n_rows) {
    SvmlightCounts passed;
    while (p != end && passed.n_rows < n_rows) {
        passed.n_rows += !at_line_end(skip_blanks(p));
        p = skip_line(p, end);
        ++passed.n_lines;
    }
    return passed;
}

POLYSPARSE_TARGETS inline int64_t count_colons(const char* p, const char* end) {
    int64_t n = 0;
    while (p != end) {  // short stretches, so that bytes count bytes
        const char* const stop = p + std::min<int64_t>(end - p, 255);
        uint8_t n_here = 0;
        for (; p != stop; ++p) n_here += *p == ':';
        n += n_here;
    }
    return n;
}

/// Exact for text without a fault. With one, fill_lines still writes no more than was counted: it
/// uses up a colon for each pair, and the colon of a line's qid before the line's first pair.
inline SvmlightCounts count_lines(const char* begin, const char* end, SvmlightLayout layout) {
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
    return counts;
}

/// Whether the decimal number [p, end), known to be well-formed and not zero, is less than 1.
inline bool is_below_one(const char* p, const char* end) {
    p += *p == '-';
    while (*p == '0') ++p;
    const char* const first = p;
    while (p != end && is_digit(*p)) ++p;
    int64_t power = p - first;  // the number is 0.ddd times ten to this
    if (power == 0)
        for (++p; p != end && *p == '0'; ++p) --power;
    p = std::find_if(p, end, [](char c) { return c == 'e' || c == 'E'; });
    if (p == end) return power <= 0;
    const bool negative = *++p == '-';
    p += negative || *p == '+';
    int64_t exponent = 0;
    if (std::from_chars(p, end, exponent).ec != std::errc()) return negative;
    return negative ? power <= exponent : power <= -exponent;
}

/// Any number that from_chars takes, rounded correctly, with a plus sign or without. One too small
/// for a double is zero. Answers its end, or null if the word is not a number or is too large.
inline const char* read_any_number(const char* p, double& out) {
    const char* const end = skip_word(p);
    if (*p == '+' && p[1] != '-') ++p;
    const auto [stop, error] = std::from_chars(p, end, out);
    if (stop != end || p == end) return nullptr;
    if (error == std::errc::result_out_of_range && is_below_one(p, end))
        out = *p == '-' ? -0.0 : 0.0;
    else if (error != std::errc())
        return nullptr;
    return end;
}

/// As read_any_number. A decimal of an integer up to 2^53 over a power of ten up to 10^22, both
/// exact, is rounded once, by the division: so correctly. That is most numbers in files.
POLYSPARSE_INLINE const char* read_number(const char* p, double& out) {
    static constexpr double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,
                                        1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19};
    const char* const word = p;
    const bool negative = *p == '-';
    p += negative || *p == '+';
    const char* const digits = p;
    uint64_t integer = 0;
    for (; is_digit(*p); ++p) integer = 10 * integer + static_cast<uint64_t>(*p - '0');
    int64_t n_digits = p - digits;
    int64_t n_decimals = 0;
    if (*p == '.') {
        const char* const decimals = ++p;
        for (; is_digit(*p); ++p) integer = 10 * integer + static_cast<uint64_t>(*p - '0');
        n_decimals = p - decimals;
        n_digits += n_decimals;
    }
    const bool exact = n_digits >= 1 && n_digits <= 19 && integer <= uint64_t{1} << 53;
    if (!exact || !at_word_end(p)) return read_any_number(word, out);
    const double magnitude = static_cast<double>(integer) / powers[n_decimals];
    out = negative ? -magnitude : magnitude;
    return p;
}

/// A non-negative integer and the colon behind it. Answers what follows, or null.
POLYSPARSE_INLINE const char* read_index(const char* p, int64_t& out) {
    const char* const word = p;
    int64_t index = 0;
    for (; is_digit(*p) && p - word < 18; ++p) index = 10 * index + (*p - '0');
    if (*p == ':' && p != word) {
        out = index;
        return p + 1;
    }
    const auto [stop, error] = std::from_chars(word, skip_word(word), out);
    return error == std::errc() && *word != '-' && *stop == ':' ? stop + 1 : nullptr;
}

/// An integer, and nothing else. Answers its end, or null.
inline const char* read_integer(const char* p, int64_t& out) {
    const char* const end = skip_word(p);
    const auto [stop, error] = std::from_chars(p, end, out);
    return error == std::errc() && stop == end ? end : nullptr;
}

/// The pairs from p to the end of its line. Leaves p there, or at the word at fault.
POLYSPARSE_INLINE SvmlightFault read_pairs(const char*& p, SvmlightSlots& out) {
    while (true) {
        p = skip_blanks(p);
        if (at_line_end(p)) return SvmlightFault::none;
        int64_t index;
        double number;
        const char* const value = read_index(p, index);
        if (value == nullptr) return SvmlightFault::index;
        const char* const end = read_number(value, number);
        if (end == nullptr) return SvmlightFault::value;
        *out.indices++ = index;  // not before: a word without a colon has no slot
        *out.values++ = number;
        p = end;
    }
}

/// The row whose first word p is. Leaves p at the end of the line, or at the word at fault.
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
    return read_pairs(p, out);
}

/// Fills what count_lines counted, up to the first fault. `first_index` is where offsets count
/// from. Does not allocate or throw.
inline SvmlightReport fill_lines(const char* p, const char* end, SvmlightLayout layout,
                                 SvmlightSlots out, const int64_t* first_index) {
    for (int64_t line = 0; p != end; ++line, p = skip_line(p, end)) {
        p = skip_blanks(p);
        if (at_line_end(p)) continue;
        const SvmlightFault fault = read_row(p, layout, out);
        if (fault != SvmlightFault::none) return {fault, line, p, skip_word(p)};
        *out.row_ends++ = out.indices - first_index;
    }
    return {};
}

/// Text that somebody else owns, cut at newlines into a piece for each thread, and counted.
class SvmlightText {
  public:
    SvmlightText(const char* begin, const char* end, SvmlightLayout layout, int64_t n_threads)
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

    SvmlightLayout layout() const { return layout_; }
    const SvmlightCounts& counts() const { return before_.back(); }
    const char* begin() const { return cuts_[0]; }

    /// Fills arrays of the counted sizes, row_ends counting from 0. The first fault of the text, if
    /// there is one; what was filled then is of no use.
    SvmlightReport fill(const SvmlightSlots& out) const {
        std::vector<SvmlightReport> reports(cuts_.size() - 1);
        for_each_piece([&](int64_t i) {
            const auto [n_lines, n_rows, n_stored] = before_[i];
            const SvmlightSlots piece{out.row_ends + n_rows, out.indices + n_stored,
                                      out.values + n_stored, out.labels + layout_.labels * n_rows,
                                      out.qid + layout_.qid * n_rows};
            reports[i] = fill_lines(cuts_[i], cuts_[i + 1], layout_, piece, out.indices);
            reports[i].line += n_lines;
        });
        for (const SvmlightReport& report : reports)
            if (report.fault != SvmlightFault::none) return report;
        return {};
    }

  private:
    template <class Work>
    void for_each_piece(const Work& work) const {
        auto never = [] { return false; };
        const int64_t n = std::ssize(cuts_) - 1;
        run_tasks(n, n, [&](int64_t, int64_t i) { work(i); }, never);
    }

    SvmlightLayout layout_;
    std::vector<const char*> cuts_;       // piece i is [cuts_[i], cuts_[i + 1])
    std::vector<SvmlightCounts> before_;  // [i]: what the pieces before piece i hold
};

}  // namespace polysparse
