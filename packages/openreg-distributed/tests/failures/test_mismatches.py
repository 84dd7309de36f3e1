# SPDX-License-Identifier: BSD-3-Clause
"""Calls of two ranks that do not match raise an error that names both calls, before any data moves."""

import re

import mismatches
import pytest

# The error of each rank. A rank that receives the other rank's error first repeats it.
SIZES = {
    "all_reduce": r"sends (12|16) bytes here, by all_reduce number 1 \(float32 \[[34]\], \d+ bytes, SUM\)",
    "large_all_reduce": r"sends (16|400000) bytes here, by all_reduce number 1",
    "broadcast": r"sends (16|32) bytes here, by broadcast number 1 \(.*\) with root 0",
    "reduce": r"sends (16|32) bytes here, by reduce number 1 \(.*, SUM\) with root 0",
    "all_gather": r"sends (8|12) bytes here, by all_gather_into_tensor",
    "uneven_all_gather": r"(sends 12 bytes here, by all_gather|expects 8 bytes of this rank, by all_gather)",
    "reduce_scatter": r"sends (8|12) bytes here, by reduce_scatter_tensor",
    "all_to_all": r"(sends 12 bytes here, by all_to_all_single|expects 4 bytes of this rank, by all_to_all_single)",
    "gather": r"(sends 24 bytes here, by gather|expects 16 bytes of this rank, by gather)",
    "scatter": r"(sends 24 bytes here, by scatter|expects 16 bytes of this rank, by scatter)",
    "coalesced": r"called all_reduce_coalesced number 1 \(float32 \[[12]\] and 1 more, 16 bytes, SUM\) instead",
    "another_call": r"called (all_reduce|broadcast) number 1 .* instead; all ranks have to make the same",
    "another_root": r"called broadcast number 1 .* with root [01] instead",
    "another_reduction": r"called all_reduce number 1 \(.*, (SUM|MAX)\) instead",
    "another_dtype": r"called all_reduce number 1 \((float32|int32) .*\) instead",
    "one_call_less": r"called (all_reduce|broadcast) number 1 .* instead",
}


@pytest.mark.parametrize("name", SIZES)
def test_calls_that_do_not_fit(own, name):
    ranks = own(2)
    for text in ranks.run(getattr(mismatches, name)):
        assert re.search(r"on rank [01] of 2 in the group 'default_pg': .*rank [01] " + SIZES[name], text), text
    assert ranks.end() == [0, 0]


def test_one_of_three_ranks_differs(own):
    ranks = own(3)
    for text in ranks.run(mismatches.one_of_three):
        assert re.search(r"on rank [01] of 3 .*rank 2 sends 36 bytes here|on rank 2 of 3 .*rank 0 sends 16 bytes", text)
    assert ranks.end() == [0, 0, 0]


@pytest.mark.parametrize("receive", [mismatches.message, mismatches.message_from_anybody])
@pytest.mark.parametrize(("sent", "expected"), [(8, 4), (4, 8), (1_000_000, 1), (4, 0), (0, 4)])
def test_a_message_of_another_size(own, receive, sent, expected):
    ranks = own(2)
    for text in ranks.run(receive, sent, expected):
        said = (
            rf"recv number 2 .* on rank 1 of 2 .*: rank 0 sends {4 * sent} bytes, by send number 2 .*with rank 1, and "
        )
        assert re.search(said + rf"the tensor to receive them has {4 * expected}; give", text), text
    assert ranks.end() == [0, 0]
