"""The built site: every link leads somewhere, every image is there, nothing is loaded from afar."""

import ast
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import polysparse
from browser import open_browser

ROOT = Path(__file__).parents[2]
SITE = ROOT / "build" / "docs" / "html"
LOADED = {"img": "src", "script": "src", "source": "src", "iframe": "src"}


class Page(HTMLParser):
    """What a page links to, what it loads, and which places in it have names."""

    def __init__(self, path):
        super().__init__()
        self.links, self.loads, self.names = [], [], set()
        self.feed(path.read_text())

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.names |= {given[key] for key in ("id", "name") if given.get(key)}
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        if tag == "link" and "stylesheet" in given.get("rel", ""):
            self.loads.append(given["href"])
        if given.get(LOADED.get(tag)):
            self.loads.append(given[LOADED[tag]])
        for choice in filter(None, given.get("srcset", "").split(",")):
            self.loads.append(choice.split()[0])


@pytest.fixture(scope="module")
def pages():
    if not (SITE / "index.html").exists():
        pytest.skip("the site is not built: make docs")
    paths = [path for path in SITE.rglob("*.html") if path.parent != SITE / "_static"]
    return {path: Page(path) for path in sorted(paths)}


def target_of(page, link):
    """The file in the site that a link means, and the place in it; None for other sites."""
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return None
    path = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    return path, unquote(parts.fragment)


def test_links_inside_the_site_lead_somewhere(pages):
    dead = []
    for page, content in pages.items():
        for link in content.links:
            if (target := target_of(page, link)) is None:
                continue
            path, place = target
            found = path.is_file() and path.is_relative_to(SITE)
            if not found or (place and path in pages and place not in pages[path].names):
                dead.append(f"{page.relative_to(SITE)}: {link}")
    assert dead == []


def test_images_styles_and_scripts_are_there(pages):
    missing = []
    for page, content in pages.items():
        for link in content.loads:
            target = target_of(page, link)
            if not link.startswith("data:") and (target is None or not target[0].is_file()):
                missing.append(f"{page.relative_to(SITE)}: {link}")
    assert missing == []


def test_every_page_can_be_reached(pages):
    found, waiting = set(), [SITE / "index.html"]
    while waiting:
        page = waiting.pop()
        if page in found or page not in pages:
            continue
        found.add(page)
        targets = (target_of(page, link) for link in pages[page].links)
        waiting += [target[0] for target in targets if target]
    left = {page.relative_to(SITE).as_posix() for page in pages.keys() - found}
    assert left <= {"genindex.html", "search.html"}


@pytest.mark.parametrize("room", ["dask", "spark"])
def test_every_public_name_of_a_cluster_has_a_page_in_the_reference(room):
    """Read from the source, for their libraries may not be here."""
    code = ast.parse((ROOT / "src" / "polysparse" / room / "__init__.py").read_text())
    named = [n for n in code.body if isinstance(n, ast.Assign) and n.targets[0].id == "__all__"]
    section = (ROOT / "docs" / "api.md").read_text().split(f"polysparse.{room}\n.. autosummary")[1]
    assert set(ast.literal_eval(named[0].value)) <= set(section.partition("```")[0].split())


def test_every_public_name_has_a_page_in_the_reference():
    lines = map(str.strip, (ROOT / "docs" / "api.md").read_text().splitlines())
    assert set(polysparse.__all__) <= set(lines)


@pytest.fixture(scope="module")
def browser(pages, tmp_path_factory):
    with open_browser(tmp_path_factory.mktemp("home")) as browser:
        yield browser


def test_searching_works_from_files(browser):
    browser.get(f"{(SITE / 'search.html').as_uri()}?q=unrank")
    browser.wait_for(
        "return [...document.querySelectorAll('#search-results li a')]"
        ".some((link) => link.href.includes('mathematics.html'))"
    )


def test_code_is_copied_without_prompts_and_output(browser):
    browser.get((SITE / "get-started.html").as_uri())
    button = ".highlight-python .copybtn"
    browser.wait_for(f"return document.querySelector('{button}') !== null")
    browser.click(button)
    browser.wait_for("return document.querySelector('.copybtn.success') !== null")
    browser.run(
        "const text = document.createElement('textarea'); text.id = 'pasted';"
        "document.querySelector('article').prepend(text); text.focus()"
    )
    browser.press("v", modifiers=2, commands=["paste"])  # with Ctrl
    lines = browser.wait_for("return document.getElementById('pasted').value").splitlines()
    assert lines[0].startswith("from polysparse import PolynomialFeatures")
    assert lines[-1] == "poly.get_feature_names_out()"


CUT = """return [document.documentElement, ...document.querySelectorAll(".bd-article-container")]
  .some((box) => box.scrollWidth > box.clientWidth + 1)"""


def test_pages_fit_narrow_and_wide_windows(browser, pages):
    too_wide = []
    for page in pages:
        browser.get(page.as_uri())
        for width in (360, 768, 1400):
            browser.resize(width)
            if browser.run(CUT):
                too_wide.append(f"{page.relative_to(SITE)} at {width}")
    assert too_wide == []
