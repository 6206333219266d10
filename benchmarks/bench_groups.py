"""What groups and terms reach: against expansions without groups, formulaic and tabmat.

Both sides run in one process, in turn; the best of several times counts; every timed result is
checked; ratios are printed, with versions, also where they miss their target. formulaic and tabmat
are left out where they are not installed: pip install formulaic tabmat.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse
from sklearn.preprocessing import OneHotEncoder

import measure
import polysparse
from bench_core import LARGE, Reached, Report, say, size
from bench_products import BACK, FORWARD, multiply, require_close, vectors
from polysparse.machine import threads_for

PLAIN, GROUPED = "without groups", "with groups"
PLAIN_1, GROUPED_1 = "without groups, n_jobs=1", "with groups, n_jobs=1"
ENCODED, CODES, FRAME = "expand", "one-hot encoding and expand", "InteractionTransformer"
CHOOSE, TABMAT, FORMULAIC = "all pairs, then selecting", "tabmat", "formulaic"
TARGET_GROUPS, TARGET_TERMS = 0.9, 10.0
OTHERS = {"hour": 24, "weekday": 7, "device": 5, "country": 40}  # beside users and items
FORMULA = "user:item"


# ------------------------------------------------------------------------------------------- data


@dataclass(frozen=True)
class Case:
    """Rows to expand with and without groups.

    Every row has `n_members` members of each group; then come numbers, which are on their own.
    """

    name: str
    degree: int
    n_rows: int
    sizes: tuple[int, ...]
    n_members: int = 1
    n_numbers: int = 0

    @property
    def groups(self) -> list[str | None]:
        """The label of each feature."""
        labels = [f"g{g}" for g, size in enumerate(self.sizes) for _ in range(size)]
        return [*labels, *[None] * self.n_numbers]

    @property
    def is_one_hot(self) -> bool:
        """Whether a row has one member of each group, and nothing else: the cases with a target."""
        return self.n_members == 1 and self.n_numbers == 0

    @property
    def interaction_only(self) -> bool:
        """Indicators have no powers worth a column; numbers do."""
        return self.n_numbers == 0

    def make(self) -> Any:
        """Indicators are 1, numbers are small multiples of 1/64."""
        rng = np.random.default_rng(0)
        places = [
            np.argsort(rng.random((self.n_rows, size), dtype=np.float32))[:, : self.n_members]
            if self.n_members > 1
            else rng.integers(size, size=(self.n_rows, 1))
            for size in self.sizes
        ]
        indicators = one_hot([np.sort(members) for members in places], self.sizes)
        numbers = rng.integers(1, 256, (self.n_rows, self.n_numbers)) / 64
        return sparse.hstack([indicators, sparse.csr_array(numbers)], format="csr")


def suite() -> list[Case]:
    """The cases, of which a quick run has the first."""
    return [
        Case("300,000 rows, 12 variables of 10 levels, K=2", 2, 300_000, (10,) * 12),
        Case("the same, K=3", 3, 300_000, (10,) * 12),
        Case("100,000 rows, 40 variables of 25 levels, K=2", 2, 100_000, (25,) * 40),
        Case("100,000 rows, 6 sets of 4 of 50 members, K=2", 2, 100_000, (50,) * 6, n_members=4),
        Case(
            "100,000 rows, 12 variables of 10 levels and 8 numbers, K=2",
            2,
            100_000,
            (10,) * 12,
            n_numbers=8,
        ),
    ]


def one_hot(places: list[NDArray[Any]], sizes: tuple[int, ...]) -> Any:
    """Return indicators in CSR format, given arrays of shape (n_rows, n_members) of places."""
    starts = np.cumsum([0, *sizes[:-1]])
    columns = np.hstack([each + start for each, start in zip(places, starts, strict=True)])
    n_rows, n_stored = columns.shape
    offsets = np.arange(0, n_rows * n_stored + 1, n_stored, dtype=np.int32)
    arrays = np.ones(n_rows * n_stored), columns.reshape(-1).astype(np.int32), offsets
    return sparse.csr_array(arrays, shape=(n_rows, sum(sizes)))


def clicks(n_rows: int, n_users: int, n_items: int) -> tuple[Any, dict[str, int]]:
    """Return a DataFrame of categories, and the number of levels of each."""
    rng = np.random.default_rng(0)
    sizes = {"user": n_users, "item": n_items, **OTHERS}
    codes = {name: rng.integers(n, size=n_rows) for name, n in sizes.items()}
    columns = {
        name: pd.Categorical.from_codes(codes[name], categories=np.arange(n))
        for name, n in sizes.items()
    }
    return pd.DataFrame(columns), sizes


def encode(frame: Any, sizes: dict[str, int]) -> Any:
    """Return the indicators of all categories."""
    codes = [frame[name].cat.codes.to_numpy()[:, None] for name in sizes]
    return one_hot([np.asarray(each, np.int64) for each in codes], tuple(sizes.values()))


# --------------------------------------------------------------------------------------- measures


@dataclass(frozen=True)
class Row:
    """Best times on one case, and the number of outputs of each side."""

    name: str
    has_target: bool
    outputs: dict[str, int]
    times: dict[str, float]

    def throughput(self, side: str, against: str) -> float:
        """Outputs per second of a side, over those of another."""
        rates = [self.outputs[each] / self.times[each] for each in (side, against)]
        return rates[0] / rates[1]


def time_expand(case: Case, repeats: int) -> Row:
    """Expand with and without groups."""
    X = case.make()
    how = {"degree": case.degree, "interaction_only": case.interaction_only}
    ways = {PLAIN: how, GROUPED: {**how, "groups": case.groups}}
    plans = {side: polysparse.plan(X, **way) for side, way in ways.items()}
    require_same_products(X, ways)
    sides, outputs = {}, {}
    for side, name, n_jobs in (
        (PLAIN, PLAIN, None),
        (GROUPED, GROUPED, None),
        (PLAIN, PLAIN_1, 1),
        (GROUPED, GROUPED_1, 1),
    ):
        sides[name] = partial(polysparse.expand, X, **ways[side], n_jobs=n_jobs)
        outputs[name] = plans[side].nnz
    largest = max(plan.nbytes for plan in plans.values())
    measure.allocate_fresh(largest > LARGE)

    def check(side: str, result: Any) -> None:
        if result.nnz != outputs[side]:
            raise AssertionError(f"{side}: {result.nnz} outputs instead of {outputs[side]}.")

    touched = largest if largest > LARGE else 0
    best = measure.best_times(sides, repeats=repeats, check=check, touched=touched)
    return Row(case.name, case.is_one_hot, outputs, best)


def require_same_products(X: Any, ways: dict[str, dict[str, Any]]) -> None:
    """Raise unless groups leave out the products inside groups of some rows, and nothing else."""
    rows = X[:: max(1, X.shape[0] // 50)]
    found = {}
    for side, way in ways.items():
        basis = polysparse.MonomialBasis(X.shape[1], **way)
        expanded = polysparse.expand(rows, **way).tocoo()
        products = map(tuple, basis.unrank(expanded.col).tolist())
        found[side] = dict(
            zip(zip(expanded.row, products, strict=True), expanded.data, strict=True)
        )
    labels = ways[GROUPED]["groups"]
    inside = {key for key in found[PLAIN] if not is_allowed(key[1], labels)}
    if found[GROUPED] != {key: v for key, v in found[PLAIN].items() if key not in inside}:
        raise AssertionError("groups change more than the products inside groups.")


def is_allowed(product: tuple[int, ...], labels: list[str | None]) -> bool:
    """Whether a product has at most one feature of each group."""
    named = [labels[j] for j in product if j >= 0 and labels[j] is not None]
    return len(set(named)) == len(named)


def time_products(case: Case, repeats: int) -> dict[str, Row]:
    """Matrix-vector products with and without groups, in both directions."""
    X = case.make()
    how = {"degree": case.degree, "interaction_only": case.interaction_only}
    ways = {PLAIN: how, GROUPED: {**how, "groups": case.groups}}
    built = {side: polysparse.expand(X, **way) for side, way in ways.items()}
    operators = {side: polysparse.PolynomialOperator(X, **way) for side, way in ways.items()}
    outputs = {side: matrix.nnz for side, matrix in built.items()}
    rows = {}
    for direction in (FORWARD, BACK):
        sides: dict[str, Callable[[], Any]] = {}
        checks = {}
        for side, operator in operators.items():
            matrix = built[side] if direction == FORWARD else built[side].T
            v = vectors(matrix.shape[1], 1, X.dtype)
            checks[side] = require_close(multiply(matrix, v))
            sides[side] = partial(multiply, operator if direction == FORWARD else operator.T, v)
        best = measure.best_times(
            sides,
            repeats=repeats,
            check=lambda side, result, checks=checks: checks[side](side, result),
            seconds=1.0,
        )
        rows[direction] = Row(case.name, case.is_one_hot, outputs, best)
    return rows


@dataclass(frozen=True)
class Terms:
    """Best times of ways to make the interactions of users and items."""

    name: str
    plan: polysparse.ExpansionPlan
    times: dict[str, float]
    with_target: tuple[str, ...] = ()

    def ratio(self, side: str) -> float:
        """How many times a side takes of our time, from the same input: X, or categories."""
        return self.times[side] / self.times[ENCODED if side == CHOOSE else CODES]

    def is_met(self, side: str) -> bool:
        """Whether the ratio reaches its target, if it has one."""
        return side not in self.with_target or self.ratio(side) >= TARGET_TERMS


def time_terms(n_levels: int, repeats: int, with_formulaic: bool) -> Terms:
    """Interactions of a million users and items, by every library that is installed."""
    frame, sizes = clicks(1_000_000, n_levels, n_levels)
    how = {"groups": sizes, "terms": [FORMULA], "include_bias": False}
    named = {name: sizes[name] for name in ("user", "item")}  # all that a term needs
    X = encode(frame, sizes)
    pairs = {"degree": (2, 2), "interaction_only": True, "include_bias": False, "groups": sizes}
    users = np.repeat(np.arange(n_levels), n_levels)
    items = np.tile(np.arange(n_levels), n_levels) + n_levels
    of_term = polysparse.MonomialBasis(X.shape[1], **pairs).rank(np.column_stack([users, items]))
    encoder = OneHotEncoder(categories=[np.arange(n) for n in named.values()])
    interactions = polysparse.InteractionTransformer(
        [("levels", encoder, [*named])], terms=[FORMULA]
    )
    sides: dict[str, Callable[[], Any]] = {
        ENCODED: lambda: polysparse.expand(X, **how),
        CODES: lambda: polysparse.expand(encode(frame, named), **{**how, "groups": named}),
        FRAME: lambda: interactions.fit_transform(frame),
        CHOOSE: lambda: polysparse.expand(X, **pairs)[:, of_term],
    }
    if is_installed(TABMAT):
        import tabmat

        sides[TABMAT] = partial(tabmat.from_formula, f"0 + {FORMULA}", frame)
    if with_formulaic and is_installed(FORMULAIC):
        import formulaic

        sides[FORMULAIC] = partial(formulaic.model_matrix, f"0 + {FORMULA}", frame, output="sparse")
    codes = [frame[name].cat.codes.to_numpy().astype(np.int64) for name in named]
    measure.allocate_fresh(False)
    best = measure.best_times(
        sides,
        repeats=repeats,
        check=partial(require_columns, *codes, n_levels),
        once=(FORMULAIC,),
    )
    with_target = (CHOOSE, TABMAT, FORMULAIC) if n_levels >= 1_000 else (FORMULAIC,)
    name = f"{n_levels:,} x {n_levels:,} levels"
    return Terms(name, polysparse.plan(X, **how), best, with_target)


def require_columns(
    users: NDArray[Any], items: NDArray[Any], n_levels: int, side: str, result: Any
) -> None:
    """Raise unless every row has a 1 in its column; formulas let the first variable run fastest."""
    columns = users * n_levels + items
    if side == TABMAT:
        found, columns = result.matrices[0].tocsr(), items * n_levels + users
    elif side == FORMULAIC:
        found, columns = result.__wrapped__.tocsr(), items * n_levels + users
    else:
        found = result
    if not (found.nnz == len(columns) and np.array_equal(found.indices, columns)):
        raise AssertionError(f"{side} has other columns.")


def is_installed(library: str) -> bool:
    """Whether a library can be compared with; say so if it cannot."""
    try:
        version(library)
    except PackageNotFoundError:
        say(f"{library} is left out: it is not installed")
        return False
    return True


def time_many_levels(repeats: int) -> list[Terms]:
    """Interactions of 100,000 users and 10,000 items, and other expansions of the same rows."""
    frame, sizes = clicks(1_000_000, 100_000, 10_000)
    X = encode(frame, sizes)
    term = {"groups": sizes, "terms": [FORMULA], "include_bias": False}
    ways = {
        FORMULA: term,
        "(user + item + hour + weekday + device + country)**2": {
            **term,
            "terms": [f"({' + '.join(sizes)})**2"],
        },
        "all pairs with groups": {"groups": sizes, "interaction_only": True},
        "all pairs without groups": {"interaction_only": True},
    }
    plans = {name: polysparse.plan(X, **way) for name, way in ways.items()}
    measure.allocate_fresh(True)

    def check(name: str, result: Any) -> None:
        if result.nnz != plans[name].nnz:
            raise AssertionError(f"{name} has {result.nnz} outputs.")

    sides = {name: partial(polysparse.expand, X, **way) for name, way in ways.items()}
    touched = max(plan.nbytes for plan in plans.values())
    best = measure.best_times(sides, repeats=repeats, check=check, touched=touched)
    return [Terms(name, plans[name], {ENCODED: best[name]}) for name in ways]


# ----------------------------------------------------------------------------------------- report


def print_groups(report: Report, title: str, rows: list[Row], single: bool) -> None:
    """Write a table of times and of throughputs per output."""
    report.heading(title)
    lines = []
    for row in rows:
        cells = [row.name, f"{row.outputs[PLAIN]:,}", f"{row.outputs[GROUPED]:,}"]
        cells += [milliseconds(row.times[side]) for side in (PLAIN, GROUPED)]
        ratio = row.throughput(GROUPED, PLAIN)
        cells.append(report.mark(f"{ratio:.2f}x", ratio >= TARGET_GROUPS or not row.has_target))
        if single:
            cells.append(f"{row.throughput(GROUPED_1, PLAIN_1):.2f}x")
        lines.append(cells)
    header = (
        "rows | outputs without groups | outputs with groups | without, ms | with, ms | "
        "throughput per output"
    )
    report.table(header + " | n_jobs=1" * single, lines)


def print_terms(report: Report, rows: list[Terms]) -> None:
    """Write a table of times against other libraries."""
    report.heading(f"1,000,000 rows, terms=[{FORMULA!r}]")
    lines = []
    for row in rows:
        cells = [row.name, *(milliseconds(row.times[side]) for side in (ENCODED, CODES, FRAME))]
        for side in (CHOOSE, TABMAT, FORMULAIC):
            if side in row.times:
                marked = report.mark(f"{row.ratio(side):,.1f}x", row.is_met(side))
                cells += [milliseconds(row.times[side]), marked]
            else:
                cells += ["", ""]
        lines.append(cells)
    others = (f"{side}, ms | ratio" for side in (CHOOSE, TABMAT, FORMULAIC))
    ours = (f"{side}, ms" for side in (ENCODED, CODES, FRAME))
    report.table(" | ".join(["levels", *ours, *others]), lines)
    print(
        "\ntabmat and formulaic encode categories, so they are compared with one-hot encoding and "
        "expand.\nSelecting columns starts from X, so it is compared with expand. formulaic ran "
        "once."
    )


def print_many_levels(report: Report, rows: list[Terms]) -> None:
    """Write a table of speeds of writing."""
    report.heading("1,000,000 rows, 100,000 x 10,000 levels and four more variables")
    lines = []
    for row in rows:
        speed = row.plan.nbytes / row.times[ENCODED] / 1e9
        cells = [row.name, f"{row.plan.shape[1]:,}", f"{row.plan.nnz:,}", size(row)]
        lines.append([*cells, milliseconds(row.times[ENCODED]), f"{speed:.1f}"])
    report.table("expand | columns | outputs | size | ms | GB/s", lines)


def reached(
    expanded: list[Row], products: dict[str, list[Row]], terms: list[Terms]
) -> Iterator[Reached]:
    """The measures that have targets."""
    of_groups = {"expand": expanded, **products}
    for what, rows in of_groups.items():
        ratios = {row.name: row.throughput(GROUPED, PLAIN) for row in rows if row.has_target}
        worst = min(ratios, key=ratios.__getitem__)
        yield Reached(
            f"{what} with groups against without, outputs per second: "
            "slowest case with one-hot rows",
            f"{TARGET_GROUPS:g}x",
            f"{ratios[worst]:.2f}x ({worst})",
            ratios[worst] >= TARGET_GROUPS,
        )
    for row in terms:
        for side in row.with_target:
            if side in row.times:
                what = f"{FORMULA}, {row.name}, against {side}"
                ratio = f"{row.ratio(side):,.1f}x"
                yield Reached(what, f"{TARGET_TERMS:g}x", ratio, row.is_met(side))


def milliseconds(seconds: float) -> str:
    """A time with three digits that count."""
    time = seconds * 1e3
    return f"{time:,.0f}" if time >= 100 else f"{time:.3g}"


def main() -> None:
    """Measure everything, then report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="only one case, without formulaic")
    parser.add_argument(
        "--slow", action="store_true", help="formulaic with 1,000 x 1,000 levels, too: minutes"
    )
    parser.add_argument("--repeats", type=int, default=5, help="rounds of which the best counts")
    parser.add_argument("--markdown", action="store_true", help="tables for a README")
    options = parser.parse_args()
    repeats, expanded = options.repeats, []
    products: dict[str, list[Row]] = {FORWARD: [], BACK: []}
    for case in suite()[:1] if options.quick else suite():
        say(case.name)
        expanded.append(time_expand(case, repeats))
        measure.allocate_fresh(False)
        for direction, row in time_products(case, repeats).items():
            products[direction].append(row)
    terms = []
    for n_levels, is_slow in ((100, False), (1_000, True)):
        say(f"{FORMULA}: {n_levels:,} x {n_levels:,} levels")
        with_formulaic = options.slow if is_slow else not options.quick
        terms.append(time_terms(n_levels, repeats, with_formulaic))
    say(f"{FORMULA}: 100,000 x 10,000 levels")
    many_levels = time_many_levels(repeats)

    report = Report(options.markdown)
    print(measure.describe_machine(threads_for(None, 10**9)))
    others = [name for name in (FORMULAIC, TABMAT) if is_installed(name)]
    print(", ".join(f"{name} {version(name)}" for name in others))
    print_groups(report, "Expand, with and without groups", expanded, single=True)
    for direction, rows in products.items():
        print_groups(report, f"{direction}, with and without groups", rows, single=False)
    print_terms(report, terms)
    print_many_levels(report, many_levels)
    report.reached([*reached(expanded, products, terms)])


if __name__ == "__main__":
    main()
