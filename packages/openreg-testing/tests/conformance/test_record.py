# SPDX-License-Identifier: BSD-3-Clause
"""The record of operators assigns an operator to the device if it began during one of the recorded calls."""

import pytest

from openreg_testing.conformance.operators.record import Intervals

INTERVALS = {
    "none": [],
    "one": [(3, 5)],
    "disjoint": [(8, 9), (1, 2), (4, 6)],
    "nested": [(1, 9), (2, 3), (4, 5)],
    "nested twice": [(1, 9), (2, 6), (3, 4)],
    "the same beginning": [(1, 2), (1, 8)],
    "overlapping": [(1, 4), (3, 7)],
    "touching": [(1, 4), (4, 7)],
    "of one moment": [(5, 5)],
}


@pytest.mark.parametrize("name", INTERVALS)
def test_a_moment_is_contained_if_it_lies_in_any_interval(name):
    intervals = Intervals(INTERVALS[name])
    found = [moment for moment in range(11) if intervals.contains(moment)]
    assert found == [moment for moment in range(11) if any(a <= moment <= b for a, b in INTERVALS[name])]
