"""svmlight texts in any style, with what was written into them, and a way to read them."""

import io

import numpy as np
from hypothesis import strategies as st

from polysparse.files.text import iter_blocks

ARRAYS = ("indices", "data", "labels", "qid")


def read(text, **options):
    """All blocks of a text as one dict of arrays, with row lengths in place of indptr."""
    blocks = list(iter_blocks(io.BytesIO(text), **options))
    for block in blocks:
        assert block.indptr[0] == 0
        assert block.indptr[-1] == len(block.indices) == len(block.data)
    whole = {"lengths": np.concatenate([[], *(np.diff(b.indptr) for b in blocks)])}
    for name in ARRAYS:
        parts = [getattr(b, name) for b in blocks if getattr(b, name) is not None]
        assert len(parts) in (0, len(blocks))
        whole[name] = np.concatenate(parts) if parts else None
    return whole


def assert_same(got, expected):
    """Two texts gave the same arrays."""
    for name in ("lengths", *ARRAYS):
        np.testing.assert_array_equal(got[name], expected[name], err_msg=name)


def float_bits(values):
    """The bits of float64 values, to be compared: -0 is not 0, and NaN is itself."""
    return np.asarray(values, np.float64).view(np.int64)


VALUES = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-5, 5).map(float)
INDICES = st.integers(0, 50) | st.integers(0, 2**63 - 1)
ROWS = st.lists(st.lists(st.tuples(INDICES, VALUES), max_size=5), max_size=12)
BLANKS = st.sampled_from([" ", "\t", "  ", " \t "])
COMMENTS = st.sampled_from(["", "#", " # 1:2 qid:3", "# é:"])
IDLE_LINES = st.sampled_from(["", "", "", "\n", " \r\n", "# 4:5\n", "\t#\n"])


@st.composite
def texts(draw):
    """A text in any style, and the arrays that were written into it."""
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
