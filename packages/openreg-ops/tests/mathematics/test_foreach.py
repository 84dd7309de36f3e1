# SPDX-License-Identifier: BSD-3-Clause
"""Operators on lists of tensors give the CPU's results for all dtypes, shapes, strides and devices."""

import pytest
import torch
from parity import DEVICE, assert_same, move_all

pytestmark = pytest.mark.no_fallback

REGISTERED = sorted(
    name.removeprefix("aten::")
    for name in torch._C._dispatch_get_registrations_for_dispatch_key("PrivateUse1")
    if name.startswith("aten::_foreach_")
)


def overload(name):
    base, _, rest = name.partition(".")
    return getattr(getattr(torch.ops.aten, base), rest or "default")


def operands(count=3, square=False):
    """In (0, 1): every function here is defined there."""
    generator = torch.Generator().manual_seed(3)
    shapes = [(3, 3), (2, 2), (4, 4)] if square else [(3, 4), (5,), ()]
    return [torch.rand(shapes[i % 3], generator=generator) * 0.9 + 0.05 for i in range(count)]


def arguments(operation):
    """By the types that the schema asks for."""
    values = []
    for argument in operation._schema.arguments:
        kind = str(argument.type)
        if argument.has_default_value():
            continue
        if kind == "List[Tensor]":
            values.append(operands(square="_mm" in operation._schema.name))
        elif kind == "List[number]":
            values.append([1.5, 0.5, 2.0])
        elif kind == "number":
            values.append(1.5)
        elif argument.name == "scalars":
            values.append(torch.tensor([1.5, 0.5, 2.0]))
        else:
            assert kind == "Tensor", (operation, argument)
            values.append(torch.tensor(1.5))
    return values


def to_device(values):
    """Lists of numbers in a tensor stay on the host, where these operators read them."""
    return [
        value if isinstance(value, torch.Tensor) and value.dim() == 1 else move_all(value, DEVICE) for value in values
    ]


def test_there_are_such_operators():
    assert len(REGISTERED) > 130
    inplace = {name for name in REGISTERED if name.partition(".")[0].endswith("_")}
    functional = set(REGISTERED) - inplace
    assert {name.replace("_.", ".").removesuffix("_") for name in inplace} <= functional | {"_foreach_copy"}


@pytest.mark.parametrize("name", REGISTERED)
def test_values(name):
    operation = overload(name)
    theirs = arguments(operation)
    mine = to_device(theirs)
    reference = operation(*theirs)
    result = operation(*mine)
    if name.partition(".")[0].endswith("_"):
        assert result is None
        result, reference = mine[0], theirs[0]
    assert_same(result, reference)


def check(operation, *values):
    theirs, mine = move_all(values, "cpu"), move_all(values, DEVICE)
    reference, result = operation(*theirs), operation(*mine)
    assert_same((result, mine), (reference, theirs))


INTEGERS = [torch.arange(3), torch.arange(4).view(2, 2)]
FLOATS = [torch.arange(3.0), torch.arange(4.0).view(2, 2)]


@pytest.mark.parametrize(
    "operation",
    [
        lambda: check(torch._foreach_add, INTEGERS, 2),
        lambda: check(torch._foreach_add, INTEGERS, 2.5),
        lambda: check(torch._foreach_div, INTEGERS, [2, 4.0]),
        lambda: check(torch._foreach_mul, [*INTEGERS, *FLOATS], 2),
        lambda: check(torch._foreach_mul, INTEGERS, FLOATS),
        lambda: check(torch._foreach_mul, FLOATS, [t.double() for t in FLOATS]),
        lambda: check(torch._foreach_add, FLOATS, 1j),
        lambda: check(torch._foreach_add, FLOATS, [1j, 2.0]),
        lambda: check(torch._foreach_add, FLOATS, torch.tensor(1, dtype=torch.float64)),
        lambda: check(torch._foreach_sqrt, INTEGERS),
        lambda: check(torch._foreach_neg, [t.to(torch.complex64) for t in FLOATS]),
        lambda: check(torch._foreach_add_, [t.double() for t in FLOATS], FLOATS),
        lambda: check(torch._foreach_add_, [t.half() for t in FLOATS], 1.0),
        lambda: check(torch._foreach_copy_, [t.double() for t in FLOATS], INTEGERS),
        lambda: check(torch._foreach_norm, FLOATS),
        lambda: check(torch._foreach_pow, 2.0, FLOATS),
    ],
)
def test_dtypes_that_differ(operation):
    operation()


