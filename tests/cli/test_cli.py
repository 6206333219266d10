"""The command line: what it prints, how it fails."""

import gzip
import json
import re
import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse

import polysparse
from polysparse import cli
from polysparse.cli.options import parse_size
from polysparse.cli.progress_bar import ProgressBar
from polysparse.files.paths import locked

GOOD = b"1 1:2 3:4\n0 2:0.5\n"


@pytest.fixture
def good(tmp_path):
    (tmp_path / "good.svmlight").write_bytes(GOOD)
    return tmp_path / "good.svmlight"


def run(*arguments):
    return cli.main([str(a) for a in arguments])


def test_plan_prints_a_table(good, capsys):
    assert run("plan", good, "--degree", 3) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[0].split() == ["degree", "columns", "stored", "values", "bytes"]
    assert "CSR, 2 x 20, float64 values, int32 indices" in out
    assert "whole      fits (polysparse.expand)" in out


def test_plan_as_json_is_what_expand_makes(good, tmp_path, capsys):
    assert run("plan", good, "--degree", 3, "--json") == 0
    plan = json.loads(capsys.readouterr().out)
    assert run("expand", good, tmp_path / "out", "--degree", 3) == 0
    result = polysparse.load(tmp_path / "out")
    assert tuple(plan["shape"]) == result.shape
    assert plan["nnz"] == result.nnz
    assert plan["index_dtype"] == str(result.indices.dtype)


def test_names_and_rank_are_inverse(good, tmp_path, capsys):
    assert run("rank", "--n-features", 100, "3,17,42", "5") == 0
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert lines[0][0] == "3,17,42"
    columns = ",".join(column for _, column in lines)
    assert run("names", "--n-features", 100, "--degree", 3, "--columns", columns) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{lines[0][1]}\t3,17,42\tx3 x17 x42",
        f"{lines[1][1]}\t5\tx5",
    ]
    assert run("expand", good, tmp_path / "out") == 0
    assert run("names", tmp_path / "out", "--columns", "0,4", "--json") == 0
    assert json.loads(capsys.readouterr().out) == [
        {"column": 0, "tuple": [], "name": "1"},
        {"column": 4, "tuple": [0, 0], "name": "x0^2"},
    ]
    assert run("rank", "--n-features", 9, "0,8", "--json") == 0
    assert json.loads(capsys.readouterr().out) == [{"tuple": [0, 8], "column": 18}]


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("4096", 4096),
        ("1GiB", 2**30),
        ("256MiB", 2**28),
        ("1GB", 10**9),
        ("1.5 k", 1500),
        ("256mib", 2**28),
        ("100B", 100),
        ("1gb", 10**9),
        ("2 Kb", 2000),
        ("9" * 400, int("9" * 400)),
    ],
)
def test_sizes(text, size):
    assert parse_size(text) == size


MISUSE = [
    (["expand", "good.svmlight", "out.xyz"], "out.xyz: unknown ending. Known are .npz"),
    (["expand", "in.xyz", "out"], "in.xyz: unknown ending"),
    (["expand", "nothing", "good.svmlight"], "exists already: give --force"),
    (["expand", "good.svmlight", "nowhere/out"], "there is no such folder"),
    (["expand", "nothing", "good.svmlight/out"], "good.svmlight: there is no such folder"),
    (["expand", "nothing", "-"], "'-' names no file or directory"),
    (["expand", "nothing", "."], "'.' names no file or directory"),
    (["expand", "nothing", ""], "names no file or directory to write"),
    (["expand", "nothing", "/", "--force"], "'/' names no file or directory"),
    (["expand", "nothing", "..", "--force"], "'..' names no file or directory"),
    (["expand", "good.svmlight", "./good.svmlight", "--force"], "is, or holds, the input"),
    (["expand", "good.svmlight", "out", "--jobs", "0"], "--jobs=0 has no meaning"),
    (["expand", "good.svmlight", "out", "--jobs=-10001"], "or give up to 10,000"),
    (["expand", "-", "out", "--resume"], "needs an input that can be read again"),
    (["expand", "good.svmlight", "out.parquet", "--resume"], "out.parquet cannot be resumed"),
    (["expand", "good.svmlight", "out.svm", "--resume"], "out.svm cannot be resumed"),
    (["expand", "good.svmlight", "out", "--degree", "0", "--no-bias"], "leaves no column at all"),
    (["expand", "good.svmlight", "out", "--degree", "3-2"], "min_degree <= max_degree"),
    (["names", "--columns", "3"], "give either DIR or --n-features"),
    (["names", "DIR", "--columns", "3", "--degree", "3"], "DIR has a basis: leave out --degree"),
    (["names", "--n-features", "3", "--columns", "10"], "column 10 is not in the basis"),
    (["rank", "--n-features", "3", "1,3"], "input columns must be in [0, 3)"),
    (["rank", "--n-features", "3", "1,2,2", "--degree", "2"], "its degree is not in [1, 2]"),
]


