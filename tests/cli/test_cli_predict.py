"""The command `predict`: from a model and data to predictions, in bounded memory."""

import csv
import io

import numpy as np
import pytest
from scipy import sparse

import sample_files
from checks import names_in
from command_line import run as exit_code_of
from inside import read_small_blocks
from polysparse import PolynomialLogisticRegression, PolynomialRidge, load_model
from sample_files import INPUTS, X, Y, refused, run

TARGETS = {"classes": Y.astype(int), "texts": np.array(["a", "b", 'c"\t,'])[Y.astype(int) + 1]}


@pytest.fixture
def data(tmp_path):
    sample_files.write_svmlight(tmp_path / "in.svmlight")
    return tmp_path / "in.svmlight"


@pytest.fixture
def model(data, tmp_path):
    run("fit", data, "-o", tmp_path / "model.npz", "--quiet")
    return tmp_path / "model.npz"


def predicted(capsys, *arguments):
    """What the command prints."""
    capsys.readouterr()
    run("predict", *arguments, "--quiet")
    return capsys.readouterr().out


@pytest.mark.parametrize("name", INPUTS)
def test_every_format_is_predicted(name, model, tmp_path, capsys):
    INPUTS[name](tmp_path / name)
    base = ["--zero-based"] if name == "in" else []
    lines = predicted(capsys, model, tmp_path / name, *base).splitlines()
    assert [int(line) for line in lines] == load_model(model).predict(X).tolist()


@pytest.mark.parametrize("columns", [["--observed", "--degree", "3"], ["--hashed", "2^6"]])
def test_every_kind_of_columns_is_predicted(columns, data, tmp_path, capsys):
    run("fit", data, "-o", tmp_path / "other.npz", "--quiet", *columns)
    lines = predicted(capsys, tmp_path / "other.npz", data).splitlines()
    assert [int(line) for line in lines] == load_model(tmp_path / "other.npz").predict(X).tolist()


def test_probabilities_have_all_their_digits(model, data, capsys):
    lines = predicted(capsys, model, data, "--proba").splitlines()
    found = [[float(cell) for cell in line.split("\t")] for line in lines]
    np.testing.assert_array_equal(found, load_model(model).predict_proba(X))


def test_a_regression_predicts_numbers(data, tmp_path, capsys):
    run("fit", data, "-o", tmp_path / "ridge.npz", "--quiet", "--model", "ridge")
    lines = predicted(capsys, tmp_path / "ridge.npz", data).splitlines()
    np.testing.assert_array_equal(
        list(map(float, lines)), load_model(tmp_path / "ridge.npz").predict(X)
    )


@pytest.mark.parametrize("options", [[], ["--proba"]], ids=str)
@pytest.mark.parametrize("labels", TARGETS)
def test_every_format_of_predictions(labels, options, data, tmp_path):
    fitted = PolynomialLogisticRegression().fit(X, TARGETS[labels])
    fitted.save(tmp_path / "model.npz")
    wanted = fitted.predict_proba(X) if options else fitted.predict(X)
    wanted_rows = wanted.reshape(120, -1).tolist()
    for ending in ("npy", "csv", "txt"):
        path = tmp_path / f"out.{ending}"
        run("predict", tmp_path / "model.npz", data, "-o", path, "--quiet", *options)
        if ending == "npy":
            found = np.load(path, allow_pickle=False)
            assert found.dtype == wanted.dtype
            np.testing.assert_array_equal(found, wanted)
            continue
        delimiter = "," if ending == "csv" else "\t"
        rows = list(csv.reader(io.StringIO(path.read_text()), delimiter=delimiter))
        if ending == "csv":
            heading = rows.pop(0)
            assert heading == (list(map(str, fitted.classes_)) if options else ["prediction"])
        assert rows == [list(map(str, row)) for row in wanted_rows]


