"""The command `terms`: the heaviest terms of a model, printed, drawn and written."""

import json
import re

import pytest

import sample_files
from checks import names_in
from inside import raising
from polysparse import load_model
from polysparse.display.tables import TermTable
from sample_files import X, refused, run


@pytest.fixture
def data(tmp_path):
    sample_files.write_svmlight(tmp_path / "in.svmlight")
    return tmp_path / "in.svmlight"


@pytest.fixture
def model(data, tmp_path):
    run("fit", data, "-o", tmp_path / "model.npz", "--quiet", "--model", "ridge")
    return tmp_path / "model.npz"


def printed(capsys, *arguments):
    """What the command prints."""
    capsys.readouterr()
    run("terms", *arguments)
    return capsys.readouterr().out


def names_of(path):
    return load_model(path).top_terms()["name"]


def columns_of(table):
    """The columns of a table, as JSON has them."""
    return json.loads(json.dumps({name: list(table[name]) for name in table}))


def test_the_heaviest_are_printed(model, capsys):
    table = columns_of(load_model(model).top_terms(7))
    del table["features"]
    assert printed(capsys, model, "-n", "7") == f"{TermTable(table)}\n"
    assert len(printed(capsys, model).splitlines()) == 21


def test_where_names_count_from_is_said_unless_there_are_names(model, tmp_path, capsys):
    run("terms", model)
    assert "note: x0 is column 1 of the svmlight text" in capsys.readouterr().err
    (tmp_path / "names").write_text("\n".join("abcdefghi"))
    run("terms", model, "--feature-names", tmp_path / "names")
    assert capsys.readouterr().err == ""


def test_the_class_that_weights_are_for_is_said_if_there_are_two(model, tmp_path, capsys):
    (tmp_path / "two.svm").write_text("".join(f"{i % 2} 0:{i % 2}\n" for i in range(20)))
    (tmp_path / "two.csv").write_text("a,y\n" + "u,high\nv,low\n" * 9)
    run("fit", tmp_path / "two.svm", "-o", tmp_path / "two.npz", "--quiet")
    run("fit", tmp_path / "two.csv", "--target", "y", "-o", tmp_path / "names.npz", "--quiet")
    capsys.readouterr()
    run("terms", tmp_path / "two.npz")
    assert capsys.readouterr().err == "polysparse: note: weights are for class 1.\n"
    run("terms", tmp_path / "names.npz", "--json")
    assert capsys.readouterr().err == "polysparse: note: weights are for class low.\n"
    run("terms", tmp_path / "names.npz", "--by", "group")
    run("terms", model)
    assert "class" not in capsys.readouterr().err


def test_as_json(model, capsys):
    found = json.loads(printed(capsys, model, "-n", "3", "--json"))
    assert found == columns_of(load_model(model).top_terms(3))


def test_hashed_columns_are_named_by_data(data, tmp_path, capsys):
    hashed = tmp_path / "hashed.npz"
    run("fit", data, "-o", hashed, "--quiet", "--model", "ridge", "--hashed", "2^12")
    capsys.readouterr()
    run("terms", hashed, "-n", "3")
    plain = capsys.readouterr()
    assert "column " in plain.out
    assert "note: columns are hashed: --data IN finds the names of their terms in IN." in plain.err
    found = json.loads(printed(capsys, hashed, "-n", "3", "--json", "--data", data))
    assert found == columns_of(load_model(hashed).top_terms(3, X))


def test_data_are_refused_for_other_columns(model, data, capsys):
    error = refused(capsys, 2, "terms", model, "--data", data)
    assert "--data only applies to hashed columns" in error


def test_names_of_features_are_read_from_a_file(model, tmp_path, capsys):
    letters = "abcdefghi"
    (tmp_path / "names").write_text("\n".join(letters))
    table = json.loads(printed(capsys, model, "--json", "--feature-names", tmp_path / "names"))
    numbers = (re.sub(r"x(\d)", lambda j: letters[int(j[1])], name) for name in names_of(model))
    assert table["name"] == list(numbers)
    (tmp_path / "names").write_text("a\nb")
    error = refused(capsys, 1, "terms", model, "--feature-names", tmp_path / "names")
    assert "has 2 lines, but there are 9 input columns" in error


def test_all_terms_are_written(model, tmp_path, capsys):
    printed(capsys, model, "--text", tmp_path / "terms.txt")
    load_model(model).to_text(tmp_path / "wanted.txt")
    assert (tmp_path / "terms.txt").read_bytes() == (tmp_path / "wanted.txt").read_bytes()


@pytest.mark.parametrize(
    ("name", "magic"), [("a.png", b"\x89PNG"), ("a.svg", b"<?xml"), ("a.pdf", b"%PDF")]
)
def test_they_are_drawn(name, magic, model, tmp_path, capsys):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    printed(capsys, model, "--plot", tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(magic)


def test_files_that_cannot_be_written(model, tmp_path, capsys):
    error = refused(capsys, 2, "terms", model, "--plot", tmp_path / "a.xls")
    assert "unknown ending. Known are .png, .svg, .pdf" in error
    assert "is or contains an input" in refused(
        capsys, 2, "terms", model, "--text", model, "--force"
    )
    (tmp_path / "t.png").write_text("mine")
    for flag in ("--text", "--plot"):
        assert "already exists" in refused(capsys, 2, "terms", model, flag, tmp_path / "t.png")
    both = ["--text", tmp_path / "t.png", "--plot", tmp_path / "t.png", "--force"]
    assert "name the same file" in refused(capsys, 2, "terms", model, *both)
    assert (tmp_path / "t.png").read_text() == "mine"


def test_a_picture_that_fails_leaves_nothing(model, tmp_path, capsys, monkeypatch):
    figure = pytest.importorskip("matplotlib.figure")
    monkeypatch.setattr(figure.Figure, "savefig", raising(OSError("No space left on device")))
    before = names_in(tmp_path)
    assert "No space" in refused(capsys, 1, "terms", model, "--plot", tmp_path / "a.png")
    assert names_in(tmp_path) == before
