"""The command line: what it prints, and how it refuses misuse."""

import json
import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse

import polysparse
from checks import names_in
from command_line import run
from polysparse import cli
from polysparse.cli.options import parse_size
from polysparse.cli.program import COMMANDS, make_parser


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
        {"column": 0, "tuple": [], "name": "1", "svmlight": []},
        {"column": 4, "tuple": [0, 0], "name": "x0^2", "svmlight": [1, 1]},
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
    (["expand", "good.svmlight", "out.xyz"], "out.xyz: unknown ending. Known are svmlight text"),
    (["expand", "in.xyz", "out"], "in.xyz: unknown ending"),
    (["expand", "-", "good.svmlight"], "already exists: give --force"),
    (["expand", "good.svmlight", "nowhere/out"], "no such directory"),
    (["expand", "nothing", "good.svmlight/out"], "good.svmlight: no such directory"),
    (["expand", "nothing", "-"], "'-' is not the name of a file or directory"),
    (["expand", "nothing", "."], "'.' is not the name of a file or directory"),
    (["expand", "nothing", ""], "is not the name of a file or directory"),
    (["expand", "nothing", "/", "--force"], "'/' is not the name of a file or directory"),
    (["expand", "nothing", "..", "--force"], "'..' is not the name of a file or directory"),
    (["expand", "good.svmlight", "./good.svmlight", "--force"], "is or contains the input"),
    (["expand", "-", "out", "--resume"], "needs an input that can be read again"),
    (["expand", "good.svmlight", "out.parquet", "--resume"], "out.parquet cannot be resumed"),
    (["expand", "good.svmlight", "out.svm", "--resume"], "out.svm cannot be resumed"),
    (["expand", "good.svmlight", "out", "--degree", "0", "--no-bias"], "leaves no column at all"),
    (["expand", "good.svmlight", "out", "--degree", "3-2"], "min_degree <= max_degree"),
    (["names", "--columns", "3"], "give OUT, --n-features or"),
    (["names", "OUT", "--columns", "3", "--degree", "3"], "OUT has a basis: leave out --degree"),
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
    assert names_in(good.parent) == ["good.svmlight"]


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
        ["expand", "a", "b", "--jobs", "0"],
        ["expand", "a", "b", "--jobs=-10001"],
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


@pytest.mark.parametrize("size", ["1", "200"])
def test_a_row_larger_than_the_memory(size, good, tmp_path, capsys):
    assert run("expand", good, tmp_path / "out", "--degree", 9, "--max-memory", size) == 1
    error = capsys.readouterr().err
    assert f"--max-memory={size} " in error
    needed = error.rpartition("needs --max-memory=")[2].split()[0]
    assert names_in(tmp_path) == ["good.svmlight"]
    assert run("expand", good, tmp_path / "out", "--degree", 9, "--max-memory", needed) == 0


def test_plan_says_what_is_at_most_and_takes_labels_into_account(good, tmp_path, capsys):
    assert run("plan", good) == 0
    assert "stored values and bytes are upper bounds" in capsys.readouterr().out
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
    assert "polysparse: note: " in (error := capsys.readouterr().err)
    assert "in.svm: qid is not kept." in error


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


def test_the_parser_of_a_command_is_made_alone():
    names = list(make_parser().commands.choices)
    assert names == list(COMMANDS)
    for name in names:
        assert list(make_parser(name).commands.choices) == [name]
