"""Dask sees how large sparse blocks are, sends them without copies, and spills them in time."""

import zlib

import dask
import distributed
import numpy as np
import pytest
from dask.sizeof import sizeof
from distributed.protocol import deserialize, serialize
from scipy import sparse

import polysparse
from checks import bits, nbytes
from csr_zoo import random_csr, wide_csr
from dask_blocks import lazily
from dask_cluster import local_workers
from polysparse import dask as _  # noqa: F401  registers sizes
from polysparse.basis.monomial_basis import MonomialBasis
from polysparse.matrix.canonical import as_canonical_csr
from polysparse.observation.tally import ColumnTally

SMALL = 1000  # bytes of what is not the values and indices
X = random_csr(n_rows=400, n_features=50)


@pytest.mark.parametrize("name", ["csr", "csc", "coo", "bsr"])
def test_the_size_of_a_sparse_array_is_that_of_its_parts(name):
    array, matrix = X.asformat(name), sparse.csr_matrix(X).asformat(name)
    stored = X.nnz * (8 + 4)
    assert stored <= sizeof(array) < 2 * stored
    assert abs(sizeof(array) - sizeof(matrix)) < SMALL


def test_an_empty_array_has_a_small_size():
    assert sizeof(sparse.csr_array((0, 10**9))) < SMALL


def test_the_size_of_a_tally_grows_with_its_columns():
    tally = ColumnTally(MonomialBasis(50, 2))
    tally.count(as_canonical_csr(X))
    assert sizeof(tally) == 12 * len(tally.chosen(1, None)[0])


def test_blocks_are_sent_without_a_copy():
    header, frames = serialize(X)
    sent = [np.asarray(frame) for frame in frames]
    for part in (X.data, X.indices, X.indptr):
        assert any(np.shares_memory(frame, part) for frame in sent)
    back = deserialize(header, frames)
    assert bits(back) == bits(X)
    assert np.shares_memory(back.data, X.data)


def settled(client, lazy):
    """Wait until all blocks are there."""
    with client.as_current():
        distributed.wait(lazy)


def sizes_seen(client, lazy):
    """What the workers say that the blocks of an array take, once they are there."""
    kept = client.persist(lazy)
    settled(client, kept)
    keys = [key for (key,) in kept.__dask_keys__()]
    seen = client.run_on_scheduler(
        lambda dask_scheduler: {key: t.nbytes for key, t in dask_scheduler.tasks.items()}
    )
    return [seen[key] for key in keys]


def test_workers_know_the_sizes_of_what_they_hold(client):
    client.restart()  # so that nothing of polysparse is loaded
    seen = sizes_seen(client, polysparse.expand(lazily(X, [100, 300])))
    assert sum(seen) == pytest.approx(nbytes(polysparse.expand(X)), rel=0.01)


def test_workers_that_load_polysparse_know_the_sizes_of_all_blocks(tmp_path):
    with local_workers(tmp_path, preload=["polysparse.dask"]) as client:
        seen = sizes_seen(client, lazily(X, [100, 300]).map_blocks(abs, meta=X[:0, :0]))
    assert sum(seen) == pytest.approx(nbytes(X), rel=0.05)


def test_an_expansion_larger_than_the_workers_finishes_by_way_of_the_disk(tmp_path):
    """Only the sizes that polysparse tells decide: what the system says is not looked at."""
    limit, n_rows, n_blocks = 100 * 10**6, 1000, 16
    rows = wide_csr(n_rows, 10_000, 50)
    whole = n_blocks * polysparse.plan(rows).nbytes
    by_size_alone = {"target": 0.6, "spill": False, "pause": False, "terminate": False}
    settings = {f"distributed.worker.memory.{name}": at for name, at in by_size_alone.items()}
    with dask.config.set(settings), local_workers(tmp_path, memory_limit=limit) as client:
        X = dask.array.concatenate([lazily(rows, [n_rows])] * n_blocks)
        expanded = client.persist(polysparse.expand(X))
        settled(client, expanded)
        on_disk = client.run(lambda dask_worker: dask_worker.data.spilled_total.disk)
        sums = expanded.map_blocks(
            lambda b: np.array([[zlib.crc32(b.data), zlib.crc32(b.indices)]]), dtype=int
        )
        found = client.compute(sums).result()
    assert whole > 2 * limit
    assert sum(on_disk.values()) > whole - 2 * limit
    expected = polysparse.expand(rows)
    assert (found == [zlib.crc32(expected.data), zlib.crc32(expected.indices)]).all()
