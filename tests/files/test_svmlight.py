"""The svmlight reader: what it reads, what it refuses, and that cutting changes nothing."""

import gzip
import io
import pickle
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_svmlight_file

from polysparse import _kernels
from polysparse.files.text import SvmlightError, iter_blocks, open_text, summarize

ARRAYS = ("indices", "data", "labels", "qid")


def read(text, **options):
    """All blocks of a text as one dict of arrays, with row lengths in place of indptr."""
    blocks = list(iter_blocks(io.BytesIO(text), **options))
    n_rows = options.get("skip_rows", 0)
    for block in blocks:
        assert block.first_row == n_rows
        assert block.indptr[0] == 0
        assert block.indptr[-1] == len(block.indices) == len(block.data)
        n_rows += len(block.indptr) - 1
    whole = {"lengths": np.concatenate([[], *(np.diff(b.indptr) for b in blocks)])}
    for name in ARRAYS:
        parts = [getattr(b, name) for b in blocks if getattr(b, name) is not None]
        assert len(parts) in (0, len(blocks))
        whole[name] = np.concatenate(parts) if parts else None
    return whole


def assert_same(got, expected):
    for name in ("lengths", *ARRAYS):
        np.testing.assert_array_equal(got[name], expected[name], err_msg=name)


def bits(values):
    return np.asarray(values, np.float64).view(np.int64)


# --- what is read -------------------------------------------------------------------------------


def test_a_file_with_labels():
    got = read(b"+1 3:0.5 17:2\n-1\n1e1 2:-4 2:8\n")
    np.testing.assert_array_equal(got["labels"], [1, -1, 10])
    np.testing.assert_array_equal(got["lengths"], [2, 0, 2])
    np.testing.assert_array_equal(got["indices"], [3, 17, 2, 2])
    np.testing.assert_array_equal(got["data"], [0.5, 2, -4, 8])
    assert got["qid"] is None


def test_a_file_without_labels():
    got = read(b"3:0.5 1:2\n0:1\n")
    assert got["labels"] is None
    assert got["qid"] is None
    np.testing.assert_array_equal(got["indices"], [3, 1, 0])


def test_a_qid_with_and_without_labels():
    got = read(b"1 qid:7 1:1\n2 qid:-8\n")
    np.testing.assert_array_equal(got["qid"], [7, -8])
    np.testing.assert_array_equal(got["labels"], [1, 2])
    got = read(b"qid:7 1:1\nqid:9223372036854775807 2:5\n")
    np.testing.assert_array_equal(got["qid"], [7, 2**63 - 1])
    assert got["labels"] is None


def test_comments_blank_lines_and_line_ends():
    plain = read(b"1 1:2 3:4\n2\n3 5:6\n")
    text = b"# a:b\r\n\n  \t\n1\t1:2  3:4 # 5:6 qid:1\r\n \t#\n2#\xff\x00:\n\r\n3 5:6#7:8"
    assert_same(read(text), plain)


def test_comments_are_not_counted_as_values_and_may_hold_a_qid():
    got = read(b"1 qid:1 1:2 # 3:4 qid:5\n2 qid:2 # ::::\n# qid:3 1:1\n3 qid:3 4:5\n")
    np.testing.assert_array_equal(got["lengths"], [1, 0, 1])
    np.testing.assert_array_equal(got["qid"], [1, 2, 3])


@pytest.mark.parametrize("text", [b"", b"\n", b"# nothing\n\n", b" \t", b"\r\n", b"#"])
def test_a_file_without_rows_has_no_blocks(text):
    assert list(iter_blocks(io.BytesIO(text))) == []
    summary = summarize(io.BytesIO(text))
    assert (summary.profile.n_rows, summary.profile.n_stored, summary.n_bytes) == (0, 0, len(text))
    assert (summary.min_index, summary.max_index) == (-1, -1)
    assert not summary.has_labels
    assert not summary.has_qid


def test_the_largest_index():
    indices = read(b"9223372036854775807:1 999999999999999999:1 1000000000000000000:1 007:1\n")
    assert indices["indices"].tolist() == [2**63 - 1, 10**18 - 1, 10**18, 7]


