"""Divisions of features into groups, and terms of them, for any number of features."""

from itertools import combinations


def contiguous(n):
    """Groups of 1, 2, 3, ... neighbors."""
    labels = [label for size in range(1, n + 1) for label in [f"g{size}"] * size]
    return labels[:n]


def interleaved(n):
    """Every third feature is in the same group."""
    return [f"g{j % 3}" for j in range(n)]


def one_group(n):
    """A single group: only main effects."""
    return ["all"] * n


def some_alone(n):
    """Pairs of neighbors, with features of their own between them."""
    return [None if j % 3 == 2 else f"g{j // 3}" for j in range(n)]


def apart(n):
    """The first and the last feature in one group, others on their own."""
    return ["ends" if j in (0, n - 1) else None for j in range(n)]


def with_empty(n):
    """Sizes of neighbors, with empty groups before, between and after them."""
    sizes = {"e0": 0}
    for label in contiguous(n):
        if label not in sizes:
            sizes |= {label: 0, f"e{len(sizes)}": 0}
        sizes[label] += 1
    return sizes


GROUPINGS = [contiguous, interleaved, one_group, some_alone, apart, with_empty]


def labels_of(groups):
    """The label of each feature, of groups that may be given by their sizes."""
    if not isinstance(groups, dict):
        return groups
    return [label for label, size in groups.items() for _ in range(size)]


def all_terms(labels, degree):
    """Every term of up to so many groups with a label, the last ones first within a degree."""
    named = [*dict.fromkeys(label for label in labels if label is not None)]
    return [term for d in range(1, degree + 1) for term in reversed([*combinations(named, d)])]
