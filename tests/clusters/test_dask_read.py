"""read: files as dask arrays, in blocks that begin anywhere, and what files do not say."""

import gzip

import dask.array as da
import numpy as np
import pytest
from scipy import sparse

import polysparse
from checks import bits
from inside import fail_at, lower
from polysparse.cli import main
from polysparse.dask import read
from polysparse.files.errors import FileFault
from sample_files import X, Y, write_parquet, write_svmlight

TEXT = b"""# a comment first

1 1:2 3:4 # more
0 2:0.5
-1

1 3:1 1:1 3:2"""
DENSE = [[2.0, 0.0, 4.0], [0.0, 0.5, 0.0], [0.0, 0.0, 0.0], [1.0, 0.0, 3.0]]
LABELS = [1.0, 0.0, -1.0, 1.0]


def written(tmp_path, content=TEXT, name="in.svmlight"):
    path = tmp_path / name
    path.write_bytes(content)
    return path


def forbid_a_pass(patch):
    """No file may be read before its blocks are."""
    fail_at(patch, "look through", AssertionError("the file was read"))


def assert_holds(lazy, expected, labels=None):
    """The lazy array is as it says, and has these values in canonical csr_arrays."""
    rows, y = lazy
    assert isinstance(rows, da.Array)
    assert type(rows._meta) is sparse.csr_array
    blocks = [block.compute(scheduler="synchronous") for block in rows.to_delayed().ravel()]
    for block, n_rows in zip(blocks, rows.chunks[0], strict=True):
        assert type(block) is sparse.csr_array
        assert block.dtype == rows.dtype
        assert block.shape[1] == rows.shape[1]
        assert np.isnan(n_rows) or block.shape[0] == n_rows
        assert block.indices.dtype == block.indptr.dtype == np.int32
        checked = sparse.csr_array((block.data, block.indices, block.indptr), shape=block.shape)
        assert checked.has_canonical_format
    np.testing.assert_array_equal(sparse.vstack(blocks).toarray(), np.asarray(expected))
    if labels is None:
        assert y is None
        return
    assert y.chunks[0] == rows.chunks[0] or np.isnan(rows.shape[0])
    np.testing.assert_array_equal(y.compute(scheduler="synchronous"), labels)


# ------------------------------------------------------------------------------------- svmlight


@pytest.mark.parametrize("block_bytes", [1, 2, 3, 5, 7, 8, 10, 17, 30, 64, 10**6])
@pytest.mark.parametrize("end", [b"", b"\n", b"\n\n# the end\n"])
@pytest.mark.parametrize("how", [{}, {"n_features": 3, "zero_based": False}])
def test_text_is_cut_anywhere(tmp_path, how, end, block_bytes):
    path = written(tmp_path, TEXT + end)
    assert_holds(read(path, labels=True, block_bytes=block_bytes, **how), DENSE, LABELS)


def test_nothing_is_read_twice_and_nothing_is_left_out(tmp_path):
    path = tmp_path / "in.svmlight"
    write_svmlight(path)
    for block_bytes in (97, 1000):
        rows, y = read(path, labels=True, block_bytes=block_bytes)
        assert rows.numblocks[0] > 0.8 * path.stat().st_size / block_bytes
        assert bits(rows.compute()) == bits(X)
        np.testing.assert_array_equal(y.compute(), Y)


def test_rows_are_known_only_after_a_pass(tmp_path, monkeypatch):
    path = written(tmp_path)
    assert read(path, block_bytes=20).shape == (4, 3)
    known = {"n_features": 5, "zero_based": False}
    lazy = read(path, block_bytes=20, **known)
    assert np.isnan(lazy.shape[0])
    assert lazy.shape[1] == 5
    forbid_a_pass(monkeypatch)
    read(path, **known)
    for one in known:
        with pytest.raises(AssertionError, match="the file was read"):
            read(path, **{one: known[one]})


@pytest.mark.parametrize(
    ("text", "zero_based", "expected"),
    [
        (b"0:1 1:2\n", None, [[1.0, 2.0]]),
        (b"1:1 2:2\n", None, [[1.0, 2.0]]),
        (b"1:1 2:2\n", True, [[0.0, 1.0, 2.0]]),
        (b"1:1\n", False, [[1.0]]),
    ],
)
def test_the_first_column(tmp_path, text, zero_based, expected):
    lazy = read(written(tmp_path, text), zero_based=zero_based, labels=True)
    assert_holds(lazy, expected)


def test_the_first_column_is_that_of_all_files(tmp_path):
    """Index 0 occurs only in the second."""
    paths = [written(tmp_path, b"1:5\n", "a.svm"), written(tmp_path, b"0:7\n2:1\n", "b.svm")]
    assert_holds(read(paths, labels=True), [[0, 5, 0], [7, 0, 0], [0, 0, 1]])


def test_index_0_contradicts_zero_based_false(tmp_path):
    lazy = read(written(tmp_path, b"0:1\n"), n_features=2, zero_based=False)
    with pytest.raises(FileFault, match=r"in\.svmlight: index 0 occurs, but zero_based=False"):
        lazy.compute()


