"""A store that was damaged says what is wrong, and is never unpickled."""

import json
import os

import numpy as np
import pytest
from scipy import sparse

import polysparse
from sample_files import X, run


class TestDamagedStore:
    @pytest.fixture
    def store(self, tmp_path):
        sparse.save_npz(tmp_path / "in.npz", X)
        run("expand", tmp_path / "in.npz", tmp_path / "out")
        return tmp_path / "out"

    def test_no_manifest(self, store):
        (store / "manifest.json").unlink()
        with pytest.raises(FileNotFoundError, match=r"is not a directory of polysparse expand"):
            polysparse.load(store)

    @pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"format": "other"}'])
    def test_foreign_manifest(self, store, text):
        (store / "manifest.json").write_text(text)
        with pytest.raises(ValueError, match=r"is damaged|is not a manifest of polysparse"):
            polysparse.load(store)

    def test_another_version(self, store):
        manifest = json.loads((store / "manifest.json").read_text())
        (store / "manifest.json").write_text(json.dumps({**manifest, "version": 99}))
        with pytest.raises(ValueError, match=r"has version 99; this polysparse reads 1"):
            polysparse.load(store)

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
    @pytest.mark.parametrize("name", ["manifest.json", "indices.npy"])
    def test_a_pipe_is_not_waited_for(self, store, name):
        (store / name).unlink()
        os.mkfifo(store / name)
        with pytest.raises(ValueError, match=rf"{name} is a pipe or a device: copy"):
            polysparse.load(store)

    def test_an_array_that_does_not_fit_the_manifest(self, store):
        np.save(store / "data.npy", np.ones(3))
        with pytest.raises(ValueError, match=r"data.npy holds float64 of shape \(3,\)"):
            polysparse.load(store)

    def test_a_pickle_is_never_loaded(self, store):
        np.save(store / "data.npy", np.array([{}], dtype=object), allow_pickle=True)
        with pytest.raises(ValueError, match=r"data.npy is damaged: .*([Oo]bject|pickle)"):
            polysparse.load(store)

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"basis": None}, "basis: "),
            ({"basis": {"n_features": -3}}, "basis: n_features must be"),
            ({"shape": [120, 54]}, "shape has 54 columns"),
            ({"shape": [120]}, "not enough values"),
            ({"shape": ["120", 55]}, "must be integers"),
            ({"nnz": 2.0}, "must be integers"),
            ({"nnz": None}, "must be integers"),
            ({"part_ends": []}, "part_ends must end at"),
            ({"part_ends": [[120, 1]]}, "part_ends must end at"),
            ({"part_ends": [[120, 9], [60, 10]]}, "part_ends must increase"),
            ({"part_ends": [120]}, "part_ends must be pairs"),
            ({"part_ends": "x"}, "part_ends must be pairs"),
            ({"index_dtype": "<f4"}, "cannot have values of float64 and indices of float32"),
            ({"dtype": "<i4"}, "cannot have values of int32"),
            ({"dtype": "nonsense"}, "nonsense"),
        ],
    )
    def test_a_manifest_that_cannot_be(self, store, changes, message):
        manifest = json.loads((store / "manifest.json").read_text())
        (store / "manifest.json").write_text(json.dumps({**manifest, **changes}))
        for open_store in (polysparse.load, polysparse.iter_load):
            with pytest.raises(ValueError, match=rf"manifest.json is damaged: .*{message}"):
                open_store(store)

    @pytest.mark.parametrize(
        "content", [b"", b"\x93NUMPY", b"PK\x03\x04 and no more", b"junk" * 99], ids=repr
    )
    @pytest.mark.parametrize("name", ["indptr", "data"])
    def test_a_file_that_is_no_array(self, store, name, content):
        (store / f"{name}.npy").write_bytes(content)
        with pytest.raises(ValueError, match=rf"{name}.npy is damaged"):
            polysparse.load(store)

    def test_an_array_cut_short(self, store):
        (store / "data.npy").write_bytes((store / "data.npy").read_bytes()[:-8])
        with pytest.raises(ValueError, match=r"data.npy is damaged"):
            polysparse.load(store)

    def change(self, file, where, value):
        array = np.lib.format.open_memmap(file, mode="r+")
        array[where] = value
        array.flush()

    @pytest.mark.parametrize(("where", "value"), [(0, 1), (-1, 7), (-1, -1)])
    def test_offsets_that_do_not_span_the_values(self, store, where, value):
        self.change(store / "indptr.npy", where, value)
        with pytest.raises(ValueError, match=r"indptr.npy goes from .* it must go from 0 to"):
            polysparse.load(store)

    @pytest.mark.parametrize(
        ("name", "where", "value", "message"),
        [
            ("indices", 5, 55, r"X.indices\[5\] is 55"),
            ("indices", 5, -1, r"X.indices\[5\] is -1"),
            ("indices", 1, 0, "the columns of a row do not increase"),
            ("indptr", 7, 10**6, "X.indptr falls from 1000000"),
        ],
    )
    def test_a_part_that_cannot_be(self, store, name, where, value, message):
        self.change(store / f"{name}.npy", where, value)
        with pytest.raises(ValueError, match=rf"out.* is damaged.*{message}"):
            list(polysparse.iter_load(store))
