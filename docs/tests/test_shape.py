# SPDX-License-Identifier: BSD-3-Clause
"""Chapters about an interface have the same sections in the same order. A chapter that deviates is found."""

import re

import pytest
from pages import DOCS, name_of

# Overviews, a recipe, measurements, generated lists.
NOT_CHAPTERS = {"index.md", "one_operator.md", "speed.md", "adding.md", "any_backend.md", "async_errors.md"}
NOT_CHAPTERS |= {"stub_list.md"}
IN_OTHER_FOLDERS = [
    *(DOCS / "layouts" / f"{name}.md" for name in ("sparse", "nested", "quantized")),
    *(DOCS / "features" / f"{name}.md" for name in ("autoload", "amp", "onnx")),
    *(DOCS / "releasing" / f"{name}.md" for name in ("packaging", "upgrading")),
    DOCS / "testing" / "doctor.md",
]
IN_FOLDERS = [path for part in ("runtime", "operators") for path in sorted((DOCS / part).glob("*.md"))]
CHAPTERS = [path for path in [*IN_FOLDERS, *IN_OTHER_FOLDERS] if path.name not in NOT_CHAPTERS]
IN_TWO_LANGUAGES = [path for path in CHAPTERS if path.parent.name == "operators" or path.name == "amp.md"]
HEADINGS = [
    "What PyTorch expects",
    "Without it",
    "How openreg does it",
    "On real hardware",
    "How to test it",
    "Common mistakes",
]


def headings(text):
    return re.findall(r"(?m)^## (.+)$", re.sub(r"(?ms)^```.*?^```", "", text))


def test_there_is_a_chapter_per_interface():
    assert len(CHAPTERS) >= 28


@pytest.mark.parametrize("path", CHAPTERS, ids=name_of)
def test_a_chapter_has_the_headings_in_order(path):
    assert headings(path.read_text("utf-8")) == HEADINGS


@pytest.mark.parametrize("path", CHAPTERS, ids=name_of)
def test_a_chapter_shows_code_provokes_an_error_and_names_tests(path):
    text = path.read_text("utf-8")
    parts = dict(zip(HEADINGS, re.split(r"(?m)^## .+$", text)[1:], strict=True))
    example = "```python" in parts["Without it"] or "```console" in parts["Without it"]
    assert "```{failure}" in parts["Without it"] or (example and "```text" in parts["Without it"])
    assert "[[[cog source(" in parts["How openreg does it"]
    assert "{test}" in parts["How to test it"] or "{path}" in parts["How to test it"]


def languages(text):
    return set(re.findall(r"(?m)^:::+\{tab-item\} (\S+)$", text))


@pytest.mark.parametrize("path", IN_TWO_LANGUAGES, ids=name_of)
def test_a_chapter_about_operators_shows_both_languages(path):
    assert languages(path.read_text("utf-8")) >= {"C++", "Python"}


def test_a_chapter_in_one_language_is_found_out():
    assert languages("::::{tab-item} C++\n`{tab-item} Python`\n::::\n") == {"C++"}
    assert languages("::::{tab-item} C++\n::::\n:::{tab-item} Python\n:::\n") == {"C++", "Python"}


def test_a_chapter_of_another_shape_is_found_out():
    assert headings("## What PyTorch expects\n```text\n## not a heading\n```\n## Else\n") != HEADINGS
    assert headings("\n".join(f"## {title}\n" for title in HEADINGS)) == HEADINGS
