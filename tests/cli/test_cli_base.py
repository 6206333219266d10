"""Where svmlight indices count from: said, remembered, and the same for all files of a job."""

import json
import zipfile

import numpy as np
import pytest

import polysparse
from command_line import run
from polysparse import HashedPolynomialFeatures, ObservedPolynomialFeatures
from polysparse.files.vocabulary import Vocabulary

FROM_ONE = b"1 1:2 3:4\n0 2:0.5\n"
FROM_ZERO = b"1 0:2 2:4\n0 1:0.5\n"
WITHOUT_ZERO = b"1 2:4\n0 1:0.5\n"  # a file that counts from 0 and happens to lack its column 0


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in (("one", FROM_ONE), ("zero", FROM_ZERO), ("lacks", WITHOUT_ZERO)):
        (tmp_path / f"{name}.svm").write_bytes(text)
    return tmp_path


ASSUMED = {
    "one": "note: one.svm: index 0 does not occur, so indices are 1-based;",
    "zero": "note: zero.svm: index 0 occurs, so indices are 0-based;",
    "lacks": "note: lacks.svm: index 0 does not occur, so indices are 1-based;",
}


@pytest.mark.parametrize("name", ASSUMED)
@pytest.mark.parametrize("command", ["plan", "expand"])
def test_what_was_taken_is_said_with_its_reason(command, name, folder, capsys):
    assert run(command, f"{name}.svm", *["out"] * (command == "expand")) == 0
    captured = capsys.readouterr()
    assert ASSUMED[name] in captured.err
    assert (captured.out + captured.err).count("-based") == 2  # once, with the other flag


def test_the_note_names_the_other_flag(folder, capsys):
    assert run("plan", "one.svm") == 0
    assert "1-based; otherwise give --zero-based." in capsys.readouterr().err


@pytest.mark.parametrize("flag", ["--zero-based", "--one-based"])
@pytest.mark.parametrize("command", ["plan", "expand"])
def test_either_flag_silences_it(command, flag, folder, capsys):
    assert run(command, "one.svm", *["out"] * (command == "expand"), flag) == 0
    assert "-based" not in capsys.readouterr().err


def test_quiet_silences_it(folder, capsys):
    assert run("expand", "one.svm", "out", "--quiet") == 0
    assert capsys.readouterr().err == ""


def test_formats_that_count_from_zero_need_no_note(folder, capsys):
    assert run("expand", "one.svm", "out.npz", "--quiet") == 0
    assert run("plan", "out.npz") == 0
    captured = capsys.readouterr()
    assert "-based" not in captured.err + captured.out


@pytest.mark.parametrize(
    ("arguments", "first", "why"),
    [
        (["one.svm"], 1, "index 0 does not occur"),
        (["zero.svm"], 0, "index 0 occurs"),
        (["lacks.svm", "--zero-based"], 0, "it was given"),
    ],
)
def test_a_plan_says_it_in_json(arguments, first, why, folder, capsys):
    assert run("plan", *arguments, "--json") == 0
    content = json.loads(capsys.readouterr().out)
    assert (content["first_index"], content["first_index_because"]) == (first, why)


def test_a_plan_of_another_format_says_there_is_none(folder, capsys):
    assert run("expand", "one.svm", "out.npz", "--quiet") == 0
    assert run("plan", "out.npz", "--json") == 0
    content = json.loads(capsys.readouterr().out)
    assert (content["first_index"], content["first_index_because"]) == (None, None)


@pytest.mark.parametrize(("name", "zero_based"), [("one.svm", False), ("zero.svm", True)])
def test_every_description_remembers_it(name, zero_based, folder):
    pq = pytest.importorskip("pyarrow.parquet")
    for output in ("out", "out.npz", "out.parquet"):
        assert run("expand", name, output, "--observed", "--quiet") == 0
    with zipfile.ZipFile("out.npz") as archive:
        in_npz = json.loads(archive.comment)
    in_parquet = json.loads(pq.read_schema("out.parquet").metadata[b"polysparse:description"])
    in_store = json.loads((folder / "out" / "manifest.json").read_text())
    for description in (in_store, in_npz, in_parquet):
        assert description["origin"]["zero_based"] is zero_based
    assert Vocabulary.read("out.vocabulary").zero_based is zero_based


