"""The command `learn`: what it learns is what `fit` and `partial_fit` learn in Python."""

import gzip
import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from checks import names_in
from command_line import run
from polysparse import PolynomialFTRLClassifier, PolynomialFTRLRegressor, load_model
from polysparse.cli import main
from polysparse.files.paths import locked
from sample_files import refused

N_COLUMNS = 2**10
HASHED = ["--hashed", "2^10"]
QUIET = [*HASHED, "--quiet"]


def make_rows(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, (n, 12)) * (rng.random((n, 12)) < 0.4)
    X[0, -1] = 1  # every feature occurs
    y = ((X[:, 0] > 0) ^ (X[:, 1] > 0)).astype(int)
    y[:2] = 0, 1
    return X.astype(float), y


def as_text(X, y, fields=None):
    lines = []
    for row, label in zip(X, y, strict=True):
        stored = np.flatnonzero(row)
        pairs = [f"{j + 1}:{row[j]:g}" for j in stored]
        if fields is not None:
            pairs = [f"{fields[j]}:{pair}" for j, pair in zip(stored, pairs, strict=True)]
        lines.append(" ".join([f"{label:g}", *pairs]) + "\n")
    return "".join(lines)


X, Y = make_rows(700)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("in.svm").write_text(as_text(X, Y))
    return tmp_path


def assert_same(path, model):
    """Everything that a model has learned, including the rows that wait."""
    found = load_model(path)
    np.testing.assert_array_equal(found.coef_, model.coef_)
    np.testing.assert_array_equal(found.intercept_, model.intercept_)
    np.testing.assert_array_equal(found.predict(X), model.predict(X))
    assert found.n_samples_seen_ == model.n_samples_seen_
    assert found.n_samples_pending_ == model.n_samples_pending_
    assert found.progressive_loss_ == model.progressive_loss_
    assert found.recent_loss_ == model.recent_loss_
    assert found.n_sampled_rows_ == model.n_sampled_rows_
    if model.n_sampled_rows_:
        one, other = (each.learner_.sample for each in (found, model))
        assert (one.n_rows, one.bound) == (other.n_rows, other.bound)
        assert one.rows.numbers.tolist() == other.rows.numbers.tolist()
        assert one.rows.indices.tolist() == other.rows.indices.tolist()


def assert_same_files(one, other):
    """Arrays are the same; the description has how long it took."""
    with np.load(one) as a, np.load(other) as b:
        assert a.files == b.files
        for name in set(a.files) - {"description"}:
            np.testing.assert_array_equal(a[name], b[name])


def classifier(**parameters):
    return PolynomialFTRLClassifier(**{"n_columns": N_COLUMNS} | parameters)


# ------------------------------------------------------------------------------ what is learned


@pytest.mark.parametrize(
    ("options", "parameters"),
    [
        ([], {}),
        (["--passes", "3"], {"n_passes": 3}),
        (["--l1", "0.5", "--l2", "0.1", "--beta", "2"], {"l1": 0.5, "l2": 0.1, "beta": 2.0}),
        (["--learning-rate", "0.2", "--no-intercept"], {"learning_rate": 0.2, "fit_intercept": 0}),
        (["--no-sample"], {"keep_sample": False}),
        (["--degree", "3", "--interaction-only"], {"degree": 3, "interaction_only": True}),
        (["--groups", "a=6,b=6"], {"groups": {"a": 6, "b": 6}}),
        (["--groups", "a=6,b=6", "--terms", "a:b"], {"groups": {"a": 6, "b": 6}, "terms": ["a:b"]}),
        (["--jobs", "1", "--every", "33"], {"n_jobs": 2}),
    ],
)
def test_it_learns_what_fit_learns(options, parameters, folder):
    if "fit_intercept" in parameters:
        parameters = parameters | {"fit_intercept": False}
    assert run("learn", "in.svm", "-o", "m.npz", *QUIET, *options) == 0
    assert_same("m.npz", classifier(**parameters).fit(X, Y))


