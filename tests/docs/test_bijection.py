"""The drawing of the mathematics page, in a browser, against MonomialBasis."""

import itertools
import re
from pathlib import Path

import pytest

from browser import open_browser
from polysparse import MonomialBasis

DOCS = Path(__file__).parents[2] / "docs"
KINDS = ("powers", "interactions")
SETTINGS = list(itertools.product((1, 2, 4, 7), (2, 3), KINDS, [()]))
SETTINGS += [(12, 2, kind, ()) for kind in KINDS]
SIZES = [(2, 3), (1, 3, 1, 2), (7,), (4, 3), (1, 1, 2)]  # of the first groups of seven features
SETTINGS += list(itertools.product([7], (2, 3), KINDS, SIZES))
CELLS = """return [...document.querySelectorAll("[role=option]")].map((cell) => ({
  ...cell.dataset, text: cell.textContent, selected: cell.getAttribute("aria-selected"),
  before: cell.classList.contains("before"), tab: cell.getAttribute("tabindex"),
}))"""
FORBIDDEN = """return [...document.querySelectorAll("rect.forbidden")]
  .map((cell) => cell.dataset.tuple)"""
VALUE = "return document.querySelector(arguments[0]).value"
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
        assert browser.errors == []


def set_value(drawing, name, value, kind):
    drawing.run(SET, name, str(value), kind)


def settle(drawing, n_features, degree, kind, sizes=()):
    """Fill in the form, and return the basis that it describes."""
    form = {"groups": "", "degree": degree, "kind": kind, "features": n_features}
    for name, value in {**form, "groups": ", ".join(map(str, sizes))}.items():
        set_value(drawing, name, value, "change")
    labels = [f"g{g}" for g, size in enumerate(sizes) for _ in range(size)]
    labels += [None] * (n_features - len(labels))
    interaction_only = kind == "interactions"
    return MonomialBasis(n_features, degree, interaction_only=interaction_only, groups=labels)


def as_tuple(text):
    return tuple(map(int, text.split(",")))


def values(drawing):
    """What stands in the two fields, and what is said below."""
    fields = (f"#bijection [name={name}]" for name in ("tuple", "column"))
    found = [drawing.run(VALUE, field) for field in fields]
    return *found, drawing.run("return document.querySelector('.bijection-says').innerText")


def type_all(drawing, name, texts):
    """The chosen cell, the product in its field and what is said, after each of these is typed."""
    return drawing.run(TYPE_ALL, name, list(map(str, texts)))


def selected(drawing):
    (cell,) = [cell for cell in drawing.run(CELLS) if cell["selected"] == "true"]
    return as_tuple(cell["tuple"]), int(cell["column"])


@pytest.mark.parametrize(("n_features", "degree", "kind", "sizes"), SETTINGS)
def test_cells_are_the_columns_of_the_basis(drawing, n_features, degree, kind, sizes):
    basis = settle(drawing, n_features, degree, kind, sizes)
    cells = drawing.run(CELLS)
    wanted = basis.degree_slices.get(degree, slice(0, 0))
    assert [int(cell["column"]) for cell in cells] == list(range(wanted.start, wanted.stop))
    for cell in cells:
        indices = as_tuple(cell["tuple"])
        assert basis.rank(indices) == int(cell["column"])
        assert int(cell["rank"]) == int(cell["column"]) - wanted.start == int(cell["text"])


