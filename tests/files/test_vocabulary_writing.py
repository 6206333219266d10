"""Vocabularies written by many at once, compared, and unpacked within a limit of memory."""

import io
import json
import threading
import zipfile

import numpy as np
import pytest
from scipy import sparse

from csr_zoo import random_dense
from polysparse import ObservedPolynomialFeatures
from polysparse.files.vocabulary import Vocabulary
from sample_files import run

X = sparse.csr_array(random_dense(40, 6, 0.4))


def test_of_several_saves_at_once_one_is_there_whole(tmp_path):
    several = [ObservedPolynomialFeatures(degree).fit(X) for degree in (1, 2, 3, 4)]
    expected, path = [], tmp_path / "words"
    for poly in several:
        poly.save(path)
        expected.append(path.read_bytes())
    start, errors = threading.Barrier(len(several)), []

    def save(poly):
        try:
            start.wait()
            for _ in range(25):
                poly.save(path)
                assert path.read_bytes() in expected
                ObservedPolynomialFeatures.load(path)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=save, args=(poly,)) for poly in several]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert path.read_bytes() in expected
    assert [p.name for p in tmp_path.iterdir()] == ["words"]


# ------------------------------------------------------------------------------------- comparing


def changed(vocabulary, **changes):
    fields = {name: getattr(vocabulary, name) for name in ("columns", "counts", "more")}
    return Vocabulary(**{**fields, **changes})


def test_a_file_holds_a_vocabulary_only_if_all_of_it_is_the_same(tmp_path):
    path = tmp_path / "words"
    ObservedPolynomialFeatures(2).fit(X).save(path)
    own = Vocabulary.read(path)
    other = ObservedPolynomialFeatures(3).fit(X)
    other.save(tmp_path / "other")
    assert own.is_in(path)
    assert not own.is_in(tmp_path / "nowhere")
    assert not own.is_in(tmp_path / "other")
    for different in (
        changed(own, columns=Vocabulary.read(tmp_path / "other").columns),
        changed(own, counts=own.counts + 1),
        changed(own, more={**own.more, "min_count": 7}),
    ):
        assert not different.is_in(path)


# --------------------------------------------------------------------------------------- unpacking


def packed_vocabulary(path, n_columns, description_bytes=0):
    """A vocabulary of few bytes on the disk and many in memory."""
    description = {
        "format": "polysparse.vocabulary",
        "version": 1,
        "basis": {"n_features": 10**6, "degree": [0, 2]},
        "n_columns": n_columns,
        "comment": " " * description_bytes,
    }
    arrays = {
        "description": np.frombuffer(json.dumps(description).encode(), np.uint8),
        "columns": np.arange(n_columns),
        "counts": np.ones(n_columns, np.int64),
    }
    np.savez_compressed(path, **arrays)
    path.with_suffix(".npz").rename(path)


def test_a_file_that_unpacks_to_more_than_the_limit_is_refused_unread(tmp_path, monkeypatch):
    path = tmp_path / "words"
    packed_vocabulary(path, 100_000)
    assert path.stat().st_size < 300_000
    monkeypatch.setattr(np.lib.format, "read_array", lambda *_, **__: pytest.fail("it was read"))
    with pytest.raises(
        MemoryError, match=r"words, .*B on the disk, would need 1,6.* max_memory=10"
    ):
        Vocabulary.read(path, max_memory=10**6)
    monkeypatch.setattr("polysparse.machine.available_if_less", lambda n: 1_000)
    with pytest.raises(MemoryError, match=r"words, .* would need 1.6 MB; 1.0 kB are available"):
        ObservedPolynomialFeatures.load(path)


def test_a_description_takes_more_than_its_text(tmp_path):
    path = tmp_path / "words"
    packed_vocabulary(path, 10, description_bytes=100_000)
    assert Vocabulary.read(path, max_memory=4 * 10**6).columns.n_columns == 10
    with pytest.raises(MemoryError, match="would need 3,2"):
        Vocabulary.read(path, max_memory=10**6)


def test_the_command_line_keeps_its_limit(tmp_path, capsys):
    packed_vocabulary(tmp_path / "words", 200_000)
    sparse.save_npz(tmp_path / "in.npz", X)
    command = ["expand", tmp_path / "in.npz", tmp_path / "out", "--vocabulary", tmp_path / "words"]
    run(*command, "--max-memory", "1MB", code=1)
    assert "more than --max-memory=1000000: give more" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_size_that_cannot_be_is_damage(tmp_path):
    """A member says that it unpacks to more than its packing can reach."""
    path = tmp_path / "words"
    ObservedPolynomialFeatures(2).fit(X).save(path)
    content = bytearray(path.read_bytes())
    place = content.index(b"PK\x01\x02") + 24  # the size in the directory of the archive
    content[place : place + 4] = (10**9).to_bytes(4, "little")
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"words is not a vocabulary of polysparse, or is damaged"):
        Vocabulary.read(path)


def test_an_array_that_is_larger_than_its_member_is_damage(tmp_path):
    path = tmp_path / "words"
    ObservedPolynomialFeatures(2).fit(X).save(path)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    header = io.BytesIO()
    fields = {"descr": "<i8", "fortran_order": False, "shape": (10**6,)}
    np.lib.format.write_array_header_1_0(header, fields)
    members["counts.npy"] = header.getvalue() + bytes(80)
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    with pytest.raises(ValueError, match=r"damaged: counts has .* bytes, but is .* of shape"):
        Vocabulary.read(path)


@pytest.mark.parametrize("text", [b"[" * 100_000, b'{"a":' * 100_000, b'{"version": NaN}'])
def test_a_damaged_description_gives_our_error(text, tmp_path):
    path = tmp_path / "words.npz"
    ones = np.ones(3, np.int64)
    np.savez(path, description=np.frombuffer(text, np.uint8), columns=ones, counts=ones)
    with pytest.raises(ValueError, match=r"words.npz is not a vocabulary of polysparse"):
        Vocabulary.read(path)