@pytest.mark.parametrize(("options", "columns"), [(["--all"], "all"), (["--observed"], "observed")])
def test_columns_need_not_be_hashed(options, columns, folder):
    assert run("learn", "in.svm", "-o", "m.npz", "--quiet", *options) == 0
    assert_same("m.npz", PolynomialFTRLClassifier(columns=columns).fit(X, Y))


def test_columns_of_a_vocabulary(folder):
    assert run("expand", "in.svm", "out.npz", "--observed", "--min-count", "50", "--no-bias") == 0
    command = ["learn", "in.svm", "-o", "m.npz", "--quiet", "--vocabulary", "out.npz.vocabulary"]
    assert run(*command) == 0
    assert load_model("m.npz").coef_.shape == (1, expand_width("out.npz"))


def expand_width(path):
    with np.load(path) as file:
        return int(file["shape"][1])


@pytest.mark.parametrize("loss", ["squared", "poisson"])
def test_numbers_and_counts(loss, folder):
    y = 3.0 * Y + X[:, 2]
    Path("in.svm").write_text(as_text(X, y))
    assert run("learn", "in.svm", "-o", "m.npz", *QUIET, "--loss", loss) == 0
    assert_same("m.npz", PolynomialFTRLRegressor(loss=loss, n_columns=N_COLUMNS).fit(X, y))


def test_several_files_are_one_stream(folder):
    Path("a.svm").write_text(as_text(X[:5], Y[:5]))
    Path("b.svm").write_text("")
    Path("c.svm.gz").write_bytes(gzip.compress(as_text(X[5:], Y[5:]).encode()))
    assert run("learn", "a.svm", "b.svm", "c.svm.gz", "-o", "m.npz", *QUIET) == 0
    assert_same("m.npz", classifier().fit(X, Y))


def test_later_files_may_have_fewer_features(folder, monkeypatch):
    Path("a.svm").write_text(as_text(X[:300], Y[:300]))
    Path("b.svm").write_text(as_text(X[300:, :6], Y[300:]))
    rows = X.copy()
    rows[300:, 6:] = 0
    command = ["learn", "a.svm", "b.svm", "-o", "m.npz", *QUIET, "--classes=0,1", "--one-based"]
    command += ["--every", "50"]
    assert run(*command) == 0
    assert_same("m.npz", classifier().fit(rows, Y))
    with monkeypatch.context() as patch:
        patch.setattr("polysparse.cli.learn.CHECKPOINT_SHARE", 0)
        stop_after(patch, 8, KeyboardInterrupt)
        assert run(*command, "--force") == 130
    assert run(*command, "--resume", "--force") == 0
    assert_same("m.npz", classifier().fit(rows, Y))


def test_several_classes_and_their_labels(folder):
    y = np.where(X[:, 3] > 0, 7, Y)
    Path("in.svm").write_text(as_text(X, y))
    assert run("learn", "in.svm", "-o", "m.npz", *QUIET) == 0
    assert_same("m.npz", classifier().fit(X, y))
    assert load_model("m.npz").classes_.tolist() == [0, 1, 7]


def test_fields_of_libffm_are_groups(folder):
    fields = [0] * 6 + [4] * 6
    Path("in.ffm").write_text(as_text(X, Y, fields))
    assert run("learn", "in.ffm", "-o", "m.npz", *QUIET) == 0
    groups = [f"f{each}" for each in fields]
    assert_same("m.npz", classifier(groups=groups).fit(X, Y))


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".arrow"])
def test_tables(ending, folder):
    pa = pytest.importorskip("pyarrow")
    rng = np.random.default_rng(0)
    color, age = rng.choice(["red", "green", "blue"], 300), rng.random(300)
    y = np.where((color == "red") == (age > 0.5), "yes", "no")
    table = pa.table({"color": color, "age": age, "buys": y})
    write_table(table, f"in{ending}")
    command = ["learn", f"in{ending}", "-o", "m.npz", *QUIET, "--target", "buys", "--every", "70"]
    assert run(*command) == 0
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"color": color, "age": age})
    wanted = classifier().fit(frame, y)
    found = load_model("m.npz")
    np.testing.assert_array_equal(found.coef_, wanted.coef_)
    assert found.predict(frame).tolist() == wanted.predict(frame).tolist()
    assert run("predict", "m.npz", f"in{ending}", "-o", "p.txt") == 0
    assert Path("p.txt").read_text().split() == wanted.predict(frame).tolist()


