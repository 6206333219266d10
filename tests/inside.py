"""The internals that tests change, each named here and nowhere else. `patch` is a MonkeyPatch."""

from functools import cache
from pkgutil import resolve_name
from types import SimpleNamespace

import numpy as np

from polysparse import machine, thresholds
from polysparse.engine import cpu

# Steps of writing a file, in their order.
STEPS = {
    "count": "polysparse.observation.tally.ColumnTally.count",
    "write the vocabulary": "polysparse.files.vocabulary.Vocabulary.write_aside",
    "fill": "polysparse.stream.expand._fill",
    "seal": "polysparse.files.store_writer.StoreWriter.seal",
    "name the vocabulary": "polysparse.files.vocabulary.VocabularySink.put",
    "finish": "polysparse.files.store_writer.StoreWriter.finish",
    "replace": "polysparse.files.store_writer.replace_directory",
}
_PATHS = {
    **STEPS,
    "pack": "polysparse.files.npz.NpzSink._pack",  # a store into an .npz file
    "sync": "polysparse.files.npz.sync",  # a piece of it
    "name the archive": "polysparse.files.npz.NpzSink.finish",
    "exchange": "polysparse.files.store_writer.exchange",  # two names in one step
    "count values": "polysparse.stream.expand.count_values",
    "read blocks": "polysparse.files.svmlight.iter_blocks",
    "read the vocabulary": "polysparse.files.vocabulary.Vocabulary.read",
    "inspect": "polysparse.engine.cpu.inspect",
    "allocate": "polysparse.matrix.output.allocate",
    "allocate on a GPU": "polysparse.gpu.engine.allocate",
    "fill rows": "polysparse.engine.cpu.fill",
    "look up": "polysparse.engine.cpu._lookup",  # chosen columns
    "look through": "polysparse.files.pieces.Piece.index_range",  # a piece of a file
    "apply": "polysparse.operator.products.Products.apply",
    "apply transposed": "polysparse.operator.products.Products.apply_transposed",
}


def lower(patch, **numbers):
    """Change thresholds, so that small data take a path meant for large data."""
    for name, number in numbers.items():
        patch.setattr(thresholds, name, number)


def lower_on_gpu(patch, **numbers):
    """Change numbers of the products on a GPU, each in the module that has it."""
    modules = {
        "HIGHEST": "products",  # degree by strips
        "MOST_OF_BASIS": "products",
        "PART": "parts",
        "MOST_TERMS": "tuple_products",
        "AT_A_TIME": "expansion",
        "GRAM_BYTES": "inner_products",
    }
    for name, number in numbers.items():
        patch.setattr(f"polysparse.gpu.{modules[name]}.{name}", number)


def give_less_shared_memory(patch, n_bytes):
    """Let kernels believe in so much shared memory on the GPU. No launch may ask for more."""
    from polysparse.gpu import compiling

    plain = compiling.launch_blocks

    def launch_blocks(*given, shared_bytes=0):
        assert shared_bytes <= n_bytes
        plain(*given, shared_bytes=shared_bytes)

    patch.setattr(compiling, "_shared_bytes", lambda device: n_bytes)
    for module in ("engine", "products"):
        patch.setattr(f"polysparse.gpu.{module}.launch_blocks", launch_blocks)


def set_available_memory(patch, n_bytes):
    """Pretend that this much memory is available. None means that it is not known."""
    patch.setattr(machine, "available_bytes", lambda: n_bytes)


def let_no_rows_be_copied(patch):
    """Pretend that memory is too short for the rows of a split of cross-validation."""
    patch.setattr("polysparse.models.splits.available_if_less", lambda n_bytes: 0)


def set_free_space(patch, n_bytes):
    """Pretend that this much of the disk is free."""
    patch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=n_bytes))


def read_small_blocks(patch):
    """Read text in blocks of 500 bytes, whatever the memory."""
    for name, number in {"memory.LEAST_READ": 500, "memory.READ_SHARE": 10**9}.items():
        patch.setattr(f"polysparse.stream.{name}", number)
    patch.setattr("polysparse.stream.predict.LEAST_MEMORY", 1)


def write_few_terms_at_a_time(patch):
    """Write the terms of a model in pieces of three."""
    patch.setattr("polysparse.models.terms.AT_A_TIME", 3)


def set_largest_graph(patch, n_bytes):
    """Pretend that an ONNX file may have no more bytes."""
    patch.setattr("polysparse.models.onnx_graph.MAX_BYTES", n_bytes)


def forbid_exchange(patch):
    """Pretend that the system cannot exchange two names in one step."""
    wrap(patch, "exchange", lambda _: lambda *_: False)


def wrap(patch, step, wrapper):
    """Replace the function that does a step by wrapper(function)."""
    patch.setattr(_PATHS[step], wrapper(resolve_name(_PATHS[step])))


def before(patch, step, action):
    """Call action(*arguments) before each call of the function that does a step."""

    def wrapper(function):
        def call(*arguments):
            action(*arguments)
            return function(*arguments)

        return call

    wrap(patch, step, wrapper)


def raising(error):
    """A function that raises the error, whatever it is called with."""

    def fail(*_, **__):
        raise error

    return fail


def fail_at(patch, step, error):
    """Make a step raise an error."""
    wrap(patch, step, lambda _: raising(error))


def interrupt_after(patch, step):
    """Make Ctrl-C arrive just after a step."""

    def wrapper(function):
        def call(*arguments):
            function(*arguments)
            raise KeyboardInterrupt

        return call

    wrap(patch, step, wrapper)


def forbid_unaligned(patch):
    """Fail if the engine is given an array that is not aligned."""

    def guarded(function):
        def call(*arguments, **named):
            for array in (*arguments, *named.values()):
                assert not isinstance(array, np.ndarray) or array.flags.aligned
            return function(*arguments, **named)

        return call

    functions = [(cpu, name) for name in cpu.__all__ if name.islower()]
    methods = [(cpu.Expansion, name) for name in ("apply", "apply_transposed")]
    for owner, name in functions + methods:
        patch.setattr(owner, name, guarded(getattr(owner, name)))


def forbid_expansion(patch):
    """Fail if any row is expanded into a file."""
    fail_at(patch, "fill", AssertionError("a row is expanded"))


def forbid_validation(patch):
    """Fail if scikit-learn validates the input of a transformer."""
    fail = raising(AssertionError("scikit-learn validates"))
    for module, name in (
        ("polynomial", "validate_data"),
        ("shared", "validate_data"),
        ("shared", "check_array"),
    ):
        patch.setattr(f"polysparse.estimators.{module}.{name}", fail)


def set_passes(patch, *passes):
    """Make each pass over an .npz or .mtx file read the next of these matrices."""
    left = iter(passes)
    patch.setattr(
        "polysparse.files.source.WholeSource.blocks", lambda *_: iter([(next(left), None)])
    )


def pretend_terminal(patch):
    """Pretend that standard error is a terminal."""
    patch.setattr("sys.stderr.isatty", lambda: True, raising=False)


def make_parser_once(patch):
    """Make the parser of the command line once, and not for every command."""
    path = "polysparse.cli.program.make_parser"
    patch.setattr(path, cache(resolve_name(path)))


def at_iteration(patch, iteration, action):
    """Call action() once, when a model has come to an iteration of its fit."""

    def wrapper(reporter):
        def make(*arguments):
            report, left = reporter(*arguments), [action]

            def call(number, *values):
                report(number, *values)
                if number == iteration and left:
                    left.pop()()

            return call

        return make

    path = "polysparse.models.base.PolynomialModel._reporter"
    patch.setattr(path, wrapper(resolve_name(path)))
