# SPDX-License-Identifier: BSD-3-Clause
"""The excerpts and file lists in documents are current, and invalid requests for them are refused."""

import sys

import pytest
from helpers import replace, run, write_files

from tools.packages import ROOT, discover
from tools.pages import account, callgrind, trace
from tools.pages.excerpts import LONGEST, Page
from tools.pages.passed_files import Part, read, summary, table
from tools.pages.symbols import SymbolError, find_symbol

CODE = """\
// SPDX-License-Identifier: BSD-3-Clause
#include <x.h>

// The answer.
int answer() {
  return 42;
}

// Not shown.
int question();
"""


def excerpts(root):
    """How cog judges all documents."""
    return run(sys.executable, "-m", "tools.pages.excerpts", "--check", "--diff", cwd=root)


@pytest.fixture
def page(tmp_path):
    """A page, and files that it can show."""
    texts = {"src/code.cpp": CODE, "src/fence.md": "```text\nwords\n```\n", "src/other.py": "// The answer.\n"}
    long = "\n".join(f"x{number} = {number}" for number in range(LONGEST + 1))
    write_files(tmp_path, {**texts, "src/long.py": long})
    return Page(tmp_path / "docs" / "page.md", tmp_path)


def test_the_excerpts_of_the_documents_are_fresh():
    result = excerpts(ROOT)
    assert result.returncode == 0, result.stdout + result.stderr


PAGE = "docs/releasing/packaging.md"
STALE = (f"--- current {PAGE}\n", "run nox -s excerpts\n")
AT_A_LINE = f'File "{PAGE}", line '


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        ("packages/openreg-runtime/cmake/torch_targets.cmake", "set(arg_RPATH ..", "set(arg_RPATH .", STALE),
        (PAGE, "set(arg_RPATH ..", "set(arg_RPATH .", STALE),
        (PAGE, 'version.h", "kAbi', 'version.h", "kGone', (AT_A_LINE, "has no symbol 'kGoneVersion'")),
        (PAGE, ', last="build-backend"', "", (AT_A_LINE, "a page shows at most 30")),
    ],
)
def test_a_page_that_does_not_show_what_is_there_is_named(checkout, file, old, new, said):
    replace(checkout / file, old, new)
    result = excerpts(checkout)
    assert result.returncode != 0
    assert [text for text in said if text not in result.stdout + result.stderr] == []


def test_an_excerpt_is_a_block_of_code_with_a_link_to_its_file(page):
    assert page.source("src/code.cpp", "answer") == (
        "From [`src/code.cpp`](../src/code.cpp):\n\n```cpp\n// The answer.\nint answer() {\n  return 42;\n}\n```\n"
    )


@pytest.mark.parametrize(
    ("show", "arguments", "marks", "text"),
    [
        (
            Page.source,
            ["src/code.cpp"],
            {"first": "int a", "last": "}"},
            ":\n\n```cpp\nint answer() {\n  return 42;\n}\n```",
        ),
        (Page.source, ["src/code.cpp"], {}, "[`src/code.cpp`](../src/code.cpp):\n\n```cpp\n#include <x.h>"),
        (Page.source, ["src/fence.md"], {}, "````markdown\n```text\nwords\n```\n````\n"),
        (
            Page.difference,
            ["src/other.py", "src/code.cpp"],
            {},
            "[`src/other.py`](../src/other.py), changed:\n\n```diff\n@@",
        ),
    ],
)
def test_a_page_can_show(page, show, arguments, marks, text):
    assert text in show(page, *arguments, **marks)


@pytest.mark.parametrize(
    ("show", "arguments", "marks", "problem"),
    [
        (Page.source, ["src/nothing.cpp", "answer"], {}, r"no file src/nothing\.cpp"),
        (Page.source, ["src/code.cpp", "reply"], {}, "has no symbol 'reply'"),
        (Page.source, ["src/code.cpp"], {"first": "never written"}, "no line contains 'never written'"),
        (Page.source, ["src/code.cpp", "answer"], {"last": "x"}, "goes without `first`"),
        (Page.source, ["src/fence.md", "words"], {}, "symbols are known in C"),
        (Page.source, ["src/long.py"], {}, "a page shows at most"),
        (Page.difference, ["src/code.cpp", "src/code.cpp"], {}, "are the same"),
        (Page.difference, ["src/code.cpp", "src/nothing.cpp"], {}, "no file src/nothing.cpp"),
    ],
)
def test_what_is_not_there_or_too_much_is_refused(page, show, arguments, marks, problem):
    with pytest.raises(SymbolError, match=problem):
        show(page, *arguments, **marks)