def write_table(table, path):
    from pyarrow import csv, feather, parquet

    if path.endswith(".csv"):
        csv.write_csv(table, path)
    elif path.endswith(".parquet"):
        parquet.write_table(table, path)
    else:
        feather.write_feather(table, path, compression="uncompressed")


@pytest.mark.parametrize("ending", [".npz", ".parquet"])
def test_matrices_in_other_formats(ending, folder):
    assert run("expand", "in.svm", f"in{ending}", "--degree", "1", "--no-bias", "--quiet") == 0
    if ending == ".npz":
        pytest.skip("archives of SciPy have no labels")
    assert run("learn", f"in{ending}", "-o", "m.npz", *QUIET, "--every", "64") == 0
    assert_same("m.npz", classifier().fit(X, Y))


def test_predict_and_terms(folder, capsys):
    assert run("learn", "in.svm", "-o", "m.npz", "--all", "--quiet", "--passes", "4") == 0
    model = load_model("m.npz")
    assert run("predict", "m.npz", "in.svm", "--proba") == 0
    found = np.array([line.split() for line in capsys.readouterr().out.splitlines()], float)
    np.testing.assert_array_equal(found, model.predict_proba(X))
    assert run("terms", "m.npz", "-n", "1") == 0
    captured = capsys.readouterr()
    assert captured.out.splitlines()[1].startswith("x0 x1 ")
    assert "x0 is column 1 of the svmlight text" in captured.err


def test_terms_of_hashed_columns(folder, capsys):
    assert run("learn", "in.svm", "-o", "m.npz", "--quiet", "--hashed", "2^14") == 0
    model = load_model("m.npz")
    assert model.n_sampled_rows_ == 700
    assert run("terms", "m.npz", "--json", "--text", "terms.txt") == 0
    captured = capsys.readouterr()
    found, wanted = json.loads(captured.out), model.top_terms(20)
    for name in ("name", "weight", "rows"):
        assert found[name] == list(wanted[name])
    assert "x0 x1" in found["name"][0]
    assert "names and rows are those of 700 sampled rows; --data IN looks for" in captured.err
    model.to_text("wanted.txt")
    assert Path("terms.txt").read_text() == Path("wanted.txt").read_text()
    assert run("terms", "m.npz", "--json", "--data", "in.svm", "--text", "all.txt") == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["rows"] == list(model.top_terms(20, X)["rows"])
    assert "sampled" not in captured.err
    assert "x0 x1\t" in Path("all.txt").read_text()


def test_names_of_features(folder, capsys):
    Path("names.txt").write_text("".join(f"feature {j}\n" for j in range(12)))
    command = ["learn", "in.svm", "-o", "m.npz", "--all", "--quiet", "--passes", "4"]
    assert run(*command, "--feature-names", "names.txt") == 0
    assert load_model("m.npz").top_terms(1)["name"][0] == "feature 0 feature 1"


# ------------------------------------------------------------------------------- standard input


class Piped:
    """Standard input."""

    def __init__(self, content):
        self.buffer = io.BufferedReader(io.BytesIO(content))


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_standard_input_is_read_once(pack, folder, monkeypatch):
    """Its features need not be known: hashed columns are the same for any number of them."""
    monkeypatch.setattr("sys.stdin", Piped(pack(as_text(X, Y).encode())))
    monkeypatch.setattr("polysparse.files.arriving._is_ready", lambda file: False)
    monkeypatch.setattr("polysparse.cli.opening_streams.BLOCK_BYTES", 300)
    assert run("learn", "-", "-o", "m.npz", *QUIET, "--classes", "0,1") == 0
    assert_same("m.npz", classifier().fit(X, Y))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "standard input cannot be read twice: give --classes"),
        (["--all"], "standard input cannot be read twice: give --classes"),
        (["--classes=0,1", "--all"], "standard input cannot be read twice: give --n-features"),
        (["--classes=0,1", "--observed"], "standard input cannot be read twice: give --n-features"),
        (["--target=y"], "tables are read twice, so give one as a file"),
        (["--passes=2"], "--passes needs an input that can be read again: - cannot"),
        (["--resume"], "--resume needs an input that can be read again: - cannot"),
    ],
)
def test_what_standard_input_cannot_do(options, message, folder, capsys):
    assert message in refused(capsys, 2, "learn", "-", "-o", "m.npz", *options)


