# SPDX-License-Identifier: BSD-3-Clause
"""The check of changed arguments changes one thing, and compares only results that the CPU reproduces."""

from _kit import call
from _tasks import HERE, IsDefined, OtherSizes

from openreg_testing.conformance.bring_up import Setup
from openreg_testing.conformance.pool import WorkerPool


def answers(*tasks):
    with WorkerPool((Setup("cpu"),), 1, 300.0, HERE) as pool:
        return [pool.ask(task).value for task in tasks]


def test_a_result_is_compared_where_the_cpu_gives_it_again():
    found = call(answers, *map(IsDefined, ("whole", "half_written", "unwritten_bools", "drawn")))
    assert found == [(True, True), (False, True), (False, True), (False, True)]


def test_another_size_is_that_of_one_dimension():
    shapes = [(2, 3), (0, 3), (1,), ()]
    assert call(answers, *map(OtherSizes, shapes)) == [
        {
            f"{other} instead of {size} elements in dimension {dimension}": (
                *shape[:dimension],
                other,
                *shape[dimension + 1 :],
            )
            for dimension, size in enumerate(shape)
            for other in {size + 1, max(size - 1, 0), 0} - {size}
        }
        for shape in shapes
    ]
