"""What other rooms hand over to the GPU: a function for each of their functions and methods."""

from polysparse.gpu.expansion import expand, iter_expand, plan
from polysparse.gpu.models import fit, predict
from polysparse.gpu.operators import operator
from polysparse.gpu.transformers import count, sample_of, transform

__all__ = [
    "count",
    "expand",
    "fit",
    "iter_expand",
    "operator",
    "plan",
    "predict",
    "sample_of",
    "transform",
]
