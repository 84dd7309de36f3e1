# SPDX-License-Identifier: BSD-3-Clause
"""The check of changed arguments compares only results that the CPU reproduces."""

from _kit import call
from _tasks import HERE, IsDefined

from openreg_testing.conformance.bring_up import Setup
from openreg_testing.conformance.pool import CompletedTask, WorkerPool


def defined(*names):
    with WorkerPool((Setup("cpu"),), 1, 300.0, HERE) as pool:
        return {name: pool.ask(IsDefined(name)) for name in names}


def test_a_result_is_compared_where_the_cpu_gives_it_again():
    found = call(defined, "whole", "half_written", "drawn")
    again = CompletedTask((True, True))
    not_again = CompletedTask((False, True))
    assert found == {"whole": again, "half_written": not_again, "drawn": not_again}
