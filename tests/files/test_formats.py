"""A format is an object: one that is added to the registry is read and written everywhere."""

import numpy as np
import pytest
from scipy import sparse

import polysparse
from polysparse.files import opening
from polysparse.files.format import Format
from polysparse.files.sink import FileSink
from polysparse.files.source import WholeSource
from sample_files import X, refused, run


class DenseSource(WholeSource):
    def whole_bytes(self):
        return self.path.stat().st_size

    def read(self):
        return sparse.csr_array(np.loadtxt(self.place, ndmin=2)), None


class DenseSink(FileSink):
    def write(self, block, labels):
        np.savetxt(self.file, block.toarray())
        self.n_rows += block.shape[0]


class DenseFormat(Format):
    noun = "dense text"
    source, sink = DenseSource, DenseSink
    endings = written_endings = (".dense",)


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    monkeypatch.setattr(opening, "FORMATS", (*opening.FORMATS, DenseFormat()))


def test_it_is_read_and_written(tmp_path):
    np.savetxt(tmp_path / "in.dense", X.toarray())
    run("expand", tmp_path / "in.dense", tmp_path / "out.dense", "--quiet")
    expected = polysparse.expand(sparse.csr_array(X)).toarray()
    np.testing.assert_allclose(np.loadtxt(tmp_path / "out.dense"), expected)


def test_messages_know_it(tmp_path, monkeypatch, capsys):
    error = refused(capsys, 2, "plan", tmp_path / "in.xyz")
    assert "unknown ending. Known are svmlight text (.svmlight" in error
    assert "dense text (.dense)" in error
    np.savetxt(tmp_path / "in.dense", X.toarray())
    error = refused(capsys, 2, "expand", tmp_path / "in.dense", tmp_path / "a.dense", "--resume")
    assert "a.dense cannot be resumed: only SciPy's archive (.npz) and a directory" in error
    monkeypatch.setattr(DenseFormat, "has_description", True)
    error = refused(capsys, 1, "names", tmp_path / "in.dense")
    assert "These have one, if polysparse wrote them: SciPy's archive (.npz), Parquet" in error
    assert "dense text (.dense)" in error


@pytest.mark.parametrize("each", opening.FORMATS, ids=lambda each: each.noun)
def test_a_format_says_what_it_implements(each):
    for flag, method in (("has_pieces", "cut"), ("has_description", "read_description")):
        assert getattr(each, flag) == (getattr(type(each), method) is not getattr(Format, method))


@pytest.mark.parametrize("each", opening.FORMATS, ids=lambda each: each.noun)
def test_every_ending_belongs_to_one_format(each):
    for kind in ("endings", "written_endings"):
        for ending in getattr(each, kind):
            assert sum(ending in getattr(other, kind) for other in opening.FORMATS) == 1