def test_a_column_too_many_is_named(tmp_path):
    lazy = read(written(tmp_path), n_features=2)
    with pytest.raises(FileFault, match="column 2 occurs, but n_features=2 allows only"):
        lazy.compute()


def test_more_features_than_occur(tmp_path):
    wide = np.pad(DENSE, ((0, 0), (0, 4)))
    assert_holds(read(written(tmp_path), n_features=7, labels=True), wide, LABELS)


def test_a_faulty_line_is_found_by_its_range(tmp_path):
    path = written(tmp_path, b"1 1:2\n0 2:3\n1 1:x\n")
    known = {"n_features": 3, "zero_based": False}
    lazy = read(path, block_bytes=6, **known)
    with pytest.raises(FileFault, match=r"in\.svmlight: line 1 after byte 12: value 'x' of '1:x'"):
        lazy.compute()
    with pytest.raises(FileFault, match=r"in\.svmlight: line 3: value 'x'"):
        read(path)


def test_the_first_row_of_the_file_says_whether_there_are_labels(tmp_path):
    path = written(tmp_path, b"1:2\n2:3\n4 1:5\n")
    with pytest.raises(FileFault, match="the first row has no label"):
        read(path, block_bytes=5)


def test_gzip_is_a_single_block(tmp_path):
    path = written(tmp_path, gzip.compress(TEXT), "in.svm.gz")
    lazy = read(path, block_bytes=5, labels=True)
    assert lazy[0].numblocks == (1, 1)
    assert_holds(lazy, DENSE, LABELS)


@pytest.mark.parametrize("content", [b"", b"\n", b"# nothing\n"])
def test_a_file_without_rows(tmp_path, content):
    lazy = read(written(tmp_path, content), n_features=3, labels=True)
    assert_holds(lazy, np.empty((0, 3)))


# --------------------------------------------------------------------------------------- libffm

FIELDS = b"""# two fields
1 0:1:1 2:4:0.5
0 0:2:1 2:4:-2
1
0 2:5:3e1 0:1:2"""
FIELD_ROWS = [[1, 0, 0, 0.5, 0], [0, 1, 0, -2, 0], [0, 0, 0, 0, 0], [2, 0, 0, 0, 30]]
GROUPS = ["f0", "f0", None, "f2", "f2"]


@pytest.mark.parametrize("block_bytes", [1, 7, 17, 10**6])
@pytest.mark.parametrize("how", [{}, {"n_features": 5, "zero_based": False}])
def test_fields_are_groups_wherever_text_is_cut(tmp_path, how, block_bytes):
    path = written(tmp_path, FIELDS, "in.ffm")
    how = {"block_bytes": block_bytes, **how}
    X, y, groups = read(path, labels=True, groups=True, **how)
    assert_holds((X, y), FIELD_ROWS, [1, 0, 1, 0])
    assert groups == GROUPS
    assert read(path, groups=True, **how)[1] == GROUPS
    assert_holds(read(path, labels=True, **how), FIELD_ROWS, [1, 0, 1, 0])
    found = polysparse.expand(X, groups=groups, terms=["f0:f2"], columns="all")
    wanted = polysparse.expand(sparse.csr_array(FIELD_ROWS), groups=GROUPS, terms=["f0:f2"])
    assert bits(found.compute(scheduler="synchronous")) == bits(wanted)


def test_gzipped_fields(tmp_path):
    path = written(tmp_path, gzip.compress(FIELDS), "in.ffm.gz")
    X, groups = read(path, groups=True, block_bytes=5)
    assert X.numblocks == (1, 1)
    assert groups == GROUPS


def test_groups_follow_the_base_and_the_number_of_features(tmp_path):
    path = written(tmp_path, FIELDS, "in.ffm")
    assert read(path, groups=True, zero_based=True)[1] == [None, *GROUPS]
    assert read(path, groups=True, n_features=7)[1] == [*GROUPS, None, None]
    assert read(written(tmp_path, b"", "none.ffm"), groups=True)[1] == []


def test_files_without_fields_have_no_groups(tmp_path):
    path = written(tmp_path)
    assert read(path, groups=True)[1] is None
    both = [path, written(tmp_path, FIELDS, "in.ffm")]
    X, groups = read(both, groups=True)
    assert X.shape == (8, 5)
    assert groups == GROUPS


@pytest.mark.parametrize("block_bytes", [1, 10**6])
def test_an_index_in_two_fields_is_refused(tmp_path, block_bytes):
    path = written(tmp_path, FIELDS + b"\n1 1:5:1\n", "in.ffm")
    message = r"in\.ffm.*: index 5 is in field 1, but was in field 2 before"
    for how in ({}, {"groups": True, "n_features": 5, "zero_based": False}):
        with pytest.raises(FileFault, match=message):
            read(path, block_bytes=block_bytes, **how)


def test_an_index_in_another_field_of_another_file_is_refused(tmp_path):
    paths = [written(tmp_path, FIELDS, "a.ffm"), written(tmp_path, b"1 1:5:1\n", "b.ffm")]
    with pytest.raises(FileFault, match=r"b\.ffm: index 5 is in field 1, but was in field 2"):
        read(paths)


