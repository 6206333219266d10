"""libffm text: svmlight text with fields, which are groups of features."""

import gzip
import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import polysparse
from polysparse import _kernels
from polysparse.files.errors import FileFault
from polysparse.files.narrowed import NarrowedSource
from polysparse.files.opening import open_source
from polysparse.files.text import SvmlightError, iter_blocks, summarize
from svmlight_texts import assert_same, read, texts

TEXT = b"""# two fields
1 0:1:1 2:4:0.5

0 0:2:1 2:4:-2 # 7:7:7
1
0 2:5:3e1 0:1:2
"""
DENSE = [[1, 0, 0, 0.5, 0], [0, 1, 0, -2, 0], [0, 0, 0, 0, 0], [2, 0, 0, 0, 30]]


def opened(tmp_path, text=TEXT, name="in.ffm", **reading):
    path = tmp_path / name
    path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    return open_source(str(path), **reading)


def rows_of(source, **how):
    blocks = list(source.blocks(how.get("skip_rows", 0), how.get("block_bytes", 10**6)))
    dense = np.concatenate([block.toarray() for block, _ in blocks])
    return dense, np.concatenate([labels for _, labels in blocks])


@pytest.mark.parametrize("name", ["in.ffm", "in.libffm", "in.ffm.gz"])
def test_rows_labels_and_groups(tmp_path, name):
    source = opened(tmp_path, name=name)
    assert source.groups == ["f0", "f0", None, "f2", "f2"]
    assert source.summary.n_features == 5
    for block_bytes in (1, 20, 10**6):
        dense, labels = rows_of(source, block_bytes=block_bytes)
        np.testing.assert_array_equal(dense, DENSE)
        np.testing.assert_array_equal(labels, [1, 0, 1, 0])
    np.testing.assert_array_equal(rows_of(source, skip_rows=1)[0], DENSE[1:])


def test_groups_follow_the_base_and_the_number_of_features(tmp_path):
    assert opened(tmp_path, zero_based=True).groups == [None, "f0", "f0", None, "f2", "f2"]
    assert opened(tmp_path, n_features=7).groups == ["f0", "f0", None, "f2", "f2", None, None]
    assert opened(tmp_path, b"1 3:0:1 10:1:1\n").groups == ["f3", "f10"]
    assert opened(tmp_path, b"").groups == []
    assert NarrowedSource(opened(tmp_path), 4).groups == ["f0", "f0", None, "f2"]


def test_other_formats_have_no_groups(tmp_path):
    assert opened(tmp_path, b"1 1:1\n", "in.svmlight").groups is None


def test_groups_are_those_of_a_basis(tmp_path):
    source = opened(tmp_path)
    (block, _), *_ = source.blocks(0, 10**6)
    pairs = polysparse.expand(block, (2, 2), groups=source.groups, terms=["f0:f2"])
    assert pairs.shape == (4, 1 + 4)
    assert pairs.sum() == 4 + 0.5 - 2 + 60


def test_blank_lines_and_comments_count_as_lines(tmp_path):
    with pytest.raises(FileFault) as caught:
        _ = opened(tmp_path, TEXT + b"\n#\n1 3:3:1 1:5:1 # 0:5:1\n").summary
    assert "in.ffm: line 9: index 5 is in field 1, but was in field 2 before" in str(caught.value)
    assert "Number features so that each field has its own indices." in str(caught.value)


@pytest.mark.parametrize("options", [{}, {"block_bytes": 1}, {"n_threads": 3}])
def test_the_first_index_in_two_fields_is_the_one_reported(options):
    text = b"1 0:1:1\n1 1:2:1 2:2:1\n1 2:1:1\n"
    with pytest.raises(SvmlightError, match="line 2: index 2 is in field 2, but was in field 1"):
        summarize(io.BytesIO(text), has_fields=True, **options)


