# SPDX-License-Identifier: BSD-3-Clause
"""The directive `difference` shows what changed between two files, and refuses where there is nothing to show."""

import pytest

OLD, NEW = "examples/tutorial/step6/CMakeLists.txt", "examples/tutorial/step7/CMakeLists.txt"


def test_difference_shows_what_changed_with_the_path_of_the_newer_file(page):
    html, warnings = page(f":::{{difference}} {NEW}\n:from: {OLD}\n:::")
    assert warnings == ""
    assert NEW in html
    assert "+  csrc/autocast.cpp" in html
    assert "SPDX" not in html


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (f"{NEW}\n:from: no/such/file.txt\n", "difference: no file no/such/file.txt"),
        (f"no/such/file.txt\n:from: {OLD}\n", "difference: no file no/such/file.txt"),
        (f"{NEW}\n", "difference: no file (give :from:)"),
        (f"{NEW}\n:from: {NEW}\n", "are the same"),
    ],
)
def test_difference_refuses_what_it_cannot_show(page, text, complaint):
    _, warnings = page(f":::{{difference}} {text}:::")
    assert complaint in warnings
