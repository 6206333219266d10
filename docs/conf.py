"""How the site is built: `make docs`, without a network, with warnings as errors."""

from __future__ import annotations

import inspect
from typing import Any

from docutils import nodes
from docutils.utils.math import latex2mathml
from sphinx.application import Sphinx

import polysparse

project = "polysparse"
author = "The polysparse developers"
copyright = f"2026, {author}"
version = release = polysparse.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
    "sphinx_copybutton",
]
templates_path = ["_templates"]
exclude_patterns = ["gallery/*.ipynb", "gallery/*.py"]
highlight_language = "none"
nitpicky = True
# In docstrings, `this` is a link where it is the name of something, and code where it is not.
default_role = "py:obj"
nitpick_ignore_regex = [("py:obj", ".*")]
suppress_warnings = ["config.cache"]  # sphinx_gallery_conf has functions

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "none"  # numpydoc's sections have the types
autodoc_member_order = "groupwise"
numpydoc_show_class_members = False  # the template lists them
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "pydata_sphinx_theme"
html_title = "polysparse"
html_logo = html_favicon = "_static/logo.svg"
html_static_path = ["_static"]
html_css_files = ["site.css", "bijection.css"]
html_show_sourcelink = False
html_math_renderer = "mathml"
html_context = {"default_mode": "auto"}
toc_object_entries_show_parents = "hide"
html_theme_options = {
    "navbar_align": "left",
    "navigation_with_keys": True,
    "show_toc_level": 2,
    "secondary_sidebar_items": {"**": ["page-toc"], "speed": []},  # its tables are wide
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
}
html_sidebars = {"index": [], "get-started": [], "speed": []}


# --------------------------------------------------------------------------------------- gallery


def set_style(_config: Any, _example: str) -> None:
    """Give the figures of every example the same looks."""
    import matplotlib as mpl

    mpl.rcParams.update(
        {
            "figure.figsize": (8, 4.2),
            "figure.constrained_layout.use": True,
            "savefig.dpi": 120,
            "font.size": 11,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.axisbelow": True,
            "axes.grid": True,
            "grid.color": "0.9",
        }
    )


sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "within_subsection_order": "FileNameSortKey",
    "reset_modules": ("matplotlib", set_style),
    "backreferences_dir": "api/examples",
    "doc_module": ("polysparse",),
    "image_srcset": ["2x"],
    "remove_config_comments": True,
    "download_all_examples": False,
    "show_signature": False,
    "write_computation_times": False,
    "min_reported_time": 1,
}


# ------------------------------------------------------------------------------------- reference

# Methods that rooms of the house call on one another's objects.
INSIDE = {
    "as_rising", "bytes_per_value", "column_space", "degree_ends", "filled_index_dtype", "forget",
    "keep", "limit", "make_basis", "make_design", "named_columns", "names_that_may_clash", "of",
    "read", "read_sparse", "refuse", "reporter", "require_countable", "require_features",
    "require_parameters", "require_room_for_all", "room_for", "scores", "with_found",
}  # fmt: skip


def skip_member(
    _app: Sphinx, _what: str, name: str, member: Any, skip: bool, _options: Any
) -> bool | None:
    """Leave out what is inherited from other packages, and what only this one calls."""
    function = getattr(member, "fget", None) or getattr(member, "func", None) or member
    module = getattr(inspect.unwrap(function), "__module__", None) or ""
    return True if name in INSIDE or not module.startswith("polysparse") else None


# --------------------------------------------------------------------------------------- formulas


def visit_math(self: Any, node: nodes.math) -> None:
    """Write a formula as MathML, which browsers draw themselves: no script, no fonts to load."""
    display = isinstance(node, nodes.math_block)
    formula = latex2mathml.tex2mathml(node.astext(), as_block=display)
    self.body.append(f'<div class="formula">{formula}</div>\n' if display else formula)
    raise nodes.SkipNode


# ------------------------------------------------------------------------------------------ setup


def trim_code(_app: Sphinx, doctree: nodes.document) -> None:
    """Leave out the empty line that doctest needs at the end of a block in Markdown."""
    for block in doctree.findall(nodes.literal_block):
        block.rawsource = block.astext().rstrip()
        block[:] = [nodes.Text(block.rawsource)]


def setup(app: Sphinx) -> None:
    app.connect("autodoc-skip-member", skip_member)
    app.connect("doctree-read", trim_code)
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math, None))
