"""Vocabularies beside files: a test set gets the columns of its training set."""

import io

import numpy as np
import pytest
from scipy import sparse

import polysparse
from checks import bits, names_in
from csr_zoo import random_dense
from polysparse import ObservedPolynomialFeatures
from polysparse.files.vocabulary import Vocabulary
from sample_files import DEGREE_3, X, files_in, refused, run

TEST_ROWS = sparse.csr_array(random_dense(40, 9, 0.3, seed=5))


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
        sparse.save_npz(tmp_path / "test.npz", narrow)  # a file that says how many it has
        command = ["expand", tmp_path / "test.npz", tmp_path / "of-npz", basis, vocabulary]
        error = refused(capsys, 1, *command)
        assert f"test.npz has 7 features, but {vocabulary} has 9" in error
        run(*command, *error.rstrip(".\n").rpartition("give ")[2].split("="))
        assert bits(polysparse.load(tmp_path / "of-npz")) == bits(expected)

    @pytest.mark.parametrize("zero_based", [True, False])
    def test_svmlight_indices_begin_where_they_did(self, zero_based, tmp_path, capsys):
        """Whether index 0 occurs in a test set is a matter of chance."""
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
            assert "index 0 occurs, but the columns of the vocabulary are 1-based" in error

    @pytest.mark.parametrize(
        "content", [b"", b"junk", b"PK\x03\x04 and no more", "cut", "locked", "npy"]
    )
    @pytest.mark.parametrize("command", ["plan", "expand", "names"])
    def test_a_damaged_one_is_refused(self, command, content, matrix, tmp_path, vocabulary, capsys):
        whole = vocabulary.read_bytes()
        np.save(npy := io.BytesIO(), np.arange(3))
        in_the_list = b"PK\x01\x02\x2d\x03\x2d\x00"  # the next byte says whether it is encrypted
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
        assert f"{vocabulary} is not a vocabulary of polysparse, or is damaged" in error
        assert names_in(tmp_path) == ["elsewhere", "in.npz"]

    def test_one_that_is_not_there(self, matrix, tmp_path, capsys):
        command = ["expand", matrix, tmp_path / "out", "--vocabulary", tmp_path / "gone"]
        assert "gone: no such vocabulary" in refused(capsys, 1, *command)
        assert names_in(tmp_path) == ["in.npz"]

    def test_it_is_not_overwritten_by_what_is_made_with_it(self, matrix, tmp_path, capsys):
        saved = tmp_path / "saved.npz"
        ObservedPolynomialFeatures().fit(X).save(saved)
        before = files_in(saved)
        error = refused(capsys, 2, "expand", matrix, saved, "--vocabulary", saved, "--force")
        assert "is or contains the vocabulary: choose another path" in error
        assert files_in(saved) == before


class TestInTheWay:
    def test_an_existing_vocabulary_is_kept(self, matrix, tmp_path, capsys):
        (tmp_path / "out.vocabulary").write_bytes(b"mine")
        command = ["expand", matrix, tmp_path / "out", "--observed"]
        error = refused(capsys, 2, *command)
        assert "out.vocabulary already exists: give --force to overwrite it" in error
        error = refused(capsys, 2, *command, "--resume")
        assert "out.vocabulary is a different vocabulary: give --force" in error
        assert (tmp_path / "out.vocabulary").read_bytes() == b"mine"
        assert names_in(tmp_path) == ["in.npz", "out.vocabulary"]
        run("expand", matrix, tmp_path / "out")  # this has no vocabulary
        assert (
            "out.vocabulary does not belong to this OUT: left unchanged" in capsys.readouterr().err
        )
        assert (tmp_path / "out.vocabulary").read_bytes() == b"mine"
        run(*command, "--force")
        assert Vocabulary.read(tmp_path / "out.vocabulary").columns.n_columns == 55

    def test_what_is_no_file_is_kept(self, matrix, tmp_path, capsys):
        (tmp_path / "out.vocabulary").mkdir()
        command = ["expand", matrix, tmp_path / "out", "--observed", "--force"]
        assert "out.vocabulary is not a regular file: left unchanged" in refused(
            capsys, 2, *command
        )
        (tmp_path / "out.vocabulary").rmdir()
        (tmp_path / "out.vocabulary").symlink_to("elsewhere")
        assert "out.vocabulary is a symbolic link" in refused(capsys, 2, *command)
        (tmp_path / "out.vocabulary").unlink()
        (tmp_path / ".out.vocabulary.polysparse-old").mkdir()
        (tmp_path / ".out.vocabulary.polysparse-old" / "mine").touch()
        assert "is in the way, and was not written by polysparse" in refused(capsys, 2, *command)
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
