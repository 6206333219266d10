"""polysparse names: which products the columns of a file are."""

import json

import pytest

from polysparse import ObservedPolynomialFeatures
from sample_files import X, refused, run


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
        assert "OUT has a basis" in refused(
            capsys, 2, "names", store, "--columns", 3, "--degree", 2
        )

    def test_of_a_test_set(self, matrix, store, tmp_path, vocabulary, capsys):
        saved = f"{store}.vocabulary"
        run("expand", matrix, tmp_path / "test", "--vocabulary", saved)
        error = refused(capsys, 1, "names", tmp_path / "test", "--columns", 1)
        assert "test.vocabulary: no such vocabulary. Give the one" in error
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
        assert "out has hashed columns: terms share them, so none has a name" in error

    def test_misuse(self, matrix, tmp_path, capsys):
        run("expand", matrix, tmp_path / "out")
        command = ["names", "--columns", 1, "--vocabulary", "v"]
        assert "has all columns: leave out" in refused(capsys, 2, *command, tmp_path / "out")
        assert "cannot be combined" in refused(capsys, 2, *command, "--n-features", 3)
        assert "v has a basis" in refused(capsys, 2, *command, "--degree", 3)
