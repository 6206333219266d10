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


# Texts of the article and the sidebars whose contrast to their background is below 4.5 (WCAG AA).
FAINT = """
const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
function rgba(color) {
  canvas.clearRect(0, 0, 1, 1);
  canvas.fillStyle = color;
  canvas.fillRect(0, 0, 1, 1);
  return [...canvas.getImageData(0, 0, 1, 1).data];
}
function over(front, back) {
  return [0, 1, 2].map((i) => (front[i] * front[3] + back[i] * (255 - front[3])) / 255);
}
function behind(element) {
  if (element === null) return [255, 255, 255];
  const own = rgba(getComputedStyle(element).backgroundColor);
  return own[3] === 255 ? own : over(own, behind(element.parentElement));
}
function luminance(color) {
  const [r, g, b] = color.slice(0, 3).map((c) => c / 255)
    .map((c) => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
const faint = new Set();
for (const element of document.querySelectorAll("article *, .bd-sidebar *, header *")) {
  const isText = [...element.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
  if (!isText || !element.checkVisibility({opacityProperty: true, visibilityProperty: true})
      || element.matches(".headerlink, svg *, math *")) continue;
  const back = behind(element);
  const two = [over(rgba(getComputedStyle(element).color), back), back].map(luminance);
  const contrast = (Math.max(...two) + 0.05) / (Math.min(...two) + 0.05);
  if (contrast < 4.5) faint.add(`${element.tagName} ${element.className}: ${contrast.toFixed(1)}`);
}
return [...faint];
"""
SHOWN = ["index.html", "get-started.html", "files.html", "api.html", "mathematics.html"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_are_readable_in_light_and_dark_windows_of_every_width(browser, pages, scheme):
    browser.prefer(scheme)
    wrong, shown = [], [page for page in pages if page.relative_to(SITE).as_posix() in SHOWN]
    for page in shown:
        browser.get(page.as_uri())
        assert browser.run("return document.documentElement.dataset.theme") == scheme
        dark = browser.run(
            "return parseInt(getComputedStyle(document.body).backgroundColor.match(/\\d+/)) < 128"
        )
        assert dark == (scheme == "dark")
        for width in (360, 768, 1400):
            browser.resize(width)
            found = browser.run(FAINT) + ["is cut off"] * browser.run(CUT)
            wrong += [f"{page.relative_to(SITE)} at {width}: {each}" for each in found]
    browser.prefer("light")
    assert len(shown) == len(SHOWN)
    assert wrong == []


SPLIT = """
return [...document.querySelectorAll("article code .pre")].filter((element) => {
  const text = document.createRange();
  text.selectNodeContents(element);
  const tops = new Set([...text.getClientRects()].map((box) => Math.round(box.top)));
  const width = [...text.getClientRects()].reduce((sum, box) => sum + box.width, 0);
  return tops.size > 1 && width < 250;
}).map((element) => element.textContent)"""


def test_names_and_flags_are_not_split_in_narrow_windows(browser, pages):
    browser.resize(360)
    split = []
    for page in pages:
        if page.parent == SITE:
            browser.get(page.as_uri())
            split += [f"{page.relative_to(SITE)}: {each}" for each in browser.run(SPLIT)]
    assert split == []
