"""The drawing of the mathematics page, in a browser, against MonomialBasis."""

import itertools
import re
from pathlib import Path

import pytest

from browser import open_browser
from polysparse import MonomialBasis

DOCS = Path(__file__).parents[2] / "docs"
SETTINGS = list(itertools.product((1, 2, 4, 7), (2, 3), ("powers", "interactions")))
SETTINGS += [(12, 2, "powers"), (12, 2, "interactions")]
CELLS = """return [...document.querySelectorAll("[role=option]")].map((cell) => ({
  ...cell.dataset, text: cell.textContent, selected: cell.getAttribute("aria-selected"),
  before: cell.classList.contains("before"), tab: cell.getAttribute("tabindex"),
}))"""
SET = """const [name, value, kind] = arguments;
const input = document.querySelector(`#bijection [name=${name}]`);
input.value = value;
input.dispatchEvent(new Event(kind, {bubbles: true}));"""

TYPE_ALL = f"""const [field, texts] = arguments;
const type = (...given) => {{ (function () {{ {SET} }})(...given); }};
return texts.map((text) => {{
  type(field, text, "input");
  return [
    document.querySelector("[aria-selected=true]").dataset.tuple,
    document.querySelector("#bijection [name=tuple]").value,
    document.querySelector(".bijection-says").textContent,
  ];
}})"""


@pytest.fixture(scope="module")
def drawing(tmp_path_factory):
    """A page that has the drawing alone, opened from a file."""
    text = (DOCS / "mathematics.md").read_text()
    html = re.search(r"```\{raw\} html\n(.*?)```", text, re.DOTALL)[1]
    folder = tmp_path_factory.mktemp("drawing")
    page = f'<!doctype html><meta charset="utf-8"><title>t</title><body>{html}'
    page = page.replace("_static/", f"{(DOCS / '_static').as_uri()}/")
    (folder / "page.html").write_text(page)
    with open_browser(folder / "home") as browser:
        browser.get((folder / "page.html").as_uri())
        yield browser
        assert [line for line in browser.get_log("browser") if line["level"] == "SEVERE"] == []


def set_value(drawing, name, value, kind):
    drawing.execute_script(SET, name, str(value), kind)


def settle(drawing, n_features, degree, kind):
    for name, value in (("degree", degree), ("kind", kind), ("features", n_features)):
        set_value(drawing, name, value, "change")
    return MonomialBasis(n_features, degree, interaction_only=kind == "interactions")


def values(drawing):
    """What stands in the two fields, and what is said below."""
    fields = (f"#bijection [name={name}]" for name in ("tuple", "column"))
    found = [drawing.find_element("css selector", f).get_property("value") for f in fields]
    return *found, drawing.find_element("css selector", ".bijection-says").text


def type_all(drawing, name, texts):
    """The chosen cell, the product in its field and what is said, after each of these is typed."""
    return drawing.execute_script(TYPE_ALL, name, list(map(str, texts)))


def selected(drawing):
    (cell,) = [cell for cell in drawing.execute_script(CELLS) if cell["selected"] == "true"]
    return tuple(map(int, cell["tuple"].split(","))), int(cell["column"])


@pytest.mark.parametrize(("n_features", "degree", "kind"), SETTINGS)
def test_cells_are_the_columns_of_the_basis(drawing, n_features, degree, kind):
    basis = settle(drawing, n_features, degree, kind)
    cells = drawing.execute_script(CELLS)
    wanted = basis.degree_slices.get(degree, slice(0, 0))
    assert [int(cell["column"]) for cell in cells] == list(range(wanted.start, wanted.stop))
    for cell in cells:
        indices = tuple(map(int, cell["tuple"].split(",")))
        assert basis.rank(indices) == int(cell["column"])
        assert int(cell["rank"]) == int(cell["column"]) - wanted.start == int(cell["text"])