def test_shapes_that_differ():
    check(torch._foreach_add, [torch.ones(1, 3), torch.ones(2)], [torch.ones(2, 1), torch.ones(())])
    check(torch._foreach_mul_, [torch.ones(2, 3)], [torch.ones(3)])
    check(torch._foreach_mm, [torch.ones(2, 3), torch.ones(1, 2)], [torch.ones(3, 4), torch.ones(2, 2)])


def test_strides():
    x = torch.randn(2, 3, 4, 5)
    layouts = [x, x.permute(3, 1, 0, 2), x.contiguous(memory_format=torch.channels_last), x[:, :, ::2]]
    check(torch._foreach_exp, layouts)
    check(torch._foreach_add_, layouts, 2.0)


def test_several_devices():
    x = [torch.ones(2, device="openreg:0"), torch.ones(2, device="openreg:1")]
    result = torch._foreach_add(x, 1.0)
    assert [t.device.index for t in result] == [0, 1]
    assert [t.cpu().tolist() for t in result] == [[2, 2]] * 2
    torch._foreach_copy_(x, [torch.full((2,), 7.0)] * 2)
    assert [t.cpu().tolist() for t in x] == [[7, 7]] * 2


@pytest.mark.parametrize(
    ("operation", "text"),
    [
        (lambda x: torch._foreach_add(x, [*x, *x]), "same number of tensors"),
        (lambda x: torch._foreach_add(x, [1.0]), "same number of elements"),
        (lambda x: torch._foreach_add(x, [t.cpu() for t in x]), "same device"),
        (lambda x: torch._foreach_add(x, torch.ones(()), alpha=2), "expected to be on openreg:0 but is on cpu"),
        (lambda x: torch._foreach_add_(x, torch.ones(()), alpha=2), "expected to be on openreg:0 but is on cpu"),
        (lambda x: torch._foreach_add_([t.long() for t in x], 1.5), "can't be cast"),
        (lambda x: torch._foreach_add_(x, [torch.ones(7, device=DEVICE)] * 2), "size|shape"),
        (lambda x: torch._foreach_add_([x[0][:1].expand(3)], 1.0), "single memory location"),
        (lambda x: torch._foreach_add([], 1.0), "at least one tensor"),
        (lambda x: torch._foreach_add_([x[0][:-1]], [x[0][1:]]), "single memory location"),
        (lambda x: torch._foreach_add_(x, x, alpha=True), "Boolean alpha"),
        (lambda x: torch._foreach_sub(x, True), "with a bool tensor"),
        (lambda x: torch._foreach_sub_(x, [True, 1.0]), "with a bool tensor"),
        (lambda x: torch._foreach_addcdiv_(x, x, x, torch.tensor(1.0)), "dimension 1. Got 0"),
        (lambda x: torch._foreach_addcmul(x, x, x, torch.tensor(1.0)), "dimension 1. Got 0"),
        (lambda x: torch._foreach_mm([x[0].view(1, 3)], [x[0].view(1, 3)]), "1x3 and 1x3"),
        (lambda x: torch._foreach_mm(x[:1], x[:1]), "matrix"),
        (lambda x: torch._foreach_clamp_max([t.half() for t in x], [1e10] * 2), "without overflow"),
    ],
)
def test_mistakes_are_found_on_the_calling_line(operation, text):
    with pytest.raises(RuntimeError, match=text):
        operation(move_all(FLOATS, DEVICE))
    torch.openreg.synchronize()


def test_gradients():
    x = [t.to(DEVICE).requires_grad_() for t in FLOATS]
    y = torch._foreach_mul(torch._foreach_exp(x), 2.0)
    sum(t.sum() for t in y).backward()
    assert_same([t.grad for t in x], [2 * t.exp() for t in FLOATS])
