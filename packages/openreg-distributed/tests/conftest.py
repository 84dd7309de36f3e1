# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures that start the ranks of a test module."""

from collections.abc import Callable, Iterator

import pytest
from ranks import Ranks, ranks_of

import openreg_distributed  # noqa: F401


@pytest.fixture(scope="module")
def one() -> Iterator[Ranks]:
    with ranks_of(1) as ranks:
        yield ranks


@pytest.fixture(scope="module")
def two() -> Iterator[Ranks]:
    with ranks_of(2) as ranks:
        yield ranks


@pytest.fixture(scope="module")
def three() -> Iterator[Ranks]:
    with ranks_of(3) as ranks:
        yield ranks


@pytest.fixture(scope="module")
def four() -> Iterator[Ranks]:
    with ranks_of(4) as ranks:
        yield ranks


@pytest.fixture
def own() -> Iterator[Callable[..., Ranks]]:
    """Ranks of one test alone, which ends them itself or has them killed."""
    started = []

    def start(size: int, **options) -> Ranks:
        started.append(Ranks(size, **options))
        return started[-1]

    yield start
    for ranks in started:
        ranks.kill()