# fmt: off
NUMBERS = [
    "0", "-0", "+0", "1", "+1", "-1", "00012", "1.", ".5", "-.5", "+.5", "0.1", "-0.1",
    "0.30000000000000004", "1e5", "1E+5", "1e-5", "1.5e3", "9007199254740992", "9007199254740993",
    "9007199254740994", "9007199254740995", "0.9007199254740993", "18446744073709551615",
    "18446744073709551616", "99999999999999999999", "0.0000000000000000001",
    "0.12345678901234567890", "1.7976931348623157e308", "5e-324", "4.9406564584124654e-324",
    "2.2250738585072011e-308", "1e-400", "-1e-400", "1e-99999999999999999999", "2e-324",
    "0e99999999999999999999", "1e22", "1e23", "123456789e-15", "8.41e21", "9.5367431640625e-07",
    "inf", "-inf", "+inf", "Infinity", "-INFINITY", "6.02214076e+23",
]
# fmt: on
NUMBERS += ["1" + "0" * 400 + "e-395", "0." + "0" * 400 + "1e390", "0." + "0" * 400 + "1"]
NUMBERS += ["1" * 300, "0." + "1" * 5000, "0" * 5000 + "7", "0." + "0" * 400 + "1e50"]


@pytest.mark.parametrize("number", NUMBERS, ids=[n[:30] for n in NUMBERS])
def test_numbers_are_rounded_as_python_rounds_them(number):
    got = read(f"{number} 1:{number}\n".encode())
    np.testing.assert_array_equal(bits(got["data"]), bits([float(number)]))
    np.testing.assert_array_equal(bits(got["labels"]), bits([float(number)]))


def test_nan_is_a_number():
    assert np.isnan(read(b"1 1:nan 2:-nan 3:+NaN\n")["data"]).all()


def decimals():
    digits = st.text("0123456789", max_size=24)
    exponent = st.integers(-340, 320).map("e{}".format) | st.just("")
    parts = st.tuples(st.sampled_from(["", "-", "+"]), digits, digits, exponent)
    return parts.filter(lambda p: p[1] or p[2]).map(lambda p: f"{p[0]}{p[1]}.{p[2]}{p[3]}")


@settings(deadline=None)
@given(st.lists(st.floats(allow_nan=False).map(repr) | decimals(), min_size=1, max_size=20))
def test_any_decimal_is_rounded_as_python_rounds_it(numbers):
    numbers = [n for n in numbers if abs(float(n)) < np.inf or "inf" in n]
    text = "1 " + " ".join(f"1:{n}" for n in numbers)
    np.testing.assert_array_equal(bits(read(text.encode())["data"]), bits([*map(float, numbers)]))


def test_scikit_learn_reads_the_same():
    rng = np.random.default_rng(0)
    lines = []
    for row in range(300):
        indices = np.sort(rng.choice(1000, rng.integers(0, 20), replace=False))
        values = rng.normal(size=len(indices)) * 10.0 ** rng.integers(-9, 9, len(indices))
        pairs = " ".join(f"{i}:{v!r}" for i, v in zip(indices, values.tolist(), strict=True))
        lines.append(f"{rng.integers(-1, 2):+d} qid:{row // 10} {pairs} # row {row}: x\n")
    text = "".join(lines).encode()
    X, y, qid = load_svmlight_file(io.BytesIO(text), zero_based=True, query_id=True)
    got = read(text, block_bytes=1000, n_threads=2)
    np.testing.assert_array_equal(got["lengths"], np.diff(X.indptr))
    np.testing.assert_array_equal(got["indices"], X.indices)
    np.testing.assert_array_equal(bits(got["data"]), bits(X.data))
    np.testing.assert_array_equal(got["labels"], y)
    np.testing.assert_array_equal(got["qid"], qid)


# --- how it is cut ------------------------------------------------------------------------------

VALUES = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-5, 5).map(float)
INDICES = st.integers(0, 50) | st.integers(0, 2**63 - 1)
ROWS = st.lists(st.lists(st.tuples(INDICES, VALUES), max_size=5), max_size=12)
BLANKS = st.sampled_from([" ", "\t", "  ", " \t "])
COMMENTS = st.sampled_from(["", "#", " # 1:2 qid:3", "# é:"])
IDLE_LINES = st.sampled_from(["", "", "", "\n", " \r\n", "# 4:5\n", "\t#\n"])