def test_blocks_make_no_difference(model, data, tmp_path, monkeypatch):
    run("predict", model, data, "-o", tmp_path / "whole.npy", "--proba", "--quiet")
    read_small_blocks(monkeypatch)
    sizes = []
    plain = PolynomialLogisticRegression.predict_proba
    monkeypatch.setattr(
        PolynomialLogisticRegression,
        "predict_proba",
        lambda self, x: sizes.append(x.shape[0]) or plain(self, x),
    )
    run("predict", model, data, "-o", tmp_path / "blocks.npy", "--proba", "--quiet")
    assert len(sizes) > 5
    assert sum(sizes) == 120
    assert (tmp_path / "whole.npy").read_bytes() == (tmp_path / "blocks.npy").read_bytes()


def test_no_rows(model, tmp_path, capsys):
    (tmp_path / "none.svm").write_text("")
    assert predicted(capsys, model, tmp_path / "none.svm") == ""
    run("predict", model, tmp_path / "none.svm", "-o", tmp_path / "out.npy", "--proba", "--quiet")
    assert np.load(tmp_path / "out.npy").shape == (0, 3)


def test_features_that_are_missing_at_the_end_are_zero(model, tmp_path, capsys):
    (tmp_path / "narrow.svm").write_text("0 1:0.5\n")
    line = predicted(capsys, model, tmp_path / "narrow.svm", "--proba")
    wanted = load_model(model).predict_proba(sparse.csr_array(([0.5], ([0], [0])), shape=(1, 9)))
    np.testing.assert_array_equal([list(map(float, line.split("\t")))], wanted)


def test_a_matrix_that_says_it_is_narrower_is_refused(model, tmp_path, capsys):
    sparse.save_npz(tmp_path / "narrow.npz", X[:, :8])
    error = refused(capsys, 1, "predict", model, tmp_path / "narrow.npz")
    assert f"narrow.npz has 8 features, but {model} has 9: " in error
    assert "--n-features=9" in error
    assert predicted(capsys, model, tmp_path / "narrow.npz", "--n-features", "9").count("\n") == 120


def test_features_that_the_model_does_not_have_are_dropped_or_refused(model, tmp_path, capsys):
    (tmp_path / "wide.svm").write_text("0 1:0.5 12:3\n")
    error = refused(capsys, 1, "predict", model, tmp_path / "wide.svm", "--strict")
    assert "wide.svm has 12 features, but" in error
    assert "has 9: leave out --strict to drop features" in error
    (tmp_path / "narrow.svm").write_text("0 1:0.5\n")
    wanted = predicted(capsys, model, tmp_path / "narrow.svm", "--proba")
    arguments = ["predict", model, tmp_path / "wide.svm", "--proba"]
    run(*arguments, "--one-based")
    captured = capsys.readouterr()
    assert captured.out == wanted
    assert "dropped 1 values in 1 rows" in captured.err


def test_svmlight_counts_from_where_the_training_data_did(data, tmp_path, capsys):
    """A file without its column 0 looks as if it counted from 1."""
    sample_files.write_svmlight(tmp_path / "zero.svm", zero_based=True)
    run("fit", tmp_path / "zero.svm", "-o", tmp_path / "zero.npz", "--quiet")
    (tmp_path / "new.svm").write_text("0 3:0.5\n")
    line = predicted(capsys, tmp_path / "zero.npz", tmp_path / "new.svm", "--proba")
    row = sparse.csr_array(([0.5], ([0], [3])), shape=(1, 9))
    wanted = load_model(tmp_path / "zero.npz").predict_proba(row)
    np.testing.assert_array_equal([list(map(float, line.split("\t")))], wanted)
    run("predict", tmp_path / "zero.npz", tmp_path / "new.svm")
    assert "those of the model are 0-based" in capsys.readouterr().err


def test_a_model_with_names_of_features_predicts_files(data, tmp_path, capsys):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X.toarray(), columns=list("abcdefghi"))
    fitted = PolynomialRidge().fit(frame, Y)
    fitted.save(tmp_path / "named.npz")
    found = list(map(float, predicted(capsys, tmp_path / "named.npz", data).splitlines()))
    np.testing.assert_allclose(found, fitted.predict(frame), rtol=1e-12)


# ----------------------------------------------------------------------------------------- refusals


def test_probabilities_need_classes(data, tmp_path, capsys):
    run("fit", data, "-o", tmp_path / "ridge.npz", "--quiet", "--model", "ridge")
    error = refused(capsys, 2, "predict", tmp_path / "ridge.npz", data, "--proba")
    assert "ridge.npz is a regression: it has no classes" in error