class TestSecondFile:
    def test_it_is_read_as_the_first_one_was_and_that_is_said(self, folder, capsys):
        assert run("expand", "zero.svm", "train", "--observed", "--quiet") == 0
        assert run("expand", "lacks.svm", "test", "--vocabulary", "train.vocabulary") == 0
        error = capsys.readouterr().err
        assert "those of the vocabulary are 0-based, so indices are 0-based;" in error
        expected = ObservedPolynomialFeatures.load("train.vocabulary").transform(
            polysparse.expand(np.array([[0, 0, 4], [0, 0.5, 0]]), 1, include_bias=False)
        )
        assert (polysparse.load("test") != expected).nnz == 0

    def test_the_usual_case_needs_no_note(self, folder, capsys):
        assert run("expand", "one.svm", "train", "--observed", "--quiet") == 0
        assert run("expand", "one.svm", "test", "--vocabulary", "train.vocabulary") == 0
        assert "-based" not in capsys.readouterr().err

    @pytest.mark.parametrize("command", ["plan", "expand"])
    def test_a_zero_contradicts_a_vocabulary_that_counts_from_one(self, command, folder, capsys):
        assert run("expand", "lacks.svm", "train", "--observed", "--quiet") == 0
        output = ["test"] * (command == "expand")
        assert run(command, "zero.svm", *output, "--vocabulary", "train.vocabulary") == 1
        error = capsys.readouterr().err
        assert "index 0 occurs, but the columns of the vocabulary are 1-based." in error
        assert "Learn it again with --zero-based if its data are 0-based, too" in error
        assert not (folder / "test").exists()

    def test_indices_from_one_to_the_number_of_columns_contradict_counting_from_zero(
        self, folder, capsys
    ):
        assert run("expand", "zero.svm", "train", "--observed", "--quiet") == 0
        command = ["expand", "one.svm", "test", "--vocabulary", "train.vocabulary", "--quiet"]
        assert run(*command) == 1
        error = capsys.readouterr().err
        assert "the indices are 1 to 3, as if they were 1-based" in error
        assert "the columns of the vocabulary are 0 to 2. Give --one-based" in error
        assert run(*command, "--one-based") == 0
        assert bits_of("test") == bits_of("train")

    @pytest.mark.parametrize("flag", ["--zero-based", "--one-based"])
    def test_a_flag_settles_it(self, flag, folder):
        assert run("expand", "zero.svm", "train", "--observed", "--quiet") == 0
        command = ["expand", "one.svm", "test", "--vocabulary", "train.vocabulary", "--quiet"]
        assert run(*command, flag) == 0

    def test_what_was_begun_with_one_base_is_not_resumed_with_the_other(
        self, folder, monkeypatch, capsys
    ):
        from inside import fail_at

        with monkeypatch.context() as patch:
            fail_at(patch, "replace", KeyboardInterrupt())
            assert run("expand", "lacks.svm", "out") == 130
        capsys.readouterr()
        assert run("expand", "lacks.svm", "out", "--resume", "--zero-based") == 1
        assert "was started with other parameters" in capsys.readouterr().err
        assert run("expand", "lacks.svm", "out", "--resume", "--one-based") == 0


def test_a_base_that_is_said_gives_the_same_hashed_columns_as_python(folder):
    options = ["--hashed", 64, "--degree", 1, "--quiet"]
    assert run("expand", "lacks.svm", "out", *options, "--zero-based") == 0
    rows = np.array([[0, 0, 4], [0, 0.5, 0]])
    expected = HashedPolynomialFeatures(1, n_columns=64).fit_transform(rows)
    assert (polysparse.load("out") != expected).nnz == 0


def bits_of(path):
    X = polysparse.load(path)
    return X.shape, X.indptr.tobytes(), X.indices.tobytes(), X.data.tobytes()
