// What must be the same on every platform, to the last bit: hashes, and numbers read from text and
// written to it. Stops at the first failure. LC_ALL may name a locale with another decimal point.
#include <clocale>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "select/hash.hpp"
#include "text/numbers.hpp"
#include "text/svmlight_writer.hpp"

using namespace polysparse;

namespace {

long long n_passed = 0;

void check(bool holds, const std::string& what) {
    if (!holds) {
        std::printf("FAILED: %s\n%lld passed, 1 failed\n", what.c_str(), n_passed);
        std::exit(1);
    }
    ++n_passed;
}

/// The golden values of tests/columns/test_hash_function.py.
void test_hashes() {
    struct Golden {
        std::vector<int64_t> tuple;  // increasing
        uint64_t seed;
        int64_t n_columns, column, sign;
    };
    const std::vector<Golden> all{
        {{}, 0, 1048576, 926218, -1},
        {{}, 1, 1, 0, -1},
        {{0}, 0, 1048576, 287225, -1},
        {{1}, 0, 1048576, 540321, 1},
        {{0, 0}, 0, 1048576, 713565, -1},
        {{0, 1}, 0, 1048576, 570344, -1},
        {{3, 17}, 0, 1048576, 386586, 1},
        {{3, 17}, 7, 1000, 587, 1},
        {{3, 17}, UINT64_MAX, 2147483647, 117957705, 1},
        {{2147483648}, 0, 2147483647, 1607610073, -1},
        {{4611686018427387904}, 0, 1048576, 683312, -1},
        {{9223372036854775806}, 0, 2147483647, 460671656, -1},
        {{5, 4611686018427387904, 9223372036854775806}, 12345, 4194304, 545536, -1},
        {{2, 2, 2}, 0, 64, 9, -1},
        {{1, 2, 3, 4}, 0, 16777216, 6497202, -1},
        {{0, 1, 2, 3, 4}, 0, 16777216, 11608353, -1},
        {{9, 9, 9, 9, 9}, 3, 7, 4, 1},
        {{0, 1, 2, 3, 99999}, uint64_t{1} << 63, 2147483647, 1202972323, 1},
    };
    for (const Golden& golden : all) {
        const Hasher hasher(golden.n_columns, true, golden.seed);
        const uint64_t h = hasher(golden.tuple.data(), std::ssize(golden.tuple));
        check(hasher.bucket(h) == golden.column, "hash: column " + std::to_string(golden.column));
        check(hasher.is_negative(h) == (golden.sign < 0), "hash: sign");
        check(hasher.with_sign(h, 2.5) == golden.sign * 2.5, "hash: sign of a double");
        check(hasher.with_sign(h, 2.5F) == golden.sign * 2.5F, "hash: sign of a float");
    }
}

void check_reads(const std::string& word, double expected) {
    for (const char* const behind : {"\n", " 7\n", "\t\n", "#5\n", "\r\n"}) {
        const std::string text = word + behind;
        double number = 77;
        check(read_number(text.data(), number) == text.data() + word.size(), word + ": end");
        const bool same = std::memcmp(&number, &expected, sizeof number) == 0;
        check(same || (std::isnan(number) && std::isnan(expected)), word + ": value");
    }
}

void test_words() {
    check_reads("0", 0);
    check_reads("-0", -0.0);
    check_reads("+3", 3);
    check_reads(".5", 0.5);
    check_reads("5.", 5);
    check_reads("-1.50E+1", -15);
    check_reads("1e23", 0x1.52d02c7e14af6p+76);
    check_reads("0.1000000000000000055511151231257827", 0.1);
    check_reads("9007199254740993", 0x1p53);                     // half way, to even
    check_reads("9007199254740993.00000000000001", 0x1p53 + 2);  // and a little more
    check_reads("179769313486231570000000000000000e276", 0x1.fffffffffffffp1023);
    check_reads("2.2250738585072011e-308", 0x0.fffffffffffffp-1022);
    check_reads("4.9406564584124654e-324", 0x0.0000000000001p-1022);
    check_reads("2.4703282292062328e-324", 0x0.0000000000001p-1022);
    check_reads("2.4703282292062327e-324", 0);
    check_reads("-1e-400", -0.0);
    check_reads("0e9999999999999999999", 0);
    check_reads("1e-9999999999999999999", 0);
    check_reads("0." + std::string(900, '0') + "1e901", 1);
    check_reads("inf", INFINITY);
    check_reads("+Inf", INFINITY);
    check_reads("-INFINITY", -INFINITY);
    check_reads("nan", NAN);
    check_reads("NaN", NAN);
    for (const std::string word :
         {"",      "-",    "+",   "+-3", "-+3",  "++3",     "--3",    ".",
          "e5",    "1e",   "1e+", "1,5", "1.5.", "0x10",    "-0X1p3", "1_000",
          "infin", "nano", "\f5", "\r5", "5\v",  "1.8e308", "-1e400", "1e9999999999999999999"}) {
        double number;
        check(read_number((word + "\n").data(), number) == nullptr, "refused: " + word);
    }
}

/// Numbers of any bits read back as they were written, shortest and with many digits.
template <class Value, class Bits>
void test_round_trips() {
    std::mt19937_64 random_bits(1);
    for (int i = 0; i < 20'000; ++i) {
        const auto value = std::bit_cast<Value>(static_cast<Bits>(random_bits()));
        if (!std::isfinite(value)) continue;
        const int64_t row_offsets[] = {0, 1}, columns[] = {6};
        const double label = 0.5;
        char text[svmlight_bytes_per_value + svmlight_bytes_per_row];
        char* const end =
            write_svmlight<Value>({1, 7, row_offsets, columns, &value}, &label, 1, text);
        const std::string line(text, end);
        check(line.starts_with("0.5 7:") && line.ends_with("\n"), "written: " + line);
        double back;
        check(read_number(line.data() + 6, back) == line.data() + line.size() - 1, "read back");
        check(static_cast<Value>(back) == value, "read back: " + line);
        char digits[80];
        std::snprintf(digits, sizeof digits, "%.45e\n", static_cast<double>(value));
        for (char& c : digits)
            if (c == ',') c = '.';
        check(read_number(digits, back) != nullptr && back == static_cast<double>(value), digits);
    }
}

void test_shortest() {
    const int64_t row_offsets[] = {0, 5}, columns[] = {0, 1, 2, 3, 4};
    const double values[] = {0.1, 1e23, -0.0, 5e-324, 123456.75};
    const float singles[] = {0.1F, 1e23F, -0.0F, 1e-45F, 123456.75F};
    char text[5 * svmlight_bytes_per_value + svmlight_bytes_per_row];
    char* end = write_svmlight<double>({1, 5, row_offsets, columns, values}, nullptr, 0, text);
    check(std::string(text, end) == "0 0:0.1 1:1e+23 2:-0 3:5e-324 4:123456.75\n", "of a double");
    end = write_svmlight<float>({1, 5, row_offsets, columns, singles}, nullptr, 0, text);
    check(std::string(text, end) == "0 0:0.1 1:1e+23 2:-0 3:1e-45 4:123456.75\n", "of a float");
}

}  // namespace

int main() {
    if (std::setlocale(LC_ALL, "") == nullptr) std::puts("the locale is not installed");
    test_hashes();
    test_words();
    test_round_trips<double, uint64_t>();
    test_round_trips<float, uint32_t>();
    test_shortest();
    std::printf("%lld passed, 0 failed\n", n_passed);
}
