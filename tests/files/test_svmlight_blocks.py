"""The svmlight reader in blocks: however a text is cut, the same rows come out."""

import io
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polysparse.files.text import SvmlightError, iter_blocks, summarize
from svmlight_texts import assert_same, read, texts


@settings(max_examples=100)
@given(texts(), st.integers(1, 50), st.integers(1, 3))
def test_what_was_written_is_read_however_it_is_cut(file, block_bytes, n_threads):
    text, expected = file
    assert_same(read(text, block_bytes=block_bytes, n_threads=n_threads), expected)
    summary = summarize(io.BytesIO(text), block_bytes=block_bytes, n_threads=n_threads)
    assert summary.profile.lengths == tuple(sorted(Counter(expected["lengths"]).items()))
    assert summary.profile.n_rows == len(expected["lengths"])
    assert summary.profile.n_stored == sum(expected["lengths"])
    assert summary.has_labels == (expected["labels"] is not None)
    assert summary.has_qid == (expected["qid"] is not None)
    if summary.profile.n_stored:
        assert summary.min_index == expected["indices"].min()
        assert summary.max_index == expected["indices"].max()


@settings(max_examples=100)
@given(texts(), st.integers(1, 50), st.integers(1, 3), st.integers(0, 15))
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
    assert [len(b.indptr) - 1 for b in blocks] == [100] * 10


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
