"""The command `plan`, which describes the expansion of a file."""

from __future__ import annotations

import argparse
import json
from contextlib import closing
from dataclasses import replace
from typing import Any

from polysparse import machine
from polysparse.cli.options import (
    add_basis,
    add_columns,
    add_dtype,
    add_input,
    add_memory,
    add_strict,
    kind_of_columns,
    require_one_kind_of_columns,
)
from polysparse.cli.progress_bar import ProgressBar
from polysparse.cli.request import (
    open_input,
    plan_output,
    print_dropped,
    read_vocabulary,
)
from polysparse.expansion.planning import ExpansionPlan
from polysparse.files.source import Source
from polysparse.machine import format_bytes, format_count
from polysparse.stream.memory import memory_for_columns, memory_for_rows
from polysparse.stream.resources import MEMORY, Resources
from polysparse.stream.rows import count_outputs, count_values

NPY_HEADER = 128  # bytes


def add_to(commands: Any) -> None:
    """Add the command to a parser."""
    parser = commands.add_parser(
        "plan",
        usage="polysparse plan IN [options]",
        help="describe an expansion, without computing it",
        description="Describe the expansion of a file: shape, stored values, bytes, and "
        "which ways of computing it fit in memory. --observed counts the columns, and "
        "--vocabulary, --groups and --terms the stored values, to be exact; with --hashed they are "
        "an upper bound.",
    )
    add_input(parser)
    add_basis(parser)
    add_columns(parser)
    add_strict(parser, "that --vocabulary does not have")
    add_dtype(parser)
    add_memory(parser, None, "1GiB; counts of columns may take what is available")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run, jobs=None)


def run(options: argparse.Namespace) -> None:
    """Print the plan of a file's expansion."""
    require_one_kind_of_columns(options)
    vocabulary = read_vocabulary(options)
    with closing(open_input(options, vocabulary)) as source:
        groups = options.groups, options.terms, source.groups
        is_counted = options.observed or vocabulary or any(each is not None for each in groups)
        with ProgressBar(not is_counted, source.summary.n_rows) as progress:
            resources = Resources(options.max_memory, progress=progress)
            plan, _ = plan_output(options, source, vocabulary, resources)
            if vocabulary is not None:
                plan = count_values(
                    source, plan, replace(resources, max_memory=_room(plan, source))
                )
            elif plan.found is None and not plan.profile.is_exact(plan.basis):
                plan = count_outputs(source, plan, resources)
        has_labels = source.summary.has_labels
        is_upper_bound = plan.found is None and (source.is_upper_bound or plan.is_upper_bound)
        base, why = source.base, source.reason_for_base
        print_dropped(source, options.vocabulary, options)
    content = _plan_content(plan, has_labels) | {
        "columns": kind_of_columns(options),
        "is_upper_bound": is_upper_bound,
        "first_index": base,
        "first_index_because": None if base is None else why or "it was given",
    }
    if options.json:
        print(json.dumps(content))
    else:
        _print_plan(plan, content)


def _room(plan: ExpansionPlan, source: Source) -> int:
    """Return the memory in which the rows can be counted, whatever the limit for expanding them."""
    return memory_for_rows(plan) + memory_for_columns(plan) + source.resident_bytes + MEMORY


def _plan_content(plan: ExpansionPlan, has_labels: bool) -> dict[str, Any]:
    """Return the numbers of a plan, for JSON."""
    available = machine.available_bytes()
    in_blocks = memory_for_rows(plan) + memory_for_columns(plan)
    return {
        "shape": plan.shape,
        "nnz": plan.nnz,
        "nnz_by_degree": plan.nnz_by_degree,
        "dtype": str(plan.dtype),
        "index_dtype": str(plan.index_dtype),
        "bytes": plan.nbytes,
        "bytes_by_degree": {d: n * plan.bytes_per_value for d, n in plan.nnz_by_degree.items()},
        "bytes_on_disk": plan.nbytes + 8 * plan.n_rows * has_labels + NPY_HEADER * (3 + has_labels),
        "bytes_available": available,
        "fits": {
            "whole": available is None or plan.nbytes + plan._working_bytes(1) <= available,
            "in blocks": available is None or in_blocks <= available,
        },
    }


def _print_plan(plan: ExpansionPlan, content: dict[str, Any]) -> None:
    """Print the plan, its size on disk, and the ways to compute it."""
    print(plan)
    if content["columns"] != "all":
        print(f"columns: {content['columns']}; all would be {format_count(plan.basis.n_columns)}")
    if content["is_upper_bound"]:
        also = "zeros and duplicates in IN"
        if content["columns"] == "hashed":
            also = "terms of a row that share a column, zeros and duplicates in IN"
        print(f"stored values and bytes are upper bounds: {also} are counted")
    print(f"on disk: about {format_bytes(content['bytes_on_disk'])} as a directory or .npz")
    if content["bytes_available"] is not None:
        print(f"available memory: {format_bytes(content['bytes_available'])}")
    ways = {"whole": "polysparse.expand", "in blocks": "polysparse expand, polysparse.iter_expand"}
    for name, way in ways.items():
        print(f"{name:<10} {'fits' if content['fits'][name] else 'does not fit'} ({way})")
