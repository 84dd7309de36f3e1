# SPDX-License-Identifier: BSD-3-Clause
"""Symbols are found by name in C++ and Python."""

import pytest

from tools.symbols import SymbolError, find_symbol

CPP = """\
// SPDX-License-Identifier: BSD-3-Clause
// About the file.
#include <x.h>

// The most.
#define LIMIT 3
#define CHECK(x) \\
  do {           \\
    f(x);        \\
  } while (0)

namespace a::b {
namespace {

// How many.
constexpr int kCount = 2;

/* A thing
 * in two lines. */
class Guard final : public Base {
 public:
  Guard() {}

  // Changes it.
  int exchange(int index) const override {
    return index;
  }
  void declared();

 private:
  int value_ = 0;
};

template <typename T>
T twice(T x) {
  return x + x;
}

enum class Kind { kOne, kTwo };
using Name = std::string;

}  // namespace

OPENREG_RUNTIME_API void exported(int x);
Thing& reference() {
  return thing;
}

void Guard::declared() {
  f();
}

void f(int x) {}
void f(char x) {}

C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("one", one);
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
  m.fallback(two);
}

}  // namespace a::b
"""

PYTHON = """\
# SPDX-License-Identifier: BSD-3-Clause
import os

# Why.
LIMIT: int = 3
NAMES = [
    "a",
]


@decorated
def work(x):
    return x


class Stream:
    def query(self):
        return True

    def wait(self): ...


class Event:
    def wait(self): ...
"""


@pytest.fixture
def cpp(tmp_path):
    path = tmp_path / "x.cpp"
    path.write_text(CPP, encoding="utf-8")
    return path


@pytest.fixture
def python(tmp_path):
    path = tmp_path / "x.py"
    path.write_text(PYTHON, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("symbol", "first", "last"),
    [
        ("LIMIT", "// The most.", "#define LIMIT 3"),
        ("CHECK", "#define CHECK(x) \\", "  } while (0)"),
        ("kCount", "// How many.", "constexpr int kCount = 2;"),
        ("Guard", "/* A thing", "};"),
        ("Guard::exchange", "// Changes it.", "}"),
        ("exchange", "// Changes it.", "}"),
        ("b::Guard::exchange", "// Changes it.", "}"),
        ("Guard::declared", "void Guard::declared() {", "}"),
        ("Guard::value_", "int value_ = 0;", "int value_ = 0;"),
        ("twice", "template <typename T>", "}"),
        ("Kind", "enum class Kind { kOne, kTwo };", "enum class Kind { kOne, kTwo };"),
        ("Name", "using Name = std::string;", "using Name = std::string;"),
        ("exported", "OPENREG_RUNTIME_API void exported(int x);", "OPENREG_RUNTIME_API void exported(int x);"),
        ("reference", "Thing& reference() {", "}"),
        ("void f(char", "void f(char x) {}", "void f(char x) {}"),
        ("C10_REGISTER_GUARD_IMPL", *["C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);"] * 2),
        ("TORCH_LIBRARY_IMPL(_, PrivateUse1", "TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {", "}"),
    ],
)
def test_a_symbol_of_cpp_is_found(cpp, symbol, first, last):
    lines = find_symbol(cpp, symbol).splitlines()
    assert (lines[0], lines[-1]) == (first, last)


@pytest.mark.parametrize(
    ("symbol", "first", "last"),
    [
        ("LIMIT", "# Why.", "LIMIT: int = 3"),
        ("NAMES", "NAMES = [", "]"),
        ("work", "@decorated", "    return x"),
        ("Stream.query", "def query(self):", "    return True"),
        ("Event.wait", "def wait(self): ...", "def wait(self): ..."),
        ("Stream", "class Stream:", "    def wait(self): ..."),
    ],
)
def test_a_symbol_of_python_is_found(python, symbol, first, last):
    lines = find_symbol(python, symbol).splitlines()
    assert (lines[0], lines[-1]) == (first, last)


@pytest.mark.parametrize(
    ("symbol", "complaint"),
    [
        ("nothing", "has no symbol 'nothing'"),
        ("f", "'f' 2 times"),
        ("TORCH_LIBRARY_IMPL", "2 times"),
    ],
)
def test_a_symbol_that_is_not_exactly_one_is_refused(cpp, symbol, complaint):
    with pytest.raises(SymbolError, match=complaint):
        find_symbol(cpp, symbol)


def test_a_method_of_two_classes_has_to_be_qualified(python):
    with pytest.raises(SymbolError, match="2 times"):
        find_symbol(python, "wait")


def test_the_comment_of_a_file_does_not_belong_to_its_first_symbol(tmp_path):
    path = tmp_path / "x.py"
    path.write_text("# SPDX-License-Identifier: BSD-3-Clause\nX = 1\n", encoding="utf-8")
    assert find_symbol(path, "X") == "X = 1"
