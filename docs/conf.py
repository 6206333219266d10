"""How the site is built: `make docs`, without a network, with warnings as errors."""

from __future__ import annotations

from functools import cached_property
from importlib.util import find_spec
from typing import Any

from docutils import nodes
from docutils.utils.math import latex2mathml
from sphinx import addnodes
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
# The reference needs no cluster: what is not installed is stood in for.
ENGINES = ("dask", "distributed", "pyspark")
autodoc_mock_imports = [name for name in ENGINES if find_spec(name) is None]
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
    "logo": {"text": "polysparse"},
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

# A method is part of the interface if its docstring has an example, or if it is one of these.
USUAL = {
    "decision_function", "fit", "forget_rejected", "get_feature_names_out", "load", "partial_fit",
    "plot_top_terms", "predict", "predict_log_proba", "predict_proba", "save", "to_onnx", "to_text",
    "transform",
}  # fmt: skip
INSIDE = {"bytes_per_value", "filled_index_dtype"}  # properties that other packages read


def skip_member(
    _app: Sphinx, _what: str, name: str, member: Any, skip: bool, _options: Any
) -> bool | None:
    """Leave out what is inherited from other packages, and what only this one calls."""
    is_property = isinstance(member, property | cached_property)
    function = member if not is_property else getattr(member, "fget", None) or member.func
    module = str(getattr(function, "__module__", ""))
    is_shown = is_property or name in USUAL or ">>> " in (member.__doc__ or "")
    return None if is_shown and name not in INSIDE and module.startswith("polysparse") else True


# --------------------------------------------------------------------------------------- formulas


def visit_math(self: Any, node: nodes.math) -> None:
    """Write a formula as MathML, which browsers draw themselves: no script, no fonts to load."""
    display = isinstance(node, nodes.math_block)
    formula = latex2mathml.tex2mathml(node.astext(), as_block=display)
    self.body.append(f'<div class="formula">{formula}</div>\n' if display else formula)
    raise nodes.SkipNode


# ------------------------------------------------------------------------------------------ setup

LINKED = nodes.paragraph, nodes.strong, nodes.emphasis  # in which names are links


def trim_code(_app: Sphinx, doctree: nodes.document) -> None:
    """Leave out the empty line that doctest needs at the end of a block in Markdown."""
    for block in doctree.findall(nodes.literal_block):
        block.rawsource = block.astext().rstrip()
        block[:] = [nodes.Text(block.rawsource)]


def link_names(app: Sphinx, doctree: nodes.document) -> None:
    """Link every public name that stands in a text as code to its page of the reference."""
    for literal in list(doctree.findall(nodes.literal)):
        name = literal.astext().partition("(")[0]
        if name not in polysparse.__all__ or not isinstance(literal.parent, LINKED):
            continue
        link = addnodes.pending_xref("", refdomain="py", reftype="obj", refexplicit=True)
        link["reftarget"], link["refdoc"] = f"polysparse.{name}", app.env.docname
        literal.replace_self(link)
        link += literal


def setup(app: Sphinx) -> None:
    app.connect("doctree-read", link_names)
    app.connect("autodoc-skip-member", skip_member)
    app.connect("doctree-read", trim_code)
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math, None))