@pytest.mark.parametrize(("n_features", "degree", "kind"), SETTINGS)
def test_every_column_and_every_product_can_be_typed(drawing, n_features, degree, kind):
    basis = settle(drawing, n_features, degree, kind)
    wanted = basis.degree_slices.get(degree, slice(0, 0))
    columns = range(wanted.start, wanted.stop)
    tuples = [basis.unrank(column) for column in columns]
    typed = type_all(drawing, "column", columns)
    for rank, (column, indices, found) in enumerate(zip(columns, tuples, typed, strict=True)):
        chosen, field, says = found
        assert (chosen, field) == tuple(sep.join(map(str, indices)) for sep in (",", ", "))
        assert f"is {basis.names([column])[0]}: rank {rank}, column {column}." in says
    backwards = [" ".join(map(str, reversed(indices))) for indices in tuples]
    found = [indices for indices, _, _ in type_all(drawing, "tuple", backwards)]
    assert found == [",".join(map(str, indices)) for indices in tuples]  # in any order


def test_the_formula_is_filled_in(drawing):
    settle(drawing, 6, 2, "powers")
    set_value(drawing, "tuple", "1,3", "input")
    assert values(drawing)[2].splitlines() == [
        "(1, 3) is x1 x3: rank 8, column 15.",
        "rank = T₂(6) − 1 − T₂(4) − T₁(2) = 21 − 1 − 10 − 2 = 8",
        "column = 7 of lower degrees + 8 = 15",
    ]
    settle(drawing, 5, 3, "interactions")
    set_value(drawing, "tuple", "0,2,4", "input")
    assert values(drawing)[2].splitlines()[1] == (
        "rank = C(5, 3) − 1 − C(4, 3) − C(2, 2) − C(0, 1) = 10 − 1 − 4 − 1 − 0 = 4"
    )


def test_the_cells_before_the_chosen_one_are_shaded(drawing):
    settle(drawing, 4, 3, "powers")
    set_value(drawing, "tuple", "1,2,2", "input")
    cells = drawing.execute_script(CELLS)
    chosen = next(cell for cell in cells if cell["selected"] == "true")
    assert sum(cell["before"] for cell in cells) == int(chosen["rank"])


def test_lower_degrees_and_nonsense_are_named(drawing):
    settle(drawing, 4, 3, "powers")
    for typed, said in {
        "0": "Column 0 is 1, of degree 0: not drawn here.",
        "2": "Column 2 is x1, of degree 1: not drawn here.",
        "5": "Column 5 is x0^2, of degree 2: not drawn here.",
        "35": "Columns of degree 3 are 15 to 34.",
        "": "Columns of degree 3 are 15 to 34.",
    }.items():
        set_value(drawing, "column", typed, "input")
        assert values(drawing)[2] == said
    settle(drawing, 4, 2, "interactions")
    for typed in ("1,1", "1", "0,4", "a"):
        set_value(drawing, "tuple", typed, "input")
        assert values(drawing)[2] == "Write 2 distinct features from 0 to 3, like 0, 1."


def test_the_mouse_and_the_keys_choose(drawing):
    from selenium.webdriver import ActionChains, Keys

    settle(drawing, 4, 2, "powers")
    cell = drawing.find_element("css selector", '[data-tuple="1,2"]')
    ActionChains(drawing).move_to_element(cell).perform()
    assert selected(drawing)[0] == (1, 2)
    cell.click()
    for key, wanted in [
        (Keys.ARROW_RIGHT, (1, 3)),
        (Keys.ARROW_RIGHT, (2, 2)),
        (Keys.ARROW_LEFT, (1, 3)),
        (Keys.ARROW_DOWN, (2, 3)),
        (Keys.ARROW_UP, (1, 3)),
        (Keys.ARROW_UP, (0, 3)),
        (Keys.ARROW_UP, (0, 3)),
        (Keys.END, (3, 3)),
        (Keys.HOME, (0, 0)),
    ]:
        ActionChains(drawing).send_keys(key).perform()
        assert selected(drawing)[0] == wanted
    cells = drawing.execute_script(CELLS)
    assert [c["tuple"] for c in cells if c["tab"] == "0"] == ["0,0"]  # one stop of the tab key


def test_features_stay_where_they_can_be_read(drawing):
    for typed, kept in {"100": "7", "0": "1", "": "1"}.items():
        settle(drawing, 3, 3, "powers")
        set_value(drawing, "features", typed, "change")
        field = drawing.find_element("css selector", "#bijection [name=features]")
        assert field.get_property("value") == kept
