# SPDX-License-Identifier: BSD-3-Clause
"""The autocast rules equal CUDA's, which every build of PyTorch contains, with or without a GPU.

An operator's rule calls the operator again, which gets to its autograd kernel. Here that kernel is one that notes what
it gets, so that operators need neither kernels nor sensible arguments, and two devices can be compared.
"""

import functools
import itertools

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import openreg_amp  # noqa: F401

KEYS = {"cuda": "CUDA", "openreg": "PrivateUse1"}
# A build of PyTorch with CUDA has this one besides; recurrent layers call it with tensors in a GPU's memory alone.
OF_CUDA_BUILDS = {"aten::_cudnn_rnn"}

# The types of an operator's tensors, repeated as often as it has tensors.
TYPES = (
    *((dtype,) for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int64)),
    *itertools.permutations((torch.float16, torch.bfloat16, torch.float32, torch.float64), 2),
)


def with_rule(device):
    """All operators of the dispatcher that have a rule for this device."""
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    names = set(torch._C._dispatch_get_all_op_names()) - OF_CUDA_BUILDS
    return {name for name in names if has(name, f"Autocast{KEYS[device]}")}


def overload(operator):
    """What to call, for a name as the dispatcher writes it: aten::mm, aten::sum.dim_IntList."""
    name, _, variant = operator.removeprefix("aten::").partition(".")
    return getattr(getattr(torch.ops.aten, name), variant or "default")


class ReachedError(Exception):
    """Raised in place of running an operator's autograd kernel: which operator, and what it was given."""


def noting(operator):
    def kernel(*args, **kwargs):
        raise ReachedError(operator, [described(value) for value in (*args, *kwargs.values())])

    return kernel


def described(value):
    if isinstance(value, torch.Tensor):
        return value.dtype
    return [described(item) for item in value] if isinstance(value, list | tuple) else value


# The operators with a rule, and the two that a rule calls in place of another.
OPERATORS = sorted(with_rule("cuda") | with_rule("openreg"))
CALLED = {*OPERATORS, "aten::norm.ScalarOpt_dtype", "aten::norm.ScalarOpt_dim_dtype"}


@pytest.fixture(scope="module", autouse=True)
def autograd_kernels_that_note():
    with torch.library._scoped_library("aten", "IMPL") as library, FakeTensorMode():
        for operator, key in itertools.product(sorted(CALLED), KEYS.values()):
            library.impl(operator, noting(operator), f"Autograd{key}")
        yield


@functools.cache
def tensor(dtype, device):
    """One for all calls, as none gets to a kernel that would write to it; making one takes longer than a call."""
    return torch.empty(1, dtype=dtype, device=device)


PLAIN = {"bool": True, "str": "any", "int": 1, "float": 0.5, "number": 0.5}


def argument(item, tensors, named):
    """Any value that the dispatcher takes for this argument of a schema."""
    kind = str(item.type)
    if item.name == "dtype":
        return named
    if "Tensor" in kind:
        return [next(tensors), next(tensors)] if kind.startswith("List") else next(tensors)
    if "List" in kind:
        return [1]
    return next(value for name, value in PLAIN.items() if name in kind)


def reached(operator, device, autocast_type, types, named=None):
    """What autograd gets when the operator is called under autocast with tensors of these types."""
    target = overload(operator)
    tensors = (tensor(dtype, device) for dtype in itertools.cycle(types))
    schema = target._schema.arguments
    args = [argument(item, tensors, named) for item in schema if not item.kwarg_only]
    kwargs = {item.name: argument(item, tensors, named) for item in schema if item.kwarg_only}
    # torch.autocast("cuda") would disable itself where there is no GPU.
    torch.set_autocast_dtype(device, autocast_type)
    torch.set_autocast_enabled(device, True)
    try:
        target(*args, **kwargs)
    except ReachedError as note:
        return note.args
    except RuntimeError:  # PyTorch's, for types that cannot be promoted, and ours for what is refused
        return "refused", []
    finally:
        torch.set_autocast_enabled(device, False)
        torch.set_autocast_dtype(device, torch.float16)
    raise AssertionError(f"{operator} reached no autograd kernel")


@pytest.mark.covers("registration.rules of AutocastPrivateUse1")
def test_the_operators_with_rules_are_those_of_cuda():
    ours, theirs = with_rule("openreg"), with_rule("cuda")
    assert ours == theirs
    assert len(ours) > 100


def test_a_note_tells_which_operator_got_what():
    half, single = torch.float16, torch.float32
    assert reached("aten::mm", "cuda", half, (single,)) == ("aten::mm", [half, half])
    assert reached("aten::exp", "cuda", half, (half,)) == ("aten::exp", [single])
    assert reached("aten::norm.Scalar", "cuda", half, (half,)) == ("aten::norm.ScalarOpt_dtype", [half, 0.5, single])
    assert reached("aten::binary_cross_entropy", "cuda", half, (half,)) == ("refused", [])


@pytest.mark.covers("registration.rules of AutocastPrivateUse1")
@pytest.mark.parametrize("autocast_type", [torch.float16, torch.bfloat16], ids=str)
def test_every_rule_does_what_cudas_does(autocast_type):
    different = {}
    for operator, types in itertools.product(OPERATORS, TYPES):
        ours = reached(operator, "openreg", autocast_type, types)
        theirs = reached(operator, "cuda", autocast_type, types)
        if ours != theirs:
            different[operator, types] = ours, theirs
    assert different == {}


@pytest.mark.parametrize("named", [torch.float16, torch.float32, torch.float64], ids=str)
def test_a_type_that_the_caller_names_is_treated_as_on_cuda(named):
    operators = [name for name in OPERATORS if any(item.name == "dtype" for item in overload(name)._schema.arguments)]
    assert len(operators) > 10
    for operator in operators:
        ours = reached(operator, "openreg", torch.float16, (torch.float16,), named)
        assert ours == reached(operator, "cuda", torch.float16, (torch.float16,), named), operator
        assert named in ours[1], operator
