#include "text/svmlight_writer.hpp"

#include <charconv>

namespace polysparse {
namespace {

template <class Number>
char* write_number(char* to, Number number) {
    return std::to_chars(to, to + 24, number).ptr;
}

}  // namespace

template <class Value>
char* write_svmlight(const CsrView<Value>& x, const double* labels, int64_t first_column,
                     char* out) {
    int64_t t = x.row_offsets[0];
    for (int64_t r = 0; r < x.n_rows; ++r) {
        out = write_number(out, labels == nullptr ? 0.0 : labels[r]);
        for (const int64_t end = x.row_offsets[r + 1]; t < end; ++t) {
            *out++ = ' ';
            out = write_number(out, x.columns[t] + first_column);
            *out++ = ':';
            out = write_number(out, x.values[t]);
        }
        *out++ = '\n';
    }
    return out;
}

template char* write_svmlight(const CsrView<float>&, const double*, int64_t, char*);
template char* write_svmlight(const CsrView<double>&, const double*, int64_t, char*);

}  // namespace polysparse
