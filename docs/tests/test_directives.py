# SPDX-License-Identifier: BSD-3-Clause
"""The guide's directives and roles show what exists and refuse what does not."""

import re

import pytest
from guide.diagram import COLORS, package_graph
from guide.tables import suite_rows, undocumented
from pages import DOCS

from openreg_doctor import declarations
from openreg_testing.conformance import suite_tests
from openreg_testing.conformance.operators.checks import CHECKS, ON_DEMAND
from tools.packages import discover

GUARD = "packages/openreg-runtime/csrc/pytorch/guard.cpp"
STARTUP = "packages/openreg-runtime/src/openreg_runtime/_startup.py"


@pytest.mark.parametrize(
    ("role", "shown"),
    [
        (f"{{path}}`{GUARD}`", GUARD),
        ("{session}`docs`", "nox -s docs"),
        (
            "{test}`tests/tools/test_hooks.py::test_what_the_packages_declare_is_true`",
            "test_what_the_packages_declare_is_true",
        ),
        (f"{{symbol}}`load_native_module <{STARTUP}>`", "load_native_module"),
        ("{message}`PyTorch has room for one PrivateUse1 backend per process, and ... already is registered`", "room"),
    ],
)
def test_a_role_shows_what_exists(page, role, shown):
    html, warnings = page(role)
    assert warnings == ""
    assert shown in re.sub("<[^>]+>", "", html)


@pytest.mark.parametrize(
    ("role", "problem"),
    [
        ("{path}`packages/openreg-nothing`", "no file or folder packages/openreg-nothing"),
        ("{session}`fly`", "no nox session fly"),
        ("{test}`tests/tools/test_hooks.py::test_nothing`", "no test test_nothing in tests/tools/test_hooks.py"),
        ("{test}`tests/test_nothing.py`", "no file tests/test_nothing.py"),
        (f"{{symbol}}`no_such_function <{STARTUP}>`", "has no symbol 'no_such_function'"),
        ("{symbol}`load_native_module`", "in angle brackets"),
        ("{message}`the moon is made of openreg`", "no code says"),
        ("{setting}`OPENREG_NOTHING`", "OPENREG_NOTHING"),
    ],
)
def test_a_role_refuses_what_does_not_exist(page, role, problem):
    _, warnings = page(role)
    assert problem in warnings


def test_a_new_process_is_shown_with_its_settings(page):
    html, warnings = page("% new process: OPENREG_POISON=1\n\ntext\n\n% new process\n\n% another comment")
    assert warnings == ""
    assert html.count('class="new-process"') == 2
    assert "OPENREG_POISON=1" in html
    assert "another comment" not in re.sub("<!--.*?-->", "", html)


def test_settings_are_a_table_that_the_role_links_to(page):
    html, warnings = page("{setting}`OPENREG_POISON`\n\n:::{settings}\n:::")
    assert warnings == ""
    assert 'href="#setting-OPENREG_POISON"' in html or 'href="#setting-openreg-poison"' in html
    assert "fills memory with NaN" in html


def test_a_setting_that_is_not_declared_and_a_declaration_without_a_setting_are_named():
    row = {"example": "`1`", "default": "0", "meaning": "it"}
    assert undocumented({"OPENREG_A": row, "PYTORCH_B": row}, frozenset({"OPENREG_A"})) == []
    assert undocumented(
        {"OPENREG_A": row, "OPENREG_C": {**row, "meaning": ""}}, frozenset({"OPENREG_B", "OPENREG_C"})
    ) == [
        "OPENREG_B: read by the code, declared in no doctor.toml",
        "OPENREG_A: declared in a doctor.toml, read by no code",
        "OPENREG_C: declared without meaning",
    ]


def test_hooks_have_a_table_per_interface(page):
    html, warnings = page(":::{hooks}\n:::")
    assert warnings == ""
    (row,) = re.findall(r'<tr[^>]*><td><p><code[^>]*><span class="pre">set_sync_debug_mode<.*?</tr>', html, re.DOTALL)
    assert "users that look for unintended waits" in row
    assert re.findall(r'href="_downloads/.*?<span class="pre">(.*?)</span>', row) == [
        *("runtime/src/openreg_runtime/openreg/_sync_debug.py", "runtime/csrc/base/sync_debug.cpp"),
        *("ops/tests/launches/test_sync_debug.py",) * 2,
        *("runtime/tests/device/test_sync_debug.py",) * 2,
    ]
    assert "what makes the host wait is refused" in row
    (row,) = re.findall(r"<tr[^>]*><td><p>(?:(?!</tr>).)*power_draw.*?</tr>", html, re.DOTALL)
    assert "a simulated device has no sensors and one process" in row


