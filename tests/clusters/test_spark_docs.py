"""What the documentation shows on Spark runs as it is written."""

import doctest
import importlib
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

import polysparse.spark
from polysparse.extras import how_to_install

ROOT = Path(__file__).parents[2]
MODULES = [m.name for m in pkgutil.iter_modules(polysparse.spark.__path__, "polysparse.spark.")]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_run(spark, name):
    failed, _ = doctest.testmod(importlib.import_module(name), extraglobs={"spark": spark})
    assert failed == 0


def test_the_examples_of_the_page_run(spark):
    page = ROOT / "docs" / "scaling.md"
    text = re.search(r"^## Spark\n(.*?)(?=^## )", page.read_text(), re.M | re.S)[1]
    test = doctest.DocTestParser().get_doctest(text, {"spark": spark}, "scaling", str(page), 0)
    assert 15 < len(test.examples) < 30
    assert doctest.DocTestRunner().run(test).failed == 0


@pytest.mark.parametrize("name", polysparse.spark.__all__)
def test_public_names_are_documented_with_an_example(name):
    assert ">>> " in getattr(polysparse.spark, name).__doc__


@pytest.mark.parametrize("missing", ["pyspark", "pyarrow"])
def test_a_missing_library_is_named_with_the_extra(missing):
    code = f"import sys; sys.modules[{missing!r}] = None; import polysparse.spark"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        f"ImportError: polysparse.spark needs {missing}: {how_to_install('spark')}"
    )


def test_workers_need_no_scikit_learn():
    tasks = "from polysparse.spark import counting, expanding, mllib_order"
    code = f"import sys; {tasks}; print('sklearn' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False"]


def test_unknown_names_are_refused():
    with pytest.raises(
        AttributeError, match=r"module 'polysparse.spark' has no attribute 'nothing'"
    ):
        polysparse.spark.nothing  # noqa: B018
    assert set(polysparse.spark.__all__) <= set(dir(polysparse.spark))
