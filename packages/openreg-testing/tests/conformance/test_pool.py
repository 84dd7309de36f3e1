# SPDX-License-Identifier: BSD-3-Clause
"""A pool of the conformance kit takes over the processes of an earlier pool if they are fit for use."""

import pytest
from _platform import HAS_FORK
from _tasks import HERE, Ask, Begin, Crash, Remember

from openreg_testing.conformance.pool import CompletedTask, FailedTask, Processes, WorkerPool

pytestmark = pytest.mark.skipif(not HAS_FORK, reason="a process that cannot fork runs tasks itself and is not kept")
LIMIT = 60.0
POISONED = {**HERE, "OPENREG_POISON": "1"}


@pytest.fixture
def processes():
    with Processes() as started:
        yield started


def pool_of(processes, environment=HERE):
    return WorkerPool((Begin(),), 1, LIMIT, environment, processes=processes)


def probed(processes, environment=HERE):
    """The number of the process that a pool begins with."""
    with pool_of(processes, environment) as pool:
        return pool.probe().value


def test_a_pool_goes_on_with_the_process_of_the_one_before(processes):
    first = probed(processes)
    with pool_of(processes) as pool:
        assert pool.ask(Ask("PATH")) != CompletedTask(None)
    assert probed(processes) == first


def test_a_process_that_lost_a_task_can_be_used_again(processes):
    first = probed(processes)
    with pool_of(processes) as pool:
        assert isinstance(pool.ask(Crash()), FailedTask)
        assert pool.ask(Ask("NONE", spends=True)) == CompletedTask(None)
    assert probed(processes) == first


def test_a_process_of_another_environment_is_not_taken(processes):
    first = probed(processes)
    other = probed(processes, POISONED)
    assert other != first
    assert probed(processes, POISONED) == other


def test_a_task_may_ask_for_a_process_that_has_run_no_other(processes):
    with pool_of(processes) as pool:
        assert pool.ask(Remember("KIT_STATE")) == CompletedTask(None)
        assert pool.ask(Remember("KIT_STATE")) == CompletedTask("kept")
        assert pool.ask(Remember("KIT_STATE"), fresh=True) == CompletedTask(None)


def test_a_pool_that_was_given_no_processes_ends_its_own():
    numbers = {probed(None), probed(None)}
    assert len(numbers) == 2
