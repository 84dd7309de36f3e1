# SPDX-License-Identifier: BSD-3-Clause
"""The cases notice mistakes: each is planted in a part of the code generator, and a case that it concerns fails."""

import contextlib

import pytest
import test_cases
import test_graphs
import test_launches
import torch
from torch._inductor import config
from torch._inductor.codegen.wrapper import PythonWrapperCodegen

from openreg_compile import graphs, scheduling, wrapper

pytestmark = pytest.mark.filterwarnings("ignore:::torch")


def dense(self, name, device, dtype, shape, stride, allocation_shape=None, is_pinned=False):
    """Allocates as if all tensors were contiguous."""
    sizes = self.codegen_python_shape_tuple(shape)
    return f"{name} = torch.empty({sizes}, device='{device}', dtype={dtype})"


# What is replaced, by what, and the case that fails.
MISTAKES = {
    "written for another language": (scheduling, "_as_cpp", contextlib.nullcontext, "whole_numbers"),
    "fused as for a GPU": (scheduling, "_do_not_reindex", lambda scheduler: None, "softmaxes"),
    "strides are forgotten": (wrapper._OnDevice, "make_allocation", dense, "strides_and_offsets"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_in_the_generator_fails_a_case(monkeypatch, name):
    owner, attribute, wrong, case = MISTAKES[name]
    monkeypatch.setattr(owner, attribute, wrong)
    torch._dynamo.reset()
    with config.patch(force_disable_caches=True), pytest.raises(Exception, match=r"."):
        test_cases.test_a_compiled_function_gives_what_it_gives(case)


@pytest.mark.skipif(torch.openreg.device_count() < 2, reason="needs two devices")
def test_a_device_without_its_number_fails(monkeypatch):
    monkeypatch.setattr(wrapper._OnDevice, "make_allocation", PythonWrapperCodegen.make_allocation)
    torch._dynamo.reset()
    with config.patch(force_disable_caches=True), pytest.raises((AssertionError, RuntimeError)):
        test_launches.test_kernels_run_where_their_operands_are()


def test_results_that_are_overwritten_fail(monkeypatch):
    monkeypatch.setattr(graphs._Recording, "is_in_use", lambda self: False)
    torch._dynamo.reset()
    with pytest.raises(AssertionError):
        test_graphs.test_results_that_are_kept_stay_as_they_are([])


def test_an_input_that_is_written_to_in_a_copy_fails(monkeypatch):
    monkeypatch.setattr(graphs._Replayed, "__init__", forgetting(graphs._Replayed.__init__))
    torch._dynamo.reset()
    with pytest.raises(AssertionError):
        test_graphs.test_an_input_that_is_written_to_is_the_callers([])


def forgetting(original):
    def wrong(self, call, device, mutated):
        original(self, call, device, frozenset())

    return wrong