def test_a_page_of_the_tutorial_shows_files_of_any_length_and_lines_without_a_space_at_their_end(page):
    step = Page(page.root / "docs" / "tutorial" / "step1.md", page.root)
    assert len(step.source("src/long.py").splitlines()) > LONGEST
    write_files(page.root, {"src/other.py": CODE.replace("42", "43")})
    text = step.difference("src/other.py", "src/code.cpp")
    assert [line for line in text.splitlines() if line != line.rstrip()] == []
    assert "+  return 43;" in text


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

using Name = std::string;

}  // namespace

OPENREG_RUNTIME_API void exported(int x);
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
LICENSED = 1

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
def find(tmp_path):
    """Finds a symbol of the C++ above, or of the Python."""
    write_files(tmp_path, {"x.cpp": CPP, "x.py": PYTHON})
    return lambda name, symbol: find_symbol(tmp_path / name, symbol)


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
        ("x.cpp", "Name", *["using Name = std::string;"] * 2),
        ("x.cpp", "exported", *["OPENREG_RUNTIME_API void exported(int x);"] * 2),
        ("x.cpp", "void f(char", *["void f(char x) {}"] * 2),
        ("x.cpp", "C10_REGISTER_GUARD_IMPL", *["C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);"] * 2),
        ("x.cpp", "TORCH_LIBRARY_IMPL(_, PrivateUse1", "TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {", "}"),
        ("x.py", "LICENSED", *["LICENSED = 1"] * 2),
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
    ("file", "symbol", "problem"),
    [
        ("x.cpp", "nothing", "has no symbol 'nothing'"),
        ("x.cpp", "f", "'f' 2 times"),
        ("x.cpp", "TORCH_LIBRARY_IMPL", "2 times"),
        ("x.py", "wait", "2 times"),
    ],
)
def test_a_symbol_that_is_not_exactly_one_is_refused(find, file, symbol, problem):
    with pytest.raises(SymbolError, match=problem):
        find(file, symbol)


PACKAGES = discover(ROOT)
LICENSE = "SPDX-License-Identifier: BSD-3-Clause"
LAUNCH = "packages/openreg-runtime/include/openreg/runtime/launch.h"
ADD = "packages/openreg-ops/csrc/module.cpp"
ENGINE = "packages/openreg-runtime/csrc/driver/engine/engine.cpp"


def dump(event, *lines):
    return "\n".join(["# callgrind format", f"desc: Trigger: {event}", "positions: line", *lines, ""])


# A function of ops that has launch.h's code inlined, calls one of torch's, and goes on.
HOST = (
    "fl=(1) openreg-ops/csrc/module.cpp",
    "fn=(1) add",
    "10 5",
    "+1 3",
    "fi=(2) /venv/site-packages/openreg_runtime/include/openreg/runtime/launch.h",
    "47 2",
    "fe=(1)",
    "cfi=(3) aten/native.cpp",
    "cfn=(2) native",
    "calls=1 4",
    "* 1000",
    "-1 1",
    "fl=(3)",
    "fn=(2)",
    "4 1000",
)
DEVICE = ("fl=(1) openreg_driver/engine/engine.cpp", "fn=(1) run", "7 9")


def test_instructions_are_those_of_the_file_itself_and_files_of_others_are_left_out(capsys):
    found = callgrind.instructions_by(dump("x", *HOST), callgrind.BY_FILE)
    header = "/venv/site-packages/openreg_runtime/include/openreg/runtime/launch.h"
    assert found == {"openreg-ops/csrc/module.cpp": 9, header: 2, "aten/native.cpp": 1000}
    assert trace.repository_files(found, PACKAGES) == {ADD: 9, LAUNCH: 2}
    in_place = {"openreg_ops/build/cp311-cp311-linux_x86_64/openreg_runtime/include/openreg/runtime/launch.h": 3}
    assert trace.repository_files(in_place, PACKAGES) == {LAUNCH: 3}
    with pytest.raises(SystemExit):
        callgrind.instructions_by("fl=without a number", callgrind.BY_FILE)
    assert "fl=without a number" in capsys.readouterr().err


def test_the_host_counts_until_it_has_returned_and_the_device_until_it_is_idle(tmp_path):
    asked, ended = "Client Request: ", "Program termination"
    cuts = [(".1-01", f"{asked}submitted", HOST), (".2-03", f"{asked}complete", DEVICE)]
    cuts += [(".10-01", f"{asked}returned", HOST[:3]), ("-01", ended, HOST), ("-02", ended, ()), ("-03", ended, DEVICE)]
    for name, event, lines in cuts:
        (tmp_path / f"{callgrind.RECORDS}{name}").write_text(dump(event, *lines), "utf-8")
    (tmp_path / callgrind.RECORDS).touch()  # callgrind makes sure that it may write
    assert trace.parts(list(callgrind.records(tmp_path)), PACKAGES) == [
        Part("host", "submitted", {ADD: 9, LAUNCH: 2}),
        Part("device", "complete", {ENGINE: 9}),
        Part("host", "returned", {ADD: 5}),
        Part("device", "idle", {ENGINE: 9}),
    ]


