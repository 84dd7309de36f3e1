# SPDX-License-Identifier: BSD-3-Clause
"""Each bug that is planted in the code generator makes at least one case of cases.py fail."""

import contextlib
import re

import pytest
import test_cases
import test_graphs
import test_launches
import torch
from torch._inductor import config
from torch._inductor.codegen.wrapper import PythonWrapperCodegen
from torch._inductor.exc import InductorError

from openreg_compile import graphs, rewriting, scheduling, wrapper

pytestmark = pytest.mark.filterwarnings("ignore:::torch")


def dense(self, name, device, dtype, shape, stride, allocation_shape=None, is_pinned=False):
    """Allocates as if all tensors were contiguous."""
    sizes = self.codegen_python_shape_tuple(shape)
    return f"{name} = torch.empty({sizes}, device='{device}', dtype={dtype})"


def without_offset(self, data, size, stride, offset, *rest, **others):
    """Takes a part of a tensor from its beginning."""
    return PythonWrapperCodegen.codegen_reinterpret_view(self, data, size, stride, 0, *rest, **others)


CALL = wrapper._DeviceWrapperMixin._generate_kernel_call_helper


def from_the_storage(self, name, call_args, **others):
    """Gives kernels the begin of an input's memory."""
    begins = [f"{arg}.as_strided({arg}.size(), {arg}.stride(), 0)" if "arg" in arg else arg for arg in call_args]
    CALL(self, name, begins, **others)


def unchanged(node):
    """Leaves an operator to Inductor, whose lowering is right for the CPU."""


# Each row has what is replaced, by what, the case that fails, and the error that Inductor raises, or None if results
# differ.
MISTAKES = {
    "written for another language": (scheduling, "_as_cpp", contextlib.nullcontext, "whole_numbers", "CppCompileError"),
    "fused as for a GPU": (
        scheduling,
        "_disable_gpu_fusions",
        lambda scheduler: None,
        "softmaxes",
        "TypeError: can't multiply sequence",
    ),
    "positions are counted in loops": (
        rewriting._REWRITTEN,
        torch.ops.aten.argmax.default,
        unchanged,
        "positions",
        None,
    ),
    "strides are forgotten": (wrapper._DeviceWrapperMixin, "make_allocation", dense, "strides_and_offsets", None),
    "parts begin together": (wrapper._DeviceWrapperMixin, "codegen_reinterpret_view", without_offset, "joining", None),
    "inputs begin elsewhere": (
        wrapper._DeviceWrapperMixin,
        "_generate_kernel_call_helper",
        from_the_storage,
        "strides_and_offsets",
        None,
    ),
}
# What is replaced in a kernel's source, by what, and the case that fails.
MISWRITTEN = {
    "views": (r"7L \+ \(\(-1L\)\*x1\)", "6L + ((-1L)*x1)", "views"),
    "scattering": (r"atomic_add\w*(?:<[^>]*>)?\([^;]*;", "", "scattering"),
    "reductions": (r"float tmp_acc0 = 0;", "float tmp_acc0 = 1;", "reductions"),
    "welford": (r"\.m2\b", ".mean", "welford"),
    "padding": (r"static_cast<float>\(0\.5\)", "static_cast<float>(0.25)", "joining"),
    "indexing": (r"tmp0 = in_ptr0\[static_cast<int64_t>\(x0\)\];", "tmp0 = int64_t(1);", "gathering"),
    "dtypes": (r"convert<at::Half>\((\w+)\)", r"convert<at::Half>(\1.floor())", "mixed_dtypes"),
    "sizes": (r"x0<static_cast<int64_t>\(ks0\)", "x0<static_cast<int64_t>(4L)", "any_size"),
    "mutation": (r"\w+\.store\(out_ptr2 [^;]*;", "", "mutation"),
}


def one_in_the_lane(mistakes, chosen):
    """Each is compiled anew: the default session plants one, the endurance session the others."""
    return [name if name == chosen else pytest.param(name, marks=pytest.mark.endurance) for name in mistakes]


@pytest.mark.parametrize("name", one_in_the_lane(MISTAKES, "strides are forgotten"))
def test_a_mistake_in_the_generator_fails_a_case(monkeypatch, name):
    owner, attribute, wrong, case, error = MISTAKES[name]
    failure = pytest.raises(AssertionError) if error is None else pytest.raises(InductorError, match=error)
    calls = []

    def planted(*args, **options):
        result = wrong(*args, **options)
        calls.append(result)  # only if Inductor's arguments are those that the plant takes
        return result

    (monkeypatch.setitem if isinstance(owner, dict) else monkeypatch.setattr)(owner, attribute, planted)
    torch._dynamo.reset()
    with config.patch(force_disable_caches=True), failure:
        test_cases.check(case)
    assert calls


@pytest.mark.parametrize("kind", one_in_the_lane(MISWRITTEN, "mutation"))
def test_a_mistake_in_a_kernel_fails_a_case(monkeypatch, kind):
    pattern, wrong, case = MISWRITTEN[kind]
    replaced = miswritten(monkeypatch, pattern, wrong)
    torch._dynamo.reset()
    with config.patch(force_disable_caches=True), pytest.raises(AssertionError):
        test_cases.check(case)
    assert sum(replaced)


@pytest.mark.endurance
def test_random_numbers_of_one_seed_fail(monkeypatch):
    replaced = miswritten(monkeypatch, r"normalized_rand_cpu\([^,]+,", "normalized_rand_cpu(7,")
    torch._dynamo.reset()
    with config.patch(force_disable_caches=True), pytest.raises(AssertionError):
        test_launches.test_dropout_draws_from_the_devices_generator()
    assert sum(replaced)


def miswritten(monkeypatch, pattern, wrong):
    """Replaces in all kernels; how often in each."""
    original, replaced = scheduling.Scheduling.define_kernel, []

    def define(self, source, nodes, kernel_args=None):
        source, count = re.subn(pattern, wrong, source)
        replaced.append(count)
        return original(self, source, nodes, kernel_args)

    monkeypatch.setattr(scheduling.Scheduling, "define_kernel", define)
    return replaced


@pytest.mark.skipif(torch.openreg.device_count() < 2, reason="needs two devices")
def test_a_device_without_its_number_fails(monkeypatch):
    monkeypatch.setattr(wrapper._DeviceWrapperMixin, "make_allocation", PythonWrapperCodegen.make_allocation)
    torch._dynamo.reset()
    with config.patch(force_disable_caches=True), pytest.raises((AssertionError, RuntimeError)):
        test_launches.test_kernels_run_where_their_operands_are()


def test_results_that_are_overwritten_fail(monkeypatch):
    monkeypatch.setattr(graphs._Recording, "is_in_use", lambda self: False)
    torch._dynamo.reset()
    with pytest.raises(AssertionError):
        test_graphs.test_results_that_are_kept_stay_as_they_are([])


def test_an_input_that_is_written_to_in_a_copy_fails(monkeypatch):
    monkeypatch.setattr(graphs._GraphedFunction, "__init__", forgetting(graphs._GraphedFunction.__init__))
    torch._dynamo.reset()
    with pytest.raises(AssertionError):
        test_graphs.test_an_input_that_is_written_to_is_the_callers([])


def forgetting(original):
    def wrong(self, call, device, mutated):
        original(self, call, device, frozenset())

    return wrong
