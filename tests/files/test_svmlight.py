"""The svmlight reader: labels, query ids, comments, numbers; and that it reads what is written."""

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_svmlight_file

from polysparse import _kernels
from polysparse.files.text import iter_blocks, summarize
from svmlight_texts import assert_same, float_bits, read


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
    assert (summary.profile.n_rows, summary.profile.n_stored) == (0, 0)
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
    np.testing.assert_array_equal(float_bits(got["data"]), float_bits([float(number)]))
    np.testing.assert_array_equal(float_bits(got["labels"]), float_bits([float(number)]))


def test_nan_is_a_number():
    assert np.isnan(read(b"1 1:nan 2:-nan 3:+NaN\n")["data"]).all()


def decimals():
    digits = st.text("0123456789", max_size=24)
    exponent = st.integers(-340, 320).map("e{}".format) | st.just("")
    parts = st.tuples(st.sampled_from(["", "-", "+"]), digits, digits, exponent)
    return parts.filter(lambda p: p[1] or p[2]).map(lambda p: f"{p[0]}{p[1]}.{p[2]}{p[3]}")


@given(st.lists(st.floats(allow_nan=False).map(repr) | decimals(), min_size=1, max_size=20))
def test_any_decimal_is_rounded_as_python_rounds_it(numbers):
    numbers = [n for n in numbers if abs(float(n)) < np.inf or "inf" in n]
    text = "1 " + " ".join(f"1:{n}" for n in numbers)
    np.testing.assert_array_equal(
        float_bits(read(text.encode())["data"]), float_bits([*map(float, numbers)])
    )


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
    np.testing.assert_array_equal(float_bits(got["data"]), float_bits(X.data))
    np.testing.assert_array_equal(got["labels"], y)
    np.testing.assert_array_equal(got["qid"], qid)


def test_every_value_that_is_written_comes_back(tmp_path):
    """The reader gives back the bits that were written, also of extreme doubles and floats."""
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
