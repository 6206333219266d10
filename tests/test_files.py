"""From file to file: every pair of formats, at several limits of memory, killed and resumed."""

import gzip
import json
import os
import random
import signal
import subprocess
import sys
import zipfile

import numpy as np
import pytest
from scipy import sparse
from scipy.io import mmwrite
from sklearn.datasets import dump_svmlight_file

import polysparse
from csr_zoo import random_dense
from polysparse import cli

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
        return sparse.load_npz(path), None
    options = {"n_features": n_columns, "zero_based": False}
    source = polysparse.sources.open_source(str(path), **options)
    blocks = list(source.blocks(0, 2**20))
    labels = [block[1] for block in blocks]
    matrix = sparse.vstack([block[0] for block in blocks], format="csr")
    return matrix, None if labels[0] is None else np.concatenate(labels)


def run(*arguments, code=0):
    assert cli.main([str(a) for a in arguments]) == code


@pytest.mark.parametrize("max_memory", ["1GiB", "40kB"])
@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("name", INPUTS)
def test_every_pair_of_formats(name, output, max_memory, tmp_path):
    INPUTS[name](tmp_path / name)
    run("expand", tmp_path / name, tmp_path / output, "--degree", 3, "--max-memory", max_memory)
    expected = polysparse.expand(X, 3)
    result, labels = read(tmp_path / output, expected.shape[1])
    assert result.shape == expected.shape
    np.testing.assert_array_equal(result.indptr, expected.indptr)
    np.testing.assert_array_equal(result.indices, expected.indices)
    np.testing.assert_array_equal(result.data, expected.data)
    has_labels = not name.endswith((".npz", ".mtx")) and output != "out.npz"
    if has_labels:
        np.testing.assert_array_equal(labels, Y)
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([name, output])


@pytest.mark.parametrize("output", OUTPUTS)
def test_options_reach_the_expansion(output, tmp_path):
    write_svmlight(tmp_path / "in.svmlight")
    run(
        *("expand", tmp_path / "in.svmlight", tmp_path / output, "--degree", "2-3"),
        *("--interaction-only", "--no-bias", "--dtype", "float32", "--n-features", 12),
    )
    expected = polysparse.expand(
        sparse.csr_array((X.data.astype(np.float32), X.indices, X.indptr), shape=(120, 12)),
        (2, 3),
        interaction_only=True,
        include_bias=False,
    )
    result, _ = read(tmp_path / output, expected.shape[1])
    assert result.shape == expected.shape
    np.testing.assert_array_equal(result.astype(np.float32).toarray(), expected.toarray())


def test_standard_input(tmp_path):
    write_svmlight(tmp_path / "in")
    with open(tmp_path / "in", "rb") as file:
        subprocess.run(
            [sys.executable, "-m", "polysparse", "expand", "-", tmp_path / "out"],
            stdin=file,
            check=True,
        )
    assert (polysparse.load(tmp_path / "out") != polysparse.expand(X)).nnz == 0


def test_a_store_is_memory_mapped_and_its_parts_are_its_rows(tmp_path, monkeypatch):
    monkeypatch.setattr("polysparse.store.PART_BYTES", 5_000)
    sparse.save_npz(tmp_path / "in.npz", X)
    run("expand", tmp_path / "in.npz", tmp_path / "out")
    whole = polysparse.load(tmp_path / "out")
    assert isinstance(whole.data, np.memmap)
    assert not whole.data.flags.writeable
    parts = list(polysparse.iter_load(tmp_path / "out"))
    assert len(parts) > 3
    assert parts[0][0].start == 0
    assert parts[-1][0].stop == 120
    joined = sparse.vstack([part for _, part, _ in parts], format="csr")
    assert (joined != whole).nnz == 0
    assert (whole != polysparse.expand(X)).nnz == 0
    assert all(labels is None for _, _, labels in parts)


def test_empty_matrices(tmp_path):
    sparse.save_npz(tmp_path / "in.npz", sparse.csr_array((0, 4)))
    for output in OUTPUTS:
        run("expand", tmp_path / "in.npz", tmp_path / output)
    assert polysparse.load(tmp_path / "out").shape == (0, 15)
    assert list(polysparse.iter_load(tmp_path / "out")) == []
    assert sparse.load_npz(tmp_path / "out.npz").shape == (0, 15)


def files_in(path):
    """Names and contents of a directory or an archive."""
    if path.is_dir():
        return {p.name: p.read_bytes() for p in sorted(path.iterdir())}
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


