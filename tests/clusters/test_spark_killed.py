"""An executor that is killed in the middle changes nothing: no row is lost, none comes twice."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import polysparse
from expand_on_cluster import dense_rows
from spark_frames import assert_same_bits

pytest.importorskip("pyspark")


@pytest.mark.usefixtures("java")
def test_an_expansion_survives_the_death_of_an_executor(tmp_path):
    import pyarrow.parquet as pq

    program = Path(__file__).parents[1] / "expand_on_cluster.py"
    done = subprocess.run(
        [sys.executable, program, tmp_path], capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr[-3000:]
    report = json.loads(done.stdout.splitlines()[-1])
    process, n_done, n_left = report["killed"]
    assert process in report["executors"]
    assert n_done > 0
    assert n_left > 0

    table = pq.read_table(tmp_path / "out")
    ids = table["id"].to_numpy()
    X = sparse.csr_array(dense_rows())
    assert np.array_equal(np.sort(ids), np.arange(len(ids)))
    assert len(ids) == X.shape[0]
    vectors = table.take(np.argsort(ids))["out"].combine_chunks()
    indices, values = vectors.field("indices"), vectors.field("values")
    expected = polysparse.ObservedPolynomialFeatures(3).fit_transform(X)
    arrays = (each.to_numpy() for each in (values.flatten(), indices.flatten(), indices.offsets))
    assert_same_bits(sparse.csr_array(tuple(arrays), shape=expected.shape), expected)
