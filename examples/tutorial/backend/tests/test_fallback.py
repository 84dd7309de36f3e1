# SPDX-License-Identifier: BSD-3-Clause
"""What falls back to the CPU is counted, and refused on request."""

import pytest
import torch
import torch_pocket  # noqa: F401 - makes the device known to PyTorch


@pytest.fixture
def twice():
    """An operator that only the CPU has, whichever kernels the device gets."""
    with torch.library._scoped_library("backend_tests", "DEF") as library:
        library.define("twice(Tensor x) -> Tensor")
        library.impl("twice", lambda x: 2 * x, "CPU")
        yield torch.ops.backend_tests.twice


def test_a_fallback_is_counted(twice):
    torch.pocket.reset_fallback_stats()
    assert twice(torch.ones(2, device="pocket")).tolist() == [2, 2]
    assert torch.pocket.fallback_stats()["backend_tests::twice"].calls == 1
    torch.pocket.reset_fallback_stats()
    assert torch.pocket.fallback_stats() == {}


def test_a_fallback_is_refused_on_request(twice):
    x = torch.ones(2, device="pocket")
    torch.pocket.refuse_fallbacks()
    try:
        with pytest.raises(NotImplementedError, match="backend_tests::twice: pocket has no kernel"):
            twice(x)
    finally:
        torch.pocket.refuse_fallbacks(False)
    assert twice(x).tolist() == [2, 2]
