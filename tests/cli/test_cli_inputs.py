"""Inputs that cannot be read: one line on standard error, and code 1."""

import gzip

import numpy as np
import pytest

from checks import names_in
from command_line import GOOD, run


def npz(**arrays):
    import io

    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def csr_npz(**changes):
    arrays = {"indices": [0, 1], "indptr": [0, 2], "data": [1.0, 2.0]}
    return npz(**{**arrays, "format": b"csr", "shape": [1, 2], **changes})


MALFORMED = {
    "label.svmlight": (b"abc 1:2\n", "line 1"),
    "late.svmlight": (b"1 1:2\n1 1:2\n1 x:2\n", "line 3"),
    "value.svmlight": (b"1 1:two\n", "line 1"),
    "no-value.svmlight": (b"1 1:\n", "line 1"),
    "no-index.svmlight": (b"1 :5\n", "line 1"),
    "no-colon.svmlight": (b"1 5\n", "line 1"),
    "negative.svmlight": (b"1 -3:5\n", "line 1"),
    "huge-index.svmlight": (b"1 99999999999999999999:5\n", "line 1"),
    "float-index.svmlight": (b"1 1.5:5\n", "line 1"),
    "nul.svmlight": (b"1 1:5\x00\n", "line 1"),
    "binary.svmlight": (bytes(range(256)), "line"),
    "utf16.svmlight": ("1 1:5\n".encode("utf-16"), "line 1"),
    "multilabel.svmlight": (b"1,2 1:5\n", "line 1"),
    "some-labels.svmlight": (b"1 1:5\n1:5\n", "line 2"),
    "qid.svmlight": (b"1 qid:x 1:5\n", "line 1"),
    "truncated.svmlight.gz": (gzip.compress(GOOD * 1000)[:-20], "gzip"),
    "not-gzip.svmlight.gz": (b"\x1f\x8b" + b"junk" * 9, "gzip"),
    "wide.svmlight": (b"1 9223372036854775807:5\n", "columns; at most 2**63 - 1"),
    "empty.npz": (b"", "empty.npz"),
    "junk.npz": (b"PK\x03\x04 and then nothing", "junk.npz"),
    "truncated.npz": (csr_npz()[:-30], "truncated.npz"),
    "foreign.npz": (npz(a=np.ones(3)), "foreign.npz"),
    "format.npz": (csr_npz(format=b"xyz"), "format.npz"),
    "range.npz": (csr_npz(indices=[0, 7]), "range.npz: X.indices[1] is 7"),
    "negative.npz": (csr_npz(indices=[0, -1]), "negative.npz: X.indices[1] is -1"),
    "indptr.npz": (csr_npz(indptr=[0, 9]), "indptr.npz"),
    "falling.npz": (csr_npz(indptr=[0, 2, 1], shape=[2, 2]), "falling.npz"),
    "lengths.npz": (csr_npz(data=[1.0]), "lengths.npz"),
    "complex.npz": (csr_npz(data=[1j, 2j]), "complex"),
    "pickle.npz": (npz(data=np.array([{}], object), format=b"csr"), "pickle.npz"),
    "empty.mtx": (b"", "empty.mtx"),
    "junk.mtx": (b"hello\n1 2 3\n", "junk.mtx"),
    "range.mtx": (
        b"%%MatrixMarket matrix coordinate real general\n1 1 1\n5 5 1.0\n",
        "range.mtx",
    ),
    "short.mtx": (b"%%MatrixMarket matrix coordinate real general\n2 2 3\n1 1 1\n", "short.mtx"),
    "value.mtx": (b"%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 x\n", "value.mtx"),
    "dense.mtx": (b"%%MatrixMarket matrix array real general\n1 1\n1.0\n", "dense array"),
    "complex.mtx": (
        b"%%MatrixMarket matrix coordinate complex general\n1 1 1\n1 1 1 1\n",
        "complex",
    ),
    "truncated.mtx.gz": (
        gzip.compress(b"%%MatrixMarket matrix coordinate real general\n" * 99)[:-9],
        "truncated.mtx.gz",
    ),
    "empty.parquet": (b"", "empty.parquet"),
    "junk.parquet": (b"PAR1 nothing PAR1", "junk.parquet"),
}


@pytest.mark.parametrize("name", MALFORMED)
@pytest.mark.parametrize("command", ["plan", "expand"])
def test_malformed_files_are_one_line_and_code_1(command, name, tmp_path, capsys):
    if name.endswith(".parquet"):
        pytest.importorskip("pyarrow")
    content, message = MALFORMED[name]
    (tmp_path / name).write_bytes(content)
    output = [tmp_path / "out"] if command == "expand" else []
    assert run(command, tmp_path / name, *output) == 1
    error = capsys.readouterr().err
    assert message in error
    assert error.startswith("polysparse: ")
    assert error.count("\n") == 1
    assert names_in(tmp_path) == [name]


def test_parquet_that_is_not_a_sparse_matrix(tmp_path, capsys):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet as pq

    def refuse(table, message):
        pq.write_table(pa.table(table), tmp_path / "in.parquet")
        assert run("expand", tmp_path / "in.parquet", tmp_path / "out") == 1
        assert message in capsys.readouterr().err

    lists, values = pa.array([[0, 1], [2]]), pa.array([[1.0, 2.0], [3.0]])
    refuse({"a": lists}, "which is neither a number nor a category: read it as text with --cat")
    refuse({"indices": lists}, "has no list column 'values'")
    refuse({"indices": [1, 2], "values": values}, "has no list column 'indices'")
    refuse({"indices": pa.array([[0], [2]]), "values": values}, "different numbers of indices")
    refuse({"indices": pa.array([[0, -1], [2]]), "values": values}, "index -1 is negative")
    refuse({"indices": pa.array([[0, 1], None]), "values": values}, "a row is null")


def test_columns_beyond_n_features_and_the_wrong_base(good, tmp_path, capsys):
    assert run("expand", good, tmp_path / "out", "--n-features", 2) == 1
    assert "column 2 occurs, but --n-features=2" in capsys.readouterr().err
    (tmp_path / "zero.svm").write_bytes(b"1 0:1\n")
    assert run("plan", tmp_path / "zero.svm", "--one-based") == 1
    assert "index 0 occurs, but --one-based" in capsys.readouterr().err


def test_missing_and_forbidden_files(tmp_path, capsys):
    assert run("plan", tmp_path / "nothing.npz") == 1
    assert "no such file" in capsys.readouterr().err
    (tmp_path / "folder.npz").mkdir()
    assert run("plan", tmp_path / "folder.npz") == 1
    assert "folder.npz" in capsys.readouterr().err
