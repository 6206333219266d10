"""What is computed by direct calls of workers, and what by a graph."""

import dask
import numpy as np
import pytest

from csr_zoo import random_csr
from dask_blocks import lazily
from model_data import classes_for
from polysparse import PolynomialLogisticRegression
from polysparse.dask import holders
from polysparse.dask.holders import Holders

SIZE = 10**5  # numbers that stay where they are
# Workers cannot import this file; they are sent a lambda.
FIRST = lambda _, rows: int(rows[0])  # noqa: E731


@pytest.fixture
def blocks(client):
    """A number and an array for each of three blocks, persisted."""
    with client.as_current():
        rows = dask.persist(*(dask.delayed(np.full)(SIZE, i) for i in range(3)))
        sums = dask.persist(*(dask.delayed(np.sum)(each) for each in rows))
    return list(zip(sums, rows, strict=True))


def test_results_are_in_the_order_of_blocks(blocks):
    asked = Holders.of(blocks[0])
    for more in (0, 100):  # the second time who holds what is known
        made = asked.make(lambda total, rows, more=more: total + rows[0] + more, blocks)
        assert made == [i * (SIZE + 1) + more for i in range(3)]


def test_threads_of_this_process_are_not_asked():
    assert Holders.of(dask.persist(dask.delayed(sum)([1, 2]))) is None


def test_a_graph_sees_to_results_that_are_large(blocks, monkeypatch):
    monkeypatch.setattr(holders, "MOST_BYTES", 1000)
    assert Holders.of(blocks[0]).make(lambda _, rows: rows, blocks) is None


def test_a_graph_sees_to_a_call_that_fails(blocks):
    asked = Holders.of(blocks[0])
    assert asked.make(lambda *_: 1 / 0, blocks) is None
    assert asked.make(FIRST, blocks) == [0, 1, 2]
    for _ in range(2):
        asked.make(lambda *_: 1 / 0, blocks)
    assert asked.make(FIRST, blocks) is None  # which does not ask any more


def test_a_graph_sees_to_what_a_worker_has_lost(blocks, client):
    asked = Holders.of(blocks[0])
    assert asked.make(FIRST, blocks) == [0, 1, 2]
    one = min(client.scheduler_info()["workers"])
    asked._known = {key: {one} for key in asked._known}
    assert asked.make(FIRST, blocks) is None
    assert asked.make(FIRST, blocks) == [0, 1, 2]


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_fit_asks_directly_and_has_the_bits_of_threads(client, monkeypatch, n_classes):
    X = random_csr(6000, 30, 0.5)  # so that blocks are not worth moving
    rows, y = lazily(X, [2000] * 3), classes_for(X, n_classes)
    made, make = [], Holders.make

    def spy(self, function, blocks):
        made.append(make(self, function, blocks))
        return made[-1]

    monkeypatch.setattr(Holders, "make", spy)
    here = PolynomialLogisticRegression(columns="observed", max_iter=3, tol=1e-9)
    with pytest.warns(match="did not converge"):
        here.fit(rows, y)
    assert made == []
    found = PolynomialLogisticRegression(columns="observed", max_iter=3, tol=1e-9)
    with client.as_current(), pytest.warns(match="did not converge"):
        found.fit(rows, y)
    assert found.coef_.tobytes() == here.coef_.tobytes()
    assert sum(each is not None for each in made) > len(made) / 2


def test_fits_within_tasks_do_not_wait_for_each_other(client):
    """Both workers are busy with a fit, whose passes they have to compute as well."""
    X = random_csr(60, 5, 0.5)
    y = X.sum(axis=1)

    def fit(rows):
        from polysparse import PolynomialRidge

        return PolynomialRidge().fit(rows, y).coef_

    rows = lazily(X, [20] * 3)
    wanted = fit(rows)
    made = [client.submit(fit, rows, pure=False) for _ in range(2)]
    for each in made:
        assert each.result(timeout=60).tobytes() == wanted.tobytes()