# Runs the command line, and kills itself at the n-th step that writes, renames or removes anything;
# a write is half done by then.
KILLED = """
import itertools, os, pathlib, shutil, signal, sys
import polysparse.cli, polysparse.store as store
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
store.PART_BYTES = 2**17
sys.exit(polysparse.cli.main(sys.argv[2:]))
"""


@pytest.mark.no_sanitizer
@pytest.mark.skipif(os.name != "posix", reason="needs signals")
@pytest.mark.parametrize("name", ["out", "out.npz"])
def test_killed_at_any_moment_and_resumed_it_is_the_same(name, tmp_path):
    """Kill -9 in the middle of one step after another, until a run gets through."""
    big = sparse.csr_array(random_dense(1500, 30, 0.4))
    with open(tmp_path / "in.svmlight", "wb") as file:
        dump_svmlight_file(big, np.arange(1500) % 2, file)

    def start(moment, output, *options):
        command = [sys.executable, "-c", KILLED, str(moment), "expand"]
        options = [*options, "--degree", "3", "--max-memory", "4MiB", "--jobs", "1"]
        done = subprocess.run([*command, tmp_path / "in.svmlight", output, *options], check=False)
        return done.returncode

    whole, output = tmp_path / f"whole-{name}", tmp_path / name
    assert start(-1, whole) == 0
    chance, kills = random.Random(0), 0
    while (code := start(chance.randint(1, 40) + 8 * kills, output, "--resume")) != 0:
        assert code == -signal.SIGKILL
        kills += 1
        if output.is_dir():  # killed after the rename: it is whole
            break
        assert not output.exists()
    assert kills > 3
    assert files_in(output) == files_in(whole)


def test_a_run_with_other_parameters_is_not_resumed(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("polysparse.store.PART_BYTES", 1_000)
    sparse.save_npz(tmp_path / "in.npz", X)

    class Full(OSError):
        pass

    def fail(*_):
        raise Full(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("polysparse.store.StoreWriter.finish", fail)
        run("expand", tmp_path / "in.npz", tmp_path / "out", "--resume", code=1)
    assert "No space left on device" in capsys.readouterr().err
    assert (tmp_path / "out.partial").exists()
    run("expand", tmp_path / "in.npz", tmp_path / "out", "--degree", 3, "--resume", code=1)
    assert "was begun with other parameters" in capsys.readouterr().err
    run("expand", tmp_path / "in.npz", tmp_path / "out", "--resume")
    assert (polysparse.load(tmp_path / "out") != polysparse.expand(X)).nnz == 0


@pytest.mark.no_sanitizer
@pytest.mark.skipif(sys.platform != "linux", reason="needs a limit on file size")
@pytest.mark.parametrize("output", OUTPUTS)
def test_a_full_disk_leaves_nothing_behind(output, tmp_path):
    sparse.save_npz(tmp_path / "in.npz", X)
    program = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000)); "
        "import polysparse.cli as cli; sys.exit(cli.main(sys.argv[1:]))"
    )
    done = subprocess.run(
        [sys.executable, "-B", "-c", program, "expand", tmp_path / "in.npz", tmp_path / output],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "File too large" in done.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["in.npz"]


class TestDamagedStore:
    @pytest.fixture
    def store(self, tmp_path):
        sparse.save_npz(tmp_path / "in.npz", X)
        run("expand", tmp_path / "in.npz", tmp_path / "out")
        return tmp_path / "out"

    def test_no_manifest(self, store):
        (store / "manifest.json").unlink()
        with pytest.raises(FileNotFoundError, match=r"is no expansion written by polysparse"):
            polysparse.load(store)

    @pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"format": "other"}'])
    def test_foreign_manifest(self, store, text):
        (store / "manifest.json").write_text(text)
        with pytest.raises(ValueError, match=r"is damaged|is not a manifest of polysparse"):
            polysparse.load(store)

    def test_another_version(self, store):
        manifest = json.loads((store / "manifest.json").read_text())
        (store / "manifest.json").write_text(json.dumps({**manifest, "version": 99}))
        with pytest.raises(ValueError, match=r"has version 99; this polysparse reads 1"):
            polysparse.load(store)

    def test_an_array_that_does_not_fit_the_manifest(self, store):
        np.save(store / "data.npy", np.ones(3))
        with pytest.raises(ValueError, match=r"data.npy holds float64 of shape \(3,\)"):
            polysparse.load(store)

    def test_a_pickle_is_never_loaded(self, store):
        np.save(store / "data.npy", np.array([{}], dtype=object), allow_pickle=True)
        with pytest.raises(ValueError, match=r"[Oo]bject|pickle"):
            polysparse.load(store)
