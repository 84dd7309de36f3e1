# SPDX-License-Identifier: BSD-3-Clause
"""The table of what PyTorch asks of the device is true, its page is current, and an untrue table is found out.

Whether it is complete is tested where PyTorch is installed: packages/openreg-runtime/tests/test_hooks_complete.py.
"""

import pytest

from tools import hooks
from tools.packages import ROOT

TABLE = """
[guard]
title = "Guard"
about = "About guards."
code = ["runtime/guard.cpp"]

[guard.getDevice]
reader = "torch"
tests = ["runtime/test_guard.py::test_it"]

[guard."rest, and more"]
reader = "nobody"
status = "not applicable: nobody asks"
"""


@pytest.fixture
def tree(tmp_path):
    """A repository whose table is true."""
    for name, text in {
        hooks.DATA: TABLE,
        "packages/openreg-runtime/guard.cpp": "",
        "packages/openreg-runtime/tests/test_guard.py": "def test_it():\n    pass\n",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path


def test_the_table_of_this_repository_is_true():
    assert hooks.problems() == []


def test_the_page_is_what_the_table_gives():
    assert (ROOT / hooks.PAGE).read_text("utf-8") == hooks.render(), "run python -m tools.hooks"


def test_a_true_table_is_accepted(tree):
    assert hooks.problems(tree) == []


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ("guard.cpp", "guards.cpp", "no file packages/openreg-runtime/guards.cpp"),
        ("::test_it", "::test_that", "no test test_that in packages/openreg-runtime/tests/test_guard.py"),
        ("test_guard.py::", "test_gone.py::", "no test test_it in packages/openreg-runtime/tests/test_gone.py"),
        ('tests = ["runtime/test_guard.py::test_it"]', "", "no test fails without it"),
        ("not applicable: nobody", "nobody", "the status should begin with"),
    ],
)
def test_an_untrue_table_is_found_out(tree, old, new, text):
    data = tree / hooks.DATA
    data.write_text(data.read_text("utf-8").replace(old, new), encoding="utf-8")
    (problem,) = hooks.problems(tree)
    assert text in problem


def test_a_row_becomes_a_line_with_links(tree):
    page = hooks.render(tree)
    assert "## Guard\n\nAbout guards.\n" in page
    answer = "[guard.cpp](../guard.cpp) | [test_guard](../tests/test_guard.py): it"
    assert f"| `getDevice` | torch | 2.13 | implemented | {answer} |" in page
    assert "| `rest`<br>`and more` | nobody | 2.13 | not applicable: nobody asks |  |  |" in page
