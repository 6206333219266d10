"""Small Dask clusters on this machine."""

from contextlib import contextmanager

from distributed import Client, LocalCluster


@contextmanager
def local_workers(folder, n_workers=2, **options):
    """A client of a few workers, each a process with one thread that writes to a folder."""
    with (
        LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            dashboard_address=":0",
            local_directory=str(folder),
            **options,
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client
