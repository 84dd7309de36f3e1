# SPDX-License-Identifier: BSD-3-Clause
"""What documents show of the repository's files is what these say; `nox -s excerpts` writes it."""

import pytest
from cogapp.cogapp import CogError

from tools.excerpts import LONGEST, Page, filled, pages, stale
from tools.packages import ROOT

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


def marked(call):
    return f"# Page\n\n<!--[[[cog {call}]]]-->\n<!--[[[end]]]-->\n\nMore.\n"


@pytest.fixture
def tree(tmp_path):
    """A repository with a page that shows a function, all of it fresh."""
    for name, text in {
        "src/code.cpp": CODE,
        "src/long.py": "\n".join(f"x{number} = {number}" for number in range(LONGEST + 1)),
        "src/fence.md": "```text\nwords\n```\n",
        "docs/page.md": marked('source("src/code.cpp", "answer")'),
        "docs/tutorial/step1.md": marked('source("src/long.py")'),
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    page = tmp_path / "docs" / "page.md"
    page.write_text(filled(page, tmp_path), encoding="utf-8")
    return tmp_path


def shown(root, call):
    page = root / "docs" / "page.md"
    page.write_text(marked(call), encoding="utf-8")
    return filled(page, root)


@pytest.mark.parametrize("page", [path.relative_to(ROOT).as_posix() for path in pages()])
def test_the_excerpts_of_a_document_are_fresh(page):
    problems = stale(ROOT / page)
    assert not problems, "\n".join(problems)


def test_an_excerpt_is_a_block_of_code_with_a_link_to_its_file(tree):
    assert (tree / "docs" / "page.md").read_text("utf-8") == (
        "# Page\n\n"
        '<!--[[[cog source("src/code.cpp", "answer")]]]-->\n'
        "From [`src/code.cpp`](../src/code.cpp):\n\n"
        "```cpp\n// The answer.\nint answer() {\n  return 42;\n}\n```\n"
        "<!--[[[end]]]-->\n\n"
        "More.\n"
    )


@pytest.mark.parametrize(
    ("file", "old", "new", "fresh"),
    [
        ("src/code.cpp", "42", "43", False),
        ("src/code.cpp", "question", "query", True),
        ("docs/page.md", "return 42", "return 43", False),
        ("docs/page.md", "```cpp\n// The answer.\nint answer() {\n  return 42;\n}\n```\n", "", False),
        ("docs/page.md", "More.", "More.\n\n```text\ntensor([[[1.]]])\n```\n\n<!-- a comment -->", True),
    ],
)
def test_a_block_that_is_not_what_the_file_says_is_shown_with_the_command_that_mends_it(tree, file, old, new, fresh):
    page = tree / "docs" / "page.md"
    assert stale(page, tree) == []
    text = (tree / file).read_text("utf-8")
    assert old in text
    (tree / file).write_text(text.replace(old, new), encoding="utf-8")
    problems = stale(page, tree)
    assert problems == [] if fresh else problems[:2] == ["--- docs/page.md", "+++ nox -s excerpts"]
    page.write_text(filled(page, tree), encoding="utf-8")
    assert stale(page, tree) == []


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            'source("src/code.cpp", first="int a", last="}")',
            "From [`src/code.cpp`](../src/code.cpp):\n\n```cpp\nint answer() {\n  return 42;\n}\n```",
        ),
        ('source("src/code.cpp")', "[`src/code.cpp`](../src/code.cpp):\n\n```cpp\n#include <x.h>"),
        ('source("src/fence.md")', "````markdown\n```text\nwords\n```\n````\n"),
        ('difference("src/long.py", "src/code.cpp")', "[`src/long.py`](../src/long.py), changed:\n\n```diff\n@@"),
    ],
)
def test_a_page_can_show(tree, call, text):
    (tree / "src" / "long.py").write_text("// The answer.\n", encoding="utf-8")
    assert text in shown(tree, call)


@pytest.mark.parametrize(
    ("call", "complaint"),
    [
        ('source("src/nothing.cpp", "answer")', r"docs/page\.md\(3\): src/nothing\.cpp: no file"),
        ('source("src/code.cpp", "reply")', r"docs/page\.md\(3\): src/code\.cpp: .* has no symbol 'reply'"),
        ('source("src/code.cpp", first="never written")', "no line contains 'never written'"),
        ('source("src/code.cpp", "answer", last="x")', "goes without `first`"),
        ('source("src/fence.md", "words")', "symbols are known in C"),
        ('source("src/long.py")', "a page shows at most"),
        ('difference("src/code.cpp", "src/code.cpp")', "are the same"),
        ('difference("src/code.cpp", "src/nothing.cpp")', "no file src/nothing.cpp"),
    ],
)
def test_a_page_that_shows_what_is_not_there_or_too_much_is_named(tree, call, complaint):
    with pytest.raises(CogError, match=complaint):
        shown(tree, call)


def test_a_page_of_the_tutorial_shows_files_of_any_length_and_lines_without_a_space_at_their_end(tree):
    page = Page(tree / "docs" / "tutorial" / "step1.md", tree)
    assert len(page.source("src/long.py").splitlines()) > LONGEST
    (tree / "src" / "long.py").write_text(CODE.replace("42", "43"), encoding="utf-8")
    text = page.difference("src/long.py", "src/code.cpp")
    assert [line for line in text.splitlines() if line != line.rstrip()] == []
    assert "+  return 43;" in text
    assert sorted(pages(tree)) == [tree / "docs" / "page.md", tree / "docs" / "tutorial" / "step1.md"]
