"""The page of benchmarks: each of them has a place, which it alone rewrites."""

import sys
from datetime import date
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def page(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    import page

    yield page
    del sys.modules["page"]


def test_every_benchmark_has_its_place(page):
    text = (ROOT / "docs" / "speed.md").read_text()
    for script in page.SCRIPTS:
        written = page.with_section(text, script, "a\n", date(2030, 1, 2))
        assert f"<!-- {script} -->\n\nMeasured on 2030-01-02. a\n\n<!-- end -->\n" in written
        others = [other for other in page.SCRIPTS if other != script]
        for other in others:
            section = text.split(f"<!-- {other} -->")[1].split("<!-- end -->")[0]
            assert section in written


def test_the_readme_has_a_place_for_its_table(page):
    text = (ROOT / "README.md").read_text()
    written = page.with_section(text, page.IN_README, "a\n", date(2030, 1, 2))
    assert "Measured on 2030-01-02. a\n" in written


def test_a_page_without_a_place_is_refused(page):
    with pytest.raises(ValueError, match=r"no place for bench_core\.py"):
        page.with_section("# How fast\n", "bench_core.py", "", date(2030, 1, 2))