def test_closed_standard_input(folder, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", None)
    command = ["learn", "-", "-o", "m.npz", "--classes=0,1", *QUIET]
    assert "standard input is closed" in refused(capsys, 1, *command)


# ------------------------------------------------------------------------------------ the score


def test_the_score_alone(folder, capsys):
    assert run("learn", "in.svm", "--test-then-train", *QUIET) == 0
    captured = capsys.readouterr()
    table = dict(line.split("\t") for line in captured.out.splitlines())
    model = classifier().fit(X, Y)
    assert table["rows"] == "700"
    assert table["log loss"] == f"{model.progressive_loss_:.6g}"
    assert captured.err == ""
    assert names_in(folder) == ["in.svm"]


def test_lines_of_progress(folder, capsys):
    assert run("learn", "in.svm", "-o", "m.npz", *HASHED, "--one-based", "--every", "200") == 0
    lines = capsys.readouterr().err.splitlines()
    starts = [f"polysparse: {n} rows, log loss 0." for n in (200, 400, 600)]
    assert all(", calibration " in line and " rows/s" in line for line in lines[:3])
    assert [line[: len(starts[0])] for line in lines[:3]] == starts
    assert lines[3].startswith("polysparse: m.npz: logistic regression, positive class 1, 700 rows")


# ------------------------------------------------------------------------------------- bad lines

BAD = {
    "1 2:x\n": "line 3: value 'x' of '2:x' is not a number.",
    "garbage\n": "line 3: label 'garbage' is not a number.",
    "2:1 3:1\n": "line 3: begins with '2:1' and so has no label",
    "3 2:1\n": "line 3: label 3 is not one of the classes, 0, 1",
    "nan 2:1\n": "line 3: label nan is not a finite number.",
    "1 2:inf\n": "line 3: value inf of index 2 is not finite.",
    "1 0:1\n": "line 3: index 0 occurs, but indices are 1-based: pass --zero-based.",
    "1 99:1\n": "line 3: index 99 occurs, but there are --n-features=12",
}


@pytest.mark.parametrize("bad", BAD)
def test_a_bad_line_is_refused_or_skipped(bad, folder, capsys):
    lines = as_text(X, Y).splitlines(keepends=True)
    Path("in.svm").write_text("".join([*lines[:2], bad, *lines[2:]]))
    given = ["--classes", "0,1", "--one-based", "--n-features", "12"]
    command = ["learn", "in.svm", "-o", "m.npz", *HASHED, *given]
    assert f"in.svm: {BAD[bad]}" in refused(capsys, 1, *command)
    assert names_in(folder) == ["in.svm"]
    assert run(*command, "--skip-bad-lines") == 0
    assert "note: 1 lines were skipped." in capsys.readouterr().err
    assert_same("m.npz", classifier().fit(X, Y))


def test_a_hostile_index_is_a_bad_line(folder, capsys):
    """A model has 8 bytes for each feature."""
    lines = as_text(X, Y).splitlines(keepends=True)
    bad = ["1 2000000000:1\n", f"1 {9 * 10**18}:1\n"]
    Path("in.svm").write_text("".join([*lines[:300], *bad, *lines[300:]]))
    for given in (["--classes", "0,1", "--one-based"], []):
        command = ["learn", "in.svm", "-o", "m.npz", *HASHED, "--force", *given]
        message = "line 301: index 2000000000 occurs, but a stream whose number of features is not "
        error = refused(capsys, 1, *command, "--quiet")
        assert f"{message}given may have 1,048,576: give --n-features" in error
        assert run(*command, "--skip-bad-lines") == 0
        assert "note: 2 lines were skipped." in capsys.readouterr().err
        model = load_model("m.npz")
        assert Path("m.npz").stat().st_size < 2**24
        assert model.progressive_loss_ == classifier().fit(X, Y).progressive_loss_


@pytest.mark.parametrize("options", [[], ["--learning-rate", "0.1"]])
def test_a_huge_value_is_a_bad_line(options, folder, capsys):
    lines = as_text(X, Y).splitlines(keepends=True)
    Path("in.svm").write_text("".join([*lines[:300], "1 1:1e20\n", *lines[300:]]))
    command = ["learn", "in.svm", "-o", "m.npz", *HASHED, *options]
    message = "in.svm: row 300 of those after the first 0 cannot be learned from: "
    assert message in refused(capsys, 1, *command, "--quiet")
    assert run(*command, "--skip-bad-lines", "--passes", "2") == 0
    assert "note: 1 lines were skipped." in capsys.readouterr().err
    rate = {"learning_rate": 0.1} if options else {}
    assert_same("m.npz", classifier(n_passes=2, **rate).fit(X, Y))


def test_many_bad_lines_are_skipped(folder, capsys):
    lines, rng = as_text(X, Y).splitlines(keepends=True), np.random.default_rng(0)
    n_bad, mixed = 0, []
    for line in lines:
        bad = rng.choice(list(BAD), rng.integers(0, 4)).tolist()
        n_bad += len(bad)
        mixed += [*bad, line, "# a comment\n"]
    Path("in.svm").write_text("".join(mixed))
    given = ["--classes", "0,1", "--one-based", "--n-features", "12", "--passes", "2"]
    command = ["learn", "in.svm", "-o", "m.npz", *HASHED, *given, "--skip-bad-lines"]
    assert run(*command, "--every", "100") == 0
    assert f"note: {n_bad:,} lines were skipped." in capsys.readouterr().err
    assert_same("m.npz", classifier(n_passes=2).fit(X, Y))


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("", [], "in.svm has no rows to learn from"),
        ("# only a comment\n", [], "in.svm has no rows to learn from"),
        ("1:1\n", [], "in.svm: has no labels to learn from"),
        ("1 1:1\n1 2:1\n", [], "in.svm has one class alone, 1: give all that may occur"),
        ("0.5 1:1\n1 2:1\n", [], "in.svm has the label 0.5; classes are whole numbers"),
        ("-1 1:1\n1 2:1\n", ["--loss=poisson"], "line 1: label -1 is negative, but --loss poisson"),
    ],
)
def test_what_cannot_be_learned_from(text, options, message, folder, capsys):
    Path("in.svm").write_text(text)
    assert message in refused(capsys, 1, "learn", "in.svm", "-o", "m.npz", *QUIET, *options)
    assert names_in(folder) == ["in.svm"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "give the model to write, -o MODEL, or --test-then-train"),
        (["-o", "m.pkl"], "models are .npz files"),
        (["-o", "m.npz", "--follow", "--passes=2"], "--passes does not apply with --follow"),
        (["-o", "m.npz", "--all", "--hashed=9"], "--hashed and --all cannot be combined"),
        (["-o", "m.npz", "--classes=0,1", "--loss=squared"], "--classes only applies with"),
        (["-o", "m.npz", "--target=y"], "--target only applies to tables"),
        (["-o", "in.svm"], "models are .npz files"),
        (["-o", "no/m.npz"], "no: no such directory"),
    ],
)
def test_misuse(options, message, folder, capsys):
    assert message in refused(capsys, 2, "learn", "in.svm", *options)


