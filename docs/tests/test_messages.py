# SPDX-License-Identifier: BSD-3-Clause
"""The page of all messages has every error and warning that the packages can raise."""

import html
import re

import pytest
from messages import messages_of_package, sources, texts_of
from messages.cpp import texts_of_cpp
from messages.found import Message, messages_of
from messages.python import texts_of_python

from tools.packages import ROOT, discover

# What raises, in C++ outside of comments and definitions, and in Python.
CHECK = re.compile(r"^(?!#)(?!\s*//).*?\b(?:TORCH_CHECK\w*|TORCH_WARN\w*|OPENREG_DRIVER_CHECK)\(", re.MULTILINE)
RAISE = re.compile(r'^ *raise \w+\(\s*f?"', re.MULTILINE)


def said(texts):
    """The kinds and texts of one file."""
    return [(item.kind, item.text) for item in messages_of({"file": texts})["file"]]


def test_a_check_in_cpp_has_its_exception_and_its_text():
    assert said(
        texts_of_cpp(
            """
            constexpr const char* kName = "aten::f";
            void check(const at::Tensor& x) {
              TORCH_CHECK_VALUE(x.dim() == 2, kName, ": expected a matrix, but got ", x.dim(), " dimensions; "
                                "pass \\"x\\"");
              OPENREG_DRIVER_CHECK(fits, orErrorMemoryAllocation, "no room for ", static_cast<int>(size), " bytes");
              throw Error(orErrorLaunchFailure, join("device ", index_, " is lost"));
              TORCH_WARN("the sizes ", x.sizes(), " are unusual");
            }
            """
        )
    ) == [
        ("ValueError", 'aten::f: expected a matrix, but got <x.dim()> dimensions; pass "x"'),
        ("torch.OutOfMemoryError", "no room for <size> bytes"),
        ("torch.AcceleratorError", "device <index_> is lost"),
        ("UserWarning", "the sizes <x.sizes()> are unusual"),
    ]


def test_an_f_string_and_an_implicit_concatenation_in_python_are_one_text():
    assert said(
        texts_of_python(
            """
_PACKAGE = "openreg-ops"

def check(device: str) -> None:
    if device == "cpu":
        raise ValueError(f"expected openreg, got {device!r}; "
                         f"install {_PACKAGE}")
    warnings.warn("this is " "one text", RuntimeWarning, stacklevel=2)
    print("not", "a message")
    print("the file is missing", file=sys.stderr)
"""
        )
    ) == [
        ("ValueError", "expected openreg, got <device>; install openreg-ops"),
        ("RuntimeWarning", "this is one text"),
        ("standard error", "the file is missing"),
    ]


def test_what_a_function_composes_is_shown_once_where_it_is():
    python = """
def problem(key: str, text: str) -> ValueError:
    '''A docstring is no message.'''
    return ValueError(f"the key {key} {text}")

def one(key: str) -> None:
    raise problem(key, "is missing")
def two(key: str) -> None:
    raise problem(key, "is empty")
def other() -> str:
    return "nothing raises this"
"""
    assert said(texts_of_python(python)) == [
        ("", "the key <key> <text>"),
        ("ValueError", "<key> is missing"),
        ("ValueError", "<key> is empty"),
    ]
    cpp = """
    std::string explain(int value) { return "the value " + std::to_string(value) + " is odd"; }
    std::string unused() { return "nothing raises this"; }
    void f(int value) {
      const std::string advice = value > 0 ? "; pass zero" : "; pass one";
      TORCH_CHECK(value == 0, "check: ", explain(value), advice);
      group->abort("the group was aborted");
    }
    """
    assert said(texts_of_cpp(cpp)) == [
        ("", "the value <value> is odd"),
        ("", "; pass one"),
        ("", "; pass zero"),
        ("RuntimeError", "check: <explain(value)><advice>"),
        ("", "the group was aborted"),
    ]


def test_a_function_of_another_file_composes_and_a_variable_of_another_file_does_not():
    user = texts_of_python("def f() -> None:\n    raise ValueError(explain() + hint)\n")
    other = texts_of_python("hint = f'not {this} text'\ndef explain() -> str:\n    return 'the text of a function'\n")
    assert messages_of({"user": user, "other": other})["other"] == [Message(3, "", "the text of a function")]


@pytest.mark.parametrize("package", discover(ROOT).values(), ids=lambda package: package.name)
def test_each_error_of_a_package_is_found(package):
    raised = {path: texts_of(path).raised for path in sources(package.folder)}
    for path, messages in raised.items():
        wanted = (RAISE if path.suffix == ".py" else CHECK).findall(path.read_text("utf-8"))
        assert len(messages) >= len(wanted), f"{path}: {len(wanted)} checks, {len(messages)} messages"
    assert not any(raised.values()) or any(messages_of_package(package.folder).values())


def test_the_page_has_the_messages_by_package_and_file(page):
    shown, warnings = page(":::{messages}\n:::")
    assert "openreg-runtime" in shown
    assert warnings == ""
    text = html.unescape(re.sub("<[^>]+>", "", shown))
    assert "RuntimeError: The device index is out of range: openreg:<index> was requested" in text
    assert "csrc/base/device.cpp" in text
    assert 'torch.autocast("openreg", enabled=False)' in text
