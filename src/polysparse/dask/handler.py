"""What other rooms hand over to Dask: a function for each of their functions and methods."""

from polysparse.dask.arrays import sample_of
from polysparse.dask.counting import count
from polysparse.dask.expansion import expand, iter_expand
from polysparse.dask.models import open_rows, predict
from polysparse.dask.refusals import operator, plan
from polysparse.dask.transformers import transform

__all__ = [
    "count",
    "expand",
    "iter_expand",
    "open_rows",
    "operator",
    "plan",
    "predict",
    "sample_of",
    "transform",
]