def test_a_missing_file_is_found_before_anything_is_learned(folder, capsys):
    command = ["learn", "in.svm", "no.svm", "-o", "m.npz", "--classes=0,1", "--one-based", *HASHED]
    assert "no.svm: no such file" in refused(capsys, 1, *command)


# ------------------------------------------------------------------------------ files that grow

GIVEN = ["--classes", "0,1", "--one-based", "--hashed", "2^10"]


@pytest.mark.skipif(os.name != "posix", reason="needs signals")
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_a_growing_file_is_followed_until_a_signal(name, folder):
    """A line that is not complete is not learned from."""
    number = getattr(signal, name)
    before = signal.signal(number, signal.SIG_DFL)  # programs in the background ignore SIGINT
    lines = as_text(X, Y).splitlines(keepends=True)
    Path("log.svm").write_text("".join(lines[:300]))

    def grow():
        time.sleep(0.2)
        with open("log.svm", "a") as file:
            for line in lines[300:]:
                file.write(line[:3])
                file.flush()
                file.write(line[3:])
            file.write("1 2:3")
        while not Path("m.npz").exists() or load_model("m.npz").n_samples_seen_ < 600:
            time.sleep(0.05)
        os.kill(os.getpid(), number)

    growing = threading.Thread(target=grow)
    growing.start()
    command = ["learn", "log.svm", "-o", "m.npz", "--follow", "--quiet", *GIVEN, "--every", "50"]
    assert run(*command) == 0
    growing.join()
    signal.signal(number, before)
    wanted = classifier().partial_fit(X, Y, classes=[0, 1])
    assert wanted.n_samples_pending_ > 0
    assert_same("m.npz", wanted)


