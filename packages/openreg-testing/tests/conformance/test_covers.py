# SPDX-License-Identifier: BSD-3-Clause
"""Every test of the conformance suites names rows of the hook table, and states what PyTorch expects."""

import ast
import subprocess
import sys

import pytest

from openreg_testing.conformance import harness, suite_tests

TESTS = [
    (path.stem, node)
    for path in sorted(suite_tests.FOLDER.glob("test_*.py"))
    for node in ast.walk(ast.parse(path.read_text("utf-8")))
    if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
]


def covered(path_stem, node):
    """The rows that a test's decorator names; constants of its module are looked up."""
    source = ast.parse((suite_tests.FOLDER / f"{path_stem}.py").read_text("utf-8"))
    constants = {
        item.targets[0].id: item.value.value
        for item in source.body
        if isinstance(item, ast.Assign)
        and isinstance(item.value, ast.Constant)
        and isinstance(item.targets[0], ast.Name)
    }
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call) and getattr(decorator.func, "id", "") == "covers":
            return [arg.value if isinstance(arg, ast.Constant) else constants[arg.id] for arg in decorator.args]
    return []


@pytest.mark.parametrize(("suite", "node"), TESTS, ids=lambda value: getattr(value, "name", value))
def test_a_test_names_rows_and_says_what_is_expected(suite, node):
    rows = covered(suite, node)
    assert rows, "the test has no @covers"
    assert [row for row in rows if row not in harness.hook_rows()] == []
    assert ast.get_docstring(node)


def test_the_command_reads_no_torch_until_it_needs_it():
    """What the backend reads from the environment when torch is imported can still be set."""
    code = "import sys, openreg_testing.conformance.command; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=300).returncode == 0
