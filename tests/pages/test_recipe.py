# SPDX-License-Identifier: BSD-3-Clause
"""The steps on docs/operators/adding.md can be followed, and errors in them are found; compare `nox -s recipe`."""

import re

import pytest

from tools.pages import recipe
from tools.pages.recipe import Addition, RecipeError, additions, is_said, mistakes

PAGE = recipe.PAGE.read_text("utf-8")
ADDED = ("structured_erfinv", "meta_frexp(", "void cauchy(", "op::cauchy_", "openreg::softcap", "squared_relu")


def block(where, code="new\n"):
    return f"In `a.cpp`, {where}:\n\n```cpp\n{code}```\n"


def shown():
    return [*additions(PAGE), *(mistake.addition for mistake in mistakes(PAGE))]


def only(where, code="new\n"):
    (found,) = additions(block(where, code) + recipe.MISTAKES)
    return found


def test_nothing_of_what_the_page_adds_is_left_in_the_copy():
    changed = recipe.without_operators()
    csrc = [text for path, text in changed.items() if path.startswith("csrc")]
    assert recipe.left_over(csrc) == []
    assert recipe.left_over(["  structured<meta::structured_erfinv, op::erfinv>(library);\n"]) != []


def test_every_operator_of_the_page_is_added():
    changed = "".join(recipe.changed_files(PAGE).values())
    for text in ADDED:
        assert text in changed


def test_each_kind_has_its_place_and_every_block_of_code_has_one():
    added, wrong = recipe.halves(PAGE)
    assert len(additions(PAGE)) == len(re.findall("(?m)^In `", added)) > 10
    assert len(mistakes(PAGE)) == len(re.findall("(?m)^In `", wrong)) >= 5
    assert {item.path for item in additions(PAGE)} >= set(recipe.TAKEN_OUT)
    assert PAGE.count("```cpp\n") == len([item for item in shown() if item.path.startswith("csrc/")])


def test_what_openreg_has_of_them_is_as_the_page_shows_it():
    """So the page is not of another time than the sources."""
    for path, text in recipe.changed_files(PAGE).items():
        present = recipe.PACKAGE / path
        if path.startswith(("csrc/kernels/", "tests/samples/", "tests/mathematics/test_random")):
            assert text == present.read_text("utf-8"), path


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("after the line with `two`", "one\ntwo\nnew\nthree\n"),
        ("before the line with `two`", "one\nnew\ntwo\nthree\n"),
        ("instead of the line with `two`", "one\nnew\nthree\n"),
        ("before the line\nwith `one`", None),
        ("before the line with\n`one`", "new\none\ntwo\nthree\n"),
        ("at the end", "one\ntwo\nthree\n\nnew\n"),
    ],
)
def test_places(where, expected):
    if expected is None:
        assert additions(block(where) + recipe.MISTAKES) == []
    else:
        assert only(where).apply("one\ntwo\nthree\n") == expected


def test_a_new_file():
    assert only("a new file").apply(None) == "new\n"
    with pytest.raises(RecipeError, match=r"a\.cpp: the file exists"):
        only("a new file").apply("")
    with pytest.raises(RecipeError, match=r"a\.cpp: there is no such file"):
        only("at the end").apply(None)


@pytest.mark.parametrize(("text", "count"), [("none\n", 0), ("two\ntwo and two\n", 2)])
def test_a_place_that_is_not_there_or_is_there_twice_is_found_out(text, count):
    with pytest.raises(RecipeError, match=f"{count} lines have 'two', where one is meant"):
        Addition("a.cpp", "after", "two", "new\n").apply(text)


def test_a_mistake_without_what_refuses_it_is_found_out():
    page = recipe.MISTAKES + "\n" + block("a new file")
    with pytest.raises(RecipeError, match="does not say what refuses"):
        mistakes(page)
    (found,) = mistakes(page + "\n```text\nImportError: no\n```\n")
    assert (found.said, found.addition.code) == ("ImportError: no", "new\n")


def test_other_words_than_those_of_the_page_are_found_out():
    assert is_said("error: 'a' is ... of 'b'", "x.cpp:1: error: \u2018a\u2019 is not\n  a member of `b'")
    assert not is_said("error: 'a' is ... of 'b'", "error: 'a' is a member")


def test_a_page_without_mistakes_is_found_out():
    with pytest.raises(RecipeError, match="no heading"):
        additions("")
