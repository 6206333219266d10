"""CrossValidated: a model whose penalty is chosen by cross-validation, for every model alike.

The data are read, validated and encoded once. The rows of a split are copied, and the penalties
follow each other from the strongest to the weakest, so that each fit starts close to its solution.
The chosen model is fitted to all rows as the plain model would be, which leaves the same bits.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from inspect import Parameter, Signature, signature
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils.validation import check_is_fitted

from polysparse.columns.spaces import ColumnSpace
from polysparse.dispatch import require_in_memory
from polysparse.display.plotting import draw_scores
from polysparse.models.base import PolynomialModel
from polysparse.models.bootstrap import Bootstrap
from polysparse.models.choosing import SELECTIONS, Choice, Penalties
from polysparse.models.columns import require_memory_for
from polysparse.models.fitting import fit, open_rows, prepare, set_solution, solve
from polysparse.models.local_rows import LocalRows
from polysparse.models.quasi_newton import Memory
from polysparse.models.solution import End
from polysparse.models.splits import HeldOutScorer, Split, splits_of

# The steps of a fit whose secants the next one takes, and how many coordinates its vectors may have
# for each output of a product with the expansion.
MANY_SECANTS, SHORT = 20, 1.0

OWN = {"cv": None, "scoring": None, "selection": "best", "refit": True}  # parameters, defaults


class CrossValidated(PolynomialModel):
    """Cross-validation of the penalty of a model.

    A subclass is also a subclass of this model, `_plain`. It has the parameters of the model except
    `warm_start`, with its penalty in the plural, and `OWN`.
    """

    scores_: NDArray[np.float64]
    cv: Any
    scoring: Any
    selection: str
    refit: bool

    _plain: ClassVar[type[PolynomialModel]]
    _penalties: ClassVar[Penalties]

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        if "_plain" in vars(cls):
            cls.__init__ = _initializer(cls)  # type: ignore[method-assign]

    @property
    def _n_vectors(self) -> int:
        models = map(self._plain_model, self._read_penalties().tolist())
        own: int = max(model._n_vectors for model in models)
        return own + 3  # those of `_Path`, and a start

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, cv_groups: Any = None) -> Any:
        """Choose the penalty by cross-validation, and fit the model to all rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The data.
        y : array-like of shape (n_samples,)
            The targets or classes, as for the model without `CV`.
        sample_weight : float or array-like of shape (n_samples,), optional
            Non-negative weights of the rows, in fits and scores. A function given as `scoring` gets
            those of held-out rows if it has a parameter `sample_weight`.
        cv_groups : array-like of shape (n_samples,), optional
            Groups of rows for a splitter such as GroupKFold, which it calls `groups`.

        Returns
        -------
        self : object
            Fitted model.
        """
        return self._choose(X, y, sample_weight, cv_groups=cv_groups)

    def plot_scores(self, ax: Any = None) -> Any:
        """Draw the mean score of each penalty, with its standard error over the splits.

        Lines mark the best penalty, and the strongest penalty whose mean is within one standard
        error of the best. A filled marker is the penalty that was chosen.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; by default those of a new figure.

        Returns
        -------
        matplotlib.axes.Axes
            The axes.
        """
        check_is_fitted(self, "scores_")
        choice = self._choice()
        chosen = choice.selected(self.selection)
        what = self.scoring if isinstance(self.scoring, str) else "score"
        return draw_scores(self._tried(), choice, chosen, self._penalties.name, what, ax)

    def _tried(self) -> NDArray[np.float64]:
        """Return the penalties of the last fit."""
        return getattr(self, f"{self._penalties.plural}_")  # type: ignore[no-any-return]

    def _choice(self) -> Choice:
        """Return the choice by the scores of the last fit."""
        return Choice.of(self.scores_, self._penalties.order(self._tried()))

    # ------------------------------------------------------------------------------- the search

    def _fit_path(
        self, models: list[Any], columns: ColumnSpace, rows: LocalRows
    ) -> Iterator[tuple[Any, End]]:
        """Fit models to rows, the strongest penalty first; yield each, and how its fit ended.

        Its coefficients are dropped when the next one is fitted.
        """
        path = _Path(self._penalties.name)
        for model in models:
            loss = model._make_loss(rows)
            solution = solve(model, columns, rows, loss, path.next_start(model))
            set_solution(model, columns, loss, solution)
            path.add(model, rows)
            yield model, solution.end
            model._forget()

    def _require_parameters(self) -> None:
        if self.selection not in SELECTIONS:
            raise ValueError(
                f"selection must be {' or '.join(map(repr, SELECTIONS))}; got {self.selection!r}."
            )
        if not isinstance(self.refit, bool | np.bool_):
            raise ValueError(f"refit must be True or False; got {self.refit!r}.")
        if not (self.scoring is None or isinstance(self.scoring, str) or callable(self.scoring)):
            raise ValueError(
                f"scoring must be the name of a scorer, a function or None; got {self.scoring!r}."
            )
        self._plain_model(self._read_penalties()[0])._require_parameters()

    def _read_penalties(self) -> NDArray[np.float64]:
        """Return the penalties; raise ValueError if they are not valid."""
        given = getattr(self, self._penalties.plural)
        return self._penalties.read(given, self._ranges[self._penalties.name].require)

    def _penalties_for(self, rows: LocalRows, known: dict[str, Any]) -> NDArray[np.float64]:
        """Return the penalties; `known` are the attributes of a model that has read the rows."""
        return self._read_penalties()

    def _plain_model(self, penalty: float) -> Any:
        """Return the plain model with a penalty, not fitted."""
        own = self.get_params(deep=False)
        given = {name: own[name] for name in signature(self._plain).parameters if name in own}
        given |= {self._penalties.name: float(penalty), "verbose": max(0, self.verbose - 1)}
        return self._plain(**given)

    def _as_plain(self) -> PolynomialModel:
        plain: PolynomialModel = self._plain_model(getattr(self, f"{self._penalties.name}_"))
        own = (*(f"{self._penalties.name}{end}" for end in ("_", "s_")), "scores_")
        fitted = {k: v for k, v in vars(self).items() if k.endswith("_") and k not in own}
        plain.__dict__.update(fitted)
        return plain.set_params(verbose=self.verbose)  # type: ignore[no-any-return]

    def _unfitted(self, **parameters: Any) -> PolynomialModel:
        plain = clone(self._plain_model(1.0))
        return plain.set_params(verbose=self.verbose, **parameters)  # type: ignore[no-any-return]

    def _bootstrap(self, *arguments: Any) -> Bootstrap:
        """Refit the plain model with the chosen penalty."""
        check_is_fitted(self)
        return self._as_plain()._bootstrap(*arguments)

    def _choose(
        self, X: Any, y: Any, sample_weight: Any, offset: Any = None, *, cv_groups: Any = None
    ) -> Any:
        """Choose the penalty, fit the model to all rows, and return it."""
        require_in_memory(X)
        self._require_parameters()
        self._forget()
        with open_rows(self, X, y, sample_weight, offset) as rows:
            known = self._forget()  # what has been read of X: its features, names and levels
            penalties = self._penalties_for(rows, known)
            order = self._penalties.order(penalties)
            models = [self._plain_model(penalty) for penalty in penalties[order]]
            for model in models:
                vars(model).update(known)
            search = _Search(self, models, rows, has_weights=sample_weight is not None)
            # Not a comprehension, whose variable would keep a split while the next one is made.
            found = np.array(list(map(search.scores, search.splits(X, cv_groups))))
            scores = np.empty_like(found)
            scores[:, order] = found
            search.warn(stacklevel=3)
            chosen = Choice.of(scores, order).selected(self.selection)
            if self.refit:
                model = self._plain_model(penalties[chosen])
                fit(model, partial(_known_rows, model, known, rows), stacklevel=3)
                known = model._forget() | {"_has_offset_": offset is not None}
        self.__dict__.update(known)
        self.scores_ = scores
        setattr(self, f"{self._penalties.plural}_", penalties)
        setattr(self, f"{self._penalties.name}_", float(penalties[chosen]))
        return self


@contextmanager
def _known_rows(model: Any, known: dict[str, Any], rows: LocalRows) -> Iterator[LocalRows]:
    """Give rows that have been read before; the model knows of X what was read with them."""
    vars(model).update(known)
    yield rows


class _Path:
    """The last solutions along a path of penalties, and where the next fit starts.

    `name` is the penalty. If the last fit took many steps, and the vectors that it kept are not
    longer than a pass over the data, the next one starts where it ended, and knows its secants of
    the Hessian. Otherwise it starts further along the line through the last two solutions, as a
    function of the logarithm of the penalty.

    With 10 values of C from 1e-4 to 3, fits to a split of a9a at degree 2 took 586 passes from 0,
    430 from where the last two solutions lead, and 260 with the secants of the last. Where fits
    take few steps, as on agaricus, secants did not help; nor did they save time where vectors are
    long: with 20,000 rows of 12 ones, 300 features and 45,450 columns.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.last: list[tuple[float, dict[str, Any]]] = []  # penalties and fitted attributes
        self.memory = Memory()

    def add(self, model: Any, rows: LocalRows) -> None:
        """Add a fitted model."""
        names = ("coef_", "intercept_", "column_space_", "classes_")
        fitted = {name: getattr(model, name) for name in names if hasattr(model, name)}
        self.last = [*self.last[-1:], (getattr(model, self.name), fitted)]
        if self.memory.model is not None:
            secants, _ = self.memory.model
            is_short = secants.basis.size <= SHORT * rows.n_outputs
            if secants.n_secants < MANY_SECANTS or not is_short:
                self.memory.model = None

    def next_start(self, model: Any) -> dict[str, Any]:
        """Return fitted attributes to start from with the penalty of a model, and the memory.

        Where the older solution is not needed any more, it is dropped.
        """
        found = {"memory": self.memory}
        if not self.last:
            return found
        penalty, newer = self.last[-1]
        factor = getattr(model, self.name) / penalty if penalty else np.inf
        self.memory.factor = factor if self.name == "C" else 1 / factor if factor else np.inf
        if self.memory.model is not None and np.isfinite(self.memory.factor):
            self.last = self.last[-1:]
            return newer | found
        self.memory.model = None
        return self._further(model) | found

    def _further(self, model: Any) -> dict[str, Any]:
        """Return attributes along the line through the last two solutions.

        The older one is dropped: its coefficients become those of the start.
        """
        if len(self.last) < 2:
            return self.last[0][1]
        (first, older), (second, newer) = self.last
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log([first, second, getattr(model, self.name)])
            ahead = (logs[2] - logs[1]) / (logs[1] - logs[0])
        if not np.isfinite(ahead):
            return newer
        self.last = self.last[1:]
        intercept = newer["intercept_"] + ahead * (newer["intercept_"] - older["intercept_"])
        coefficients = older["coef_"]
        coefficients -= newer["coef_"]
        coefficients *= -ahead
        coefficients += newer["coef_"]
        return {**newer, "coef_": coefficients, "intercept_": intercept}