@pytest.mark.parametrize(("arguments", "message"), MISUSE, ids=[m for _, m in MISUSE])
def test_misuse_is_one_line_and_code_2(arguments, message, good, monkeypatch, capsys):
    monkeypatch.chdir(good.parent)
    assert run(*arguments) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.startswith("polysparse: ")
    assert error.count("\n") == 1
    assert [p.name for p in good.parent.iterdir()] == ["good.svmlight"]


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["frobnicate"],
        ["expand", "a"],
        ["expand", "a", "b", "--degree", "x"],
        ["expand", "a", "b", "--max-memory", "lots"],
        ["expand", "a", "b", "--dtype", "float16"],
        ["expand", "a", "b", "--max-memory", "0.1"],
        ["expand", "a", "b", "--n-features", "0"],
        ["rank", "--n-features", "5", "a,b"],
        ["rank", "--n-features", "-5", "1,2"],
        ["plan", "a", "--zero-based", "--one-based"],
    ],
    ids=" ".join,
)
def test_wrong_options_are_code_2(arguments, capsys):
    with pytest.raises(SystemExit) as raised:
        run(*arguments)
    assert raised.value.code == 2
    assert "usage: polysparse" in capsys.readouterr().err


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
    assert [p.name for p in tmp_path.iterdir()] == [name]


def test_parquet_that_is_not_a_sparse_matrix(tmp_path, capsys):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet as pq

    def refuse(table, message):
        pq.write_table(pa.table(table), tmp_path / "in.parquet")
        assert run("expand", tmp_path / "in.parquet", tmp_path / "out") == 1
        assert message in capsys.readouterr().err

    lists, values = pa.array([[0, 1], [2]]), pa.array([[1.0, 2.0], [3.0]])
    refuse({"a": lists}, "has no list column 'indices'")
    refuse({"indices": lists}, "has no list column 'values'")
    refuse({"indices": [1, 2], "values": values}, "has no list column 'indices'")
    refuse({"indices": pa.array([[0], [2]]), "values": values}, "other numbers of indices")
    refuse({"indices": pa.array([[0, -1], [2]]), "values": values}, "index -1 is negative")
    refuse({"indices": pa.array([[0, 1], None]), "values": values}, "a row is null")


def test_columns_beyond_n_features_and_the_wrong_base(good, tmp_path, capsys):
    assert run("expand", good, tmp_path / "out", "--n-features", 2) == 1
    assert "column 2 occurs, but --n-features=2" in capsys.readouterr().err
    (tmp_path / "zero.svm").write_bytes(b"1 0:1\n")
    assert run("plan", tmp_path / "zero.svm", "--one-based") == 1
    assert "index 0 occurs, but --one-based" in capsys.readouterr().err


@pytest.mark.parametrize("size", ["1", "200"])
def test_a_row_larger_than_the_memory(size, good, tmp_path, capsys):
    assert run("expand", good, tmp_path / "out", "--degree", 9, "--max-memory", size) == 1
    error = capsys.readouterr().err
    assert f"--max-memory={size} " in error
    needed = error.rpartition("needs --max-memory=")[2].split()[0]
    assert [p.name for p in tmp_path.iterdir()] == ["good.svmlight"]
    assert run("expand", good, tmp_path / "out", "--degree", 9, "--max-memory", needed) == 0


def test_plan_says_what_is_at_most_and_takes_labels_into_account(good, tmp_path, capsys):
    assert run("plan", good) == 0
    assert "stored values and bytes are at most these" in capsys.readouterr().out
    assert run("plan", good, "--json") == 0
    plan = json.loads(capsys.readouterr().out)
    assert plan["is_upper_bound"]
    assert plan["bytes_by_degree"] == {"0": 24, "1": 36, "2": 48}
    assert run("expand", good, tmp_path / "out") == 0
    written = sum(p.stat().st_size for p in (tmp_path / "out").glob("*.npy"))
    assert plan["bytes_on_disk"] == written
    sparse.save_npz(tmp_path / "in.npz", sparse.csr_array(np.eye(2)))
    assert run("plan", tmp_path / "in.npz") == 0
    assert "at most" not in capsys.readouterr().out


def test_notes_are_printed_unless_quiet(tmp_path, capsys):
    (tmp_path / "in.svm").write_bytes(b"1 qid:3 1:5\n")
    assert run("expand", tmp_path / "in.svm", tmp_path / "out", "--quiet") == 0
    assert capsys.readouterr().err == ""
    assert run("expand", tmp_path / "in.svm", tmp_path / "out", "--force") == 0
    assert capsys.readouterr().err.startswith("polysparse: note: qid")


def test_missing_and_forbidden_files(tmp_path, capsys):
    assert run("plan", tmp_path / "nothing.npz") == 1
    assert "there is no such file" in capsys.readouterr().err
    (tmp_path / "folder.npz").mkdir()
    assert run("plan", tmp_path / "folder.npz") == 1
    assert "folder.npz" in capsys.readouterr().err


