"""A Spark cluster of processes on this machine, and how to kill one of them in the middle.

Run by tests as a program of its own, so that the session that tests share stays as it is.
"""

import os
import shutil
import signal
import sys
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def local_cluster(folder):
    """A session with two executors, each a process with one core."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    settings = {
        "spark.driver.memory": "512m",
        "spark.executor.memory": "512m",
        "spark.local.dir": Path(folder) / "local",
        "spark.sql.shuffle.partitions": 2,
        "spark.sql.adaptive.coalescePartitions.enabled": False,
        "spark.ui.enabled": False,
        "spark.ui.showConsoleProgress": False,
    }
    builder = SparkSession.builder.master("local-cluster[2,1,1024]").appName("polysparse cluster")
    for name, value in settings.items():
        builder = builder.config(name, str(value))
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")  # the loss of an executor is reported at length
    work = Path(os.environ.get("SPARK_HOME", _home())) / "work" / spark.sparkContext.applicationId
    try:
        yield spark
    finally:
        spark.stop()
        shutil.rmtree(work, ignore_errors=True)  # logs of the executors
        with suppress(OSError):
            work.parent.rmdir()


def _home():
    import pyspark

    return Path(pyspark.__file__).parent


def executors_of(spark):
    """Processes of the executors: children of the Java process that this one has started."""
    java = spark.sparkContext._gateway.proc.pid
    found = []
    for task in Path(f"/proc/{java}/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # what has ended meanwhile
            for child in map(int, (task / "children").read_text().split()):
                command = Path(f"/proc/{child}/cmdline").read_bytes().decode()
                if "CoarseGrainedExecutorBackend" in command:
                    found.append(child)
    return sorted(found)


class KillOnce:
    """Kills one executor by SIGKILL, as soon as so many tasks of one stage are done."""

    def __init__(self, spark, after_tasks):
        self.spark, self.after_tasks = spark, after_tasks
        self.killed = None  # the process, and the tasks of its stage that were done and not done
        self.thread = threading.Thread(target=self._watch, daemon=True)
        self.thread.start()

    def _watch(self):
        tracker = self.spark.sparkContext.statusTracker()
        while self.killed is None:
            for number in tracker.getActiveStageIds():
                stage = tracker.getStageInfo(number)
                if stage is None or stage.numCompletedTasks < self.after_tasks:
                    continue
                for process in executors_of(self.spark)[:1]:
                    left = stage.numTasks - stage.numCompletedTasks
                    os.kill(process, signal.SIGKILL)
                    self.killed = process, stage.numCompletedTasks, left
                    return
            time.sleep(0.02)
