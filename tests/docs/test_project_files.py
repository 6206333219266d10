"""Files that tell others about the project: they can be read, and repeat nothing that changes."""

import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def read_yaml(name):
    yaml = pytest.importorskip("yaml", reason="PyYAML comes with the extra docs")
    return yaml.safe_load((ROOT / name).read_text())


def test_the_citation_names_the_paper_and_no_version():
    citation = read_yaml("CITATION.cff")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert citation["cff-version"] == "1.2.0"
    assert citation["license"] == project["license"]["text"]
    assert "version" not in citation
    (paper,) = citation["references"]
    assert paper["title"] in " ".join((ROOT / "README.md").read_text().split())


def test_pre_commit_runs_what_make_lint_runs():
    (repository,) = read_yaml(".pre-commit-config.yaml")["repos"]
    assert repository["repo"] == "local"
    recipe = (ROOT / "Makefile").read_text().split("\nlint:")[1].split("\n\n")[0]
    hooks = {hook["entry"].split()[0] for hook in repository["hooks"]}
    assert hooks == {
        line.split()[0].replace("$(BIN)", ".venv/bin") for line in recipe.splitlines()[1:]
    }


def test_the_readme_is_read_in_a_minute():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 110


def test_the_version_stands_in_one_place():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    for name in ("CMakeLists.txt", "docs/conf.py", "src/polysparse/__init__.py", "README.md"):
        assert version not in (ROOT / name).read_text(), name