def test_a_faulty_triple_is_found_by_its_range(tmp_path):
    lazy = read(
        written(tmp_path, b"1 0:1:2\n0 0:2\n", "in.ffm"),
        n_features=3,
        zero_based=False,
        block_bytes=8,
    )
    with pytest.raises(FileFault, match=r"in\.ffm: line 1 after byte 8: '0:2' is not a triple"):
        lazy.compute()


# --------------------------------------------------------------------------- Parquet, directories


@pytest.mark.parametrize(("block_bytes", "n_blocks"), [(1, 3), (10**9, 1)])
def test_parquet_is_cut_between_row_groups(tmp_path, block_bytes, n_blocks):
    write_parquet(tmp_path / "in.parquet")
    lazy = read(tmp_path / "in.parquet", labels=True, block_bytes=block_bytes)
    assert lazy[0].numblocks == (n_blocks, 1)
    assert_holds(lazy, X.toarray(), Y)
    assert bits(lazy[0].compute()) == bits(X)


def test_parquet_states_its_rows_if_not_its_width(tmp_path, monkeypatch):
    write_parquet(tmp_path / "in.parquet")
    forbid_a_pass(monkeypatch)
    lazy = read(tmp_path / "in.parquet", n_features=12, block_bytes=1)
    assert lazy.chunks == ((50, 50, 20), (12,))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["out", "out.parquet"])
def test_what_polysparse_wrote(tmp_path, monkeypatch, name, dtype):
    write_svmlight(tmp_path / "in.svmlight")
    lower(monkeypatch, PART_BYTES=2000)
    arguments = ["expand", tmp_path / "in.svmlight", tmp_path / name, "--dtype", dtype, "--quiet"]
    assert main([str(a) for a in arguments]) == 0
    forbid_a_pass(monkeypatch)  # everything is stated
    lazy = read(tmp_path / name, labels=True, block_bytes=1)
    expected = polysparse.expand(X.astype(dtype))
    assert lazy[0].dtype == dtype
    assert name == "out.parquet" or lazy[0].numblocks[0] > 5
    assert_holds(lazy, expected.toarray(), Y)
    assert bits(lazy[0].compute()) == bits(expected)


def test_a_damaged_part_is_named(tmp_path, monkeypatch):
    write_svmlight(tmp_path / "in.svmlight")
    assert main(["expand", str(tmp_path / "in.svmlight"), str(tmp_path / "out"), "--quiet"]) == 0
    data = np.load(tmp_path / "out/data.npy", mmap_mode="r+")
    data[5] += 1
    data.flush()
    with pytest.raises(ValueError, match=r"data\.npy is damaged in rows 0 to 119"):
        read(tmp_path / "out").compute()


def test_rows_of_several_formats(tmp_path):
    write_parquet(tmp_path / "in.parquet")
    write_svmlight(tmp_path / "in.svmlight")
    lazy = read([tmp_path / "in.parquet", str(tmp_path / "in.svmlight")], labels=True)
    assert_holds(lazy, np.vstack([X.toarray()] * 2), np.concatenate([Y, Y]))


# ------------------------------------------------------------------------------------------- both


def test_the_same_call_gives_the_same_name(tmp_path):
    path = written(tmp_path)
    assert read(path).name == read(path).name
    assert read(path).name != read(path, n_features=9).name
    before = read(path).name
    path.write_bytes(TEXT + b"\n")
    assert read(path).name != before


def test_a_file_that_changes_is_refused(tmp_path):
    path = written(tmp_path)
    lazy = read(path)
    path.write_bytes(TEXT + b"\n1 1:1\n")
    with pytest.raises(FileFault, match="changed after it was opened: open it again"):
        lazy.compute()


def test_in_other_processes(tmp_path, client):
    write_svmlight(tmp_path / "in.svmlight")
    with client.as_current():
        lazy = read(tmp_path / "in.svmlight", block_bytes=500)
        assert bits(polysparse.expand(lazy).compute()) == bits(polysparse.expand(X))


@pytest.mark.parametrize("name", ["in.npz", "in.mtx"])
def test_what_can_only_be_read_whole_is_refused(tmp_path, name):
    with pytest.raises(ValueError, match=f"{name} can only be read as a whole.*svmlight"):
        read(written(tmp_path, b"", name))


def test_labels_in_some_files_only(tmp_path):
    paths = [written(tmp_path, b"1 1:5\n", "a.svm"), written(tmp_path, b"1:7\n", "b.svm")]
    assert read(paths).shape == (2, 1)
    with pytest.raises(ValueError, match=r"a\.svm has labels, but .*b\.svm has none"):
        read(paths, labels=True)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"paths": []}, ValueError, "paths is empty"),
        ({"paths": "nowhere.svm"}, FileNotFoundError, r"nowhere\.svm: no such file or directory"),
        ({"paths": "in.xyz"}, ValueError, r"in\.xyz: unknown ending"),
        ({"paths": "in.svm", "block_bytes": 0}, ValueError, "block_bytes must be at least 1"),
    ],
)
def test_wrong_arguments(arguments, error, message):
    with pytest.raises(error, match=message):
        read(**arguments)
