# SPDX-License-Identifier: BSD-3-Clause
"""Every name in inline code of a page exists, and a name that does not exist is found."""

import inline
import pytest
from pages import documents, name_in_repository


@pytest.mark.parametrize("path", documents(), ids=name_in_repository)
def test_what_a_page_names_exists(path):
    assert inline.problems_of(path) == []


@pytest.mark.parametrize(
    "text",
    [
        "`packages/openreg-runtime/csrc/driver/include/openreg.h`",
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
        "``{setting}`OPENREG_POISON` ``",
        "`` {path}`tools/sessions/package_session.py` ``",
        "`` {c:func}`anything` ``",
        "````text\n```{failure} ValueError\nraise ValueError\n```\n````",
        "`original`",
    ],
)
def test_a_true_name_passes(text):
    assert list(inline.problems(text)) == []


@pytest.mark.parametrize(
    "text",
    [
        "`packages/openreg-runtime/csrc/driver/include/closedreg.h`",
        "`OPENREG_NOTHING=1`",
        "`torch.openreg.fly_away()`",
        "`orFlyAway`",
        "`nox -s fly`",
        "`nox -s wheel_quality`",
        "`` {path}`tools/no_session.py` ``",
        "`` {setting}`OPENREG_NOTHING` ``",
        "`` {test}`packages/openreg-runtime/tests/test_nothing.py::test_x` ``",
        "`` {symbol}`PackageSesion <tools/sessions/package_session.py>` ``",
        "::::{tab-set}\n:::{tab-item} X\n`OPENREG_NOTHING`\n:::\n::::",
    ],
)
def test_a_wrong_name_is_found_out(text):
    assert len(list(inline.problems(text))) == 1
