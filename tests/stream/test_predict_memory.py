"""Peak memory of predictions: of the model and a few rows, however many rows there are."""

import json
import subprocess
import sys

import numpy as np
import pytest

from polysparse import PolynomialRidge

# Predicts a short file, then a long one, and prints by how much its peak of memory grew.
PROGRAM = """
import json, re, sys
import polysparse.cli
def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1]) * 1024
def predict(name):
    options = ["--quiet", "--jobs", "1", "--max-memory", sys.argv[2], "--one-based"]
    command = ["predict", f"{sys.argv[1]}/model.npz", f"{sys.argv[1]}/{name}.svm"]
    command += ["-o", f"{sys.argv[1]}/{name}.npy", *options]
    assert polysparse.cli.main(command) == 0
predict("short")
before = peak()
predict("long")
print(json.dumps(peak() - before))
"""

N_ROWS = 200_000


@pytest.mark.no_sanitizer
@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_peak_memory_does_not_grow_with_the_rows(tmp_path):
    PolynomialRidge().fit(np.eye(20), np.arange(20)).save(tmp_path / "model.npz")
    row = "1 " + " ".join(f"{j}:0.123456" for j in range(1, 21)) + "\n"
    (tmp_path / "short.svm").write_text(row * 2_000)
    (tmp_path / "long.svm").write_text(row * N_ROWS)
    command = [sys.executable, "-c", PROGRAM, tmp_path, "8MiB"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    as_arrays = N_ROWS * 20 * 12
    assert json.loads(done.stdout) < min(8 * 2**20, as_arrays // 4)
    assert np.load(tmp_path / "long.npy").shape == (N_ROWS,)