@st.composite
def files(draw):
    """A file in any style, and the arrays that were written into it."""
    has_labels, has_qid = draw(st.booleans()), draw(st.booleans())
    rows = [row for row in draw(ROWS) if has_labels or has_qid or row]
    labels = [float(draw(st.integers(-3, 3))) for _ in rows]
    qid = [draw(st.integers(-5, 2**63 - 1)) for _ in rows]
    text = draw(IDLE_LINES)
    for row, label, query in zip(rows, labels, qid, strict=True):
        words = [draw(st.sampled_from(["{:+.0f}", "{!r}", "{:e}"])).format(label)] * has_labels
        words += [f"qid:{query}"] * has_qid
        words += [f"{index}:{value!r}" for index, value in row]
        text += draw(st.sampled_from(["", " "])) + "".join(w + draw(BLANKS) for w in words)
        text += draw(COMMENTS) + draw(st.sampled_from(["\n", "\r\n"])) + draw(IDLE_LINES)
    if draw(st.booleans()):
        text = text.rstrip("\r\n")
    pairs = [pair for row in rows for pair in row]
    return text.encode(), {
        "lengths": [len(row) for row in rows],
        "indices": np.array([i for i, _ in pairs], np.int64) if rows else None,
        "data": np.array([v for _, v in pairs], np.float64) if rows else None,
        "labels": np.array(labels) if has_labels and rows else None,
        "qid": np.array(qid, np.int64) if has_qid and rows else None,
    }


@settings(max_examples=100, deadline=None)
@given(files(), st.integers(1, 50), st.integers(1, 3))
def test_what_was_written_is_read_however_it_is_cut(file, block_bytes, n_threads):
    text, expected = file
    assert_same(read(text, block_bytes=block_bytes, n_threads=n_threads), expected)
    summary = summarize(io.BytesIO(text), block_bytes=block_bytes, n_threads=n_threads)
    assert summary.profile.lengths == tuple(sorted(Counter(expected["lengths"]).items()))
    assert summary.profile.n_rows == len(expected["lengths"])
    assert summary.profile.n_stored == sum(expected["lengths"])
    assert summary.n_bytes == len(text)
    assert summary.has_labels == (expected["labels"] is not None)
    assert summary.has_qid == (expected["qid"] is not None)
    if summary.profile.n_stored:
        assert summary.min_index == expected["indices"].min()
        assert summary.max_index == expected["indices"].max()


@settings(max_examples=100, deadline=None)
@given(files(), st.integers(1, 50), st.integers(1, 3), st.integers(0, 15))
def test_skipped_rows_are_the_first_ones(file, block_bytes, n_threads, n_skipped):
    text, expected = file
    n_skipped = min(n_skipped, len(expected["lengths"]))
    got = read(text, block_bytes=block_bytes, n_threads=n_threads, skip_rows=n_skipped)
    np.testing.assert_array_equal(got["lengths"], expected["lengths"][n_skipped:])
    if len(got["lengths"]):
        n_stored = sum(expected["lengths"][:n_skipped])
        np.testing.assert_array_equal(got["indices"], expected["indices"][n_stored:])
        if expected["labels"] is not None:
            np.testing.assert_array_equal(got["labels"], expected["labels"][n_skipped:])


def test_more_rows_can_be_skipped_than_there_are():
    assert list(iter_blocks(io.BytesIO(b"1 1:1\n2 1:1\n"), skip_rows=3)) == []


def test_skipped_rows_decide_the_layout_and_count_as_lines():
    text = b"# 1\n1 qid:1 1:1\n# 3\n2 qid:1\n3 1:1\n"
    with pytest.raises(SvmlightError, match="line 5: has no qid"):
        list(iter_blocks(io.BytesIO(text), skip_rows=2, block_bytes=5))


def test_blocks_are_of_about_the_size_that_was_asked_for():
    text = b"1 1:1 2:2\n" * 1000
    blocks = list(iter_blocks(io.BytesIO(text), block_bytes=1000))
    assert 10 <= len(blocks) <= 11
    assert [b.first_row for b in blocks] == list(range(0, 1000, 100))


@pytest.mark.parametrize("n_threads", [1, 3])
def test_a_line_may_be_longer_than_a_block(n_threads):
    n = 50_000
    long = b"2 " + b" ".join(b"%d:%d" % (i, i) for i in range(n))
    text = b"1 1:1\n" + long + b"\n3 3:3\n" + long
    got = read(text, block_bytes=100, n_threads=n_threads)
    np.testing.assert_array_equal(got["lengths"], [1, n, 1, n])
    np.testing.assert_array_equal(got["data"][-n:], np.arange(n))


