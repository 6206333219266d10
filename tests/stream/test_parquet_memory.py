"""The memory that Parquet output takes beyond a block of rows."""

import json
import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse

from sample_files import pq, run

# Writes a small file, then a large one, and prints by how much its peak of memory grew.
PROGRAM = """
import json, re, sys
import polysparse.cli
def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1]) * 1024
def expand(name):
    options = ["--quiet", "--jobs", "1", "--no-bias", "--max-memory", sys.argv[2]]
    command = ["expand", f"{sys.argv[1]}/{name}.npz", f"{sys.argv[1]}/{name}.parquet", *options]
    assert polysparse.cli.main(command) == 0
expand("small")
before = peak()
expand("large")
print(json.dumps(peak() - before))
"""


@pytest.mark.no_sanitizer
@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_peak_memory_of_parquet_output_is_within_its_limit(tmp_path):
    generator = np.random.default_rng(0)
    for name, n_rows in (("small", 10), ("large", 8_000)):
        columns = np.sort(generator.random((n_rows, 1000)).argpartition(40)[:, :40])
        offsets, values = np.arange(n_rows + 1) * 40, generator.random(n_rows * 40)
        X = sparse.csr_array((values, columns.ravel(), offsets), shape=(n_rows, 1000))
        sparse.save_npz(tmp_path / f"{name}.npz", X, compressed=False)
    command = [sys.executable, "-c", PROGRAM, tmp_path, "40MiB"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    assert json.loads(done.stdout) < 40 * 2**20 + 8_000 * 40 * 3 * 12  # the input is read whole


def test_columns_of_few_values_stay_small(tmp_path):
    ones = sparse.csr_array(np.ones((2_000, 20)))
    sparse.save_npz(tmp_path / "in.npz", ones)
    run("expand", tmp_path / "in.npz", tmp_path / "out.parquet", "--quiet")
    stored = 2_000 * 231 * 12
    assert (tmp_path / "out.parquet").stat().st_size < stored / 8
    assert pq.ParquetFile(tmp_path / "out.parquet").metadata.num_rows == 2_000
