// Words and lines of text that ends in '\n'. That newline stops every loop here: nothing past it is
// read, whatever the bytes before it are.
#pragma once

#include <algorithm>
#include <cstring>

namespace polysparse {

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

}  // namespace polysparse