class Dribble(io.RawIOBase):
    """A stream that hands out three bytes at a time, as a slow pipe might."""

    def __init__(self, text):
        self.text = text

    def readinto(self, room):
        part, self.text = self.text[: min(3, len(room))], self.text[min(3, len(room)) :]
        room[: len(part)] = part
        return len(part)


def test_short_reads_lose_nothing():
    blocks = list(iter_blocks(Dribble(b"1 1:1 2:2\n2 345:678\n3 9:9"), block_bytes=1000))
    assert [i for b in blocks for i in b.indices.tolist()] == [1, 2, 345, 9]


def test_a_stream_that_would_block_is_not_taken_for_its_end():
    class Empty(io.RawIOBase):
        def readinto(self, room):
            return None

    with pytest.raises(BlockingIOError, match="non-blocking"):
        list(iter_blocks(Empty()))


# --- what is refused ----------------------------------------------------------------------------

MALFORMED = [
    (b"abc 1:1\n", "line 1: label 'abc' is not a number."),
    (b"1 1:1\n\n1x 1:1\n", "line 3: label '1x' is not a number."),
    (b"+-1 1:1\n", "line 1: label '+-1' is not a number."),
    (b"++1 1:1\n", "line 1: label '++1' is not a number."),
    (b"0x10 1:1\n", "line 1: label '0x10' is not a number."),
    (b"1e 1:1\n", "line 1: label '1e' is not a number."),
    (b". 1:1\n", "line 1: label '.' is not a number."),
    (b"- 1:1\n", "line 1: label '-' is not a number."),
    (b"1e999 1:1\n", "line 1: label '1e999' is too large for a float64."),
    (b"1,2 1:1\n", "line 1: '1,2' are several labels: only one for each row can be read."),
    (b"\xef\xbb\xbf1 1:1\n", r"line 1: label '\xef\xbb\xbf1' is not a number."),
    (b"1 1:1\n2:2\n", "line 2: begins with '2:2' and so has no label, but the first row has one."),
    (b"1 1:1\nqid:2 2:2\n", "line 2: begins with 'qid:2' and so has no label"),
    (b"1:1\n# -\n2 2:2\n", "line 3: begins with '2', which is not index:value; the first row has"),
    (b"1 qid:1 1:1\n1 1:1\n", "line 2: has no qid, but the first row has one."),
    (b"1 qid:1 1:1\n1\n", "line 2: has no qid, but the first row has one."),
    (b"1 1:1\n1 qid:2 1:1\n", "line 2: has 'qid:2', but the first row has no qid."),
    (b"1 qid:x 1:1\n", "line 1: qid 'x' is not an integer."),
    (b"1 qid: 1:1\n", "line 1: qid '' is not an integer."),
    (b"1 qid:1.5\n", "line 1: qid '1.5' is not an integer."),
    (b"1 qid:9223372036854775808\n", "line 1: qid '9223372036854775808' is too large for an int64"),
    (b"1 1:1 qid:2\n", "line 1: 'qid:2' is out of place: a qid comes once, before all index:value"),
    (b"1 qid:1 qid:2\n", "line 1: 'qid:2' is out of place"),
    (b"1 1:1 2\n", "line 1: '2' is not a pair index:value."),
    (b"1 2 3\n", "line 1: '2' is not a pair index:value."),
    (b"1 :5\n", "line 1: ':5' has no index before its colon."),
    (b"1 3:\n", "line 1: '3:' has no value after its colon."),
    (b"1 3: 4\n", "line 1: '3:' has no value after its colon."),
    (b"1 3 :4\n", "line 1: '3' is not a pair index:value."),
    (b"\n\n\n\n\n\n1 -3:1\n", "line 7: index -3 is negative: indices count from 0 or from 1."),
    (b"1 -0:1\n", "line 1: index -0 is negative"),
    (b"1 x:1\n", "line 1: index x is not an integer."),
    (b"1 1.5:1\n", "line 1: index 1.5 is not an integer."),
    (b"1 +3:1\n", "line 1: index +3 is not an integer."),
    (b"1 9223372036854775808:1\n", "line 1: index 9223372036854775808 is too large for an int64."),
    (b"1 " + b"9" * 99 + b":1\n", f"line 1: index {'9' * 40}... is too large for an int64."),
    (b"1 3:4:5\n", "line 1: value '4:5' of '3:4:5' is not a number."),
    (b"1 3:x\n", "line 1: value 'x' of '3:x' is not a number."),
    (b"1 3:1_000\n", "line 1: value '1_000' of '3:1_000' is not a number."),
    (b"1 3:1,5\n", "line 1: value '1,5' of '3:1,5' is not a number."),
    (b"1 3:0x1p3\n", "line 1: value '0x1p3' of '3:0x1p3' is not a number."),
    (b"1 3:-1e309\n", "line 1: value '-1e309' of '3:-1e309' is too large for a float64."),
    (b"1 3:1e99999999999999999999\n", "is too large for a float64."),
    (b"1 3:" + b"1" * 5000 + b"\n", "...', of 5002 bytes, is neither a number nor index:value."),
    (b"1 1:1\x00\n", r"line 1: '1:1\x00' holds the byte 0x00: this is not an svmlight text file."),
    (b"1 1:1 \x00\n", r"line 1: '\x00' holds the byte 0x00"),
    (b"\x00\n", r"line 1: '\x00' holds the byte 0x00"),
    (b"1 1:1\x0b2:2\n", r"line 1: '1:1\x0b2:2' holds the byte 0x0b"),
    (b"1 1:1\r2 2:2\r", "line 1: '1:1\\x0d2' holds a carriage return (byte 0x0d) that no newline"),
    (b"1 1:1\r\r\n", r"line 1: '1:1\x0d' holds a carriage return (byte 0x0d)"),
    (b"1 1:\xff\n", r"line 1: value '\xff' of '1:\xff' is not a number."),
    (b"{" + b'"a": 1}\n', "line 1: "),
]


