# SPDX-License-Identifier: BSD-3-Clause
"""Each planted bug is found, alone, with its two lines and the missing one at its place; its correct form is silent."""

import bugs_graphs  # noqa: F401
import bugs_host  # noqa: F401
import bugs_kernels  # noqa: F401
import bugs_memory  # noqa: F401
import bugs_streams  # noqa: F401
import pytest
import raw_kernels
import torch
from planted import BUGS

from openreg_sanitizer.finding import user_frame


def line(access):
    """Returns file and line of the innermost frame that is not in the helper for kernels."""
    if access is None:
        return None
    stack = access.captured or access.stack or access.forward
    frame = user_frame([frame for frame in stack if frame.file != raw_kernels.__file__])
    return frame.file, frame.line


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_planted_bug_is_found_with_its_lines(bug):
    with torch.openreg.sanitizer("collect") as session:
        bug.run(False)
    found = [(finding.kind, line(finding.first), line(finding.second)) for finding in session.findings]
    assert found == [(bug.kind, bug.first and (bug.file, bug.first), (bug.file, bug.second))]
    (finding,) = session.findings
    assert bug.missing in finding.missing
    if finding.missing:
        expected = bug.place or (bug.first if ".record_stream(" in finding.missing else bug.second)
        assert (finding.place.file, finding.place.line) == (bug.file, expected)
    assert finding.missing or finding.hint


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_its_correct_form_is_silent(bug):
    with torch.openreg.sanitizer("collect") as session:
        bug.run(True)
    assert session.findings == []


def test_there_are_enough_of_them():
    assert len(BUGS) >= 40
    assert len({bug.name for bug in BUGS}) == len(BUGS)
    assert sum(bool(bug.report) for bug in BUGS) >= 15
