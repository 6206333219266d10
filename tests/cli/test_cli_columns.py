"""The options for columns: --observed, --vocabulary, --hashed and what goes with them."""

import json

import pytest
from scipy import sparse

import polysparse
from checks import names_in
from polysparse.cli.options import parse_n_columns
from polysparse.cli.progress_bar import ProgressBar
from sample_files import DEGREE_3, INPUTS, KINDS, X, refused, run

MISUSE = [
    (["--observed", "--hashed", "9"], "--observed and --hashed cannot be combined"),
    (["--observed", "--vocabulary", "v"], "--observed and --vocabulary cannot be combined"),
    (["--vocabulary", "v", "--hashed", "9"], "--vocabulary and --hashed cannot be combined"),
    (["--min-count", "2"], "--min-count only applies with --observed"),
    (["--hashed", "9", "--max-columns", "2"], "--max-columns only applies with --observed"),
    (["--seed", "2"], "--seed only applies with --hashed"),
    (["--observed", "--seed", "0"], "--seed only applies with --hashed"),
    (["--no-alternate-sign"], "--no-alternate-sign only applies with --hashed"),
    (["--vocabulary", "v", "--degree", "3"], "v has a basis: leave out --degree"),
    (["--vocabulary", "v", "--interaction-only"], "v has a basis: leave out --degree"),
    (["--vocabulary", "v", "--no-bias"], "v has a basis: leave out --degree"),
]


@pytest.mark.parametrize(("options", "message"), MISUSE, ids=[" ".join(o) for o, _ in MISUSE])
@pytest.mark.parametrize("command", ["plan", "expand"])
def test_options_that_contradict_each_other(command, options, message, matrix, tmp_path, capsys):
    output = [tmp_path / "out"] if command == "expand" else []
    assert message in refused(capsys, 2, command, matrix, *output, *options)
    assert names_in(tmp_path) == ["in.npz"]


@pytest.mark.parametrize(
    "options",
    [
        ["--hashed"],
        ["--hashed", "0"],
        ["--hashed", "2^31"],
        ["--hashed", "2^-3"],
        ["--hashed", "9^99"],
        ["--hashed", "lots"],
        ["--hashed", "9", "--seed", "-1"],
        ["--hashed", "9", "--seed", "18446744073709551616"],
        ["--observed", "--min-count", "0"],
        ["--observed", "--max-columns", "0"],
        ["--observed", "--max-columns", "1.5"],
    ],
    ids=" ".join,
)
def test_numbers_that_cannot_be(options, capsys):
    with pytest.raises(SystemExit) as raised:
        run("plan", "in.npz", *options)
    assert raised.value.code == 2
    assert "usage: polysparse" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["1048576", "2^20", "2**20", " 2 ^ 20 ", "1024**2"])
def test_numbers_of_hashed_columns(text):
    assert parse_n_columns(text) == 2**20


def test_nothing_to_observe(matrix, tmp_path, capsys):
    command = ["expand", matrix, tmp_path / "out", "--observed", "--min-count", 121]
    assert "No column occurs in 121 rows of" in refused(capsys, 1, *command)
    sparse.save_npz(matrix, sparse.csr_array((0, 4)))
    error = refused(capsys, 1, *command[:-2], "--quiet")
    assert "in.npz: there is nothing to observe" in error
    assert names_in(tmp_path) == ["in.npz"]


@pytest.mark.parametrize("name", ["in.svmlight", "in.npz"])
@pytest.mark.parametrize("kind", ["all", *KINDS])
def test_plans_agree_with_what_is_written(kind, name, tmp_path, vocabulary, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    INPUTS[name](tmp_path / name)
    options = KINDS[kind][0] if kind in KINDS else DEGREE_3
    run("plan", name, *options, "--json")
    plan = json.loads(capsys.readouterr().out)
    run("expand", name, "out", *options)
    result = polysparse.load("out")
    assert plan["columns"] == kind
    assert tuple(plan["shape"]) == result.shape
    assert plan["index_dtype"] == str(result.indices.dtype)
    if kind == "hashed":
        assert plan["is_upper_bound"]
        assert plan["nnz"] == polysparse.plan(X, 3).nnz >= result.nnz
        return
    assert plan["nnz"] == result.nnz
    assert plan["bytes_on_disk"] == sum(p.stat().st_size for p in tmp_path.glob("out/*.npy"))
    columns = {"columns": KINDS[kind][1]()} if kind in KINDS else {}
    expected = polysparse.plan(X, 3, **columns).nnz_by_degree
    assert plan["nnz_by_degree"] == {str(d): n for d, n in expected.items()}
    assert plan["is_upper_bound"] == (kind == "all" and name == "in.svmlight")


def test_plans_in_words(matrix, capsys):
    run("plan", matrix, "--observed")
    out = capsys.readouterr().out
    assert "columns: observed; all would be 55" in out
    assert "at most" not in out
    run("plan", matrix, "--hashed", "2^4")
    out = capsys.readouterr().out
    assert "CSR, 120 x 16, float64" in out
    assert "are upper bounds: terms of a row that share a column" in out


def test_counting_is_a_phase_of_its_own(matrix, tmp_path, vocabulary, monkeypatch):
    phases = []
    monkeypatch.setattr(
        ProgressBar, "start", lambda self, done, phase="", **_: phases.append((done, phase))
    )
    run("expand", matrix, tmp_path / "out", "--observed")
    assert phases == [(0, "counting"), (0, "")]
    run("plan", matrix, "--vocabulary", vocabulary)
    assert phases[2:] == [(0, "counting")]
