"""Observed and hashed columns from file to file: what is written, beside what, and what is not."""

import io
import json
import os
import random
import signal
import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse

import polysparse
from checks import bits
from csr_zoo import random_dense
from polysparse import HashedPolynomialFeatures, ObservedPolynomialFeatures, thresholds
from polysparse.cli.options import parse_n_columns
from polysparse.cli.progress_bar import ProgressBar
from polysparse.files.vocabulary import Vocabulary
from polysparse.observation.tally import ColumnTally
from polysparse.stream.rows import count_values
from sample_files import (
    INPUTS,
    KILLED,
    OUTPUTS,
    X,
    Y,
    files_in,
    interrupted_by,
    read,
    run,
    write_svmlight,
)

FEW_INPUTS = ["in.svmlight", "in.npz", "in.parquet"]
DEGREE_3 = ["--degree", 3]
TEST_ROWS = sparse.csr_array(random_dense(40, 9, 0.3, seed=5))


def refused(capsys, code, *arguments):
    """The one line that a command ends with."""
    capsys.readouterr()
    run(*arguments, code=code)
    error = capsys.readouterr().err
    assert error.startswith("polysparse: ")
    assert error.count("\n") == 1
    return error


def names_in(folder):
    return sorted(p.name for p in folder.iterdir())


@pytest.fixture
def matrix(tmp_path):
    """A file with X."""
    sparse.save_npz(tmp_path / "in.npz", X)
    return tmp_path / "in.npz"


@pytest.fixture
def vocabulary(tmp_path):
    """Saved from Python, elsewhere."""
    (tmp_path / "elsewhere").mkdir()
    path = tmp_path / "elsewhere" / "saved"
    ObservedPolynomialFeatures(3, min_count=9).fit(X).save(path)
    return path


def assert_written(path, expected, labels):
    """The file has just these bits, as far as its format can tell, and labels."""
    result, own_labels = read(path, expected.shape[1])
    assert result.shape == expected.shape
    if path.suffix in ("", ".npz"):
        assert bits(result) == bits(expected)
    for name in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(result, name), getattr(expected, name))
    if labels is not None:
        np.testing.assert_array_equal(own_labels, labels)


# ------------------------------------------------------------------------------- what is written

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


