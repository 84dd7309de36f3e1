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
    return f"# Page\n\n<!--[[[cog {call}]]]-->\n\nMore.\n"


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


def test_a_block_that_the_file_has_left_behind_is_named_with_the_command_that_mends_it(tree):
    page, code = tree / "docs" / "page.md", tree / "src" / "code.cpp"
    assert stale(page, tree) == []
    code.write_text(CODE.replace("42", "43"), encoding="utf-8")
    (problem,) = stale(page, tree)
    assert problem.startswith('docs/page.md(3): source("src/code.cpp", "answer")')
    assert problem.endswith("nox -s excerpts")
    page.write_text(filled(page, tree), encoding="utf-8")
    assert stale(page, tree) == []


def test_a_change_of_the_file_elsewhere_leaves_the_block_fresh(tree):
    code = tree / "src" / "code.cpp"
    code.write_text(CODE.replace("#include", "#include <y.h>\n#include").replace("Not shown", "Unseen"), "utf-8")
    assert stale(tree / "docs" / "page.md", tree) == []


def test_a_block_that_was_changed_by_hand_is_named_among_others(tree):
    page = tree / "docs" / "page.md"
    other = '<!--[[[cog source("src/code.cpp", "question")]]]-->\n'
    page.write_text(page.read_text("utf-8") + "\n" + other, encoding="utf-8")
    page.write_text(filled(page, tree), encoding="utf-8")
    page.write_text(page.read_text("utf-8").replace("int question();", "int question(int);"), encoding="utf-8")
    (problem,) = stale(page, tree)
    assert '"question"' in problem
    assert problem.startswith("docs/page.md(16):")


def test_an_excerpt_that_was_never_written_is_named(tree):
    page = tree / "docs" / "page.md"
    page.write_text(marked('source("src/code.cpp", "answer")'), encoding="utf-8")
    assert [problem.partition(":")[0] for problem in stale(page, tree)] == ["docs/page.md(3)"]


def test_only_what_is_marked_is_written(tree):
    page = tree / "docs" / "page.md"
    text = page.read_text("utf-8") + "\n```text\ntensor([[[1.]]])\n```\n\n<!-- a comment -->\n"
    page.write_text(text, encoding="utf-8")
    assert filled(page, tree) == text
    assert list(pages(tree)) == [page, tree / "docs" / "tutorial" / "step1.md"]


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


def test_a_page_of_the_tutorial_shows_files_of_any_length(tree):
    assert len(Page(tree / "docs" / "tutorial" / "step1.md", tree).source("src/long.py").splitlines()) > LONGEST


def test_a_line_that_only_moves_by_an_empty_one_has_no_space_at_its_end(tree):
    (tree / "src" / "long.py").write_text(CODE.replace("42", "43"), encoding="utf-8")
    text = Page(tree / "docs" / "page.md", tree).difference("src/long.py", "src/code.cpp")
    assert [line for line in text.splitlines() if line != line.rstrip()] == []
    assert "+  return 43;" in text
