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
  f(x)

namespace a::b {
namespace {

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
LICENCED = 1

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


@pytest.fixture(scope="module")
def find(tmp_path_factory):
    """Finds a symbol of the C++ above, or of the Python."""
    folder = tmp_path_factory.mktemp("symbols")
    for name, text in {"x.cpp": CPP, "x.py": PYTHON}.items():
        (folder / name).write_text(text, encoding="utf-8")
    return lambda name, symbol: find_symbol(folder / name, symbol)


@pytest.mark.parametrize(
    ("file", "symbol", "first", "last"),
    [
        ("x.cpp", "LIMIT", "// The most.", "#define LIMIT 3"),
        ("x.cpp", "CHECK", "#define CHECK(x) \\", "  f(x)"),
        ("x.cpp", "kCount", *["constexpr int kCount = 2;"] * 2),
        ("x.cpp", "Guard", "/* A thing", "};"),
        *(("x.cpp", name, "// Changes it.", "}") for name in ("exchange", "Guard::exchange", "b::Guard::exchange")),
        ("x.cpp", "Guard::declared", "void Guard::declared() {", "}"),
        ("x.cpp", "Guard::value_", *["int value_ = 0;"] * 2),
        ("x.cpp", "twice", "template <typename T>", "}"),
        ("x.cpp", "Kind", *["enum class Kind { kOne, kTwo };"] * 2),
        ("x.cpp", "Name", *["using Name = std::string;"] * 2),
        ("x.cpp", "exported", *["OPENREG_RUNTIME_API void exported(int x);"] * 2),
        ("x.cpp", "reference", "Thing& reference() {", "}"),
        ("x.cpp", "void f(char", *["void f(char x) {}"] * 2),
        ("x.cpp", "C10_REGISTER_GUARD_IMPL", *["C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);"] * 2),
        ("x.cpp", "TORCH_LIBRARY_IMPL(_, PrivateUse1", "TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {", "}"),
        ("x.py", "LICENCED", *["LICENCED = 1"] * 2),
        ("x.py", "LIMIT", "# Why.", "LIMIT: int = 3"),
        ("x.py", "NAMES", "NAMES = [", "]"),
        ("x.py", "work", "@decorated", "    return x"),
        ("x.py", "Stream.query", "def query(self):", "    return True"),
        ("x.py", "Event.wait", *["def wait(self): ..."] * 2),
        ("x.py", "Stream", "class Stream:", "    def wait(self): ..."),
    ],
)
def test_a_symbol_is_found(find, file, symbol, first, last):
    lines = find(file, symbol).splitlines()
    assert (lines[0], lines[-1]) == (first, last)


@pytest.mark.parametrize(
    ("file", "symbol", "complaint"),
    [
        ("x.cpp", "nothing", "has no symbol 'nothing'"),
        ("x.cpp", "f", "'f' 2 times"),
        ("x.cpp", "TORCH_LIBRARY_IMPL", "2 times"),
        ("x.py", "wait", "2 times"),
    ],
)
def test_a_symbol_that_is_not_exactly_one_is_refused(find, file, symbol, complaint):
    with pytest.raises(SymbolError, match=complaint):
        find(file, symbol)