@pytest.mark.skipif(os.name != "posix", reason="needs signals")
def test_following_goes_on_where_it_stopped(folder, monkeypatch):
    lines = as_text(X, Y).splitlines(keepends=True)
    command = ["learn", "log.svm", "-o", "m.npz", "--follow", "--quiet", *GIVEN]
    monkeypatch.setattr(
        "polysparse.files.arriving.time.sleep", lambda s: os.kill(os.getpid(), signal.SIGTERM)
    )
    Path("log.svm").write_text("".join(lines[:333]) + lines[333][:4])
    assert run(*command) == 0
    Path("log.svm").write_text("".join(lines))
    assert run(*command, "--resume") == 0
    assert_same("m.npz", classifier().partial_fit(X, Y, classes=[0, 1]))
    Path("log.svm").write_text("1 1:1\n" * 1000)
    assert run(*command, "--resume") == 1


@pytest.mark.skipif(os.name != "posix", reason="needs signals")
def test_a_file_that_comes_twice_is_followed_the_second_time(folder, monkeypatch):
    monkeypatch.setattr(
        "polysparse.files.arriving.time.sleep", lambda s: os.kill(os.getpid(), signal.SIGTERM)
    )
    command = ["learn", "in.svm", "in.svm", "-o", "m.npz", "--follow", "--quiet", *GIVEN]
    assert run(*command) == 0
    model = load_model("m.npz")
    assert model.n_samples_seen_ + model.n_samples_pending_ == 1400


def test_what_cannot_be_followed(folder, capsys):
    Path("in.svm.gz").write_bytes(gzip.compress(as_text(X, Y).encode()))
    command = ["learn", "in.svm.gz", "-o", "m.npz", "--follow", *GIVEN]
    assert "--follow needs text that is not gzipped" in refused(capsys, 2, *command)


# ----------------------------------------------------------------------- checkpoints and resuming


def stop_after(monkeypatch, n_checkpoints, error):
    """Raise an error in the report after so many."""
    import polysparse.cli.learn as module

    plain, calls = module._Reporter.__call__, []

    def report(self):
        plain(self)
        calls.append(1)
        if len(calls) == n_checkpoints:
            raise error

    monkeypatch.setattr(module._Reporter, "__call__", report)


RESUMED = ["learn", "in.svm", "-o", "m.npz", *QUIET, "--every", "90", "--passes", "2"]
CHECKPOINT = ".m.npz.polysparse-partial"


