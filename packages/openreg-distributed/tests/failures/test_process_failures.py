# SPDX-License-Identifier: BSD-3-Clause
"""When a rank fails at a random moment, the others get an error. No rank hangs or crashes, also if all end at once."""

import random
from collections.abc import Callable

import process_failures
import pytest
from ranks import Ranks


def fail_at_random(own: Callable[..., Ranks], seed: int, way: str) -> None:
    """One run, in which one rank fails in this way."""
    choice = random.Random(seed)
    size = choice.choice((2, 2, 3, 4))
    culprit, moment = choice.randrange(size), choice.randrange(process_failures.CALLS)
    where = f"seed {seed}: rank {culprit} of {size} {way} at call {moment}"
    print(where)  # for an error that does not name it
    ranks = own(size)
    ranks.begin(process_failures.failure, way, culprit, moment, seed)
    for rank in sorted(set(range(size)) - {culprit}):
        kind, text = ranks.answer(rank)
        assert kind in ("AcceleratorError", "DistBackendError"), f"{where}: rank {rank} got {kind}: {text}"
        assert f"on rank {rank} of {size}" in text, where
    codes = ranks.end(but=culprit)
    assert codes == [0] * (size - 1), f"{where}: exit codes {codes}"


def depart(own: Callable[..., Ranks], seed: int) -> None:
    """One run, in which all ranks end with work under way."""
    print(f"seed {seed}")
    size = random.Random(seed).choice((2, 2, 3))
    ranks = own(size)
    ranks.begin(process_failures.departure, seed)
    codes = ranks.end()
    assert codes == [0] * size, f"seed {seed}: exit codes {codes}"


# With four, two, two and three ranks.
@pytest.mark.parametrize(("way", "seed"), list(zip(process_failures.WAYS, (0, 1, 4, 5), strict=True)))
def test_a_rank_fails_at_some_moment(own, way, seed):
    fail_at_random(own, seed, way)


@pytest.mark.parametrize("seed", [0, 5])  # with two and three ranks
def test_all_end_with_work_under_way(own, seed):
    depart(own, seed)


@pytest.mark.endurance
@pytest.mark.timeout(3600)
def test_ranks_fail_at_200_moments(own):
    first = random.randrange(10**6)
    print(f"seeds from {first} on")
    for i in range(200):
        fail_at_random(own, first + i, process_failures.WAYS[i % len(process_failures.WAYS)])


@pytest.mark.endurance
@pytest.mark.timeout(3600)
def test_200_ends_with_work_under_way(own):
    first = random.randrange(10**6)
    print(f"seeds from {first} on")
    for i in range(200):
        depart(own, first + i)