def test_force_overwrites(good, tmp_path):
    for output in ("out", "out.npz", "out.svmlight"):
        assert run("expand", good, tmp_path / output) == 0
        assert run("expand", good, tmp_path / output) == 2
        assert run("expand", good, tmp_path / output, "--degree", 3, "--force") == 0
    assert polysparse.load(tmp_path / "out").shape[1] == 20
    assert sparse.load_npz(tmp_path / "out.npz").shape[1] == 20


def test_only_what_polysparse_wrote_is_overwritten(good, tmp_path, capsys):
    def refuse(output, message):
        before = sorted(tmp_path.rglob("*"))
        assert run("expand", good, output, "--force") == 2
        assert message in capsys.readouterr().err
        assert sorted(tmp_path.rglob("*")) == before

    (tmp_path / "thesis").mkdir()
    assert run("expand", good, tmp_path / "thesis", "--force") == 0  # it was empty
    (tmp_path / "thesis" / "chapter").touch()
    refuse(tmp_path / "thesis", "is a directory that polysparse did not write")
    (tmp_path / "arrays").mkdir()
    (tmp_path / "arrays" / "data.npy").touch()
    refuse(tmp_path / "arrays", "is a directory that polysparse did not write")
    (tmp_path / "folder.npz").mkdir()
    refuse(tmp_path / "folder.npz", "is no file")
    (tmp_path / "file").touch()
    refuse(tmp_path / "file", "is no directory")
    (tmp_path / "link.npz").symlink_to("elsewhere.npz")
    refuse(tmp_path / "link.npz", "is a symbolic link")
    refuse(good.parent, "is, or holds, the input")


@pytest.mark.parametrize("output", ["out", "out.npz", "out.svm"])
def test_neighbours_of_the_output_are_left_alone(output, good, tmp_path, capsys):
    names = [f"{output}.{ending}" for ending in ("partial", "store", "old", "lock")]
    for name in names:
        (tmp_path / name).mkdir()
        (tmp_path / name / "mine").touch()
    for _ in range(2):
        assert run("expand", good, tmp_path / output, "--force") == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([good.name, output, *names])
    assert all((tmp_path / name / "mine").exists() for name in names)
    reserved = tmp_path / f".{output}.polysparse-partial"
    reserved.mkdir()
    (reserved / "mine").touch()
    assert run("expand", good, tmp_path / output, "--force") == 2
    assert f"{reserved} is in the way, and not polysparse's" in capsys.readouterr().err
    assert (reserved / "mine").exists()


def test_two_runs_cannot_write_the_same(good, tmp_path, capsys):
    pytest.importorskip("fcntl")
    with locked(tmp_path / "out"):
        assert run("expand", good, tmp_path / "out") == 1
        assert capsys.readouterr().err == f"polysparse: another run is writing {tmp_path}/out.\n"
        assert run("expand", good, tmp_path / "other") == 0
    (tmp_path / ".out.polysparse-lock").touch()  # left by a run that was killed
    assert run("expand", good, tmp_path / "out") == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["good.svmlight", "other", "out"]


def test_it_runs_as_a_program_and_as_a_module():
    program = [sys.executable, "-m", "polysparse"]
    done = subprocess.run([*program, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == polysparse.__version__
    done = subprocess.run([*program, "--help"], capture_output=True, text=True, check=True)
    for command in ("plan", "expand", "names", "rank", "paper"):
        assert f"    {command} " in done.stdout
    from importlib.metadata import entry_points

    (script,) = entry_points(group="console_scripts", name="polysparse")
    assert script.load() is cli.main


@pytest.mark.no_sanitizer
def test_progress_in_a_terminal_and_none_elsewhere(good, tmp_path):
    pty = pytest.importorskip("pty", reason="needs pseudo-terminals")
    pytest.importorskip("rich")
    import os

    def stderr_of(*options, columns=80):
        main, side = pty.openpty()
        environment = {**os.environ, "COLUMNS": str(columns), "TERM": "xterm"}
        command = [sys.executable, "-m", "polysparse", "expand", good, tmp_path / "out", "--force"]
        subprocess.run([*command, *options], stderr=side, check=True, env=environment)
        os.close(side)
        text = b""
        while chunk := _read(main):
            text += chunk
        os.close(main)
        return text

    def _read(handle):
        try:
            return os.read(handle, 65536)
        except OSError:  # the other side is closed
            return b""

    assert b"2 rows, 6 values" in stderr_of() or b"100%" in stderr_of()
    assert stderr_of("--quiet") == b""
    narrow = re.sub(r"\x1b\[[^a-zA-Z]*[a-zA-Z]", "", stderr_of(columns=36).decode())
    assert "100%" in narrow
    assert all(len(line) <= 36 for line in re.split(r"[\r\n]", narrow))


@pytest.mark.parametrize("quiet", [True, False])
def test_rows_of_an_earlier_run_are_done_but_no_speed(quiet, monkeypatch):
    pytest.importorskip("rich")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    progress = ProgressBar(quiet, 100)
    progress.start(90)
    progress.advance(1, 5, 12)
    assert (progress.done, progress.bytes) == (91, 60)
    if not quiet:
        (task,) = progress.bar.tasks
        assert task.completed == 91
        assert sum(sample.completed for sample in task._progress) <= 1
