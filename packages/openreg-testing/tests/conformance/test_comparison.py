# SPDX-License-Identifier: BSD-3-Clause
"""The conformance kit compares results that torch.testing cannot compare."""

import warnings

import pytest
import torch

with warnings.catch_warnings():
    warnings.filterwarnings("ignore", "Fail to import hypothesis", ImportWarning)
    from openreg_testing.conformance.operators.check_dtypes import comparable
    from openreg_testing.conformance.operators.comparison import close


@pytest.mark.parametrize("sparse", [False, True], ids=["strided", "sparse"])
def test_results_of_an_uncommon_dtype_are_compared_by_their_numbers(sparse):
    def result(*numbers):
        values = torch.tensor(numbers).to(torch.float8_e5m2)
        return (
            torch.sparse_coo_tensor(torch.tensor([[0, 1]]), values, (3,), check_invariants=True) if sparse else values
        )

    assert close(comparable(result(1.0, 2.0)), comparable(result(1.0, 2.0)), None) is None
    assert "not close" in close(comparable(result(1.0, 2.0)), comparable(result(1.0, 3.0)), None)
