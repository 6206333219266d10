"""Memory of predictions: of the model and a few rows, however many rows there are."""

import json
import subprocess
import sys
import zipfile
from dataclasses import replace

import numpy as np
import pytest

from polysparse import PolynomialRidge
from polysparse.files.model_file import ModelFile
from polysparse.files.opening import open_source
from polysparse.models.loading import model_in
from polysparse.models.saving import as_file
from polysparse.stream.predict import iter_predictions, memory_for_model
from polysparse.stream.resources import Resources
from small_models import fitted

# Predicts a short file, then a long one, and prints by how much its peak of memory grew.
PROGRAM = """
import json, re, sys
import polysparse.cli
def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1]) * 1024
def predict(name):
    options = ["--quiet", "--jobs", "1", "--max-memory", sys.argv[2], "--one-based"]
    command = ["predict", f"{sys.argv[1]}/model.npz", f"{sys.argv[1]}/{name}.svm"]
    command += ["-o", f"{sys.argv[1]}/{name}.npy", *options]
    assert polysparse.cli.main(command) == 0
predict("short")
before = peak()
predict("long")
print(json.dumps(peak() - before))
"""

N_ROWS = 200_000


@pytest.mark.no_sanitizer
@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_peak_memory_does_not_grow_with_the_rows(tmp_path):
    PolynomialRidge().fit(np.eye(20), np.arange(20)).save(tmp_path / "model.npz")
    row = "1 " + " ".join(f"{j}:0.123456" for j in range(1, 21)) + "\n"
    (tmp_path / "short.svm").write_text(row * 2_000)
    (tmp_path / "long.svm").write_text(row * N_ROWS)
    command = [sys.executable, "-c", PROGRAM, tmp_path, "8MiB"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    as_arrays = N_ROWS * 20 * 12
    assert json.loads(done.stdout) < min(8 * 2**20, as_arrays // 4)
    assert np.load(tmp_path / "long.npy").shape == (N_ROWS,)


@pytest.fixture
def zeros(tmp_path):
    """A source of 5,000 rows without values."""
    (tmp_path / "zeros.svm").write_text("0\n" * 5_000)
    return open_source(str(tmp_path / "zeros.svm"), n_features=5)


def test_many_classes_are_predicted_a_few_rows_at_a_time(tmp_path, zeros):
    """All probabilities together would take 20 MB."""
    few = as_file(fitted("three", degree=1))
    classes = {"array": list(range(500)), "dtype": "<i8"}
    file = replace(
        few,
        coefficients=np.zeros((500, 5)),
        intercept=np.arange(500) / 100,
        more=few.more | {"attributes": {"classes_": classes}},
    )
    model, resources = model_in(file, "a model"), Resources(4 * 2**20, n_jobs=1)
    blocks = [block for block, _ in iter_predictions(zeros, model.predict_proba, resources, file)]
    np.testing.assert_array_equal(np.vstack(blocks), np.tile(blocks[0][0], (5_000, 1)))
    assert max(block.nbytes for block in blocks) < 2**17  # and 16 times that as text


@pytest.mark.parametrize("columns", ["observed", "all", "hashed"])
def test_what_a_model_takes_is_not_there_for_its_rows(tmp_path, zeros, monkeypatch, columns):
    """Its arrays, the look-up of chosen columns, and what it says of itself."""
    model = fitted("three", columns)
    model.feature_names_in_ = np.array(["a" * 10_000, *"bcde"], dtype=object)
    model.save(tmp_path / "model.npz")
    file, n = ModelFile.read(tmp_path / "model.npz"), model.coef_.shape[-1]
    arrays = 8 * model.coef_.size + {"observed": 8 * n + 36 * n, "all": 8 * n, "hashed": 0}[columns]
    with zipfile.ZipFile(tmp_path / "model.npz") as archive:
        text = archive.getinfo("description.npy").file_size - 128  # its header
    assert memory_for_model(file) == arrays + 32 * text

    zeros.resident_bytes = 1_000_000
    wanted = []
    monkeypatch.setattr(zeros, "blocks", lambda skip, n_bytes: wanted.append(n_bytes) or ())
    with pytest.raises(ValueError, match="changed while it was read"):
        list(iter_predictions(zeros, model.predict, Resources(2**26), file))
    assert wanted == [(2**26 - memory_for_model(file) - 1_000_000) // 32]

    least = memory_for_model(file) + 1_000_000 + 2**21 + 4 * (3 * 128 + 4 * 8)
    with pytest.raises(MemoryError, match=rf"the model and a few rows need max_memory={least} "):
        list(iter_predictions(zeros, model.predict, Resources(least - 1), file))
