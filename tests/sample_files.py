"""One matrix in files of every format, and ways to run and kill the command line."""

import gzip
import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse
from scipy.io import mmwrite

import command_line
import polysparse
from csr_zoo import random_dense
from polysparse import HashedPolynomialFeatures, ObservedPolynomialFeatures
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


# Kinds of columns: the options that ask for them, and the same columns in Python. The vocabulary is
# that of the fixture.
DEGREE_3 = ["--degree", 3]
KINDS = {
    "observed": (
        [*DEGREE_3, "--observed", "--min-count", 9, "--max-columns", 100],
        lambda: ObservedPolynomialFeatures(3, min_count=9, max_columns=100).fit(X),
    ),
    "vocabulary": (
        ["--vocabulary", "elsewhere/saved"],
        lambda: ObservedPolynomialFeatures(3, min_count=9).fit(X),
    ),
    "hashed": (
        [*DEGREE_3, "--hashed", "2^6", "--seed", 7, "--no-alternate-sign"],
        lambda: HashedPolynomialFeatures(3, n_columns=64, seed=7, alternate_sign=False),
    ),
}


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
    """Run a command, which must end with this exit code."""
    assert command_line.run(*arguments) == code


def files_in(path):
    """Names and contents of a directory, or the content of a file."""
    if path.is_dir():
        return {p.name: p.read_bytes() for p in sorted(path.iterdir())}
    return path.read_bytes()


def refused(capsys, code, *arguments):
    """The one line that a command ends with."""
    capsys.readouterr()
    run(*arguments, code=code)
    error = capsys.readouterr().err
    assert error.startswith("polysparse: ")
    assert error.count("\n") == 1
    return error


def run_on_a_full_disk(limit, *arguments):
    """Run the command line where no file may be larger; it must fail with one line that says so."""
    program = (
        "import joblib, resource, signal, sys; "  # joblib makes a semaphore when it is imported
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit})); "
        "import polysparse.cli as cli; sys.exit(cli.main(sys.argv[1:]))"
    )
    command = [sys.executable, "-B", "-c", program, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "File too large" in done.stderr


# Run the command line, and kill it at the n-th step that writes, renames or removes anything. A
# write is half done by then.
KILLED = """
import itertools, os, pathlib, shutil, signal, sys
import polysparse.cli, polysparse.files.npy as npy, polysparse.thresholds as thresholds
moment, count = int(sys.argv[1]), itertools.count(1)
def deadly(function, half=lambda *arguments: None):
    def call(*arguments, **keywords):
        if next(count) == moment:
            half(*arguments)
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*arguments, **keywords)
    return call
plain = npy.write_all
npy.write_all = deadly(plain, lambda file, data: plain(file, memoryview(data)[: len(data) // 2]))
for name in ("rename", "replace", "unlink", "write_text"):
    setattr(pathlib.Path, name, deadly(getattr(pathlib.Path, name)))
shutil.rmtree = deadly(shutil.rmtree)
shutil.copyfileobj = deadly(shutil.copyfileobj)
thresholds.PART_BYTES = thresholds.MOVED_BYTES = 2**17
sys.exit(polysparse.cli.main(sys.argv[2:]))
"""
