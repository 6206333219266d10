"""`has_params` gives a stage params of the table, with getters, setters and `__init__`."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable
from dataclasses import replace
from inspect import Parameter, Signature
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from pyspark import keyword_only
from pyspark.ml.param import Params
from pyspark.sql.types import StructType

from polysparse.columns.arguments import groups_or_names
from polysparse.spark.attributes import feature_names, groups_by_variable
from polysparse.spark.param_table import METADATA, TABLE, ParamSpec

Self = TypeVar("Self", bound="Stage")
StageClass = TypeVar("StageClass", bound="type[Stage]")


class Stage(Params):  # type: ignore[misc]
    """A stage of a pipeline whose params come from the table, by way of `has_params`."""

    _specs: ClassVar[tuple[ParamSpec, ...]] = ()
    _vectors: ClassVar[str] = "inputCol"  # the param that names the column of vectors

    if TYPE_CHECKING:

        def __init__(self, **params: Any) -> None: ...

        def __getattr__(self, name: str) -> Any: ...

    def _set_defaults(self) -> None:
        own = (spec for spec in self._specs if not spec.is_dataset_column)
        self._setDefault(**{spec.name: spec.default for spec in own})

    def _python_arguments(
        self, schema: StructType | None = None, n_features: int | None = None
    ) -> dict[str, Any]:
        """Return the values of params by the arguments in Python of the same meaning.

        Groups and terms are None unless the schema and the number of features are known.
        """
        own = (spec for spec in self._specs if not spec.is_dataset_column)
        arguments = {spec.python_name: self.getOrDefault(spec.name) for spec in own}
        if schema is None or n_features is None:
            return arguments | {"groups": None, "terms": None}
        groups, terms, column = arguments["groups"], arguments["terms"], self._vectors
        field = schema[self.getOrDefault(column)]
        if groups == METADATA:
            groups = groups_by_variable(schema, field, n_features)
        names = feature_names(schema, field, n_features) if terms is not None else None
        return arguments | {"groups": groups_or_names(groups, terms, names)}


def has_params(
    *names: str, is_fitted: bool = False, **defaults: Any
) -> Callable[[StageClass], StageClass]:
    """Return a decorator that gives a stage params of the table.

    Parameters
    ----------
    *names : str
        The params, in the order of `__init__`.
    is_fitted : bool, default=False
        Whether the stage is a fitted model, which has an `__init__` of its own, and setters only
        for what can change after a fit.
    **defaults : object
        Defaults other than those in the table.

    Returns
    -------
    callable
        The decorator.
    """
    specs = tuple(
        replace(TABLE[name], default=defaults.get(name, TABLE[name].default)) for name in names
    )

    def decorate(stage: StageClass) -> StageClass:
        stage._specs = specs
        for spec in specs:
            setattr(stage, spec.name, spec.as_param())
            _add_method(stage, _getter(spec))
            if not is_fitted or spec.is_for_predictions:
                _add_method(stage, _setter(spec))
        if not is_fitted:
            _add_constructor(stage)
        return stage

    return decorate


def _add_method(stage: type[Stage], method: Any) -> None:
    method.__module__ = stage.__module__
    method.__qualname__ = f"{stage.__qualname__}.{method.__name__}"
    setattr(stage, method.__name__, method)


def _getter(spec: ParamSpec) -> Callable[..., Any]:
    def get(self: Stage) -> Any:
        return self.getOrDefault(spec.name)

    get.__name__ = f"get{spec.title}"
    get.__doc__ = f"Return the value of {spec.name}, or its default.\n\n{spec.doc}"
    get.__annotations__ = {"return": spec.annotation}
    return get


def _setter(spec: ParamSpec) -> Callable[..., Any]:
    def set_value(self: Self, value: Any) -> Self:
        return self._set(**{spec.name: value})  # type: ignore[no-any-return]

    set_value.__name__ = f"set{spec.title}"
    set_value.__doc__ = f"Set the value of {spec.name}, and return the stage.\n\n{spec.doc}"
    set_value.__annotations__ = {"value": spec.annotation}
    return set_value


def _add_constructor(stage: type[Stage]) -> None:
    """Add `__init__`, `setParams`, and the section Parameters of the docstring."""
    this = Parameter("self", Parameter.POSITIONAL_OR_KEYWORD)
    keywords = [
        Parameter(
            spec.name, Parameter.KEYWORD_ONLY, default=spec.default, annotation=spec.annotation
        )
        for spec in stage._specs
    ]
    signature = Signature([this, *keywords])

    @keyword_only  # type: ignore[untyped-decorator]
    def __init__(self: Stage, **params: Any) -> None:
        """Set the params that are given; others have their defaults."""
        signature.bind(self, **params)  # an unknown one raises TypeError
        super(stage, self).__init__()
        self._set_defaults()
        self._set(**params)

    @keyword_only  # type: ignore[untyped-decorator]
    def setParams(self: Self, **params: Any) -> Self:
        """Set the params that are given, and return the stage."""
        signature.bind(self, **params)
        return self._set(**params)  # type: ignore[no-any-return]

    for method in (__init__, setParams):
        method.__signature__ = signature
        _add_method(stage, method)
    if stage.__doc__:  # which python -OO removes
        stage.__doc__ = _with_parameters(stage.__doc__, stage._specs)


def _with_parameters(doc: str, specs: Iterable[ParamSpec]) -> str:
    """Return a docstring with a section on the params before the first section that it has."""
    lines = ["    Parameters", "    ----------"]
    for spec in specs:
        kind = spec.annotation
        kind = kind.__name__ if isinstance(kind, type) else str(kind).replace(" | ", " or ")
        lines.append(f"    {spec.name} : {kind}, default={spec.default!r}")
        lines += textwrap.wrap(spec.doc, 100, initial_indent=8 * " ", subsequent_indent=8 * " ")
    first = re.search(r"^ +\w[\w ]*\n +---", doc, re.MULTILINE)
    start = first.start() if first else len(doc)
    return "\n".join([doc[:start] + lines[0], *lines[1:], "", doc[start:]])