@pytest.mark.parametrize(("n_features", "degree", "kind", "sizes"), SETTINGS)
def test_every_column_and_every_product_can_be_typed(drawing, n_features, degree, kind, sizes):
    basis = settle(drawing, n_features, degree, kind, sizes)
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

    settle(drawing, 6, 2, "powers", (2, 3))
    set_value(drawing, "tuple", "1,3", "input")
    assert values(drawing)[2].splitlines() == [
        "(1, 3) is x1 x3: rank 5, column 12.",
        "groups: 0, 1",
        "rank = E₂(0) − 1 − E₂(1) − E₁(2) − E₀(2) = 12 − 1 − 4 − 1 − 1 = 5",
        "column = 7 of lower degrees + 5 = 12",
    ]
    set_value(drawing, "tuple", "0,2", "input")
    assert values(drawing)[2].splitlines()[2] == (
        "rank = E₂(0) − 1 − E₂(1) − E₁(1) − E₁(2) − 2·E₀(2) = 12 − 1 − 4 − 4 − 1 − 2·1 = 0"
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("degree", [2, 3])
def test_what_groups_forbid_is_drawn_dashed_and_cannot_be_chosen(drawing, degree, kind):
    plain = settle(drawing, 6, degree, kind)
    assert drawing.run(FORBIDDEN) == []
    basis = settle(drawing, 6, degree, kind, (2, 3))
    cells = {as_tuple(cell["tuple"]) for cell in drawing.run(CELLS)}
    forbidden = set(map(as_tuple, drawing.run(FORBIDDEN)))
    columns = plain.degree_slices[degree]
    everything = {plain.unrank(c) for c in range(columns.start, columns.stop)}
    assert cells | forbidden <= everything
    assert not cells & forbidden
    leads = {indices[0] for indices in cells}  # a layer that has no column is not drawn
    assert {t for t in everything if degree == 2 or t[0] in leads} == cells | forbidden
    for indices in forbidden:
        with pytest.raises(ValueError, match=r"same group|twice"):
            basis.rank(indices)


def test_forbidden_products_say_why(drawing):
    settle(drawing, 6, 2, "powers", (2, 3))
    before = selected(drawing)
    for typed, said in {
        "0,1": "x0 and x1 are in the same group: they are not multiplied.",
        "4,2": "x2 and x4 are in the same group: they are not multiplied.",
        "3,3": "There are no powers of x3: it is in a group with others.",
        "0,6": "Write 2 features from 0 to 5, like 0, 1.",
    }.items():
        set_value(drawing, "tuple", typed, "input")
        assert values(drawing)[2] == said
    assert selected(drawing) == before
    for column, name in ((3, "x2"), (0, "1")):
        set_value(drawing, "column", column, "input")
        degree = int(column > 0)
        said = f"Column {column} is {name}, of degree {degree}: not drawn here."
        assert values(drawing)[2] == said


@pytest.mark.parametrize(
    ("typed", "degree", "features", "groups"),
    [
        ("4, 4", 2, "8", "4, 4"),  # more than there were
        ("2 x 0", 2, "6", "2"),
        ("9,9", 2, "12", "9, 3"),  # as many as can be read
        ("5 5", 3, "7", "5, 2"),
        ("none", 2, "6", ""),
    ],
)
def test_sizes_of_groups_stay_where_they_can_be_read(drawing, typed, degree, features, groups):
    settle(drawing, 6, degree, "powers")
    set_value(drawing, "groups", typed, "change")
    for name, kept in (("features", features), ("groups", groups)):
        assert drawing.run(VALUE, f"#bijection [name={name}]") == kept


def test_the_cells_before_the_chosen_one_are_shaded(drawing):
    settle(drawing, 4, 3, "powers")
    set_value(drawing, "tuple", "1,2,2", "input")
    cells = drawing.run(CELLS)
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
    settle(drawing, 4, 2, "powers")
    drawing.hover('[data-tuple="1,2"]')
    assert selected(drawing)[0] == (1, 2)
    drawing.click('[data-tuple="1,2"]')
    for key, wanted in [
        ("ArrowRight", (1, 3)),
        ("ArrowRight", (2, 2)),
        ("ArrowLeft", (1, 3)),
        ("ArrowDown", (2, 3)),
        ("ArrowUp", (1, 3)),
        ("ArrowUp", (0, 3)),
        ("ArrowUp", (0, 3)),
        ("End", (3, 3)),
        ("Home", (0, 0)),
    ]:
        drawing.press(key)
        assert selected(drawing)[0] == wanted
    cells = drawing.run(CELLS)
    assert [c["tuple"] for c in cells if c["tab"] == "0"] == ["0,0"]  # one stop of the tab key


def test_keys_pass_over_forbidden_cells(drawing):
    settle(drawing, 5, 2, "powers", (1, 2, 1))
    drawing.click('[data-tuple="0,2"]')
    for key, wanted in [
        ("ArrowDown", (0, 2)),  # x1 x2 and x2^2 are forbidden
        ("ArrowRight", (0, 3)),
        ("ArrowDown", (1, 3)),
        ("ArrowLeft", (0, 4)),
        ("Home", (0, 0)),
        ("End", (4, 4)),
        ("ArrowUp", (3, 4)),
    ]:
        drawing.press(key)
        assert selected(drawing)[0] == wanted


def test_features_stay_where_they_can_be_read(drawing):
    for typed, kept in {"100": "7", "0": "1", "": "1"}.items():
        settle(drawing, 3, 3, "powers")
        set_value(drawing, "features", typed, "change")
        assert drawing.run(VALUE, "#bijection [name=features]") == kept