@pytest.mark.parametrize("max_memory", ["1GiB", "60kB"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("name", FEW_INPUTS)
def test_every_pair_of_formats(name, output, kind, max_memory, tmp_path, vocabulary, monkeypatch):
    monkeypatch.chdir(tmp_path)
    INPUTS[name](tmp_path / name)
    options, columns = KINDS[kind]
    run("expand", name, output, *options, "--max-memory", max_memory)
    expected = polysparse.expand(X, 3, columns=columns())
    assert_written(tmp_path / output, expected, None if name == "in.npz" else Y)
    beside = [f"{output}.vocabulary"] * (kind == "observed")
    assert names_in(tmp_path) == sorted([name, output, "elsewhere", *beside])


def test_options_reach_the_columns(tmp_path):
    write_svmlight(tmp_path / "in.svmlight")
    options = ["--degree", "2-3", "--interaction-only", "--no-bias", "--dtype", "float32"]
    run("expand", tmp_path / "in.svmlight", tmp_path / "out", *options, "--observed")
    run("expand", tmp_path / "in.svmlight", tmp_path / "hashed", *options, "--hashed", "2**5")
    small = X.astype(np.float32)
    basis = {"interaction_only": True, "include_bias": False}
    observed = ObservedPolynomialFeatures((2, 3), **basis).fit(small)
    assert bits(polysparse.load(tmp_path / "out")) == bits(observed.transform(small))
    hashed = HashedPolynomialFeatures((2, 3), n_columns=32, **basis)
    assert bits(polysparse.load(tmp_path / "hashed")) == bits(hashed.transform(small))


def test_what_becomes_zero_in_float32_does_not_occur(tmp_path):
    (tmp_path / "in.svm").write_bytes(b"1 1:1e-60 2:3\n0 2:0 3:1\n1 3:1 3:-1\n")
    run("expand", tmp_path / "in.svm", tmp_path / "out", "--observed", "--dtype", "float32")
    result = polysparse.load(tmp_path / "out")
    assert ObservedPolynomialFeatures.load(tmp_path / "out.vocabulary").inverse().tolist() == [
        [-1, -1],
        [1, -1],
        [2, -1],
        [1, 1],
        [2, 2],
    ]
    assert np.diff(result.indptr).tolist() == [3, 3, 1]


def test_the_vocabulary_is_the_one_that_fit_learns(matrix, tmp_path):
    run("expand", matrix, tmp_path / "out.npz", *DEGREE_3, "--observed", "--min-count", 5)
    loaded = ObservedPolynomialFeatures.load(tmp_path / "out.npz.vocabulary")
    fitted = ObservedPolynomialFeatures(3, min_count=5).fit(X)
    np.testing.assert_array_equal(loaded.columns_, fitted.columns_)
    np.testing.assert_array_equal(loaded.counts_, fitted.counts_)
    assert loaded.get_params() == fitted.get_params()
    with pytest.raises(ValueError, match="columns that were not kept are gone"):
        loaded.partial_fit(X)
    run("expand", matrix, tmp_path / "all", "--observed")
    whole = ObservedPolynomialFeatures.load(tmp_path / "all.vocabulary")
    twice = ObservedPolynomialFeatures().fit(sparse.vstack([X, X]))
    np.testing.assert_array_equal(whole.partial_fit(X).counts_, twice.counts_)


@pytest.mark.no_sanitizer
def test_standard_input_is_read_twice(tmp_path):
    write_svmlight(tmp_path / "in")
    with open(tmp_path / "in", "rb") as file:
        command = [sys.executable, "-m", "polysparse", "expand", "-", tmp_path / "out"]
        subprocess.run([*command, "--observed"], stdin=file, check=True)
    run("expand", tmp_path / "in", tmp_path / "same", "--observed")
    result, labels = polysparse.load(tmp_path / "out", labels=True)
    assert bits(result) == bits(polysparse.load(tmp_path / "same"))
    np.testing.assert_array_equal(labels, Y)


def test_parts_of_a_store_have_its_columns(matrix, tmp_path, monkeypatch):
    monkeypatch.setattr("polysparse.thresholds.PART_BYTES", 5_000)
    for output, options in (("out", ["--observed"]), ("hashed", ["--hashed", 40])):
        run("expand", matrix, tmp_path / output, *options)
        parts = [part for _, part, _ in polysparse.iter_load(tmp_path / output)]
        assert len(parts) > 1
        assert (sparse.vstack(parts) != polysparse.load(tmp_path / output)).nnz == 0


def test_hashed_columns_of_a_basis_that_cannot_be_numbered(tmp_path, capsys):
    (tmp_path / "in.svm").write_bytes(b"1 1:2 4000000000000000000:3\n")
    command = ["expand", tmp_path / "in.svm", tmp_path / "out", "--observed"]
    error = refused(capsys, 1, *command)
    assert "columns; at most 2**63 - 1" in error
    assert "Or give --hashed N." in error
    run("expand", tmp_path / "in.svm", tmp_path / "out", "--hashed", 1000, *DEGREE_3)
    hashed = HashedPolynomialFeatures(3, n_columns=1000)
    last = 4 * 10**18 - 1
    tuples = [(), (0,), (last,), (0, 0), (0, last), (last, last)]
    tuples += [(0, 0, 0), (0, 0, last), (0, last, last), (last, last, last)]
    columns, signs = hashed.column_of(tuples, return_sign=True)
    row = np.zeros(1000)
    np.add.at(row, columns, signs * [1.0, 2, 3, 4, 6, 9, 8, 12, 18, 27])
    np.testing.assert_array_equal(polysparse.load(tmp_path / "out").toarray()[0], row)


# ------------------------------------------------------------------------------------- test sets


class TestVocabulary:
    def write(self, path, matrix, zero_based=False):
        lines = [
            f"0 {' '.join(f'{j + 1 - zero_based}:{v!r}' for j, v in enumerate(row.tolist()) if v)}"
            for row in matrix.toarray()
        ]
        path.write_text("\n".join(lines) + "\n")

    def test_a_test_set_has_the_columns_of_the_training_set(self, matrix, tmp_path):
        run("expand", matrix, tmp_path / "train", *DEGREE_3, "--observed", "--min-count", 20)
        self.write(tmp_path / "test.svm", TEST_ROWS)
        before = files_in(tmp_path / "train.vocabulary")
        options = ["--vocabulary", tmp_path / "train.vocabulary"]
        run("expand", tmp_path / "test.svm", tmp_path / "test", *options)
        expected = ObservedPolynomialFeatures(3, min_count=20).fit(X).transform(TEST_ROWS)
        assert bits(polysparse.load(tmp_path / "test")) == bits(expected)
        assert files_in(tmp_path / "train.vocabulary") == before
        assert not (tmp_path / "test.vocabulary").exists()

    def test_columns_that_do_not_occur_at_the_end_are_there(self, tmp_path, vocabulary, capsys):
        narrow, basis = TEST_ROWS[:, :7], "--vocabulary"
        self.write(tmp_path / "test.svm", narrow)
        run("expand", tmp_path / "test.svm", tmp_path / "out", basis, vocabulary)
        full = sparse.csr_array((narrow.data, narrow.indices, narrow.indptr), shape=(40, 9))
        expected = ObservedPolynomialFeatures.load(vocabulary).transform(full)
        assert bits(polysparse.load(tmp_path / "out")) == bits(expected)
        sparse.save_npz(tmp_path / "test.npz", narrow)  # this says how many it has
        command = ["expand", tmp_path / "test.npz", tmp_path / "of-npz", basis, vocabulary]
        error = refused(capsys, 1, *command)
        assert f"test.npz has 7 columns, but {vocabulary} was learnt from 9" in error
        run(*command, *error.rstrip(".\n").rpartition("give ")[2].split("="))
        assert bits(polysparse.load(tmp_path / "of-npz")) == bits(expected)

    def test_more_columns_are_refused(self, tmp_path, vocabulary, capsys):
        (tmp_path / "test.svm").write_bytes(b"1 10:2\n")
        command = ["expand", tmp_path / "test.svm", tmp_path / "out", "--vocabulary", vocabulary]
        error = refused(capsys, 1, *command)
        assert f"test.svm has 10 columns, but {vocabulary} was learnt from 9" in error
        error = refused(capsys, 2, *command, "--n-features", 10)
        assert f"--n-features=10 contradicts {vocabulary}, which has 9" in error
        assert names_in(tmp_path) == ["elsewhere", "test.svm"]

    @pytest.mark.parametrize("zero_based", [True, False])
    def test_svmlight_indices_begin_where_they_did(self, zero_based, tmp_path, capsys):
        """Whether a 0 occurs in the test set is chance."""
        self.write(tmp_path / "train", X, zero_based)
        later = TEST_ROWS.toarray()
        later[:, 0] = 0
        later = sparse.csr_array(later)
        self.write(tmp_path / "test", later, zero_based)
        run("expand", tmp_path / "train", tmp_path / "out", "--observed")
        options = ["--vocabulary", tmp_path / "out.vocabulary"]
        run("expand", tmp_path / "test", tmp_path / "test-out", *options)
        expected = ObservedPolynomialFeatures().fit(X).transform(later)
        assert bits(polysparse.load(tmp_path / "test-out")) == bits(expected)
        if not zero_based:
            self.write(tmp_path / "other", X, zero_based=True)
            error = refused(capsys, 1, "plan", tmp_path / "other", *options)
            assert "index 0 occurs, but --one-based, or the vocabulary, says" in error

    @pytest.mark.parametrize(
        "content", [b"", b"junk", b"PK\x03\x04 and no more", "cut", "locked", "npy"]
    )
    @pytest.mark.parametrize("command", ["plan", "expand", "names"])
    def test_a_damaged_one_is_refused(self, command, content, matrix, tmp_path, vocabulary, capsys):
        whole = vocabulary.read_bytes()
        np.save(npy := io.BytesIO(), np.arange(3))
        in_the_list = b"PK\x01\x02\x2d\x03\x2d\x00"  # what follows says whether it is encrypted
        damaged = {
            "cut": whole[: len(whole) // 2],
            "npy": npy.getvalue(),
            "locked": whole.replace(in_the_list + b"\x00", in_the_list + b"\x01"),
        }
        vocabulary.write_bytes(damaged.get(content, content))
        assert vocabulary.read_bytes() != whole
        arguments = {"plan": [matrix], "expand": [matrix, tmp_path / "out"]}
        rest = arguments.get(command, ["--columns", 3])
        error = refused(capsys, 1, command, *rest, "--vocabulary", vocabulary)
        assert f"{vocabulary} is no vocabulary of polysparse, or damaged" in error
        assert names_in(tmp_path) == ["elsewhere", "in.npz"]

    def test_one_that_is_not_there(self, matrix, tmp_path, capsys):
        command = ["expand", matrix, tmp_path / "out", "--vocabulary", tmp_path / "gone"]
        assert "gone: there is no such vocabulary" in refused(capsys, 1, *command)
        assert names_in(tmp_path) == ["in.npz"]

    def test_it_is_not_overwritten_by_what_is_made_with_it(self, matrix, tmp_path, capsys):
        saved = tmp_path / "saved.npz"
        ObservedPolynomialFeatures().fit(X).save(saved)
        before = files_in(saved)
        error = refused(capsys, 2, "expand", matrix, saved, "--vocabulary", saved, "--force")
        assert "is, or holds, the vocabulary: write somewhere else" in error
        assert files_in(saved) == before


# ---------------------------------------------------------------------------------------- misuse

MISUSE = [
    (["--observed", "--hashed", "9"], "--observed and --hashed exclude each other"),
    (["--observed", "--vocabulary", "v"], "--observed and --vocabulary exclude each other"),
    (["--vocabulary", "v", "--hashed", "9"], "--vocabulary and --hashed exclude each other"),
    (["--min-count", "2"], "--min-count has a meaning only with --observed"),
    (["--hashed", "9", "--max-columns", "2"], "--max-columns has a meaning only with --observed"),
    (["--seed", "2"], "--seed has a meaning only with --hashed"),
    (["--observed", "--seed", "0"], "--seed has a meaning only with --hashed"),
    (["--no-alternate-sign"], "--no-alternate-sign has a meaning only with --hashed"),
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


# ------------------------------------------------------------------------------ plan and memory


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
    assert "are at most these: products of a row that fall into one column" in out


def test_too_little_memory_to_count(matrix, tmp_path, monkeypatch, capsys):
    command = ["expand", matrix, tmp_path / "out", *DEGREE_3]
    monkeypatch.setattr("polysparse.thresholds.TALLY_PART", 20)
    error = refused(capsys, 1, *command, "--observed", "--max-memory", "20kB")
    assert "--max-memory=20000 (20.0 kB) is too little to count the columns that occur" in error
    assert "give more, lower the degree, set --interaction-only, or hash the columns" in error
    assert names_in(tmp_path) == ["in.npz"]
    run(*command, "--hashed", 100, "--max-memory", "20kB")


@pytest.mark.parametrize("command", ["plan", "expand"])
def test_too_little_memory_on_the_machine(command, matrix, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("polysparse.machine.available_bytes", lambda: 500)
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


def test_too_little_memory_for_the_columns(matrix, tmp_path, vocabulary, capsys):
    command = ["expand", matrix, tmp_path / "out", "--vocabulary", vocabulary, "--max-memory"]
    error = refused(capsys, 1, *command, "15kB")
    n_columns = ObservedPolynomialFeatures.load(vocabulary).n_output_features_
    assert f"{n_columns} columns and the longest row need --max-memory=" in error
    needed = error.rpartition("need --max-memory=")[2].split()[0]
    run(*command, int(needed) - 1, code=1)
    run(*command, needed)


def test_rows_are_counted_fewer_at_a_time_where_memory_is_short(matrix, tmp_path, monkeypatch):
    """What many rows have together takes more room than what is counted in the end."""
    refused, count = [], ColumnTally.count

    def watched(self, x, *arguments):
        try:
            count(self, x, *arguments)
        except MemoryError:
            refused.append(x.shape[0])
            raise

    monkeypatch.setattr("polysparse.observation.tally.ColumnTally.count", watched)
    monkeypatch.setattr("polysparse.thresholds.TALLY_PART", 3)
    run("expand", matrix, tmp_path / "out", *DEGREE_3, "--observed", "--max-memory", "30kB")
    expected = ObservedPolynomialFeatures(3).fit(X).transform(X)
    assert bits(polysparse.load(tmp_path / "out")) == bits(expected)
    assert len(set(refused)) > 1


@pytest.mark.parametrize("output", ["out", "out.parquet"])
def test_indices_are_int32_if_the_values_that_are_kept_allow_it(
    output, matrix, tmp_path, vocabulary, monkeypatch
):
    counted = []
    plain = count_values
    monkeypatch.setattr(
        "polysparse.stream.expand.count_values", lambda *a, **k: counted.append(1) or plain(*a, **k)
    )
    fitted = ObservedPolynomialFeatures.load(vocabulary)
    nnz, most = fitted.transform(X).nnz, polysparse.plan(X, 3).nnz
    assert nnz < most
    for limit, dtype in ((most, "int32"), (nnz, "int32"), (nnz - 1, "int64")):
        monkeypatch.setattr(thresholds, "MAX_INT32", limit)
        run("expand", matrix, tmp_path / output, "--vocabulary", vocabulary, "--force")
        result, _ = read(tmp_path / output, fitted.n_output_features_)
        assert (result != fitted.transform(X)).nnz == 0
        if output == "out":
            assert str(result.indices.dtype) == dtype
    assert len(counted) == 2
    monkeypatch.setattr(thresholds, "MAX_INT32", nnz)  # observed ones were counted anyway
    run("expand", matrix, tmp_path / output, *DEGREE_3, "--observed", "--min-count", 9, "--force")
    assert len(counted) == 2


# ----------------------------------------------------------------------------------------- names


class TestNames:
    @pytest.fixture
    def store(self, matrix, tmp_path):
        run("expand", matrix, tmp_path / "out", "--observed", "--min-count", 25)
        return tmp_path / "out"

    def test_of_an_observed_store(self, store, monkeypatch, capsys):
        fitted = ObservedPolynomialFeatures(min_count=25).fit(X)
        last = fitted.n_output_features_ - 1
        expected = [
            {"column": 0, "tuple": [], "name": "1"},
            {
                "column": last,
                "tuple": list(fitted.inverse(last)),
                "name": fitted.get_feature_names_out()[last],
            },
        ]
        vocabulary = ["--vocabulary", f"{store}.vocabulary"]
        monkeypatch.chdir(store)
        for where in ([store], [store, *vocabulary], vocabulary, ["."]):
            run("names", *where, "--columns", f"0,{last}", "--json")
            assert json.loads(capsys.readouterr().out) == expected
        for wrong in (last + 1, -1):
            error = refused(capsys, 2, "names", store, f"--columns={wrong}")
            assert f"column {wrong} is not in [0, {last + 1})" in error
        assert "DIR has a basis" in refused(
            capsys, 2, "names", store, "--columns", 3, "--degree", 2
        )

    def test_of_a_test_set(self, matrix, store, tmp_path, vocabulary, capsys):
        saved = f"{store}.vocabulary"
        run("expand", matrix, tmp_path / "test", "--vocabulary", saved)
        error = refused(capsys, 1, "names", tmp_path / "test", "--columns", 1)
        assert "test.vocabulary: there is no such vocabulary. Give the one" in error
        run("names", tmp_path / "test", "--columns", 1, "--vocabulary", saved)
        assert capsys.readouterr().out == "1\t0\tx0\n"
        command = ["names", tmp_path / "test", "--columns", 1, "--vocabulary", vocabulary]
        assert "saved is not the vocabulary that" in refused(capsys, 1, *command)

    def test_of_features_with_names(self, tmp_path, capsys):
        pandas = pytest.importorskip("pandas")
        frame = pandas.DataFrame({"age": [1.0, 2.0], "dose": [3.0, 0.0]})
        ObservedPolynomialFeatures(include_bias=False).fit(frame).save(tmp_path / "saved")
        run("names", "--vocabulary", tmp_path / "saved", "--columns", "1,3")
        assert capsys.readouterr().out == "1\t1\tdose\n3\t0,1\tage dose\n"

    def test_of_hashed_columns_there_are_none(self, matrix, tmp_path, capsys):
        run("expand", matrix, tmp_path / "out", "--hashed", 100)
        error = refused(capsys, 1, "names", tmp_path / "out", "--columns", 1)
        assert "out has hashed columns: products share them, so none has a name" in error

    def test_misuse(self, matrix, tmp_path, capsys):
        run("expand", matrix, tmp_path / "out")
        command = ["names", "--columns", 1, "--vocabulary", "v"]
        assert "has all columns: leave out" in refused(capsys, 2, *command, tmp_path / "out")
        assert "exclude each other" in refused(capsys, 2, *command, "--n-features", 3)
        assert "v has a basis" in refused(capsys, 2, *command, "--degree", 3)


# ------------------------------------------------------------------------- manifests, old and new


def test_manifests_say_which_columns(matrix, tmp_path):
    def columns_of(*options):
        run("expand", matrix, tmp_path / "out", *options, "--force")
        return json.loads((tmp_path / "out" / "manifest.json").read_text())["columns"]

    assert columns_of() == {"kind": "all"}
    observed = columns_of("--observed")
    assert {**observed, "sha256": ""} == {"kind": "chosen", "n_columns": 55, "sha256": ""}
    assert columns_of("--vocabulary", tmp_path / "out.vocabulary") == observed
    assert columns_of("--observed", "--max-columns", 50)["sha256"] != observed["sha256"]
    assert columns_of("--hashed", "2^4", "--seed", 3) == {
        "kind": "hashed",
        "n_columns": 16,
        "alternate_sign": True,
        "seed": 3,
    }


def test_a_store_of_before_there_were_other_columns(matrix, tmp_path, monkeypatch):
    run("expand", matrix, tmp_path / "out")
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    del manifest["columns"]
    (tmp_path / "out" / "manifest.json").write_text(json.dumps(manifest))
    assert bits(polysparse.load(tmp_path / "out")) == bits(polysparse.expand(X))
    monkeypatch.setattr("polysparse.stream.expand._fill", interrupted_by(AssertionError()))
    run("expand", matrix, tmp_path / "out", "--resume")  # it is what would be written


@pytest.mark.parametrize(
    "columns",
    [
        None,
        "all",
        {},
        {"kind": "other"},
        {"kind": "hashed"},
        {"kind": "hashed", "n_columns": "9"},
        {"kind": "hashed", "n_columns": 2**31},
        {"kind": "chosen", "n_columns": 55},
    ],
    ids=str,
)
def test_a_manifest_with_columns_that_cannot_be(columns, matrix, tmp_path):
    run("expand", matrix, tmp_path / "out")
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    (tmp_path / "out" / "manifest.json").write_text(json.dumps({**manifest, "columns": columns}))
    for open_store in (polysparse.load, polysparse.iter_load):
        with pytest.raises(ValueError, match=r"manifest.json is damaged: columns: "):
            open_store(tmp_path / "out")


# --------------------------------------------------------- interrupted, killed, resumed, in the way


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("output", ["out", "out.npz"])
def test_interrupted_and_resumed_it_is_the_same(
    output, kind, tmp_path, matrix, vocabulary, monkeypatch, capsys
):
    monkeypatch.setattr("polysparse.thresholds.PART_BYTES", 2_000)
    monkeypatch.setattr("polysparse.thresholds.CACHE_PER_THREAD", 4_000)
    monkeypatch.chdir(tmp_path)
    options = KINDS[kind][0]
    run("expand", matrix, f"whole-{output}", *options)
    with monkeypatch.context() as patch:
        advance, calls = ProgressBar.advance, []

        def stop_at_the_third(self, *arguments):
            calls.append(1)
            if len(calls) == 3:
                raise KeyboardInterrupt
            advance(self, *arguments)

        patch.setattr(ProgressBar, "advance", stop_at_the_third)
        run("expand", matrix, output, *options, "--resume", code=130)
    left = {"out": ".out.polysparse-partial", "out.npz": ".out.npz.polysparse-store"}[output]
    assert names_in(tmp_path)[0] == left
    assert not (tmp_path / f"{output}.vocabulary").exists()
    if kind != "vocabulary":
        other = [*options[:-1], 101] if kind == "observed" else [*options, "--dtype", "float32"]
        other = ["--hashed", 63] if kind == "hashed" else other
        error = refused(capsys, 1, "expand", matrix, output, *other, "--resume")
        assert "was begun with other parameters" in error
    run("expand", matrix, output, *options, "--resume")
    written = {name: files_in(tmp_path / name) for name in names_in(tmp_path)}
    assert written[output] == written[f"whole-{output}"]
    if kind == "observed":
        assert written[f"{output}.vocabulary"] == written[f"whole-{output}.vocabulary"]
    assert not [name for name in written if name.startswith(".")]
    monkeypatch.setattr("polysparse.stream.expand._fill", interrupted_by(AssertionError()))
    run("expand", matrix, output, *options, "--resume")  # there is nothing to do
    assert {name: files_in(tmp_path / name) for name in names_in(tmp_path)} == written


@pytest.mark.no_sanitizer
@pytest.mark.skipif(os.name != "posix", reason="needs signals")
@pytest.mark.parametrize("name", ["out", "out.npz"])
def test_killed_at_any_moment_and_resumed_it_is_the_same(name, tmp_path):
    write_svmlight(tmp_path / "in.svmlight")
    program = KILLED.replace("2**17", "2**14")

    def start(moment, output, *options):
        command = [sys.executable, "-c", program, str(moment), "expand", tmp_path / "in.svmlight"]
        options = [*options, "--degree", "3", "--observed", "--min-count", "3", "--jobs", "1"]
        return subprocess.run([*command, output, *options], check=False).returncode

    whole, output = tmp_path / f"whole-{name}", tmp_path / name
    vocabulary = tmp_path / f"{name}.vocabulary"
    assert start(-1, whole) == 0
    expected = files_in(whole), files_in(tmp_path / f"whole-{name}.vocabulary")
    chance, kills = random.Random(0), 0
    while (code := start(chance.randint(1, 12) + 9 * kills, output, "--resume")) != 0:
        assert code == -signal.SIGKILL
        kills += 1
        assert not output.exists() or files_in(output) == expected[0]
        assert not vocabulary.exists() or files_in(vocabulary) == expected[1]
        assert vocabulary.exists() or not output.exists()
    assert kills > 2
    assert (files_in(output), files_in(vocabulary)) == expected
    both = name, f"whole-{name}"
    assert names_in(tmp_path) == sorted([*both, *(f"{n}.vocabulary" for n in both), "in.svmlight"])


@pytest.mark.no_sanitizer
@pytest.mark.skipif(sys.platform != "linux", reason="needs a limit on file size")
@pytest.mark.parametrize(
    ("output", "limit"), [("out", 0), ("out", 1000), ("out", 10_000), ("out.parquet", 1000)]
)
def test_a_full_disk_leaves_nothing_behind(output, limit, matrix, tmp_path):
    """The vocabulary is written first, and has more than 1,000 bytes, but less than 10,000."""
    program = (
        "import joblib, resource, signal, sys; "  # joblib makes a semaphore when it is imported
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit})); "
        "import polysparse.cli as cli; sys.exit(cli.main(sys.argv[1:]))"
    )
    command = [sys.executable, "-B", "-c", program, "expand", matrix, tmp_path / output]
    done = subprocess.run(
        [*command, "--observed", "--degree", "3"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "File too large" in done.stderr
    assert names_in(tmp_path) == ["in.npz"]


STEPS = [
    "polysparse.observation.tally.ColumnTally.count",
    "polysparse.files.vocabulary.Vocabulary.write_aside",
    "polysparse.stream.expand._fill",
    "polysparse.files.store_writer.StoreWriter.seal",
    "polysparse.files.vocabulary.VocabularySink.put",
    "polysparse.files.store_writer.StoreWriter.finish",
    "polysparse.files.store_writer.replace_directory",
]


@pytest.mark.parametrize("step", STEPS)
def test_whatever_fails_the_old_ones_are_kept(step, matrix, tmp_path, monkeypatch):
    command = ["expand", matrix, tmp_path / "out", "--observed"]
    with monkeypatch.context() as patch:
        patch.setattr(step, interrupted_by(KeyboardInterrupt()))
        run(*command, code=130)
    assert names_in(tmp_path) == ["in.npz"]
    run(*command)
    before = {name: files_in(tmp_path / name) for name in names_in(tmp_path)}
    monkeypatch.setattr(step, interrupted_by(OSError("full")))
    run(*command, "--degree", 3, "--force", code=1)
    assert {name: files_in(tmp_path / name) for name in names_in(tmp_path)} == before


def test_interrupted_after_the_output_has_its_name_the_vocabulary_is_its_own(
    matrix, tmp_path, monkeypatch
):
    command = ["expand", matrix, tmp_path / "out", "--observed"]
    run(*command)
    replace_directory = polysparse.files.store_writer.replace_directory

    def replace_and_stop(new, path):
        replace_directory(new, path)
        raise KeyboardInterrupt

    monkeypatch.setattr("polysparse.files.store_writer.replace_directory", replace_and_stop)
    run(*command, "--degree", 3, "--force", code=130)
    assert polysparse.load(tmp_path / "out").shape[1] == 220
    run("names", tmp_path / "out", "--columns", 219)
    assert names_in(tmp_path) == ["in.npz", "out", "out.vocabulary"]


class TestInTheWay:
    def test_an_existing_vocabulary_is_kept(self, matrix, tmp_path, capsys):
        (tmp_path / "out.vocabulary").write_bytes(b"mine")
        command = ["expand", matrix, tmp_path / "out", "--observed"]
        error = refused(capsys, 2, *command)
        assert "out.vocabulary exists already: give --force to overwrite it" in error
        error = refused(capsys, 2, *command, "--resume")
        assert "out.vocabulary exists already, and is another: give --force" in error
        assert (tmp_path / "out.vocabulary").read_bytes() == b"mine"
        assert names_in(tmp_path) == ["in.npz", "out.vocabulary"]
        run("expand", matrix, tmp_path / "out")  # nothing to do with it
        assert "out.vocabulary is not of this OUT, but it is kept" in capsys.readouterr().err
        assert (tmp_path / "out.vocabulary").read_bytes() == b"mine"
        run(*command, "--force")
        assert Vocabulary.read(tmp_path / "out.vocabulary").columns.n_columns == 55

    def test_what_is_no_file_is_kept(self, matrix, tmp_path, capsys):
        (tmp_path / "out.vocabulary").mkdir()
        command = ["expand", matrix, tmp_path / "out", "--observed", "--force"]
        assert "out.vocabulary is no file: it is kept" in refused(capsys, 2, *command)
        (tmp_path / "out.vocabulary").rmdir()
        (tmp_path / "out.vocabulary").symlink_to("elsewhere")
        assert "out.vocabulary is a symbolic link" in refused(capsys, 2, *command)
        (tmp_path / "out.vocabulary").unlink()
        (tmp_path / ".out.vocabulary.polysparse-old").mkdir()
        (tmp_path / ".out.vocabulary.polysparse-old" / "mine").touch()
        assert "is in the way, and not polysparse's" in refused(capsys, 2, *command)
        assert names_in(tmp_path) == [".out.vocabulary.polysparse-old", "in.npz"]

    def test_what_a_killed_run_left_is_removed(self, matrix, tmp_path):
        for role in ("partial", "old"):
            (tmp_path / f".out.vocabulary.polysparse-{role}").touch()
        run("expand", matrix, tmp_path / "out")
        assert names_in(tmp_path) == ["in.npz", "out"]

    def test_a_vocabulary_that_was_lost_is_written_again(self, matrix, tmp_path):
        command = ["expand", matrix, tmp_path / "out", "--observed", "--resume"]
        run(*command)
        before = files_in(tmp_path / "out.vocabulary")
        (tmp_path / "out.vocabulary").unlink()
        run(*command)
        assert files_in(tmp_path / "out.vocabulary") == before


# -------------------------------------------------------------------------------------- progress


def test_counting_is_a_phase_of_its_own(matrix, tmp_path, vocabulary, monkeypatch):
    phases = []
    monkeypatch.setattr(
        ProgressBar, "start", lambda self, done, phase="": phases.append((done, phase))
    )
    run("expand", matrix, tmp_path / "out", "--observed")
    assert phases == [(0, "counting"), (0, "")]
    run("plan", matrix, "--vocabulary", vocabulary)
    assert phases[2:] == [(0, "counting")]


def test_phases_begin_at_nothing(monkeypatch):
    pytest.importorskip("rich")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    progress = ProgressBar(False, 100)
    progress.start(0, "counting")
    progress.advance_to(60, "7 columns")
    (task,) = progress.bar.tasks
    assert (task.completed, task.fields["text"]) == (60, "counting: 60 rows, 7 columns")
    progress.start(10)
    progress.advance(5, 20, 12)
    assert (task.completed, progress.stored, progress.bytes) == (15, 20, 240)
    assert task.fields["text"].startswith("15 rows, 20 values, ")


@pytest.mark.parametrize(
    ("options", "passes"),
    [(["--observed"], [X[:50]]), (["--observed"], [X, X[:50]]), (["--hashed", "50"], [X[:50]])],
    ids=["first", "second", "hashed"],
)
def test_an_input_that_changes_while_it_is_read(
    options, passes, matrix, tmp_path, monkeypatch, capsys
):
    passes = iter(passes)
    monkeypatch.setattr(
        "polysparse.files.source.WholeSource.blocks", lambda *_: iter([(next(passes), None)])
    )
    error = refused(capsys, 1, "expand", matrix, tmp_path / "out", *options)
    assert "in.npz changed while it was read" in error
    assert names_in(tmp_path) == ["in.npz"]


def test_values_that_were_not_there_when_they_were_counted(matrix, tmp_path, monkeypatch, capsys):
    full = sparse.csr_array(np.ones(X.shape))
    passes = iter([X, full])
    monkeypatch.setattr(
        "polysparse.files.source.WholeSource.blocks", lambda *_: iter([(next(passes), None)])
    )
    error = refused(capsys, 1, "expand", matrix, tmp_path / "out", "--observed")
    assert "in.npz changed while it was read" in error
    assert names_in(tmp_path) == ["in.npz"]
