"""Clusters that tests share: they take seconds to start."""

import os
import shutil
import sys
from importlib.util import find_spec

import pytest


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """One worker runs the tests of Spark, another one those of Dask."""
    from xdist.scheduler import LoadScopeScheduling

    class ByLibrary(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return "spark" if "spark" in nodeid else "dask"

    return ByLibrary(config, log)


@pytest.fixture(scope="session")
def java():
    """Skip tests where Spark cannot run; fail them if CLUSTERS_REQUIRED is set."""
    missing = None
    if find_spec("pyspark") is None:
        missing = "pyspark is not installed."
    elif not (shutil.which("java") or os.environ.get("JAVA_HOME")):
        missing = "Spark needs Java 17 or later, and there is no java on the path."
    if missing and os.environ.get("CLUSTERS_REQUIRED"):
        pytest.fail(missing)
    elif missing:
        pytest.skip(missing)


@pytest.fixture(scope="session")
def spark(java, tmp_path_factory):
    """A Spark session of two threads in one process, small enough for a laptop."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    folder = tmp_path_factory.mktemp("spark")
    settings = {
        "spark.driver.memory": "1g",
        "spark.local.dir": folder / "local",
        "spark.sql.shuffle.partitions": 2,
        "spark.sql.warehouse.dir": folder / "warehouse",
        "spark.ui.enabled": False,
        "spark.ui.showConsoleProgress": False,
    }
    builder = SparkSession.builder.master("local[2]").appName("polysparse tests")
    for name, value in settings.items():
        builder = builder.config(name, str(value))
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")  # errors that tests wait for
    yield session
    session.stop()


@pytest.fixture(scope="session")
def client(tmp_path_factory):
    """A client of two Dask workers, each a process with one thread."""
    from dask_cluster import local_workers

    with local_workers(tmp_path_factory.mktemp("dask")) as client:
        yield client
