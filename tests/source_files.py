"""A small matrix as the content of a file of every format, and ways to write and read it."""

import gzip
import io

import numpy as np
import pytest
from scipy import io as scipy_io
from scipy import sparse

from polysparse.files.opening import open_source

TEXT = b"1 1:2 3:4\n0 2:0.5\n"
DENSE = [[2.0, 0.0, 4.0], [0.0, 0.5, 0.0]]


def read(path, block_bytes=2**20, skip_rows=0, **options):
    """All of a file as a dense array, and its labels."""
    source = open_source(str(path), **options)
    try:
        blocks = list(source.blocks(skip_rows, block_bytes))
        n_features, n_rows = source.summary.n_features, source.summary.n_rows
    finally:
        source.close()
    dense = np.vstack([np.empty((0, n_features)), *(X.toarray() for X, _ in blocks)])
    assert len(dense) == n_rows - skip_rows
    labels = [y for _, y in blocks if y is not None]
    return dense, np.concatenate(labels) if labels else None


def written(tmp_path, name, content):
    """The path of a new file."""
    (tmp_path / name).write_bytes(content)
    return tmp_path / name


def contents():
    """The same matrix in every format."""
    X = sparse.csr_array(DENSE)
    npz, mtx = io.BytesIO(), io.BytesIO()
    sparse.save_npz(npz, X)
    scipy_io.mmwrite(mtx, X)
    made = {"in.svm": TEXT, "in.npz": npz.getvalue(), "in.mtx": mtx.getvalue()}
    made |= {f"{name}.gz": gzip.compress(made[name], mtime=0) for name in ("in.svm", "in.mtx")}
    try:
        import pyarrow as pa
    except ImportError:
        return made
    made["in.parquet"] = parquet(
        indices=pa.array([[0, 2], [1]]), values=pa.array([[2.0, 4.0], [0.5]])
    )
    return made


def parquet(metadata=None, **columns):
    """The content of a Parquet file with these columns."""
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet as pq

    buffer = io.BytesIO()
    pq.write_table(pa.table(columns).replace_schema_metadata(metadata), buffer)
    return buffer.getvalue()