MALFORMED = [
    (b"1 3:4\n", "line 1: '3:4' is not a triple field:index:value."),
    (b"1 3\n", "line 1: '3' is not a triple field:index:value."),
    (b"1 :3:4\n", "line 1: ':3:4' has no field before its colon."),
    (b"1 3::4\n", "line 1: '3::4' has no index before its second colon."),
    (b"1 3:4:\n", "line 1: '3:4:' has no value after its second colon."),
    (b"1 x:1:1\n", "line 1: field x is not an integer."),
    (b"1 -1:1:1\n", "line 1: field -1 is negative: fields are 0-based."),
    (b"1 9223372036854775808:1:1\n", "field 9223372036854775808 is too large for an int64."),
    (b"1 1:-1:1\n", "line 1: index -1 is negative: indices are 0-based or 1-based."),
    (b"1 1:1.5:1\n", "line 1: index 1.5 is not an integer."),
    (b"1 1:2:x\n", "line 1: value 'x' of '1:2:x' is not a number."),
    (b"1 1:2:3:4\n", "line 1: value '3:4' of '1:2:3:4' is not a number."),
    (b"a 1:2:3\n", "line 1: label 'a' is not a number."),
    (b"1 1:1:1\n1:1:1\n", "line 2: begins with '1:1:1' and so has no label"),
    (b"1:1:1\n1\n", "line 2: begins with '1', which is not field:index:value; the first row"),
    (b"1 1:1:1 qid:2\n", "'qid:2' is out of place: a qid comes once, before all field:index:value"),
    (b"1 1:1:1\x00\n", "holds the byte 0x00: this is not a libffm text file."),
    (b"1 1:3:" + b"1" * 5000 + b"\n", "is neither a number nor field:index:value."),
]


@pytest.mark.parametrize(("text", "message"), MALFORMED, ids=[m[:60] for _, m in MALFORMED])
def test_malformed_lines_are_refused(text, message):
    for options in ({}, {"block_bytes": 1}, {"n_threads": 3}):
        with pytest.raises(SvmlightError) as caught:
            list(iter_blocks(io.BytesIO(text), has_fields=True, **options))
        assert message in str(caught.value)


def test_an_index_that_no_table_can_reach_is_refused(tmp_path):
    with pytest.raises(MemoryError, match=r"The fields of indices up to .* without gaps"):
        _ = opened(tmp_path, b"1 0:9223372036854775807:1\n").summary


@settings(max_examples=100)
@given(texts(), st.integers(1, 50), st.integers(1, 3))
def test_text_is_read_as_svmlight_text_is_however_it_is_cut(file, block_bytes, n_threads):
    """Every pair of an svmlight text is given the field 7."""
    text, expected = file
    lines = []
    for line in text.splitlines(keepends=True):
        content, mark, comment = line.partition(b"#")
        words = content.replace(b"\t", b" ").split(b" ")
        pairs = [b"7:" + w if b":" in w and not w.startswith(b"qid") else w for w in words]
        lines.append(b" ".join(pairs) + mark + comment)
    how = {"block_bytes": block_bytes, "n_threads": n_threads, "has_fields": True}
    assert_same(read(b"".join(lines), **how), expected)
    for block in iter_blocks(io.BytesIO(b"".join(lines)), **how):
        assert block.fields.tolist() == [7] * len(block.indices)


WORDS = [b"1", b"1:2", b"1:2:3", b":", b"::", b" ", b"\n", b"qid:3", b"#", b"1 5:6:7\n", b"1:"]


@settings(max_examples=300)
@given(
    st.binary(max_size=60) | st.lists(st.sampled_from(WORDS), max_size=30).map(b"".join),
    st.booleans(),
    st.booleans(),
)
def test_nothing_is_written_beyond_what_was_counted(text, has_labels, has_qid):
    text = np.frombuffer(text + b"\n", np.uint8)
    counted = _kernels.SvmlightText(text, has_labels, has_qid, 1, True)
    n_rows, n_stored = counted.n_rows, counted.n_stored
    sizes = (n_rows + 1, n_stored, n_stored, n_rows * has_labels, n_rows * has_qid, n_stored)
    arrays = [np.full(n + 2, -77, dtype) for n, dtype in zip(sizes, "qqddqq", strict=True)]
    fault, *_ = counted.fill(*(array[1:-1] for array in arrays))
    for array in arrays:
        assert array[0] == array[-1] == -77
    if fault == _kernels.SvmlightFault.none:
        assert arrays[0][-2] == n_stored


def test_kernels_need_fields_of_the_counted_size():
    text = np.frombuffer(b"1 1:1:1\n", np.uint8)
    counted = _kernels.SvmlightText(text, True, False, 1, True)
    arrays = [np.empty(2, int), np.empty(1, int), np.empty(1), np.empty(1), np.empty(0, int)]
    for fields in ([], [np.empty(2, int)]):
        with pytest.raises(ValueError, match="not of the counted size"):
            counted.fill(*arrays, *fields)
    assert counted.fill(*arrays, np.empty(1, int))[0] == _kernels.SvmlightFault.none
