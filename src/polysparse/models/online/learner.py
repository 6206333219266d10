"""The state of an online learner, and how it learns from rows as they arrive."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.basis.monomial_basis import MonomialBasis
from polysparse.columns.spaces import MAX_COMPACT_COLUMNS, ChosenColumns, ColumnSpace, HashedColumns
from polysparse.engine import cpu
from polysparse.expansion.whole import expand_columns
from polysparse.machine import require_memory, threads_for
from polysparse.matrix.canonical import CanonicalCsr
from polysparse.models.online.blocks import block_ends, block_size
from polysparse.models.online.progress import Progress
from polysparse.models.online.refusals import require_learnable
from polysparse.models.online.sampling import RowSample
from polysparse.models.online.scaling import Scaling

RATES = 1.0, 4.0, 16.0  # that compete, times `Scaling.step`
COMPETITION_ROWS = 2048  # with weights above 0
MEAN_ROWS = 64  # after which the intercept of counts is learned
AT_A_TIME = 2**22  # outputs of the rows that are learned from between two signals and reports


@dataclass(frozen=True)
class Settings:
    """The settings of a learner: the loss, its rate (None: rates compete) and its penalty."""

    loss: str
    n_scores: int
    rate: float | None
    beta: float
    l1: float
    l2: float
    fit_intercept: bool


@dataclass(frozen=True)
class Rows:
    """Rows, their targets and their weights."""

    x: CanonicalCsr
    targets: NDArray[np.float64]
    weights: NDArray[np.float64]

    def __getitem__(self, rows: slice) -> Rows:
        return Rows(self.x.rows(rows), self.targets[rows], self.weights[rows])

    def __len__(self) -> int:
        return len(self.targets)

    def __add__(self, other: Rows) -> Rows:
        """Return these rows, followed by others."""
        a, b = self.x, other.x
        indptr = np.concatenate([a.indptr, b.indptr[1:] + a.indptr[-1]])
        x = CanonicalCsr(
            (len(self) + len(other), a.shape[1]),
            indptr,
            np.concatenate([a.indices, b.indices]),
            np.concatenate([a.data, b.data], dtype=np.float64),
            is_array=a.is_array,
        )
        return Rows(
            x,
            np.concatenate([self.targets, other.targets]),
            np.concatenate([self.weights, other.weights]),
        )

    def copy(self) -> Rows:
        """Return a copy that shares no memory."""
        x = self.x
        own = replace(
            x, indptr=x.indptr.copy(), indices=x.indices.copy(), data=x.data.astype(np.float64),
            sorted_for=None, has_distinct_groups=False, row_groups=(),
        )  # fmt: skip
        return Rows(own, self.targets.copy(), self.weights.copy())


class Learner:
    """Learns from rows as they arrive.

    Attributes
    ----------
    columns : ColumnSpace
        The columns.
    states : list of ndarray of float32 of shape (n_columns + 1, n_scores, 2)
        z and n of every coefficient, the intercepts last, for each rate that competes; later, for
        the one that has won.
    rates : list of float
        The rates, or what `Scaling.step` is multiplied with.
    losses : ndarray of float64
        The sum of losses of each of them.
    n_rows : int
        Number of rows that were learned from.
    n_counted : int
        How many of them have weights above 0.
    n_reported : int
        Number of rows when a line was printed last.
    pending : Rows or None
        Rows that wait for the rest of their block.
    scaling : Scaling or None
        None if the rate was given.
    progress : Progress
        What was predicted of rows before they were learned from.
    sample : RowSample or None
        Rows of the first pass, in which to look for terms; None if columns are not hashed.
    """

    def __init__(
        self,
        columns: ColumnSpace,
        settings: Settings,
        states: list[NDArray[np.float32]] | None = None,
        rates: list[float] | None = None,
    ) -> None:
        self.columns, self.settings = columns, settings
        if states is None or rates is None:
            rates = list(RATES) if settings.rate is None else [settings.rate]
            require_memory_for(columns, settings.n_scores, len(rates))
            shape = columns.n_columns + 1, settings.n_scores, 2
            states = [np.zeros(shape, np.float32) for _ in rates]
        self.states, self.rates = states, rates
        self.losses = np.zeros(len(rates))
        self.n_rows = self.n_counted = 0
        self.n_reported = 0
        self.pending: Rows | None = None
        self.scaling: Scaling | None = None
        if settings.rate is None:
            largest = np.zeros(columns.basis.n_features)
            self.scaling = Scaling(largest, settings.loss)
        self.progress = Progress(settings.loss)
        self.sample = RowSample() if columns.kind == "hashed" else None
        self.keeps_progress = True
        self._native = self._make_native()

    def _make_native(self) -> Any:
        s, columns = self.settings, self.columns
        how = s.fit_intercept, s.loss, s.l1, s.l2
        return cpu.OnlineLearner(columns, columns.n_columns, s.n_scores, how)

    def widen(self, n_features: int) -> None:
        """Go on with more features, of hashed columns without groups or terms.

        Hashes do not depend on how many features there are.
        """
        assert isinstance(self.columns, HashedColumns)
        require_memory(
            8 * n_features,
            f"the scales of {n_features:,} features",
            "Number features without gaps.",
        )
        basis = MonomialBasis(**(self.columns.basis.as_dict() | {"n_features": n_features}))
        self.columns = replace(self.columns, basis=basis)
        self._native = self._make_native()
        if self.scaling is not None:
            n_new = n_features - len(self.scaling.largest)
            self.scaling.largest = np.pad(self.scaling.largest, (0, n_new))
        if self.pending is not None:
            x = replace(self.pending.x, shape=(len(self.pending), n_features))
            self.pending = replace(self.pending, x=x)

    # ---------------------------------------------------------------------------------- learning

    def require_learnable(self, rows: Rows) -> None:
        """Raise UnlearnableRows if the state could not hold what rows add to it."""
        require_learnable(
            rows.x,
            rows.targets,
            rows.weights,
            degree=self.columns.basis.max_degree,
            has_classes=self.settings.loss in ("two_classes", "classes"),
            scaling=self.scaling,
            earlier=None if self.pending is None else self.pending.x,
        )

    def learn(self, rows: Rows, n_jobs: int | None, report: Any = None) -> None:
        """Learn from rows; those of a block that is not complete wait for the next ones.

        If a signal or an error stops this, rows that waited before still do, unless they were
        learned from; the rest of the given rows is dropped.
        """
        if self.pending is not None:
            n_waiting = len(self.pending)
            n_missing = max(0, block_size(self.n_rows) - n_waiting)
            first = self.pending + rows[0 : min(n_missing, len(rows))]
            n_outputs = np.diff(self._count(first.x))
            ends = block_ends(self.n_rows, n_outputs)[:1]
            if not len(ends):
                self.pending = first
                return
            self._learn_blocks(first, ends, n_outputs, n_jobs, report)
            rows = rows[int(ends[0]) - n_waiting : len(rows)]
        if not len(rows):
            return
        n_outputs = np.diff(self._count(rows.x))
        ends = block_ends(self.n_rows, n_outputs)
        n_learned = int(ends[-1]) if len(ends) else 0
        left = rows[n_learned : len(rows)].copy() if n_learned < len(rows) else None
        self._learn_blocks(rows, ends, n_outputs, n_jobs, report)
        self.pending = left

    def close_block(self, n_jobs: int | None, report: Any = None) -> None:
        """Learn from the rows that wait, as a block."""
        if self.pending is None:
            return
        rows, ends = self.pending, np.array([len(self.pending)])
        self._learn_blocks(rows, ends, np.diff(self._count(rows.x)), n_jobs, report)

    def _count(self, x: CanonicalCsr) -> NDArray[np.int64]:
        """Return the number of outputs of all rows before each row."""
        return cpu.count(self.columns, x.sorted_by_group(self.columns.basis))

    def _learn_blocks(
        self, rows: Rows, ends: NDArray[np.int64], n_outputs: Any, n_jobs: Any, report: Any
    ) -> None:
        """Learn from whole blocks, some at a time."""
        before = np.concatenate([[0], np.cumsum(n_outputs)])
        first = 0
        while first < len(ends):
            begin = int(ends[first - 1]) if first else 0
            last = int(np.searchsorted(before[ends], before[begin] + AT_A_TIME, side="right"))
            last = max(last, first + 1)
            if len(self.states) > 1:  # until the competition ends
                n_missing = COMPETITION_ROWS - self.n_counted
                n_counted = np.cumsum(rows.weights[begin : int(ends[last - 1])] > 0)
                counted = n_counted[ends[first:last] - begin - 1]
                last = min(last, first + int(np.searchsorted(counted, n_missing)) + 1)
            if self._follows_mean:
                last = first + 1
            end = int(ends[last - 1])
            part, own_ends = rows[begin:end], ends[first:last] - begin
            self._learn_part(part, own_ends, n_outputs[begin:end], n_jobs)
            if report is not None:
                report()
            first = last

    def _learn_part(
        self, rows: Rows, ends: NDArray[np.int64], n_outputs: NDArray[np.int64], n_jobs: int | None
    ) -> None:
        """Learn from the rows of some blocks, and end the competition if it is time."""
        x = replace(rows.x, data=rows.x.data.astype(np.float64, copy=False))
        steps, sizes, counts = np.ones(len(ends)), np.ones(len(ends)), rows.weights > 0
        intercepts = [state[-1].copy() for state in self.states]
        if self.scaling is not None:
            follows_mean, mean, step = self._follows_mean, self.scaling.mean, self.scaling.step
            scaled, steps, sizes = self.scaling.learn(self.columns, x, rows.targets, counts, ends)
            if follows_mean:
                self._set_intercepts(mean, step, float(steps[0]))
        else:
            scaled = x
        rates = np.multiply.outer(steps * sizes, self.rates).astype(np.float32)
        betas = (self.settings.beta * sizes).astype(np.float32)
        out = np.empty(len(rows)), np.empty((len(rows), self.settings.n_scores))
        n_done = np.zeros(1, np.int64)
        try:
            self._native.learn(
                self._listed(scaled, n_jobs),
                (rows.targets, rows.weights),
                (ends, rates, betas),
                (self.states, self.losses),
                (*out, n_done),
                threads_for(n_jobs, int(n_outputs.sum())),
            )
        finally:
            n = int(ends[n_done[0] - 1]) if n_done[0] else 0
            if n < len(rows):
                self._undo_scaling(x, rows.targets, counts, ends[: n_done[0]], intercepts)
            self.n_rows += n
            self.n_counted += int(np.count_nonzero(counts[:n]))
            if n:
                self.pending = None  # rows that waited are in the first block
            if self.keeps_progress:
                self.progress.add(*(each[:n] for each in (*out, rows.targets, rows.weights)))
                if self.sample is not None:
                    self.sample.add(x.rows(slice(0, n)), counts[:n], n_outputs[:n])
        if not np.isfinite(self.losses).any():
            self._refuse_diverged()
        if self.n_counted >= COMPETITION_ROWS:
            self._drop_losers()

    def _undo_scaling(
        self, x: CanonicalCsr, targets: Any, counts: Any, ends: Any, intercepts: list[Any]
    ) -> None:
        """Forget blocks that were not learned from: those after the last of `ends`."""
        if self.scaling is None:
            return
        self.scaling.undo()
        if len(ends):
            n = int(ends[-1])
            self.scaling.learn(self.columns, x.rows(slice(0, n)), targets[:n], counts[:n], ends)
        else:
            for state, intercept in zip(self.states, intercepts, strict=True):
                state[-1] = intercept

    @property
    def _follows_mean(self) -> bool:
        """Whether the intercept is that of the mean of counts, before the next block."""
        scaling, s = self.scaling, self.settings
        is_count = s.loss == "poisson" and s.fit_intercept
        return is_count and scaling is not None and scaling.n_rows < scaling.rate_rows

    def _set_intercepts(self, mean: float, step_before: float, step: float) -> None:
        """Set intercepts to that of a mean at first; later, keep them as `step` changes."""
        assert self.scaling is not None
        for state, rate in zip(self.states, self.rates, strict=True):
            weight = np.log(mean)
            if self.n_counted >= MEAN_ROWS:
                weight = weights_of(state[-1], rate * step_before, self._beta, 0.0, 0.0)
            state[-1, :, 0] = -weight * (self._beta + np.sqrt(state[-1, :, 1])) / (rate * step)

    def _drop_losers(self) -> None:
        leader = self._leader
        self.states, self.rates = [self.states[leader]], [self.rates[leader]]
        self.losses = self.losses[leader : leader + 1]

    @property
    def _leader(self) -> int:
        return int(np.argmin(self.losses))

    def _refuse_diverged(self) -> None:
        raise ValueError(
            "The loss is not finite any more: targets, weights or values of X are too large for "
            f"learning_rate={self.settings.rate or 'auto'}. Scale them, or lower learning_rate."
        )

    def _listed(self, x: CanonicalCsr, n_jobs: int | None) -> Any:
        """Return rows as the engine takes them: as they are if columns are hashed, or expanded."""
        x = replace(x, data=x.data.astype(np.float32, copy=False))
        if self.columns.kind == "hashed":
            return x.sorted_by_group(self.columns.basis)
        return expand_columns(self.columns, x, n_jobs=n_jobs, max_bytes=None)

    # ---------------------------------------------------------------------------------- reading

    @property
    def rate(self) -> float:
        """The rate of the leader."""
        step = 1.0 if self.scaling is None else self.scaling.step * self.scaling.size
        return float(self.rates[self._leader] * step)

    @property
    def _beta(self) -> float:
        size = 1.0 if self.scaling is None else self.scaling.size
        return float(self.settings.beta * size)

    def scores(self, x: CanonicalCsr, n_jobs: int | None) -> NDArray[np.float64]:
        """Return the scores of rows, of shape (n_rows, n_scores)."""
        out = np.empty((x.shape[0], self.settings.n_scores))
        if self.scaling is not None:
            x = self.scaling.scale(x)
        before, begin = self._count(x), 0
        state = self.states[self._leader]
        while begin < x.shape[0]:
            end = int(np.searchsorted(before, before[begin] + AT_A_TIME, side="right")) - 1
            end = max(end, begin + 1)
            listed = self._listed(x.rows(slice(begin, end)), n_jobs)
            n_threads = threads_for(n_jobs, int(before[end] - before[begin]))
            self._native.score(listed, state, self.rate, self._beta, out[begin:end], n_threads)
            begin = end
        return out

    def scales_of_columns(self) -> NDArray[np.float64]:
        """Return what scaled columns are divided by: products of the scales of their features."""
        assert self.scaling is not None
        columns = self.columns
        ranks = np.arange(columns.n_columns)
        if isinstance(columns, ChosenColumns):
            ranks = columns.ranks
        tuples = columns.basis.unrank(ranks)
        scales: NDArray[np.float64] = np.where(tuples >= 0, self.scaling.scales[tuples], 1.0)
        products: NDArray[np.float64] = np.multiply.reduce(scales, axis=1)
        return products

    def weights(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return the weights of scaled columns, of shape (n_columns, n_scores), and intercepts."""
        s, state = self.settings, self.states[self._leader]
        found = weights_of(state, self.rate, self._beta, s.l1, s.l2)
        return found[:-1], weights_of(state[-1:], self.rate, self._beta, 0.0, 0.0)[0]


def require_memory_for(columns: ColumnSpace, n_scores: int, n_states: int) -> None:
    """Raise MemoryError if the state would not fit into memory, ValueError if it has no numbers."""
    columns.require_indexable()
    n = columns.n_columns
    require_memory(
        8 * (n + 1) * n_scores * n_states,
        f"z and n of {n:,} columns, {n_scores * n_states} times,",
        'Use columns="hashed" with a lower n_columns, or columns="observed".',
    )
    if n > MAX_COMPACT_COLUMNS - 1:
        raise ValueError(
            f"{n:,} columns cannot be learned: at most {MAX_COMPACT_COLUMNS - 1:,} can. Use "
            'columns="hashed" or columns="observed", or lower the degree.'
        )


def weights_of(
    state: NDArray[np.float32], rate: float, beta: float, l1: float, l2: float
) -> NDArray[np.float32]:
    """Return the weights that z and n stand for, in the last axis of `state`."""
    z, n = state[..., 0], state[..., 1]
    f = np.float32
    size = np.abs(z) - f(l1)
    out = np.zeros_like(z)
    np.divide(size, (f(beta) + np.sqrt(n)) * (f(1) / f(rate)) + f(l2), out=out, where=size > 0)
    return np.copysign(out, -z) * (out > 0)