@pytest.mark.parametrize("n_checkpoints", [1, 7, 8, 15])
def test_an_interrupted_run_goes_on(n_checkpoints, folder, monkeypatch, capsys):
    with monkeypatch.context() as patch:
        stop_after(patch, n_checkpoints, KeyboardInterrupt)
        assert run(*RESUMED) == 130
    error = capsys.readouterr().err
    assert "interrupted. Completed parts are kept; --resume continues from them: " in error
    assert names_in(folder) == [CHECKPOINT, "in.svm"]
    error = refused(capsys, 2, *RESUMED)
    assert "give --resume to continue it, or --force to start over" in error
    assert run(*RESUMED, "--resume") == 0
    assert_same("m.npz", classifier(n_passes=2).fit(X, Y))
    assert names_in(folder) == ["in.svm", "m.npz"]
    assert run(*RESUMED[:4], "--hashed=2^10", *RESUMED[7:], "--resume") == 0
    assert "m.npz is already complete, nothing to do" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["--l1", "3"], "the earlier run had l1=0.0, this one has 3.0"),
        (["--degree", "3"], "the earlier run had degree=2, this one has 3"),
        (["--hashed", "2^9"], "the earlier run had n_columns=1024, this one has 512"),
        (["--zero-based"], "the earlier run had indices from 1, this one has indices from 0"),
        (["--classes", "0,1,2"], "the earlier run had the classes 0, 1, this one has 0, 1, 2"),
        (["--n-features", "99"], "the earlier run had any number of features, this one has 99"),
        (["--loss", "squared"], "the earlier run had logistic loss, this one has squared loss"),
        ("longer", "in.svm is not the file that the earlier run read, or has changed"),
        ("more", "the earlier run had 1 inputs, this one has 2"),
        ("damaged", "is damaged"),
        ("cut", "is damaged"),
        ("other", "is not a checkpoint of polysparse learn"),
    ],
)
def test_another_run_is_not_resumed(change, message, folder, monkeypatch, capsys):
    with monkeypatch.context() as patch:
        stop_after(patch, 3, KeyboardInterrupt)
        assert run(*RESUMED) == 130
    command, checkpoint = [*RESUMED, "--resume"], Path(CHECKPOINT)
    if change == "longer":
        Path("in.svm").write_text(as_text(X, Y) + "1 1:1\n")
    elif change == "more":
        command.insert(1, "in.svm")
    elif change == "damaged":
        content = bytearray(checkpoint.read_bytes())
        content[len(content) // 2] ^= 1
        checkpoint.write_bytes(content)
    elif change == "cut":
        checkpoint.write_bytes(checkpoint.read_bytes()[:-100])
    elif change == "other":
        classifier().fit(X, Y).save(checkpoint)
    else:
        command += change
    before = checkpoint.read_bytes()
    assert message in refused(capsys, 1, *command)
    assert checkpoint.read_bytes() == before
    assert run(*RESUMED, "--force") == 0
    assert names_in(folder) == ["in.svm", "m.npz"]


def test_a_second_learner_is_refused(folder, capsys):
    with locked(folder / "m.npz"):
        assert "another run is writing m.npz" in refused(capsys, 1, *RESUMED)


def test_a_model_is_replaced_only_by_force(folder, capsys):
    Path("m.npz").write_text("precious")
    assert "m.npz already exists: give --force" in refused(capsys, 2, *RESUMED)
    assert "m.npz already exists: give --force" in refused(capsys, 2, *RESUMED, "--resume")
    assert Path("m.npz").read_text() == "precious"
    assert run(*RESUMED, "--force") == 0
    assert_same("m.npz", classifier(n_passes=2).fit(X, Y))


def test_a_full_disk_leaves_the_last_checkpoint(folder, monkeypatch, capsys):
    stop_after(monkeypatch, 2, OSError(28, "No space left on device"))
    assert run(*RESUMED) == 1
    assert "No space left on device" in capsys.readouterr().err
    assert names_in(folder) == [CHECKPOINT, "in.svm"]
    monkeypatch.undo()
    os.chdir(folder)
    assert run(*RESUMED, "--resume") == 0


# Kill the process in the middle of an array, while a file is written.
KILLED = """
import os, signal, sys
import numpy as np
import polysparse.cli, polysparse.cli.learn
polysparse.cli.learn.CHECKPOINT_SHARE = 0
n_left = int(sys.argv[1])
plain = np.lib.format.write_array
def write_array(*given, **options):
    global n_left
    n_left -= 1
    if n_left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    plain(*given, **options)
np.lib.format.write_array = write_array
sys.exit(polysparse.cli.main(sys.argv[2:]))
"""


@pytest.mark.no_sanitizer
@pytest.mark.skipif(os.name != "posix", reason="needs signals")
def test_a_run_that_is_killed_again_and_again_goes_on(folder):
    """`make soak` kills more of them."""
    rng = np.random.default_rng(0)
    command = [*RESUMED, "--resume"]
    for n_arrays in [3, *rng.integers(1, 60, 3).tolist()]:
        killed = [sys.executable, "-c", KILLED, str(n_arrays), *command]
        done = subprocess.run(killed, check=False, capture_output=True)
        assert done.returncode in (-signal.SIGKILL, 0)
        if done.returncode == 0:
            break
    assert main(command) == 0
    assert_same("m.npz", classifier(n_passes=2).fit(X, Y))
    assert names_in(folder) == ["in.svm", "m.npz"]


def test_checkpoints_take_a_small_part_of_the_time(folder, monkeypatch):
    import polysparse.cli.learn as module
    from polysparse.stream.online import Checkpoint

    plain, n_written = Checkpoint.write, []

    def write(self, path):
        n_written.append(path)
        time.sleep(0.05)
        plain(self, path)

    monkeypatch.setattr(Checkpoint, "write", write)
    begin = time.perf_counter()
    assert run("learn", "in.svm", "-o", "m.npz", *QUIET, "--every", "1") == 0
    most = (time.perf_counter() - begin) / 0.05 / module.CHECKPOINT_SHARE + 2
    assert 2 <= len(n_written) <= most


def test_a_table_is_resumed(folder, monkeypatch):
    pa = pytest.importorskip("pyarrow")
    write_table(pa.table({**{f"v{j}": X[:, j] for j in range(12)}, "y": Y}), "in.parquet")
    command = ["learn", "in.parquet", "--target", "y", *QUIET, "--every", "130", "-o"]
    assert run(*command, "whole.npz") == 0
    with monkeypatch.context() as patch:
        stop_after(patch, 2, KeyboardInterrupt)
        assert run(*command, "m.npz") == 130
    assert run(*command, "m.npz", "--resume") == 0
    assert_same_files("m.npz", "whole.npz")


def test_a_gzipped_file_is_resumed(folder, monkeypatch):
    Path("in.svm.gz").write_bytes(gzip.compress(as_text(X, Y).encode()))
    command = ["learn", "in.svm.gz", *QUIET, "--every", "130", "-o", "m.npz"]
    with monkeypatch.context() as patch:
        stop_after(patch, 2, KeyboardInterrupt)
        assert run(*command) == 130
    assert run(*command, "--resume") == 0
    assert_same("m.npz", classifier().fit(X, Y))


def test_more_memory_than_is_allowed_is_refused(folder, capsys):
    command = ["learn", "in.svm", "-o", "m.npz", "--max-memory", "50MiB", "--one-based"]
    assert "z and n of 4,194,304 columns, 3 times, would need" in refused(capsys, 1, *command)


def test_classes_of_a_table_with_texts_are_found_in_it(tmp_path, capsys):
    (tmp_path / "in.csv").write_text("a,y\n" + "u,high\nv,low\n" * 9)
    command = ["learn", tmp_path / "in.csv", "--target", "y", "-o", tmp_path / "m.npz"]
    assert run(*command, "--classes", "0,1") == 2
    error = capsys.readouterr().err
    assert "in.csv has classes such as 'high', which are found in it: leave out --cl" in error
    assert run(*command) == 0
    assert "positive class low" in capsys.readouterr().err