def test_files_that_are_no_models(data, tmp_path, capsys):
    other = tmp_path / "other.npz"
    other.write_bytes(data.read_bytes())
    assert "not a model of polysparse" in refused(capsys, 1, "predict", other, data)
    assert "text, not a model: fit one first" in refused(capsys, 2, "predict", data, data)
    assert "no such model" in refused(capsys, 1, "predict", tmp_path / "nowhere", data)


def test_a_damaged_model(model, data, capsys):
    content = bytearray(model.read_bytes())
    content[content.index(b"coefficients.npy") + 200] ^= 4
    model.write_bytes(content)
    assert "damaged" in refused(capsys, 1, "predict", model, data)


@pytest.mark.parametrize("dtype", ["U9", object])
def test_a_class_with_a_line_break_is_not_written_as_text(dtype, data, tmp_path, capsys):
    classes = np.array(["a\r", "b\nc", "long name"], dtype)[Y.astype(int) + 1]
    fitted = PolynomialLogisticRegression().fit(X, classes)
    fitted.save(tmp_path / "model.npz")
    for output in ([], ["-o", tmp_path / "out.txt"]):
        error = refused(capsys, 1, "predict", tmp_path / "model.npz", data, "--quiet", *output)
        assert r"the class 'a\r' has a line break" in error
        assert "write predictions to a .csv or .npy file" in error
    assert not (tmp_path / "out.txt").exists()
    for name in ("out.csv", "out.npy"):
        run("predict", tmp_path / "model.npz", data, "-o", tmp_path / name, "--quiet")
    with open(tmp_path / "out.csv", newline="") as file:
        assert [row for (row,) in csv.reader(file)][1:] == fitted.predict(X).tolist()
    assert np.load(tmp_path / "out.npy").dtype == "U9"
    run("predict", tmp_path / "model.npz", data, "--proba", "--quiet")  # names no class


def test_outputs_that_cannot_be(model, data, tmp_path, capsys):
    error = refused(capsys, 2, "predict", model, data, "-o", tmp_path / "out.xls")
    assert "unknown ending. Known are .npy, .csv and .txt" in error
    (tmp_path / "out.txt").write_text("mine")
    error = refused(capsys, 2, "predict", model, data, "-o", tmp_path / "out.txt")
    assert "already exists: give --force" in error
    run("predict", model, data, "-o", tmp_path / "out.txt", "--force", "--quiet")
    assert (tmp_path / "out.txt").read_text().count("\n") == 120


def test_a_fault_in_the_data_leaves_no_output(model, tmp_path, capsys):
    (tmp_path / "bad.svm").write_text("1 1:1\n" * 9 + "1 1:x\n")
    before = names_in(tmp_path)
    assert "bad.svm" in refused(
        capsys, 1, "predict", model, tmp_path / "bad.svm", "-o", tmp_path / "out.csv"
    )
    assert names_in(tmp_path) == before


def test_a_memory_limit_is_held(model, data, capsys):
    error = refused(capsys, 1, "predict", model, data, "--max-memory", "1kB", "--quiet")
    assert "more than --max-memory=1000" in error
    error = refused(capsys, 1, "predict", model, data, "--max-memory", "1MB", "--quiet")
    assert "--max-memory=1000000 (1.0 MB) is too little: the model and a few rows" in error


@pytest.mark.no_sanitizer
def test_a_full_disk_leaves_nothing(model, data, tmp_path):
    before = names_in(tmp_path)
    out = tmp_path / "out.csv"
    sample_files.run_on_a_full_disk(100, "predict", model, data, "-o", out, "--proba", "--quiet")
    assert names_in(tmp_path) == before


def test_a_closed_pipe_ends_it(model, data, monkeypatch):
    class Closed:
        def write(self, _):
            raise BrokenPipeError

    class Out:
        buffer = Closed()

    monkeypatch.setattr("sys.stdout", Out())
    monkeypatch.setattr("sys.stderr", io.StringIO())
    assert exit_code_of("predict", model, data, "--quiet") == 1
