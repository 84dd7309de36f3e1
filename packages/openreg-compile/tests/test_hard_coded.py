# SPDX-License-Identifier: BSD-3-Clause
"""Inductor decides these by the name of a device, so this package changes or replaces them.

If a test fails with a new torch, that release has opened one of them. Then use what it offers, and delete the change:
"What is changed in PyTorch" in docs/features/compiler.md lists all of them.
"""

import inspect

import pytest
import torch
from torch._inductor import config
from torch._inductor.cpp_builder import CppBuilder
from torch._inductor.cudagraph_utils import check_multiple_devices_or_any_cpu_nodes
from torch._inductor.scheduler import Scheduler
from torch._inductor.utils import get_current_backend

from openreg_compile import scheduling

pytestmark = pytest.mark.filterwarnings("ignore:::torch")


def test_graphs_are_captured_on_devices_of_cuda_alone():
    assert check_multiple_devices_or_any_cpu_nodes({torch.device("cuda", 0): None}) is None
    assert "openreg" in check_multiple_devices_or_any_cpu_nodes({torch.device("openreg", 0): None})


def test_the_language_of_kernels_is_that_of_cuda_for_other_names():
    with config.patch(cuda_backend="cpp"):
        assert get_current_backend("openreg") == "cpp"
    with config.patch(cuda_backend="triton"):
        assert get_current_backend("openreg") == "triton"


@pytest.mark.parametrize("name", scheduling._GPU_FUSIONS)
def test_only_the_cpu_is_left_out_of_fusions_for_gpus(name):
    assert "is_cpu()" in inspect.getsource(getattr(Scheduler, name))


def test_the_paths_of_sources_are_not_quoted_in_a_command():
    assert 'self._sources_args = " ".join(sources)' in inspect.getsource(inspect.unwrap(CppBuilder.__init__))