@pytest.mark.parametrize(("text", "message"), MALFORMED, ids=[m[:60] for _, m in MALFORMED])
def test_malformed_lines_are_refused(text, message):
    for options in ({}, {"block_bytes": 1}, {"n_threads": 3}):
        with pytest.raises(SvmlightError) as caught:
            list(iter_blocks(io.BytesIO(text), **options))
        assert message in str(caught.value)
        assert str(caught.value) == f"line {caught.value.line}: {caught.value.reason}"
    with pytest.raises(SvmlightError):
        summarize(io.BytesIO(text))


@pytest.mark.parametrize("n_threads", [1, 2, 3])
@pytest.mark.parametrize("block_bytes", [100, 1000, 2**24])
def test_the_first_malformed_line_is_the_one_reported(n_threads, block_bytes):
    lines = [b"1 1:1\n"] * 3000
    for i in (1234, 1235, 2999):
        lines[i] = b"1 1:bad%d\n" % i
    with pytest.raises(SvmlightError, match="line 1235: value 'bad1234'") as caught:
        list(iter_blocks(io.BytesIO(b"".join(lines)), block_bytes=block_bytes, n_threads=n_threads))
    assert caught.value.line == 1235


def test_more_faulty_rows_than_colons_overrun_nothing():
    """With a qid, a row's first colon is no pair's: rows without a qid have no colon to give."""
    for n_threads in (1, 3):
        with pytest.raises(SvmlightError, match="line 2: has no qid"):
            read(b"1 qid:1 3:4 5:6\n" + b"1\n" * 1000, n_threads=n_threads)


def test_rows_before_a_malformed_one_come_in_their_blocks():
    blocks = iter_blocks(io.BytesIO(b"1 1:1\n2 2:2\n3 x\n"), block_bytes=6)
    assert [next(blocks).first_row, next(blocks).first_row] == [0, 1]
    with pytest.raises(SvmlightError, match="line 3: 'x'"):
        next(blocks)


def outcome_of(text, **options):
    try:
        return read(text, **options)
    except SvmlightError as error:
        return str(error)


WORDS = [
    b"1",
    b"1:2",
    b" ",
    b"\n",
    b"qid:3",
    b"#",
    b"-",
    b":",
    b"1e9",
    b"\r\n",
    b"1 5:6\n",
    b"9" * 20,
]
ANY_BYTES = (
    st.binary(max_size=60)
    | st.text("0123456789:.-+eq id#\t\r\n\0,naf", max_size=60).map(str.encode)
    | st.lists(st.sampled_from(WORDS), max_size=30).map(b"".join)
)


