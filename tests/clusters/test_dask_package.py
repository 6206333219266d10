"""Dask's room as it is shipped: its examples, and those of the pages."""

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file

import polysparse.dask
from csr_zoo import random_dense

PAGE = Path(__file__).parents[2] / "docs" / "scaling.md"
MODULES = [m.name for m in pkgutil.iter_modules(polysparse.dask.__path__, "polysparse.dask.")]


def section(title):
    """The text under a heading of the page."""
    return re.search(rf"^##+ {title}\n(.*?)(?=^##+ |\Z)", PAGE.read_text(), re.M | re.S)[1]


def code_in(text):
    """The first block of code."""
    return re.search(r"^```python\n(.*?)^```", text, re.M | re.S)[1]


@pytest.mark.parametrize("name", ["polysparse.dask", *MODULES])
def test_examples_in_docstrings_run(name):
    failed, _ = doctest.testmod(importlib.import_module(name))
    assert failed == 0


@pytest.mark.parametrize("name", polysparse.dask.__all__)
def test_public_names_are_documented_with_an_example(name):
    assert ">>> " in getattr(polysparse.dask, name).__doc__


def test_the_example_of_the_page_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    dense = (random_dense(200, 12, 0.3) != 0).astype(float)
    dump_svmlight_file(dense, dense[:, 0], "clicks.svmlight", zero_based=False)
    rows = [(job, shift, hours) for job in "ab" for shift in "de" for hours in range(20)]
    lines = [f"{j},{s},{h},{'high' if (j == 'a') == (s == 'd') else 'low'}\n" for j, s, h in rows]
    for name in ("people.csv", "new.csv"):
        Path(name).write_text("job,shift,hours,income\n" + "".join(lines))
    test = doctest.DocTestParser().get_doctest(section("Dask"), {}, "scaling", str(PAGE), 0)
    assert 10 < len(test.examples) < 20
    assert doctest.DocTestRunner().run(test).failed == 0


# ------------------------------------------------------------------------------------------- Ray

X = sparse.csr_array(random_dense(60, 7, 0.4))


def as_table(rows):
    import pyarrow as pa

    offsets = pa.array(rows.indptr.astype(np.int64))
    lists = [pa.LargeListArray.from_arrays(offsets, pa.array(a)) for a in (rows.indices, rows.data)]
    return pa.table(dict(zip(("indices", "values"), lists, strict=True)))


def recipe():
    """The names that the recipe for Ray defines, without Ray."""
    pytest.importorskip("pyarrow")
    names = {}
    exec(code_in(section("Ray Data")).partition("\nds = ")[0], names)
    return names


def as_csr(table, n_columns):
    indices, values = (table[name].combine_chunks() for name in ("indices", "values"))
    arrays = np.asarray(values.values), np.asarray(indices.values), np.asarray(indices.offsets)
    return sparse.csr_array(arrays, shape=(len(table), n_columns))


def test_the_function_of_the_recipe_for_ray_expands_a_batch():
    batch = as_table(X).slice(10, 20)
    expanded = as_csr(recipe()["expand"](batch, n_features=7), 36)
    np.testing.assert_array_equal(expanded.toarray(), polysparse.expand(X[10:30]).toarray())


def test_the_recipe_for_ray():
    ray = pytest.importorskip("ray", reason="ray is not installed")
    ds = ray.data.from_arrow(as_table(X)).map_batches(
        recipe()["expand"], batch_format="pyarrow", fn_kwargs={"n_features": 7}, batch_size=20
    )
    parts = [as_csr(batch, 36) for batch in ds.iter_batches(batch_format="pyarrow")]
    np.testing.assert_array_equal(sparse.vstack(parts).toarray(), polysparse.expand(X).toarray())
