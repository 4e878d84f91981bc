"""How Sphinx makes the site of the documentation; `./run docs` calls it.

A page of docs links to files of the repository as they lie there, so that it reads the same in an editor. On the site,
links to notebooks lead to the executed notebook as a page, and links to other files download them.
"""

import re
import shutil
from importlib.metadata import version as version_of
from pathlib import Path

HERE = Path(__file__).parent
NOTEBOOKS = HERE / "notebooks"

project = "jaxgen"
author = "The jaxgen authors"
copyright = author
version = release = version_of("jaxgen")

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "myst_nb",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = [
    "build",
    "gallery_scripts",
    "gallery/*.ipynb",  # to be downloaded; the pages are made from the .rst
    "sg_execution_times.rst",
    "gallery/sg_execution_times.rst",
]
sphinx_gallery_conf = {
    "examples_dirs": "gallery_scripts",
    "gallery_dirs": "gallery",
    "within_subsection_order": "FileNameSortKey",
    "capture_repr": (),
    "show_memory": False,
    "show_signature": False,
    "remove_config_comments": True,
    "download_all_examples": False,
    "abort_on_example_error": True,
    "write_computation_times": False,
}
nb_execution_mode = "off"  # notebooks stand in the repository executed, and the tests execute them
nb_merge_streams = True
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3

autodoc_typehints = "none"  # docstrings say shapes, units and kinds
default_role = "code"
autodoc_member_order = "bysource"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
napoleon_attr_annotations = False

html_theme = "pydata_sphinx_theme"
html_title = "jaxgen"
html_theme_options = {
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 7,
    "show_prev_next": False,
}


def notebooks_as_pages():
    """Copies the notebooks to where Sphinx looks for pages."""
    shutil.rmtree(NOTEBOOKS, ignore_errors=True)
    shutil.copytree(HERE.parent / "notebooks", NOTEBOOKS, ignore=shutil.ignore_patterns(".*"))


def links_of_the_site(app, docname, source):
    """Links between pages and notebooks lead to the pages made of them; the name of a folder is no link on the site."""
    text = source[0].replace("](../notebooks/", "](notebooks/").replace("](../CHANGELOG.md)", "](changes.md)")
    if docname.startswith("notebooks/"):
        text = text.replace("](../docs/", "](../").replace("](../benchmarks/", "](../../benchmarks/")
    source[0] = re.sub(r"\[([^\]]+)\]\(\.\./(?:tests|benchmarks/results)\)", r"\1", text)


def plain_text(app, what, name, obj, options, lines):
    """Docstrings are plain text with code in backticks: no other sign of reStructuredText is meant as such. Several
    names with one description are set without spaces, since Sphinx takes what is before a space for a type.
    """
    for place, each in enumerate(lines):
        line = re.sub(r"^\s+\w+(, \w+)+:", lambda names: names[0].replace(", ", ","), each)
        parts = line.split("`")
        parts[::2] = [re.sub(r"([*|]|_(?!\w))", r"\\\1", part) for part in parts[::2]]
        lines[place] = "`".join(parts)


def setup(app):
    """Called by Sphinx."""
    notebooks_as_pages()
    app.connect("source-read", links_of_the_site)
    app.connect("autodoc-process-docstring", plain_text, priority=400)  # before napoleon
