"""One matrix in files of every format, and ways to run, interrupt and kill the command line."""

import gzip

import numpy as np
import pytest
from scipy import sparse
from scipy.io import mmwrite

import polysparse
from csr_zoo import random_dense
from polysparse import cli
from polysparse.files.opening import open_source

pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")

X = sparse.csr_array(random_dense(120, 9, 0.4))
Y = np.arange(120) % 3 - 1.0


def write_svmlight(path, zero_based=False):
    with open(path, "wb") as file:
        # 17 digits bring back every float64; scikit-learn's writer has 16
        for row in range(X.shape[0]):
            start, stop = X.indptr[row : row + 2]
            pairs = zip(X.indices[start:stop], X.data[start:stop], strict=True)
            text = " ".join(f"{j + 1 - zero_based}:{float(v)!r}" for j, v in pairs)
            file.write(f"{Y[row]:g} {text}\n".encode())


def write_gzip(path):
    write_svmlight(path)
    path.write_bytes(gzip.compress(path.read_bytes()))


def write_parquet(path):
    import pyarrow as pa

    offsets = pa.array(X.indptr)
    table = {
        "indices": pa.ListArray.from_arrays(offsets, pa.array(X.indices)),
        "values": pa.ListArray.from_arrays(offsets, pa.array(X.data)),
        "label": pa.array(Y),
    }
    pq.write_table(pa.table(table), path, row_group_size=50)


INPUTS = {
    "in.svmlight": write_svmlight,
    "in": lambda path: write_svmlight(path, zero_based=True),
    "in.svm.gz": write_gzip,
    "in.npz": lambda path: sparse.save_npz(path, X),
    "in.mtx": lambda path: mmwrite(path, X, precision=17),
    "in.parquet": write_parquet,
}
OUTPUTS = ["out", "out.npz", "out.parquet", "out.svmlight"]


def read(path, n_columns):
    """What was written, as (CSR, labels)."""
    if path.suffix == "":
        return polysparse.load(path, labels=True)
    if path.suffix == ".npz":
        with np.load(path) as members:
            return sparse.load_npz(path), members.get("labels")
    options = {"n_features": n_columns, "zero_based": False}
    source = open_source(str(path), **options)
    blocks = list(source.blocks(0, 2**20))
    labels = [block[1] for block in blocks]
    matrix = sparse.vstack([block[0] for block in blocks], format="csr")
    return matrix, None if labels[0] is None else np.concatenate(labels)


def run(*arguments, code=0):
    assert cli.main([str(a) for a in arguments]) == code


def files_in(path):
    """Names and contents of a directory, or the content of a file."""
    if path.is_dir():
        return {p.name: p.read_bytes() for p in sorted(path.iterdir())}
    return path.read_bytes()


def interrupted_by(error):
    def fail(*_):
        raise error

    return fail


# Runs the command line, and kills itself at the n-th step that writes, renames or removes anything;
# a write is half done by then.
KILLED = """
import itertools, os, pathlib, shutil, signal, sys
import polysparse.cli, polysparse.files.store_writer as store, polysparse.thresholds as thresholds
moment, count = int(sys.argv[1]), itertools.count(1)
def deadly(function, half=lambda *arguments: None):
    def call(*arguments, **keywords):
        if next(count) == moment:
            half(*arguments)
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*arguments, **keywords)
    return call
plain = store._write_all
store._write_all = deadly(plain, lambda file, data: plain(file, memoryview(data)[: len(data) // 2]))
for name in ("rename", "replace", "unlink", "write_text"):
    setattr(pathlib.Path, name, deadly(getattr(pathlib.Path, name)))
shutil.rmtree = deadly(shutil.rmtree)
shutil.copyfileobj = deadly(shutil.copyfileobj)
thresholds.PART_BYTES = 2**17
sys.exit(polysparse.cli.main(sys.argv[2:]))
"""
