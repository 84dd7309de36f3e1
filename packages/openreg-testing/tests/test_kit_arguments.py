# SPDX-License-Identifier: BSD-3-Clause
"""What the check of changed arguments compares: results that the CPU gives again."""

from _tasks import HERE, IsDefined

from openreg_testing.conformance.bring_up import Setup
from openreg_testing.conformance.pool import Answer, Pool


def test_a_result_is_compared_where_the_cpu_gives_it_again():
    with Pool((Setup("cpu"),), 1, 300.0, HERE) as pool:
        found = {name: pool.ask(IsDefined(name)) for name in ("whole", "half_written", "drawn")}
    defined = Answer((True, True))
    undefined = Answer((False, True))
    assert found == {"whole": defined, "half_written": undefined, "drawn": undefined}