class _Search:
    """The fits of all splits.

    Parameters
    ----------
    owner : CrossValidated
        The model whose penalty is chosen.
    models : list of PolynomialModel
        A plain model for each penalty, from the strongest to the weakest.
    rows : LocalRows
        All rows.
    has_weights : bool
        Whether they have weights.
    """

    def __init__(
        self, owner: Any, models: list[Any], rows: LocalRows, *, has_weights: bool
    ) -> None:
        self.owner, self.models, self.rows = owner, models, rows
        self.columns, loss = prepare(models[0], rows)
        require_memory_for(self.columns, loss.n_scores, owner._n_vectors)
        scorer = check_scoring(models[0], scoring=owner.scoring)
        self.scorer = HeldOutScorer(scorer, owner.scoring, has_weights=has_weights)
        self.ends: Counter[End] = Counter()

    def splits(self, X: Any, cv_groups: Any) -> Iterator[Split]:
        """Yield the splits, one after the other in memory."""
        splitter = check_cv(self.owner.cv, self.rows.y, classifier=is_classifier(self.owner))
        for number, parts in enumerate(splits_of(self.rows, splitter, X, cv_groups)):
            yield Split.of(self.rows, number, *parts)

    def scores(self, split: Split) -> NDArray[np.float64]:
        """Return the scores of the models on the held-out rows of a split."""
        found, name = [], self.owner._penalties.name
        try:
            for model, end in self.owner._fit_path(self.models, self.columns, split.training):
                self.ends[end] += 1
                found.append(self.scorer.score(model, split))
                if self.owner.verbose:
                    penalty = getattr(model, name)
                    print(
                        f"{type(self.owner).__name__} split {split.number}  {name} {penalty:.4g}  "
                        f"score {found[-1]:.6g}"
                    )
        except ValueError as error:
            error.add_note(f"This is split {split.number} of cross-validation.")
            raise
        return np.array(found)

    def warn(self, stacklevel: int) -> None:
        """Warn of fits that did not converge, all at once."""
        n_fits, n_bad = self.ends.total(), self.ends.total() - self.ends["converged"]
        if n_bad:
            warnings.warn(
                f"{n_bad} of {n_fits} fits of cross-validation did not converge, so that their "
                f"scores may be inaccurate. Raise max_iter or tol, scale the features, or leave "
                f"out the weakest of {self.owner._penalties.plural}.",
                ConvergenceWarning,
                stacklevel=stacklevel + 1,
            )


def _initializer(cls: type[CrossValidated]) -> Any:
    """Return `__init__`, whose signature is that of the plain model but for its penalty."""
    plain, penalties = cls._plain, cls._penalties
    parameters = [Parameter("self", Parameter.POSITIONAL_OR_KEYWORD)]
    for name, each in signature(plain).parameters.items():
        if name == penalties.name:
            each = each.replace(name=penalties.plural, default=10, annotation=Any)
        if name == "tol":
            parameters += [
                Parameter(own, Parameter.KEYWORD_ONLY, default=default, annotation=Any)
                for own, default in OWN.items()
            ]
        if name != "warm_start":
            parameters.append(each)
    whole = Signature(parameters)

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        bound = whole.bind(self, *args, **kwargs)
        bound.apply_defaults()
        del bound.arguments["self"]
        vars(self).update(bound.arguments)

    __init__.__signature__ = whole  # type: ignore[attr-defined]
    return __init__
