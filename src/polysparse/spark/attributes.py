"""What MLlib's attributes tell about the features of a column: names, levels, variables.

StringIndexer, OneHotEncoder and VectorAssembler describe what they make in the metadata of columns.
OneHotEncoder names the features of a column by their levels, as binary attributes. VectorAssembler
puts the name of that column and "_" before them. The level of a feature is found by comparing both.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

from pyspark.ml.linalg import VectorUDT
from pyspark.sql.types import StructField, StructType

ML_ATTR = "ml_attr"  # MLlib's key for what it knows about a column

# Endings of the names of columns that encoders make: "city_vec", "cityOneHot", "city_index".
_ENCODED = re.compile(
    r"(?<=.)(_(vec|vector|ohe|one_?hot|encoded)|Vec|Vector|OHE|One_?[Hh]ot|Encoded)$"
)
_INDEXED = re.compile(r"(?<=.)(_(index|idx|indexed)|Index|Idx|Indexed)$")


@dataclass(frozen=True)
class Level:
    """What a feature of OneHotEncoder indicates."""

    column: str  # the column of vectors that OneHotEncoder made
    name: str


def attributes_of(field: StructField) -> list[dict[str, Any]]:
    """Return the attributes of a column's features."""
    kinds = (field.metadata.get(ML_ATTR) or {}).get("attrs") or {}
    return list(chain.from_iterable(kinds.values()))


def feature_names(schema: StructType, field: StructField, n_features: int) -> list[str] | None:
    """Return the names of all features, `x<index>` by default; None if none has a name.

    A level is named after its variable, such as "city=Rome".
    """
    names = {each["idx"]: each["name"] for each in attributes_of(field) if "name" in each}
    if not names:
        return None
    levels = _levels(schema, field)
    variables = _variables(schema, field, levels)
    for j, level in levels.items():
        if level is not None:
            names[j] = f"{variables[level.column]}={level.name}"
    return [names.get(j, f"x{j}") for j in range(n_features)]


def groups_by_variable(schema: StructType, field: StructField, n_features: int) -> list[str | None]:
    """Return the variable of each level that OneHotEncoder made, and None for other features.

    ValueError is raised if the metadata do not have what is needed.
    """
    if not attributes_of(field):
        raise ValueError(
            f"groups='metadata', but column {field.name!r} has no metadata on its features: "
            "assemble it with VectorAssembler, or set groups to a label for each feature."
        )
    levels = _levels(schema, field)
    for j, level in levels.items():
        if level is None:
            name = next(each.get("name", "") for each in attributes_of(field) if each["idx"] == j)
            raise ValueError(
                f"groups='metadata', but feature {name!r} of column {field.name!r} is not named "
                "after a single column of vectors: keep the columns that VectorAssembler took "
                "features from, rename them, or set groups to a label for each feature."
            )
    variables = _variables(schema, field, levels)
    groups: list[str | None] = [None] * n_features
    for j, level in levels.items():
        groups[j] = variables[level.column] if level is not None else None
    return groups


# ------------------------------------------------------------------------------------------ levels


def _levels(schema: StructType, field: StructField) -> dict[int, Level | None]:
    """Return the level of each binary feature; None if it is not known.

    Binary features that are columns of their own, as those of Binarizer, are left out.
    """
    encoded = {
        each.name: {name: i for i, name in _names_within(each).items()}
        for each in schema
        if isinstance(each.dataType, VectorUDT) and each.name != field.name
    }
    names = _names_within(field)
    found: dict[int, Level | None] = {}
    for each in _binary(field):
        j, name = each["idx"], each.get("name", "")
        levels = list(_levels_named(name, encoded))
        if len(levels) > 1:
            levels = [level for level in levels if _is_at(j, level, names, encoded[level.column])]
        if levels or name not in schema.names:
            found[j] = levels[0] if len(levels) == 1 else None
    return found


def _levels_named(name: str, encoded: dict[str, dict[str, int]]) -> Iterator[Level]:
    """Yield the levels that VectorAssembler gives a name to.

    `encoded` has the names of features in other columns, and their numbers. If such a column was
    assembled, too, the level is that of the column that it was assembled from.
    """
    for column, numbers in encoded.items():
        within = name.removeprefix(f"{column}_")
        if within != name and within in numbers:
            others = {each: encoded[each] for each in encoded if each != column}
            nested = list(_levels_named(within, others))
            yield from nested or [Level(column, within)]


def _is_at(j: int, level: Level, names: dict[int, str], numbers: dict[str, int]) -> bool:
    """Return whether all features of a level's column are there, in order, around feature j."""
    first = j - numbers[level.name]
    return all(names.get(first + i) == f"{level.column}_{name}" for name, i in numbers.items())


def _binary(field: StructField) -> list[dict[str, Any]]:
    kinds = (field.metadata.get(ML_ATTR) or {}).get("attrs") or {}
    return list(kinds.get("binary") or [])


def _names_within(field: StructField) -> dict[int, str]:
    """Return the names that VectorAssembler appends to that of the column."""
    return {each["idx"]: each.get("name", str(each["idx"])) for each in attributes_of(field)}


# --------------------------------------------------------------------------------------- variables


def _variables(
    schema: StructType, field: StructField, levels: dict[int, Level | None]
) -> dict[str, str]:
    """Return the name of the variable of each column of levels: "city" for "city_vec".

    A column keeps its name if that of the variable is also another one's, or that of a feature.
    """
    columns = {level.column for level in levels.values() if level is not None}
    shorter = {column: _variable(schema, column) for column in columns}
    taken = Counter(shorter.values())
    taken.update(each.get("name", "") for each in attributes_of(field) if each["idx"] not in levels)
    taken.update(column for column in columns if shorter[column] != column)
    return {
        column: name if taken[name] == 1 else column for column, name in sorted(shorter.items())
    }


def _variable(schema: StructType, column: str) -> str:
    """Return a column's name without the endings that tell how it was encoded."""
    name = _ENCODED.sub("", column)
    if name == column or name not in schema.names:
        return name
    is_index = (schema[name].metadata.get(ML_ATTR) or {}).get("type") == "nominal"
    return _INDEXED.sub("", name) if is_index else name
