"""The package as it is shipped."""

import doctest
import importlib
import os
import pkgutil
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import polysparse
from polysparse.extras import how_to_install

ROOT = Path(__file__).parent.parent
# tests/clusters/ and tests/gpu/ test the packages whose libraries are not installed here.
ELSEWHERE = ("polysparse.dask", "polysparse.spark", "polysparse.gpu")
MODULES = [
    module.name
    for module in pkgutil.walk_packages(polysparse.__path__, "polysparse.", lambda name: None)
    if not module.name.startswith(ELSEWHERE)
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_run(name):
    failed, _ = doctest.testmod(importlib.import_module(name))
    assert failed == 0


@pytest.mark.parametrize("name", polysparse.__all__)
def test_public_names_are_documented_with_an_example(name):
    assert ">>> " in getattr(polysparse, name).__doc__


# tests/clusters/ runs what stands in scaling.md.
PAGES = [
    page
    for page in sorted((ROOT / "docs").glob("*.md"))
    if page.name != "scaling.md" and ">>> " in page.read_text()
]


@pytest.mark.no_sanitizer  # they take too long with one
@pytest.mark.parametrize("page", [ROOT / "README.md", *PAGES], ids=lambda page: page.name)
def test_examples_in_the_pages_run(page, monkeypatch):
    monkeypatch.chdir(ROOT)
    failed, tried = doctest.testfile(str(page), module_relative=False)
    assert tried > 0
    assert failed == 0


@pytest.mark.no_sanitizer  # which needs memory of its own
def test_the_example_trains_on_100_000_features_in_less_than_2_gb():
    # A process begins with the peak of the one that started it, so a small one comes between.
    script = f"{shlex.quote(sys.executable)} {shlex.quote(str(ROOT / 'examples/wide_model.py'))}"
    command = ["sh", "-c", f"{script}; exit $?"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    table = [re.split(r"  +", line) for line in lines if re.search(r"  0\.\d{3}  ", line)]
    accuracy = {name: float(cells[1]) for name, *cells in table}
    assert accuracy["observed pairs"] > accuracy["single features"] + 0.2
    assert accuracy["hashed pairs"] > accuracy["single features"] + 0.2
    assert float(re.search(r"peak memory.*: ([\d.]+) GB", done.stdout)[1]) < 2


def test_the_example_finds_the_pairs_that_were_planted(tmp_path):
    script = ROOT / "examples/interactions.py"
    done = subprocess.run(
        [sys.executable, script, tmp_path],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "MPLBACKEND": "agg"},
    )
    heaviest = [line.split()[1:3] for line in done.stdout.splitlines() if "=" in line]
    planted = re.findall(r'\("([a-z]+=\d+)", "([a-z]+=\d+)"\)', script.read_text())
    assert {tuple(pair) for pair in heaviest[: len(planted)]} == set(planted)
    assert {path.name for path in tmp_path.iterdir()} == {"model.npz", "terms.svg", "terms.txt"}


def test_the_stub_of_the_compiled_module_is_up_to_date(tmp_path):
    pytest.importorskip("nanobind.stubgen")
    stub = tmp_path / "_kernels.pyi"
    subprocess.run(
        [sys.executable, "-m", "nanobind.stubgen", "-q", "-m", "polysparse._kernels", "-o", stub],
        check=True,
    )
    assert stub.read_text() == (ROOT / "src/polysparse/_kernels.pyi").read_text()


def test_one_function_says_how_to_install_an_extra():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    for path in (ROOT / "src" / "polysparse").rglob("*.py"):
        text = path.read_text()
        assert set(re.findall(r"how_to_install\([\"'](\w+)", text)) <= extras.keys()
        assert "pip install '" not in text or path.name == "extras.py", path
    assert how_to_install("cli") == "pip install '.[cli]' in the source folder of polysparse."


def test_one_page_says_how_to_install_extras():
    pages = [page for page in (ROOT / "docs").glob("*.md") if "pip install" in page.read_text()]
    assert [page.name for page in pages] == ["get-started.md", "index.md"]
    for page in (*pages, ROOT / "README.md"):
        wanted = {"pip install .", "pip install '.[cli]'"}
        assert set(re.findall(r"pip install [^\s`]+", page.read_text())) <= wanted


def test_importing_does_not_load_scikit_learn():
    code = "import sys, polysparse; print('sklearn' in sys.modules, 'joblib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_unknown_names_are_refused():
    with pytest.raises(AttributeError, match="module 'polysparse' has no attribute 'nothing'"):
        polysparse.nothing  # noqa: B018
    assert set(polysparse.__all__) <= set(dir(polysparse))


def test_version_is_that_of_the_project():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert polysparse.__version__ == project["version"]
    assert f"## {project['version']}" in (ROOT / "CHANGELOG.md").read_text()


def test_the_oldest_dependencies_are_the_ones_that_are_tested():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = dict(re.fullmatch(r"([\w-]+)>=([\d.]+)", d).groups() for d in project["dependencies"])
    lines = (ROOT / "tests/oldest.txt").read_text().splitlines()
    pinned = dict(line.split("==") for line in lines if "==" in line)
    assert wanted.keys() <= pinned.keys()
    for name, version in wanted.items():
        assert pinned[name].startswith(version)
