"""Typing errors: the nearest flag or command, swapped arguments, large outputs, missing readers."""

import io
import sys

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file

import polysparse
from command_line import run
from polysparse.cli import fit
from polysparse.models.cross_validated import CROSS_VALIDATED
from polysparse.models.loading import MODELS


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = (rng.random((60, 4)) < 0.5).astype(float)
    dump_svmlight_file(X, rng.integers(0, 2, 60), "in.svm", zero_based=False)
    (tmp_path / "in.csv").write_text("a,b,y\n" + "u,1,p\nv,2,n\n" * 9)
    return tmp_path


def refused(capsys, *arguments):
    """Return what is printed about arguments that are not understood."""
    with pytest.raises(SystemExit) as raised:
        run(*arguments)
    assert raised.value.code == 2
    return capsys.readouterr().err


def misused(capsys, *arguments):
    assert run(*arguments) == 2
    return capsys.readouterr().err


class TestTypingErrors:
    @pytest.mark.parametrize(
        ("arguments", "hint"),
        [
            (["fit", "in.svm", "--dgree", "3"], "unknown option: --dgree; did you mean --degree?"),
            (["fit", "in.svm", "--n_features=3"], "did you mean --n-features?"),
            (["predict", "m", "in.svm", "--n-jobs", "2"], "did you mean --jobs?"),
            (
                ["fit", "in.svm", "-o", "m.npz", "-c", "3"],
                "unexpected argument: -c; did you mean -C",
            ),
            (["expand", "a", "b", "c"], "unexpected argument: c."),
            (["plan", "a", "--zzz"], "unknown option: --zzz."),
        ],
    )
    def test_a_flag_has_the_nearest_one_and_the_usage_of_its_command(self, arguments, hint, capsys):
        error = refused(capsys, *arguments)
        assert hint in error
        assert f"usage: polysparse {arguments[0]} " in error
        assert f"See polysparse {arguments[0]} --help." in error

    def test_a_command_has_the_nearest_one_and_a_list(self, capsys):
        error = refused(capsys, "fti", "in.svm")
        assert "unknown command: fti; did you mean fit? The commands are plan, expand," in error
        assert "unknown command: 7. The commands" in refused(capsys, "7")

    def test_an_option_of_the_program_is_checked_too(self, capsys):
        assert "unknown option: --verson; did you mean --version?" in refused(capsys, "--verson")

    def test_what_follows_two_dashes_is_not_a_flag(self, folder, capsys):
        assert run("plan", "--", "--dgree") == 1
        assert "--dgree: " in capsys.readouterr().err

    def test_abbreviations_still_work(self, folder, capsys):
        assert run("plan", "in.svm", "--deg", "3", "--one") == 0


def test_every_model_can_be_fitted():
    assert set(fit.KINDS) == set(MODELS) == set(CROSS_VALIDATED)


class TestSwappedArguments:
    def test_data_before_the_model(self, folder, capsys):
        run("fit", "in.svm", "-o", "m.npz", "--quiet")
        error = misused(capsys, "predict", "in.svm", "m.npz")
        assert "MODEL comes first: did you mean polysparse predict m.npz in.svm?" in error

    @pytest.mark.parametrize(
        ("arguments", "what", "command"),
        [
            (["terms", "in.csv"], "CSV", "fit in.csv --target NAME -o model.npz"),
            (["predict", "in.svm", "in.csv"], "svmlight text", "fit in.svm -o model.npz"),
        ],
    )
    def test_data_in_place_of_a_model(self, folder, arguments, what, command, capsys):
        error = misused(capsys, *arguments)
        assert f"{arguments[1]} is {what}, not a model: fit one first, with polysparse" in error
        assert f" {command}, and pass model.npz." in error

    def test_the_output_before_the_input(self, folder, capsys):
        error = misused(capsys, "expand", "out.npz", "in.svm")
        assert "did you mean polysparse expand in.svm out.npz?" in error
        error = misused(capsys, "fit", "m.npz", "-o", "in.svm", "--force")
        assert "did you mean polysparse fit in.svm -o m.npz?" in error
        assert (folder / "in.svm").stat().st_size > 0

    def test_the_suggestion_keeps_the_other_options(self, folder, capsys):
        run("fit", "in.csv", "--target", "y", "-o", "m.npz", "--quiet")
        error = misused(capsys, "predict", "--proba", "in.csv", "m.npz", "-o", "out.csv", "--force")
        meant = "polysparse predict --proba m.npz in.csv -o out.csv --force?"
        assert f"did you mean {meant}" in error
        rest = ["--target", "y", "--cv=3", "--test", "in.csv"]
        error = misused(capsys, "fit", "x y.npz", "--output=in.csv", *rest, "--force")
        meant = "polysparse fit in.csv '--output=x y.npz' --target y --cv=3 --test in.csv?"
        assert f"did you mean {meant}" in error

    def test_a_missing_input_is_not_taken_for_a_swap(self, folder, capsys):
        assert run("expand", "nothing.svm", "out.npz") == 1
        assert "nothing.svm: no such file" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["m.pkl", "m.joblib", "m"])
