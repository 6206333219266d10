"""Observed and hashed columns from file to file within a limit of memory."""

import pytest

import polysparse
from checks import bits, names_in
from inside import before, lower, set_available_memory, wrap
from polysparse import ObservedPolynomialFeatures
from polysparse.stream.resources import Resources
from sample_files import DEGREE_3, X, read, refused, run


def test_too_little_memory_to_count(matrix, tmp_path, monkeypatch, capsys):
    command = ["expand", matrix, tmp_path / "out", *DEGREE_3]
    lower(monkeypatch, TALLY_PART=20)
    error = refused(capsys, 1, *command, "--observed", "--max-memory", "20kB")
    assert "--max-memory=20000 (20.0 kB) is too little to count the columns that occur" in error
    assert "raise it, lower the degree, set --interaction-only, or hash the columns" in error
    assert names_in(tmp_path) == ["in.npz"]
    run(*command, "--hashed", 100, "--max-memory", "20kB")


@pytest.mark.parametrize("command", ["plan", "expand"])
def test_too_little_memory_on_the_machine(command, matrix, tmp_path, monkeypatch, capsys):
    set_available_memory(monkeypatch, 500)
    output = [tmp_path / "out"] if command == "expand" else []
    error = refused(capsys, 1, command, matrix, *output, "--observed")
    assert "The available memory is too little to count the columns that occur" in error
    assert "Ways out: lower the degree" in error
    assert names_in(tmp_path) == ["in.npz"]


@pytest.mark.parametrize("options", [["--observed"], ["--hashed", "9"]], ids=" ".join)
def test_too_little_memory_for_a_row(options, matrix, tmp_path, capsys):
    command = ["expand", matrix, tmp_path / "out", *DEGREE_3, *options, "--max-memory"]
    error = refused(capsys, 1, *command, "5kB")
    assert "the longest row alone needs --max-memory=" in error
    assert names_in(tmp_path) == ["in.npz"]


def test_a_row_that_could_not_be_expanded_is_refused_before_rows_are_counted(
    matrix, tmp_path, monkeypatch, capsys
):
    """Its columns will be there, unless some are left out."""
    command = ["expand", matrix, tmp_path / "out", *DEGREE_3, "--observed", "--max-memory", "11kB"]
    counted = []
    lower(monkeypatch, TALLY_PART=1)
    before(monkeypatch, "count", lambda *_: counted.append(1))
    assert "the longest row alone needs --max-memory=" in refused(capsys, 1, *command)
    assert not counted
    run(*command, "--max-columns", 9)
    run(*command, "--min-count", 60, "--force")
    assert counted


def test_too_little_memory_for_the_columns(matrix, tmp_path, vocabulary, capsys):
    command = ["expand", matrix, tmp_path / "out", "--vocabulary", vocabulary, "--max-memory"]
    error = refused(capsys, 1, *command, "15kB")
    n_columns = ObservedPolynomialFeatures.load(vocabulary).n_output_features_
    assert f"{n_columns} columns and the longest row need --max-memory=" in error
    needed = error.rpartition("need --max-memory=")[2].split()[0]
    run(*command, int(needed) - 1, code=1)
    run(*command, needed)


def test_rows_are_counted_fewer_at_a_time_where_memory_is_short(matrix, tmp_path, monkeypatch):
    """Many rows together take more room than the counts that are left in the end."""
    refused = []

    def watch(count):
        def watched(self, x, *arguments):
            try:
                count(self, x, *arguments)
            except MemoryError:
                refused.append(x.shape[0])
                raise

        return watched

    wrap(monkeypatch, "count", watch)
    lower(monkeypatch, TALLY_PART=3)
    run("expand", matrix, tmp_path / "out", *DEGREE_3, "--observed", "--max-memory", "30kB")
    expected = ObservedPolynomialFeatures(3).fit(X).transform(X)
    assert bits(polysparse.load(tmp_path / "out")) == bits(expected)
    assert len(set(refused)) > 1


@pytest.mark.parametrize("output", ["out", "out.parquet"])
def test_indices_are_int32_if_the_values_that_are_kept_allow_it(
    output, matrix, tmp_path, vocabulary, monkeypatch
):
    counted = []
    wrap(monkeypatch, "count values", lambda count: lambda *a: counted.append(1) or count(*a))
    fitted = ObservedPolynomialFeatures.load(vocabulary)
    nnz, most = fitted.transform(X).nnz, polysparse.plan(X, 3).nnz
    assert nnz < most
    for limit, dtype in ((most, "int32"), (nnz, "int32"), (nnz - 1, "int64")):
        lower(monkeypatch, MAX_INT32=limit)
        run("expand", matrix, tmp_path / output, "--vocabulary", vocabulary, "--force")
        result, _ = read(tmp_path / output, fitted.n_output_features_)
        assert (result != fitted.transform(X)).nnz == 0
        if output == "out":
            assert str(result.indices.dtype) == dtype
    assert len(counted) == 2
    lower(monkeypatch, MAX_INT32=nnz)  # observed columns are counted anyway
    run("expand", matrix, tmp_path / output, *DEGREE_3, "--observed", "--min-count", 9, "--force")
    assert len(counted) == 2


def test_a_limit_above_the_available_memory_is_not_used_up(tmp_path, monkeypatch):
    """A block takes 1/32 of the limit: here 32 GiB, more than the machine may have."""
    lower(monkeypatch, ALWAYS_GRANTED=0)
    set_available_memory(monkeypatch, 10**7)
    assert Resources(2**40).memory == Resources().memory == 10**7
    assert Resources(10**6).memory == 10**6
    (tmp_path / "in.svm").write_text("1 1:1\n")
    sizes = []
    wrap(
        monkeypatch,
        "read blocks",
        lambda read: (
            lambda *given, **options: (
                sizes.append(options["block_bytes"]) or read(*given, **options)
            )
        ),
    )
    run("expand", tmp_path / "in.svm", tmp_path / "out", "--max-memory", "1TiB")
    assert sizes == [10**7 // 32]