def test_the_account_has_the_instructions_of_one_operator_by_library(tmp_path):
    lines = ["ob=(1) /usr/lib/libc-2", "fn=(1) malloc", "1 300"]
    lines += ["ob=(2) /site/torch/lib/libc10-1", "fn=(2) tensor", "cob=(1)", "cfn=(1)", "calls=1 4", "* 900", "5 200"]
    lines += ["ob=(3) /elsewhere/libx-1", "1 100"]
    counts = callgrind.instructions_by(dump("returned", *lines), callgrind.BY_LIBRARY)
    found = account.by_title(counts, operators=10)
    memory, tensors = "C library: memory, locks", "PyTorch: tensors and storages"
    assert {title: count for title, count in found.items() if count} == {memory: 30, tensors: 20, account.OTHERS: 10}
    (tmp_path / account.RECORD).parent.mkdir(parents=True)
    account.write(tmp_path, {"CPU": found, "host": found, "engine": {memory: 7}}, "g++ 12")
    assert account.read(tmp_path)[1] == "g++ 12"
    assert account.table(tmp_path).splitlines()[2:] == [
        f"| {tensors} | 20 | 20 |  |",
        f"| {memory} | 30 | 30 | 7 |",
        "| others | 10 | 10 |  |",
        "| together | 60 | 60 | 7 |",
    ]


def test_a_thread_that_executes_five_percent_more_of_ours_is_named():
    recorded = {"host": dict.fromkeys([*account.OURS, "Python"], 1000), "engine": dict.fromkeys(account.OURS, 1000)}
    assert account.grown(recorded, recorded) == []
    more_of_others = {**recorded, "host": {**recorded["host"], "Python": 9000, "driver": 1100}}
    assert account.grown(recorded, more_of_others) == []
    more = {**recorded, "engine": {**recorded["engine"], "openreg-runtime": 1200, "driver": 990}}
    assert account.grown(recorded, more) == ["engine: 3000 -> 3190 instructions (openreg-runtime 1000 -> 1200)"]


def test_what_only_observers_pass_is_left_out():
    observed = [Part("host", "submitted", {ADD: 9, LAUNCH: 2}), Part("device", "complete", {LAUNCH: 1})]
    plain = [Part("host", "returned", {LAUNCH: 2}), Part("device", "idle", {ENGINE: 1})]
    assert [part.files for part in trace.without_observers(observed, plain)] == [{LAUNCH: 2}, {}]


def test_a_file_says_what_it_is_itself_or_its_header_does(tmp_path):
    folder = tmp_path / "packages" / "a" / "csrc"
    texts = {
        "x.h": f"// {LICENSE}\n// What waits\n// here. And more.\n",
        "x.cpp": f'// {LICENSE}\n#include "x.h"\n',
        "y.h": f"/* {LICENSE} */\n/*\n * In C | or not.\n *\n * More.\n */\n",
        "z.h": "int z;\n\n// The first class.\ntemplate <class T>\nclass Z {};\n",
        "z.cpp": f"// {LICENSE}\n// REAL HW: a register.\nint z;\n",
        "w.cpp": "int w;\n",
    }
    write_files(folder, texts)
    files = ("w.cpp", "x.cpp", "x.h", "y.h", "z.cpp")
    part = Part("host", "returned", {f"packages/a/csrc/{name}": 1 for name in files})
    rows = table(part, tmp_path, lambda name: name.rpartition("/")[2]).splitlines()
    assert rows[2:] == [
        "| w.cpp |  | 1 |",
        "| x.cpp | What waits here. | 1 |",
        "| x.h | What waits here. | 1 |",
        r"| y.h | In C \| or not. | 1 |",
        "| z.cpp | The first class. | 1 |",
    ]
    (folder / "w.cpp").unlink()
    with pytest.raises(ValueError, match=r"packages/a/csrc/w\.cpp is gone.*nox -s trace"):
        table(part, tmp_path, str)


def test_a_file_counts_once_however_many_parts_pass_it():
    header = ENGINE.replace(".cpp", ".h")
    parts = [Part("host", "returned", {ADD: 1, LAUNCH: 1, header: 1}), Part("device", "idle", {LAUNCH: 1, ENGINE: 1})]
    assert summary(parts).splitlines()[2:] == [
        "| `packages/openreg-ops/csrc` | 1 | 0 | 1 |",
        "| `packages/openreg-runtime/csrc/driver/engine` | 1 | 1 | 1 |",
        "| `packages/openreg-runtime/include/openreg/runtime` | 0 | 1 | 1 |",
        "| together | 2 | 2 | 3 |",
    ]


def test_the_record_names_files_of_the_repository():
    parts = read(ROOT)
    assert parts
    assert not [name for part in parts for name in part.files if not (ROOT / name).is_file()]
