"""A file with features that a vocabulary does not have: they are dropped, and counted."""

import json

import numpy as np
import pytest
from scipy import sparse

import polysparse
from checks import bits, names_in
from csr_zoo import random_dense
from polysparse import ObservedPolynomialFeatures
from polysparse.files.narrowed import NarrowedSource
from polysparse.files.opening import open_source
from sample_files import refused, run

WIDER = sparse.csr_array(random_dense(40, 14, 0.3, seed=6))  # the vocabulary is of 9 features
UNSEEN = WIDER[:, 9:]
LOST = f"dropped {UNSEEN.nnz} values in {np.count_nonzero(np.diff(UNSEEN.indptr))} rows"


def write_svmlight(path):
    lines = [
        f"0 {' '.join(f'{j}:{v!r}' for j, v in enumerate(row.tolist(), 1) if v)}"
        for row in WIDER.toarray()
    ]
    path.write_text("\n".join(lines) + "\n")


def write_parquet(path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet as pq

    offsets = pa.array(WIDER.indptr)
    columns = {"indices": WIDER.indices, "values": WIDER.data}
    lists = {k: pa.ListArray.from_arrays(offsets, pa.array(v)) for k, v in columns.items()}
    pq.write_table(pa.table(lists), path)


INPUTS = {
    "test.svm": write_svmlight,
    "test.npz": lambda path: sparse.save_npz(path, WIDER),
    "test.parquet": write_parquet,
}


@pytest.fixture(params=INPUTS)
def wider(request, tmp_path):
    """A file with five features more."""
    INPUTS[request.param](tmp_path / request.param)
    return tmp_path / request.param


@pytest.mark.parametrize("max_memory", ["1GiB", "60kB"])
def test_they_are_dropped_and_counted(max_memory, wider, tmp_path, vocabulary, capsys):
    options = ["--vocabulary", vocabulary, "--max-memory", max_memory]
    run("expand", wider, tmp_path / "out", *options)
    expected = ObservedPolynomialFeatures.load(vocabulary).transform(WIDER[:, :9])
    assert bits(polysparse.load(tmp_path / "out")) == bits(expected)
    error = capsys.readouterr().err
    assert f"{wider.name}: {LOST}, of features that {vocabulary} does not have" in error
    assert "(columns 9 and above, 0-based)" in error


def test_quiet_does_not_count_aloud(wider, tmp_path, vocabulary, capsys):
    run("expand", wider, tmp_path / "out", "--vocabulary", vocabulary, "--quiet")
    assert capsys.readouterr().err == ""


def test_a_plan_counts_them_too(wider, tmp_path, vocabulary, capsys):
    run("plan", wider, "--vocabulary", vocabulary, "--json")
    captured = capsys.readouterr()
    assert LOST in captured.err
    expected = ObservedPolynomialFeatures.load(vocabulary).transform(WIDER[:, :9])
    assert json.loads(captured.out)["nnz"] == expected.nnz


@pytest.mark.parametrize("command", ["plan", "expand"])
def test_strict_refuses_them(command, wider, tmp_path, vocabulary, capsys):
    output = [tmp_path / "out"] * (command == "expand")
    error = refused(capsys, 1, command, wider, *output, "--vocabulary", vocabulary, "--strict")
    assert f"{wider.name} has 14 features, but {vocabulary} has 9" in error
    assert "leave out --strict to drop features that were not in the training data" in error
    assert names_in(tmp_path) == ["elsewhere", wider.name]


def test_strict_takes_what_was_seen(matrix, tmp_path, vocabulary):
    run("expand", matrix, tmp_path / "out", "--vocabulary", vocabulary, "--strict")


def test_strict_has_a_meaning_only_with_a_vocabulary(matrix, capsys):
    error = refused(capsys, 2, "plan", matrix, "--observed", "--strict")
    assert "--strict only applies with --vocabulary" in error


def test_n_features_is_what_the_file_has(wider, tmp_path, vocabulary, capsys):
    command = ["expand", wider, tmp_path / "out", "--vocabulary", vocabulary]
    run(*command, "--n-features", 20)
    assert LOST in capsys.readouterr().err
    error = refused(capsys, 1, *command, "--n-features", 10, "--force")
    assert "occurs, but --n-features=10 allows only those below" in error


def test_where_none_occurs_nothing_is_said(tmp_path, vocabulary, capsys):
    wide = sparse.csr_array(
        (WIDER[:, :9].data, WIDER[:, :9].indices, WIDER[:, :9].indptr), (40, 14)
    )
    sparse.save_npz(tmp_path / "test.npz", wide)
    run("expand", tmp_path / "test.npz", tmp_path / "out", "--vocabulary", vocabulary)
    assert "dropped" not in capsys.readouterr().err


def test_rows_that_are_out_of_order_stay_so(tmp_path):
    (tmp_path / "test.svm").write_bytes(b"1 9:1 2:2 2:3 1:4\n0 9:5\n1 1:6\n")
    source = NarrowedSource(open_source(str(tmp_path / "test.svm"), zero_based=False), 2)
    ((block, labels),) = source.blocks(0, 2**16)
    assert (source.dropped_values, source.dropped_rows) == (2, 2)
    assert labels.tolist() == [1, 0, 1]
    assert not block.has_sorted_indices
    assert not block.has_canonical_format
    np.testing.assert_array_equal(block.toarray(), [[4, 5], [0, 0], [6, 0]])


def test_each_pass_counts_for_itself(tmp_path):
    (tmp_path / "test.svm").write_bytes(b"1 9:1 2:2\n" * 10)
    source = NarrowedSource(open_source(str(tmp_path / "test.svm"), zero_based=False), 2)
    for skip_rows, lost in ((0, 10), (0, 10), (7, 3)):
        list(source.blocks(skip_rows, 2**16))
        assert (source.dropped_values, source.dropped_rows) == (lost, lost)