@settings(max_examples=200, deadline=None)
@given(ANY_BYTES, st.integers(1, 20), st.integers(1, 3))
def test_any_bytes_give_rows_or_an_error_however_they_are_cut(text, block_bytes, n_threads):
    whole = outcome_of(text)
    cut = outcome_of(text, block_bytes=block_bytes, n_threads=n_threads)
    if isinstance(whole, str):
        assert cut == whole
    else:
        assert_same(cut, whole)


@settings(max_examples=200, deadline=None)
@example(b"1 5", True, False)
@given(ANY_BYTES, st.booleans(), st.booleans())
def test_nothing_is_written_beyond_what_was_counted(text, has_labels, has_qid):
    text = np.frombuffer(text + b"\n", np.uint8)
    counted = _kernels.SvmlightText(text, has_labels, has_qid, 1)
    n_rows, n_stored = counted.n_rows, counted.n_stored
    sizes = (n_rows + 1, n_stored, n_stored, n_rows * has_labels, n_rows * has_qid)
    arrays = [np.full(n + 2, -77, dtype) for n, dtype in zip(sizes, "qqddq", strict=True)]
    fault, *_ = counted.fill(*(array[1:-1] for array in arrays))
    for array in arrays:
        assert array[0] == array[-1] == -77
    if fault == _kernels.SvmlightFault.none:
        assert arrays[0][-2] == n_stored


@settings(max_examples=100, deadline=None)
@given(files(), st.data())
def test_a_file_with_one_byte_changed_gives_rows_or_an_error(file, data):
    text = bytearray(file[0])
    if text:
        text[data.draw(st.integers(0, len(text) - 1))] = data.draw(st.integers(0, 255))
    outcome_of(bytes(text), block_bytes=data.draw(st.integers(1, 50)))


def test_errors_survive_pickling():
    for error in (SvmlightError("is odd.", 3), SvmlightError("x is odd.")):
        copy = pickle.loads(pickle.dumps(error))
        assert (str(copy), copy.line, copy.reason) == (str(error), error.line, error.reason)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"block_bytes": 0}, "block_bytes must be at least 1; got 0"),
        ({"n_threads": 0}, "n_threads must be at least 1; got 0"),
        ({"skip_rows": -1}, "skip_rows must be at least 0; got -1"),
    ],
)
def test_wrong_options_are_refused_at_once(options, message):
    with pytest.raises(ValueError, match=message):
        iter_blocks(io.BytesIO(), **options)


def test_kernels_refuse_what_would_overrun_memory():
    def as_text(text):
        return np.frombuffer(text, np.uint8)

    for call in (_kernels.svmlight_layout, lambda text: _kernels.svmlight_skip(text, 1)):
        with pytest.raises(ValueError, match="must end in a newline"):
            call(as_text(b"1 1:1"))
    with pytest.raises(ValueError, match="must end in a newline"):
        _kernels.SvmlightText(as_text(b"1 1:1"), True, False, 1)
    with pytest.raises(ValueError, match="n_threads must be positive"):
        _kernels.SvmlightText(as_text(b"1 1:1\n"), True, False, 0)
    counted = _kernels.SvmlightText(as_text(b"1 1:1\n"), True, False, 1)
    assert (counted.n_lines, counted.n_rows, counted.n_stored) == (1, 1, 1)
    arrays = [np.empty(2, int), np.empty(1, int), np.empty(1), np.empty(1), np.empty(0, int)]
    assert counted.fill(*arrays)[0] == _kernels.SvmlightFault.none
    for i, array in enumerate(arrays):
        wrong = [*arrays[:i], np.empty(len(array) + 1, array.dtype), *arrays[i + 1 :]]
        with pytest.raises(ValueError, match="not of the counted size"):
            counted.fill(*wrong)


# --- files --------------------------------------------------------------------------------------

TEXT = b"".join(b"%d %d:%d\n" % (i % 2, i, i * i % 9973) for i in range(20_000))


def read_path(path):
    with open_text(path) as file:
        return np.concatenate([block.data for block in iter_blocks(file, block_bytes=10_000)])


