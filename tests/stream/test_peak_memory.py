"""Peak memory of a command: its --max-memory, and what the program takes for a tiny file."""

import gzip
import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse
from scipy.io import mmwrite

from polysparse.stream.resources import MEMORY

pa = pytest.importorskip("pyarrow")
from pyarrow import csv, feather, parquet  # noqa: E402

MIB = 2**20
SLACK = 16 * MIB  # pages of code that a tiny file does not need, and the allocator's rest

# Run the command line, and print its peak memory in kB at the end.
PROGRAM = """
import sys
from polysparse.cli import main
code = main(sys.argv[1:])
with open("/proc/self/status") as status:
    print("peak", next(line for line in status if line.startswith("VmHWM")).split()[1])
sys.exit(code)
"""

pytestmark = [
    pytest.mark.no_sanitizer,
    pytest.mark.skipif(sys.platform != "linux", reason="needs /proc"),
]

N_ROWS, STORED, N_FEATURES = 20_000, 20, 600


def peak_of(*arguments, code=0):
    """Peak memory of a command in bytes, and what it says on standard error."""
    command = [sys.executable, "-c", PROGRAM, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    return 1024 * int(done.stdout.split()[-1]), done.stderr


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The same matrix in every format, of which all but the expansion is small."""
    folder = tmp_path_factory.mktemp("files")
    step = N_FEATURES // STORED
    rng = np.random.default_rng(0)
    columns = rng.integers(0, step, (N_ROWS, STORED)) + step * np.arange(STORED)
    indptr = np.arange(0, N_ROWS * STORED + 1, STORED)
    values = np.full(N_ROWS * STORED, 0.123456)
    X = sparse.csr_array((values, columns.ravel(), indptr), shape=(N_ROWS, N_FEATURES))
    rows = ("0 " + " ".join(f"{j}:0.123456" for j in row) for row in columns.tolist())
    text = "\n".join(rows).encode() + b"\n"
    (folder / "in.svm").write_bytes(text)
    (folder / "in.svm.gz").write_bytes(gzip.compress(text, 1))
    (folder / "tiny.svm").write_bytes(text[:1000].rpartition(b"\n")[0])
    sparse.save_npz(folder / "in.npz", X)
    mmwrite(folder / "in.mtx", X)
    options = ["--degree", "1", "--no-bias", "--zero-based", "--quiet"]
    for name in ("in.parquet", "in"):
        peak_of("expand", folder / "in.svm", folder / name, *options)
    return folder


@pytest.fixture(scope="module")
def program(files, tmp_path_factory):
    """Peak memory for a tiny file, without and with Parquet."""
    folder = tmp_path_factory.mktemp("tiny")
    return {
        is_parquet: peak_of("expand", files / "tiny.svm", folder / name, "--quiet")[0]
        for is_parquet, name in ((False, "out"), (True, "out.parquet"))
    }


@pytest.mark.parametrize(
    ("source", "output", "max_memory", "columns"),
    [
        ("in.svm", "out", 4 * MIB, []),
        ("in.svm", "out", 4 * MIB, ["--hashed", "2^12"]),
        ("in.svm", "out", 32 * MIB, ["--observed"]),
        ("in.svm.gz", "out.npz", 4 * MIB, []),
        ("in", "out.svmlight", 4 * MIB, []),
        ("in.npz", "out", 24 * MIB, []),
        ("in.mtx", "out", 32 * MIB, []),
    ],
)
def test_a_command_stays_within_its_memory(
    source, output, max_memory, columns, files, program, tmp_path
):
    """The expansion takes 55 MB."""
    options = ["--max-memory", max_memory, "--quiet", *columns]
    peak, _ = peak_of("expand", files / source, tmp_path / output, *options)
    assert peak < program[False] + max_memory + SLACK


def test_parquet_input_does_too(files, program, tmp_path):
    peak, _ = peak_of(
        *("expand", files / "in.parquet", tmp_path / "out", "--max-memory", 4 * MIB, "--quiet")
    )
    assert peak < program[True] + 4 * MIB + 2 * SLACK


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """The same table of 120,000 rows in every format, and a tiny one."""
    folder = tmp_path_factory.mktemp("tables")
    rng = np.random.default_rng(0)
    columns = {f"v{i}": rng.integers(0, 30, 120_000).astype(str) for i in range(8)}
    columns["hours"] = rng.integers(0, 60, 120_000)
    table = pa.table(columns)
    for name, some in (("in", table), ("tiny", table[:10])):
        csv.write_csv(some, folder / f"{name}.csv")
        parquet.write_table(some, folder / f"{name}.parquet", row_group_size=20_000)
        feather.write_feather(some, folder / f"{name}.arrow", chunksize=20_000)
    (folder / "in.csv.gz").write_bytes(gzip.compress((folder / "in.csv").read_bytes(), 1))
    return folder


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        ("in.csv", []),
        ("in.csv.gz", ["--observed"]),
        ("in.parquet", ["--observed"]),
        ("in.arrow", []),
    ],
)
def test_tables_do_too(name, columns, tables, tmp_path):
    """The expansion takes 65 MB, and the table itself 12 MB as text."""
    options = ["--max-memory", 32 * MIB, "--quiet", *columns]
    tiny = f"tiny{name.removeprefix('in').removesuffix('.gz')}"
    program, _ = peak_of("expand", tables / tiny, tmp_path / "tiny", *options)
    peak, _ = peak_of("expand", tables / name, tmp_path / "out", *options)
    assert peak < program + 32 * MIB + 2 * SLACK


@pytest.mark.parametrize("name", ["bomb.svm.gz", "bomb.mtx.gz"])
def test_a_line_that_unpacks_to_much_more_is_refused_within_it(name, program, tmp_path):
    """One line of 200 MB, packed into less than 1 MB."""
    start = b"%%MatrixMarket matrix coordinate real general\n%" if "mtx" in name else b"1 1:1\n1"
    with gzip.open(tmp_path / name, "wb", compresslevel=1) as file:
        file.write(start)
        for _ in range(200):
            file.write(b" 1:1" * 250_000)
    assert (tmp_path / name).stat().st_size < 1_000_000
    options = ["--max-memory", 4 * MIB]
    peak, error = peak_of("expand", tmp_path / name, tmp_path / "out", *options, code=1)
    assert f"{name}: line 2: has more than 131,072 bytes" in error
    assert peak < program[False] + 4 * MIB + SLACK


def test_a_plan_without_a_limit_has_the_default_one(program, tmp_path):
    with gzip.open(tmp_path / "bomb.svm.gz", "wb", compresslevel=1) as file:
        for _ in range(40):
            file.write(b"1:1 " * 250_000)
    peak, error = peak_of("plan", tmp_path / "bomb.svm.gz", code=1)
    assert "bomb.svm.gz: line 1: has more than 33,554,432 bytes" in error
    assert peak < program[False] + MEMORY // 4
