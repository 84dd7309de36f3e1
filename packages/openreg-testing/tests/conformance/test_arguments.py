# SPDX-License-Identifier: BSD-3-Clause
"""The check of changed arguments compares only results that the CPU reproduces."""

import pytest
import torch
from _kit import call
from _tasks import HERE, IsDefined

from openreg_testing.conformance.bring_up import Setup
from openreg_testing.conformance.operators.changes import _tensor_replacements
from openreg_testing.conformance.pool import CompletedTask, WorkerPool


def defined(*names):
    with WorkerPool((Setup("cpu"),), 1, 300.0, HERE) as pool:
        return {name: pool.ask(IsDefined(name)) for name in names}


def test_a_result_is_compared_where_the_cpu_gives_it_again():
    found = call(defined, "whole", "half_written", "drawn")
    again = CompletedTask((True, True))
    not_again = CompletedTask((False, True))
    assert found == {"whole": again, "half_written": not_again, "drawn": not_again}


@pytest.mark.parametrize("shape", [(2, 3), (0, 3), (1,), ()], ids=str)
def test_another_size_is_that_of_one_dimension(shape):
    replacements = dict(_tensor_replacements(torch.zeros(shape)))
    resized = {what: tuple(tensor.shape) for what, tensor in replacements.items() if "elements in dimension" in what}
    assert resized == {
        f"{other} instead of {size} elements in dimension {dimension}": (
            *shape[:dimension],
            other,
            *shape[dimension + 1 :],
        )
        for dimension, size in enumerate(shape)
        for other in {size + 1, max(size - 1, 0), 0} - {size}
    }