def test_gzip_is_told_by_the_first_bytes_not_by_the_name(tmp_path):
    (tmp_path / "plain.gz").write_bytes(TEXT)
    (tmp_path / "packed.txt").write_bytes(gzip.compress(TEXT))
    (tmp_path / "members").write_bytes(gzip.compress(TEXT[:1000]) + gzip.compress(TEXT[1000:]))
    expected = read(TEXT)["data"]
    for name in ("plain.gz", "packed.txt", "members"):
        np.testing.assert_array_equal(read_path(tmp_path / name), expected)
        np.testing.assert_array_equal(read_path(str(tmp_path / name)), expected)


@pytest.mark.parametrize("n_left", [2, 5, 15, 1000, -9, -1])
def test_a_truncated_gzip_file_is_refused(tmp_path, n_left):
    path = tmp_path / "short.gz"
    path.write_bytes(gzip.compress(TEXT)[:n_left])
    with pytest.raises(
        SvmlightError, match=r"short\.gz ends in the middle of its gzip stream"
    ) as e:
        read_path(path)
    assert e.value.line is None


def test_a_corrupted_gzip_file_is_refused(tmp_path):
    packed = gzip.compress(TEXT)
    path = tmp_path / "bad.gz"
    for where in (*range(2, 4), *range(12, len(packed), len(packed) // 20), len(packed) - 6):
        wrong = bytearray(packed)
        wrong[where] ^= 0xFF
        path.write_bytes(wrong)
        with pytest.raises(SvmlightError) as caught:
            read_path(path)
        assert caught.value.line is not None or str(path) in str(caught.value)


def test_a_gzip_file_followed_by_something_else_is_refused(tmp_path):
    path = tmp_path / "more.gz"
    path.write_bytes(gzip.compress(TEXT) + b"1 1:1\n")
    with pytest.raises(SvmlightError, match=r"more\.gz is a corrupted gzip file: Not a gzipped"):
        read_path(path)


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_closing_closes_the_file_underneath(tmp_path, pack):
    path = tmp_path / "file"
    path.write_bytes(pack(b"1 1:1\n"))
    file = open_text(path)
    underneath = getattr(file, "_underneath", file)
    file.close()
    assert file.closed
    assert underneath.closed


def test_a_missing_file_is_an_oserror(tmp_path):
    with pytest.raises(FileNotFoundError, match="nothing"):
        open_text(tmp_path / "nothing.svm")
    with pytest.raises(IsADirectoryError):
        open_text(tmp_path)


@pytest.mark.no_sanitizer
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_dash_is_standard_input(pack):
    code = """if True:
        import sys
        from polysparse.files.text import open_text, summarize
        with open_text("-") as file:
            print(summarize(file).profile.n_rows, sys.stdin.closed)
    """
    done = subprocess.run(
        [sys.executable, "-c", code], input=pack(TEXT), capture_output=True, check=True
    )
    assert done.stdout.split() == [b"20000", b"False"]


def test_every_value_that_is_written_comes_back(tmp_path):
    """The writer beside the reader: bits of doubles and floats, extreme ones among them."""
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2**64, 3000, dtype=np.uint64).view(np.float64)
    doubles = np.concatenate([bits[np.isfinite(bits)], [0.1, 5e-324, 1.7976931348623157e308, -0.0]])
    for values in (doubles, doubles[np.abs(doubles) < 1e30].astype(np.float32)):
        n = len(values)
        offsets = np.array([0, n // 2, n // 2, n])
        columns = np.arange(n) + 2**62
        labels = np.array([1.0, -0.25, 1e300])
        room = n * _kernels.SVMLIGHT_BYTES_PER_VALUE + 3 * _kernels.SVMLIGHT_BYTES_PER_ROW
        out = np.empty(room, dtype=np.uint8)
        n_bytes = _kernels.write_svmlight(offsets, columns, values, labels, 1, out)
        (block,) = iter_blocks(io.BytesIO(out[:n_bytes].tobytes()))
        np.testing.assert_array_equal(block.indptr, offsets)
        np.testing.assert_array_equal(block.indices, columns + 1)
        assert block.data.astype(values.dtype).tobytes() == values.tobytes()
        np.testing.assert_array_equal(block.labels, labels)
        with pytest.raises(ValueError, match="too little room"):
            _kernels.write_svmlight(offsets, columns, values, labels, 1, out[: room - 1])
        with pytest.raises(ValueError, match="malformed row offsets"):
            _kernels.write_svmlight(offsets[::-1].copy(), columns, values, labels, 1, out)
