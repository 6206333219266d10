"""Clusters that tests share: they take seconds to start."""

import pytest


@pytest.fixture(scope="session")
def client(tmp_path_factory):
    """A client of two Dask workers, each a process with one thread."""
    from dask_cluster import two_workers

    with two_workers(tmp_path_factory.mktemp("dask")) as client:
        yield client
