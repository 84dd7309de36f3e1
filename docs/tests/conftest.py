# SPDX-License-Identifier: BSD-3-Clause
"""Shared fixtures of the guide's tests: its Sphinx extensions, fresh processes, single pages, and the whole site."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[1]
ROOT = DOCS.parent
sys.path[:0] = [str(ROOT), str(DOCS / "_extensions"), str(DOCS / "tests")]

from python_command import PythonCommand  # noqa: E402
from sphinx.application import Sphinx  # noqa: E402

from openreg_testing.fresh import FreshPython  # noqa: E402


def pytest_addoption(parser):
    parser.addoption("--site", help="the built site; without it the tests build it")


def build(source, output, **settings):
    """Builds a folder of pages; gives the warnings."""
    warnings = io.StringIO()
    app = Sphinx(
        source,
        None if "extensions" in settings else source,
        output,
        output / ".doctrees",
        "html",
        # A second build in one process registers Sphinx's own nodes once more.
        confoverrides={"suppress_warnings": ["app"], **settings},
        status=io.StringIO(),
        warning=warnings,
        freshenv=True,
    )
    app.build(force_all=True)
    return warnings.getvalue()


@pytest.fixture(scope="session")
def run_python():
    """Runs a program in a process that has imported torch, with these settings and none of the caller's.

    The backend is loaded before the program begins, unless TORCH_DEVICE_BACKEND_AUTOLOAD is 0.
    """
    # Besides torch, what takes long to import and many programs need: every profile, export and compilation imports
    # torch._dynamo, and every page what run_page.py does.
    python = FreshPython("torch._dynamo", "sybil.evaluators.doctest", "sybil.parsers.markdown.lexers")

    def run(program, folder, settings):
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("OPENREG_", "TORCH_"))}
        return python.run("-c", program, env=kept | settings, folder=folder, timeout=280)

    yield run
    python.close()


@pytest.fixture(scope="session")
def tools(tmp_path_factory):
    """The PATH of the pages: a `python` that forks where the system can, this Python's folder, the caller's PATH."""
    # Compilers of extensions look for ninja in the second.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    if not hasattr(os, "fork"):
        yield path
        return
    python = FreshPython("torch._dynamo")
    command = PythonCommand(tmp_path_factory.mktemp("python"), python)
    yield os.pathsep.join([str(command.folder), path])
    command.close()
    python.close()


@pytest.fixture
def page(tmp_path):
    """Builds one page from its Markdown; gives its HTML, without the places where names may break, and the warnings."""

    def build_page(text, **settings):
        source = tmp_path / "pages"
        source.mkdir()
        own = sorted(path.stem for path in (DOCS / "_extensions").iterdir() if path.stem[0] not in "._")
        (source / "index.md").write_text(f"# Page\n\n{text}\n", encoding="utf-8")
        warnings = build(
            source,
            tmp_path / "site",
            extensions=["myst_parser", "sphinx_design", *own],
            myst_enable_extensions=["colon_fence"],
            html_theme="basic",
            nitpicky=True,
            **settings,
        )
        return (tmp_path / "site" / "index.html").read_text("utf-8").replace("<wbr>", ""), warnings

    return build_page


@pytest.fixture(scope="session")
def site(request, tmp_path_factory):
    """The folder of the built site."""
    given = request.config.getoption("--site")
    if given:
        return Path(given)
    folder = tmp_path_factory.mktemp("site")
    warnings = build(DOCS, folder, timeline_unshown="draw")
    assert warnings == ""
    return folder
