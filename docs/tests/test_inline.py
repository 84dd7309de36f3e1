# SPDX-License-Identifier: BSD-3-Clause
"""Names in inline code exist."""

import inline
import pytest
from conftest import ROOT
from pages import name_of, pages

DOCUMENTS = [*pages(), ROOT / "docs" / "README.md"]


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_what_a_page_names_exists(path):
    assert inline.problems_of(path) == []


@pytest.mark.parametrize(
    "text",
    [
        "`packages/openreg-runtime/include/openreg.h`",
        "`tests/`",
        "`OPENREG_POISON=1`",
        "`OPENREG_CHECK`",
        "`torch.openreg.synchronize()`",
        "`torch.openreg.memory._snapshot`",
        "`orMalloc()`",
        "`nox -s docs`",
        "`nox -s wheel-quality`",
        "`nox -s test-openreg-<name>`",
        "`packages/*/src`",
        "```python\nx = '`OPENREG_NOTHING`'\n```",
        "``{setting}`OPENREG_NOTHING` ``",
        "`original`",
    ],
)
def test_a_true_name_passes(text):
    assert list(inline.problems(text)) == []


@pytest.mark.parametrize(
    "text",
    [
        "`packages/openreg-runtime/include/closedreg.h`",
        "`OPENREG_NOTHING=1`",
        "`torch.openreg.fly_away()`",
        "`orFlyAway`",
        "`nox -s fly`",
        "`nox -s wheel_quality`",
        "::::{tab-set}\n:::{tab-item} X\n`OPENREG_NOTHING`\n:::\n::::",
    ],
)
def test_a_wrong_name_is_found_out(text):
    assert len(list(inline.problems(text))) == 1