def test_changed_interfaces_have_a_table_per_release(page):
    html, warnings = page(":::{interface-changes}\n:::")
    assert warnings == ""
    assert re.findall(r"<h\d>Functions of ([\d.]+)", html) == list(declarations.read_record())[1:]
    (row,) = re.findall(r"<tr[^>]*><td><p>(?:(?!</tr>).)*philox_state.*?</tr>", html, re.DOTALL)
    assert "void (uint64_t, at::Tensor&amp;, at::Tensor&amp;, at::Tensor&amp;)" in re.sub("<[^>]+>", "", row)
    assert "kernels written in Triton or Python" in row
    (row,) = re.findall(r"<tr[^>]*><td><p>(?:(?!</tr>).)*process_events</span>.*?</tr>", html, re.DOTALL)
    assert "before: void (BlockPool&amp;)" in re.sub("<[^>]+>", "", row)


def test_stubs_have_a_table_per_header(page):
    html, warnings = page(":::{stubs}\n:::")
    assert warnings == ""
    assert re.search(r"<h\d>ATen/native/UnaryOps.h", html)
    (row,) = re.findall(r'<tr[^>]*><td><p><code[^>]*><span class="pre">abs_stub<.*?</tr>', html, re.DOTALL)
    assert re.findall(r'<span class="pre">(.*?)</span>', row)[:3] == ["abs_stub", "abs", "abs_out"]


def test_the_conformance_suites_are_a_table_of_their_files(page, tmp_path):
    html, warnings = page(":::{suites}\n:::")
    assert warnings == ""
    text = re.sub("<[^>]+>", " ", html)
    assert all(name in text for name in suite_tests.names())
    assert "positions in a stream for which the host or a stream can wait" in text
    (tmp_path / "test_one.py").write_text('"""One\ntwo.\n\nThree."""\ndef test_a(): ...\ndef b(): ...\n', "utf-8")
    assert suite_rows(tmp_path) == [("one", 1, "One two.")]


def test_the_page_about_conformance_lists_all_checks_of_operators():
    text = (DOCS / "testing" / "conformance.md").read_text("utf-8")
    listed = re.findall(r"(?m)^\| `([\w-]+)`", text.split("## The checks of operators")[1].split("\n## ")[0])
    assert listed == [*CHECKS, *ON_DEMAND]


def test_a_diagram_becomes_a_drawing_in_the_colors_of_the_page(page):
    html, warnings = page(":::{diagram} Two boxes\ndigraph { a -> b; a [fillcolor=lightblue] }\n:::")
    assert warnings == ""
    assert "<title>Two boxes</title>" in html
    assert COLORS["lightblue"] in html
    assert 'fill="lightblue"' not in html


@pytest.mark.parametrize(
    ("drawing", "problem"),
    [
        ("digraph { a -> }", "Graphviz refuses the drawing"),
        ("digraph { a [fillcolor=pink] }", "no color 'pink'"),
        ("a to b", "a drawing begins with"),
        ("digraph { rankdir=LR a -> b -> c -> d -> e -> f -> g }", "points wide, and a narrow screen has room for"),
    ],
)
def test_a_wrong_diagram_is_refused(page, drawing, problem):
    _, warnings = page(f":::{{diagram}} Wrong\n{drawing}\n:::")
    assert problem in warnings


def test_the_graph_of_packages_has_the_dependencies_of_their_projects(page):
    graph = package_graph(discover())
    assert '"openreg-ops" -> "openreg-runtime"' in graph
    assert '"openreg-runtime" -> "torch"' in graph
    _, warnings = page(":::{package-diagram} Packages\n:::")
    assert warnings == ""


@pytest.mark.parametrize("link", ["../outside.md", "../outside.md#a-section"])
def test_a_link_to_a_document_outside_of_the_guide_leads_to_the_file(page, tmp_path, link):
    (tmp_path / "outside.md").write_text("# Outside\n", encoding="utf-8")
    html, warnings = page(f"[text]({link})")
    assert warnings == ""
    (target,) = re.findall(r'href="(_downloads/[^"]+/outside\.md)"', html)
    assert (tmp_path / "site" / target).read_text("utf-8") == "# Outside\n"


def test_a_link_to_a_document_that_is_not_there_is_refused(page):
    _, warnings = page("[text](../nothing.md)")
    assert "nothing.md" in warnings
