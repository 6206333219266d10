"""Clusters that tests share: they take seconds to start."""

import pytest


@pytest.fixture(scope="session")
def client(tmp_path_factory):
    """A client of two Dask workers, each a process with one thread."""
    distributed = pytest.importorskip("distributed")
    folder = tmp_path_factory.mktemp("dask")
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            dashboard_address=None,
            local_directory=str(folder),
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client
