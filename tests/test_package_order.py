"""The order of packages: which may import which, and what only one of them may do."""

import ast
import re
from graphlib import TopologicalSorter
from pathlib import Path

from looping import loop_over

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "polysparse"

# A package may import those above it. ARCHITECTURE.md repeats this list.
PACKAGES = """
thresholds    numbers that tests lower
extras        how to install optional libraries
machine       memory and cores of this process
notebook      results as HTML
dispatch      the backend for the type of X
engine        the compiled kernels: count, fill, observe
basis         monomials and their order
columns       output columns: all, chosen, hashed
matrix        canonical input; the arrays of a result
display       tables and plots of results
tables        tables of variables, and their encoding as matrices
observation   counts of columns that occur
expansion     plan, expand, iter_expand
operator      matrix-vector products with the expansion, without building it
search        searches for the columns with the highest scores
files         formats to read and write, vocabularies, atomic paths
estimators    the scikit-learn transformers
models        linear models on the expansion, without building it
significance  tests of interactions
stream        from file to file in bounded memory
gpu           expansion, operator and models on a GPU
clusters      what Dask and Spark share
dask          on Dask: lazy arrays of blocks, models fitted to them
spark         on Spark: stages of its pipelines
paper         the paper's experiments
cli           the command line
"""
ORDER = [line.split()[0] for line in PACKAGES.split("\n") if line]


def modules():
    """Every module by its dotted name, but for the package itself and `python -m`."""
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        name = ".".join(part for part in parts if part != "__init__")
        if name not in ("", "__main__"):
            yield name, path


MODULES = dict(modules())
TREES = {name: ast.parse(path.read_text()) for name, path in MODULES.items()}


def imports_of(tree):
    """Dotted names that a module imports, anywhere in it, also only for types."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def own_imports_of(name):
    """Modules of polysparse that a module imports."""
    for imported in imports_of(TREES[name]):
        package, _, rest = imported.partition(".")
        if package != "polysparse":
            continue
        while rest not in MODULES and rest.partition(".")[0] != "_kernels":  # a name in a module
            rest = rest.rpartition(".")[0]
            assert rest, f"{name} imports {imported}"
        if rest in MODULES:
            yield rest


def strings_of(tree):
    return [n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and type(n.value) is str]


def package_of(module):
    return module.partition(".")[0]


def test_every_package_is_listed():
    assert {package_of(name) for name in MODULES} == set(ORDER)


@loop_over("name", MODULES)
def test_a_module_imports_only_from_its_package_and_those_above(name):
    allowed = ORDER[: ORDER.index(package_of(name)) + 1]
    for imported in own_imports_of(name):
        assert package_of(imported) in allowed, f"{name} imports {imported}"


def test_no_two_modules_import_each_other():
    graph = {name: set(own_imports_of(name)) - {name} for name in MODULES}
    TopologicalSorter(graph).prepare()  # raises for a cycle


def test_only_the_cpu_engine_imports_the_compiled_module():
    users = [n for n in MODULES if any("_kernels" in i for i in imports_of(TREES[n]))]
    assert users == ["engine.cpu"]


def test_every_package_has_a_docstring():
    for package in ORDER:
        docstring = ast.get_docstring(TREES[package])
        assert docstring, package
        if MODULES[package].name == "__init__.py":
            assert "\n\n" in docstring, f"{package} needs a paragraph"


def test_only_the_command_line_uses_argparse_and_names_flags():
    for name, tree in TREES.items():
        if package_of(name) == "cli":
            continue
        assert "argparse" not in set(imports_of(tree)), name
        texts = [text for text in strings_of(tree) if re.search(r"(?<![\w-])--[a-z]", text)]
        assert not texts, f"{name} names flags: {texts}"


def test_scikit_learn_is_used_by_its_public_interface():
    allowed = "estimators", "models", "significance", "dask", "paper"
    for name, tree in TREES.items():
        theirs = [i for i in imports_of(tree) if i.partition(".")[0] == "sklearn"]
        assert not theirs or package_of(name) in allowed, name
        assert not [i for i in theirs if "._" in i], f"{name} imports {theirs}"


def test_thresholds_are_read_where_they_are_needed():
    """A test that lowers a threshold does not change a copy of it."""
    for name, tree in TREES.items():
        copied = [i for i in imports_of(tree) if i.startswith("polysparse.thresholds.")]
        assert not copied, f"{name} copies {copied}"


def test_kernels_include_only_from_their_folder_and_those_above():
    order = [
        "platform",
        "basis",
        "matrix",
        "expand",
        "select",
        "observe",
        "search",
        "apply",
        "losses",
        "online",
        "text",
        "bindings",
    ]
    beside = {
        "select": {"observe"},
        "observe": {"select"},
        "search": {"select"},
        "apply": {"observe", "search"},
        "losses": {"select", "observe", "search", "apply"},
        "online": {"observe", "search"},
        "text": {"select", "observe", "search", "apply", "losses", "online"},
    }
    for path in (ROOT / "src" / "kernels").rglob("*.?pp"):
        folder = path.relative_to(ROOT / "src" / "kernels").parts[0]
        allowed = set(order[: order.index(folder) + 1]) - beside.get(folder, set())
        for line in path.read_text().splitlines():
            if line.startswith('#include "'):
                included = line.split('"')[1]
                assert included.partition("/")[0] in allowed, f"{path.name} includes {included}"


def test_the_architecture_lists_the_packages():
    assert PACKAGES.strip() in (ROOT / "ARCHITECTURE.md").read_text()
