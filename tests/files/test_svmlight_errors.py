"""Malformed svmlight: what is refused, with which message, and that no array is overrun."""

import io
import pickle

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from polysparse import _kernels
from polysparse.files.text import SvmlightError, iter_blocks, summarize
from svmlight_texts import assert_same, read, texts

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
    (b"\n\n\n\n\n\n1 -3:1\n", "line 7: index -3 is negative: indices are 0-based or 1-based."),
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
    """With a qid, the first colon of a row is no pair's. A row without a qid has no such colon."""
    for n_threads in (1, 3):
        with pytest.raises(SvmlightError, match="line 2: has no qid"):
            read(b"1 qid:1 3:4 5:6\n" + b"1\n" * 1000, n_threads=n_threads)


def test_rows_before_a_malformed_one_come_in_their_blocks():
    blocks = iter_blocks(io.BytesIO(b"1 1:1\n2 2:2\n3 x\n"), block_bytes=6)
    assert [next(blocks).labels.tolist(), next(blocks).labels.tolist()] == [[1], [2]]
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


@settings(max_examples=200)
@given(ANY_BYTES, st.integers(1, 20), st.integers(1, 3))
def test_any_bytes_give_rows_or_an_error_however_they_are_cut(text, block_bytes, n_threads):
    whole = outcome_of(text)
    cut = outcome_of(text, block_bytes=block_bytes, n_threads=n_threads)
    if isinstance(whole, str):
        assert cut == whole
    else:
        assert_same(cut, whole)


@settings(max_examples=200)
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


@settings(max_examples=100)
@given(texts(), st.data())
def test_a_file_with_one_byte_changed_gives_rows_or_an_error(file, data):
    text = bytearray(file[0])
    if text:
        text[data.draw(st.integers(0, len(text) - 1))] = data.draw(st.integers(0, 255))
    outcome_of(bytes(text), block_bytes=data.draw(st.integers(1, 50)))


def test_errors_survive_pickling():
    for error in (SvmlightError("is odd.", 3), SvmlightError("x is odd.")):
        copy = pickle.loads(pickle.dumps(error))
        assert (str(copy), copy.line, copy.reason) == (str(error), error.line, error.reason)


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