def test_a_model_is_an_npz(name, folder, capsys):
    error = misused(capsys, "fit", "in.svm", "-o", name)
    assert f"{name}: models are .npz files without pickled objects. Give -o m.npz." in error
    assert not (folder / name).exists()


class TestLargeOutputs:
    @pytest.fixture(autouse=True)
    def small_limit(self, monkeypatch):
        monkeypatch.setattr("polysparse.cli.confirming.LARGE", 100)

    @pytest.fixture
    def answer(self, monkeypatch):
        """Return a function that answers on a terminal."""

        def type_in(text):
            stdin = io.StringIO(text)
            stdin.isatty = lambda: True
            monkeypatch.setattr("sys.stdin", stdin)
            monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)

        return type_in

    def test_without_a_terminal_they_need_yes(self, folder, capsys):
        error = misused(capsys, "expand", "in.svm", "out")
        assert "out will have 60 rows, 15 columns and 341 stored values, 4.3 kB" in error
        assert "Pass --yes to write it, or select fewer" in error
        assert not (folder / "out").exists()
        assert run("expand", "in.svm", "out", "--yes") == 0
        assert polysparse.load("out").shape == (60, 15)

    def test_on_a_terminal_an_answer_will_do(self, folder, answer, capsys):
        answer("y\n")
        assert run("expand", "in.svm", "out") == 0
        assert "Write it? [y/N]" in capsys.readouterr().err

    @pytest.mark.parametrize("text", ["n\n", "\n", ""])
    def test_anything_else_is_no(self, text, folder, answer, capsys):
        answer(text)
        assert "out was not written." in misused(capsys, "expand", "in.svm", "out")
        assert not (folder / "out").exists()

    def test_a_run_that_is_resumed_was_confirmed_before(self, folder, capsys):
        assert run("expand", "in.svm", "out", "--yes") == 0
        assert run("expand", "in.svm", "out", "--resume") == 0

    def test_small_ones_need_nothing(self, folder, monkeypatch):
        monkeypatch.setattr("polysparse.cli.confirming.LARGE", 10**9)
        assert run("expand", "in.svm", "out", "--quiet") == 0


class TestWithoutPyarrow:
    @pytest.fixture
    def without(self, monkeypatch):
        """Return a function that runs a command as if pyarrow were not installed."""

        def run_without(*arguments):
            with monkeypatch.context() as patch:
                patch.setitem(sys.modules, "pyarrow", None)
                patch.setitem(sys.modules, "pyarrow.csv", None)
                return run(*arguments)

        return run_without

    def test_fitting_a_csv_prints_lines_of_python_that_run(self, folder, without, capsys):
        pytest.importorskip("pandas")
        assert without("fit", "in.csv", "--target", "y", "-o", "m.npz") == 1
        first, then, *lines = capsys.readouterr().err.splitlines()
        assert first.startswith("polysparse: CSV files need pyarrow: pip install ")
        assert then == "Or fit in Python, with pandas:"
        assert len(lines) == 3
        exec("\n".join(map(str.strip, lines)), {})
        assert run("terms", "m.npz") == 0
        capsys.readouterr()
        assert without("predict", "m.npz", "in.csv") == 1
        error = capsys.readouterr().err
        assert "polysparse.load_model('m.npz').predict(table)" in error


def test_terms_are_a_table_with_bars_on_a_terminal(folder, capsys, monkeypatch):
    pytest.importorskip("rich")
    run("fit", "in.svm", "-o", "m.npz", "--quiet")
    assert run("terms", "m.npz") == 0
    plain = capsys.readouterr().out
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "100")
    assert run("terms", "m.npz") == 0
    drawn = capsys.readouterr().out
    assert "━━━━━━━━" in drawn
    assert "━" not in plain
    for line in plain.splitlines()[1:]:
        assert all(word in drawn for word in line.split())
