"""Stores of rows for tests of the models, and fits to them."""

from contextlib import contextmanager
from functools import reduce
from itertools import pairwise

import numpy as np
import pytest

from polysparse.gpu.losses import on_device
from polysparse.models import fitting, recomputed_rows
from polysparse.models.local_rows import LocalRows, add_in_order


class LossyBlocks:
    """A RowStore of several blocks that forget what they keep, at random, and compute it again."""

    def __init__(self, rows, cuts, share_lost):
        ends = [0, *cuts, len(rows.y)]
        parts = [slice(*each) for each in pairwise(ends)]
        self.parts = [
            LocalRows(
                rows.x.rows(p),
                rows.y[p],
                rows.weights[p],
                1,
                None if rows.offset is None else rows.offset[p],
            )
            for p in parts
        ]
        self.n_features = rows.n_features
        self.share_lost = share_lost
        self.random = np.random.default_rng(0)
        self.n_lost = 0
        self.classes_of = rows.count_classes  # a block may not have every class
        self.describe_targets = rows.describe_targets
        self.count_targets = rows.count_targets

    def describe(self):
        return add_in_order(part.describe() for part in self.parts)

    def count_classes(self):
        return self.classes_of()

    def count_columns(self, basis):
        return reduce(lambda a, b: a + b, (part.count_columns(basis) for part in self.parts))

    def set_targets(self, columns, loss):
        for part in self.parts:
            part.set_targets(columns, loss)

    def weights_by_class(self, n_classes):
        return sum(part.weights_by_class(n_classes) for part in self.parts)

    def keep(self, function, *kept, once=False, **shared):
        shared = {k: v.copy() if isinstance(v, np.ndarray) else v for k, v in shared.items()}
        made = {}

        def rows_of(i):
            if i in made and self.random.random() < self.share_lost:
                del made[i]
                self.n_lost += 1
            if i not in made:
                made[i] = self.parts[i].keep(function, *(each(i) for each in kept), **shared)
            return made[i]

        return rows_of

    def total(self, function, *kept, out=None, **shared):
        numbers = list(self.random.permutation(len(self.parts)))
        sums = {
            i: self.parts[i].total(function, *(each(i) for each in kept), **shared) for i in numbers
        }
        return add_in_order(sums[i] for i in sorted(sums))

    def losses(self, *arguments):
        return recomputed_rows.RecomputedLosses(self, *arguments)

    def squared_errors(self, *arguments):
        return recomputed_rows.RecomputedResiduals(self, *arguments)

    def run(self, function, *arguments):
        return function(*arguments)


class ArrayRows(LocalRows):
    """A RowStore with the losses of rows on a GPU, in NumPy."""

    def keep(self, function, *kept, once=False, **shared):
        return super().keep(function, *kept, **_on_device(shared))

    def total(self, function, *kept, out=None, **shared):
        return super().total(function, *kept, **_on_device(shared))


def _on_device(shared):
    return {k: on_device(v) if k == "loss" else v for k, v in shared.items()}


def fit_with(make_store, model, X, y, weights=None, **more):
    """Fit a model to rows in another store; return the store."""
    made = []

    @contextmanager
    def open_rows(*arguments):
        with fitting.open_rows(*arguments) as rows:
            made.append(make_store(rows))
            yield made[0]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("polysparse.models.base.open_rows", open_rows)
        model.fit(X, y, weights, **more)
    return made[0]
