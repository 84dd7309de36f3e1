# SPDX-License-Identifier: BSD-3-Clause
"""An exception in one line of a report."""

import pytest

from openreg_testing.conformance.error_text import first_line


@pytest.mark.parametrize(
    ("message", "line"),
    [("", "ValueError"), ("\n", "ValueError"), ("one\ntwo", "ValueError: one"), ("long" * 100, "ValueError: longlong")],
    ids=["none", "blank", "two lines", "long"],
)
def test_an_error_is_its_type_and_the_first_line_of_its_message(message, line):
    assert first_line(ValueError(message), limit=8) == line
