// Text in the svmlight (libsvm) format as the arrays of a CSR matrix: counted first, then filled.
//
//     [label] [qid:N] index:value index:value ... [# comment]
//
// In the libffm format, each pair is field:index:value.
//
// Text is empty or ends in '\n'; nothing past that newline is read. Cost: linear in the text, even
// if it is malformed.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace polysparse {

/// What every row of a file has or lacks.
struct SvmlightLayout {
    bool labels;
    bool qid;
    bool fields = false;  // as in libffm; the format says so, not the first row
};

struct SvmlightCounts {
    int64_t n_lines = 0;
    int64_t n_rows = 0;    // lines that hold more than blanks and a comment
    int64_t n_stored = 0;  // index:value pairs, with or without fields
};

/// Which word of a line cannot be right.
enum class SvmlightFault {
    none,
    label,             // not a number
    label_missing,     // other rows have one
    label_unexpected,  // other rows have none
    qid,               // not an integer
    qid_missing,
    qid_unexpected,
    field,  // not a non-negative int64 and a colon
    index,  // the same
    value   // not a number
};

struct SvmlightReport {
    SvmlightFault fault = SvmlightFault::none;
    int64_t line = 0;             // counted from 0
    const char* begin = nullptr;  // the word at fault
    const char* end = nullptr;
};

/// Where the next row goes. `labels`, `qid` and `fields` are touched only if the layout has them.
struct SvmlightSlots {
    int64_t* row_ends;
    int64_t* indices;
    double* values;
    double* labels;
    int64_t* qid;
    int64_t* fields;  // beside the indices
};

/// The layout of the first row, without its fields; nothing if there is no row.
std::optional<SvmlightLayout> find_layout(const char* p, const char* end);

/// Moves p past the next n_rows rows, or to the end. Counts what was passed, except pairs.
SvmlightCounts skip_rows(const char*& p, const char* end, int64_t n_rows);

/// Text that somebody else owns, cut at newlines into a piece for each thread, and counted.
class SvmlightText {
  public:
    SvmlightText(const char* begin, const char* end, SvmlightLayout layout, int64_t n_threads);

    SvmlightLayout layout() const { return layout_; }
    const SvmlightCounts& counts() const { return before_.back(); }
    const char* begin() const { return cuts_[0]; }

    /// Fills arrays of the counted sizes; row_ends count from 0. Returns the first fault of the
    /// text. If there is one the arrays are of no use.
    SvmlightReport fill(const SvmlightSlots& out) const;

  private:
    template <class Work>
    void for_each_piece(const Work& work) const;

    SvmlightLayout layout_;
    std::vector<const char*> cuts_;       // piece i is [cuts_[i], cuts_[i + 1])
    std::vector<SvmlightCounts> before_;  // [i]: what the pieces before piece i hold
};

}  // namespace polysparse
