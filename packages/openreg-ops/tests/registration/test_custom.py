# SPDX-License-Identifier: BSD-3-Clause
"""Operators that PyTorch does not have, from C++ (csrc/mechanisms) and Python (functional.py), are right."""

import re

import pytest
import torch
from parity import DEVICE, is_busy, launches_of
from torch.autograd import gradcheck, gradgradcheck
from torch.nn import functional

from openreg_ops.functional import add_rms_norm, clip_grad_norm_, rotary_embedding, swiglu

pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.:DeprecationWarning")

# PyTorch's check of autograd registrations knows the devices of its own only.
CHECKS = ("test_schema", "test_faketensor", "test_aot_dispatch_dynamic")


def randn(*shape, dtype=torch.float64, requires_grad=True):
    return torch.randn(*shape, dtype=dtype).to(DEVICE).requires_grad_(requires_grad)


def swiglu_operands(**kwargs):
    return randn(3, 4, **kwargs), randn(3, 4, **kwargs)


def norm_operands(**kwargs):
    return randn(2, 3, 4, **kwargs), randn(2, 3, 4, **kwargs), randn(4, **kwargs)


def rotary_operands(**kwargs):
    return randn(2, 3, 8, **kwargs), randn(3, 4, requires_grad=False)


def norm_reference(x, residual, weight, eps=1e-6):
    total = x + residual
    return functional.rms_norm(total, weight.shape, weight, eps), total


def rotary_reference(x, angles):
    pairs = torch.complex(*x.float().chunk(2, -1)) * torch.polar(torch.ones_like(angles), angles)
    return torch.cat((pairs.real, pairs.imag), -1).to(x.dtype)


# (operation, reference of PyTorch's own operators, operands)
CASES = {
    "swiglu": (swiglu, lambda gate, up: functional.silu(gate) * up, swiglu_operands),
    "add_rms_norm": (add_rms_norm, norm_reference, norm_operands),
    "rotary_embedding": (rotary_embedding, rotary_reference, rotary_operands),
}


@pytest.mark.no_fallback
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_values_are_those_of_the_operators_it_is_made_of(name, dtype):
    operation, reference, operands = CASES[name]
    ours = [operand.detach().to(dtype if operand.requires_grad else torch.float32) for operand in operands()]
    expected = reference(*[operand.cpu().float() for operand in ours])
    result = operation(*ours)
    result, expected = (result, expected) if isinstance(result, tuple) else ((result,), (expected,))
    for mine, theirs in zip(result, expected, strict=True):
        assert (mine.dtype, mine.device.type) == (dtype, DEVICE)
        tolerance = {"rtol": 1e-5, "atol": 1e-5} if dtype.itemsize > 2 else {"rtol": 2e-2, "atol": 2e-2}
        torch.testing.assert_close(mine.cpu().float(), theirs, **tolerance)


@pytest.mark.parametrize("name", CASES)
def test_derivatives(name):
    operation, _, operands = CASES[name]
    assert gradcheck(operation, operands())


@pytest.mark.parametrize("name", ["swiglu", "rotary_embedding"])
def test_second_derivatives(name):
    operation, _, operands = CASES[name]
    assert gradgradcheck(operation, operands())


def test_a_second_derivative_that_does_not_exist_is_refused():
    x, residual, weight = norm_operands()
    (grad,) = torch.autograd.grad(add_rms_norm(x, residual, weight)[0].sum(), x, create_graph=True)
    with pytest.raises(NotImplementedError, match=r"add_rms_norm .*functional\.rms_norm"):
        grad.sum().backward()


def test_derivatives_in_forward_mode_are_refused():
    gate, up = swiglu_operands(requires_grad=False)
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(gate, torch.ones_like(gate))
        with pytest.raises(NotImplementedError, match=r"swiglu .*forward.*silu\(gate\) \* up"):
            swiglu(dual, up)
        grad = torch.ones_like(gate)
        with pytest.raises(NotImplementedError, match=r"swiglu .*forward.*silu\(gate\) \* up"):
            torch.ops.openreg.swiglu_backward(torch.autograd.forward_ad.make_dual(grad, grad), gate, up)


def test_a_graph_serves_one_backward_pass():
    gate, up = swiglu_operands()
    y = swiglu(gate, up).sum()
    assert y.grad_fn.next_functions[0][0].name() == "SwigluBackward"
    y.backward()
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()


def test_one_operand_alone_may_need_a_gradient():
    gate, up = swiglu_operands()
    swiglu(gate.detach(), up).sum().backward()
    assert gate.grad is None
    torch.testing.assert_close(up.grad, functional.silu(gate.detach()))
    assert not swiglu(gate.detach(), up.detach()).requires_grad


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")  # PyTorch's own, since 2.14
@pytest.mark.parametrize(
    ("operator", "operands"),
    [
        (torch.ops.openreg.swiglu, swiglu_operands),
        (torch.ops.openreg.swiglu_backward, lambda: (*swiglu_operands(), randn(3, 4))),
        (torch.ops.openreg.add_rms_norm, norm_operands),
        (torch.ops.openreg.rotary_embedding, rotary_operands),
        (torch.ops.aten._openreg_clip_factor, lambda: ([randn(3).detach(), randn(2, 2).detach()], 1.0)),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_pytorchs_checks_of_custom_operators(operator, operands):
    torch.library.opcheck(operator.default, operands(), test_utils=CHECKS)


@pytest.mark.parametrize("name", CASES)
def test_compiled_functions(name):
    operation, _, operands = CASES[name]
    given = operands()

    def loss(*values):
        result = operation(*values)
        return (result if isinstance(result, torch.Tensor) else sum(result)).square().sum()

    wanted = [value for value in given if value.requires_grad]
    compiled = torch.compile(loss, backend="aot_eager", fullgraph=True)
    expected, result = loss(*given), compiled(*given)
    torch.testing.assert_close(result, expected)
    torch.testing.assert_close(torch.autograd.grad(result, wanted), torch.autograd.grad(expected, wanted))


@pytest.mark.parametrize("name", ["swiglu", "add_rms_norm"])
def test_one_launch_forward_and_one_backward(name):
    """Why they exist: PyTorch's operators for the same take more. test_launch_budgets.py has the limits."""
    *functions, operands = CASES[name]
    given = operands()
    ours, theirs = (launches_of(lambda function=function: function(*given)) for function in functions)
    assert ours < theirs


@pytest.mark.parametrize("name", CASES)
def test_a_launch_returns_at_once(name, gate):
    operation, _, operands = CASES[name]
    given = operands()
    gate.close()
    operation(*given)
    assert is_busy()


def test_operands_of_any_layout():
    gate, up = torch.randn(4, 6).to(DEVICE).t(), torch.randn(6, 8).to(DEVICE)[:, ::2]
    torch.testing.assert_close(swiglu(gate, up), functional.silu(gate) * up)
    x, weight = torch.randn(4, 6).to(DEVICE).t(), torch.rand(8).to(DEVICE)[::2]
    torch.testing.assert_close(add_rms_norm(x, x, weight), norm_reference(x, x, weight))


def test_empty_operands():
    assert swiglu(randn(0, 3), randn(0, 3)).shape == (0, 3)
    x, residual, weight = randn(0, 3), randn(0, 3), randn(3)
    add_rms_norm(x, residual, weight)[0].sum().backward()
    assert weight.grad.cpu().tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    "operation",
    [
        lambda here, there: swiglu(here, there),
        lambda here, there: swiglu(there, here),
        lambda here, there: add_rms_norm(here, here, there),
        lambda here, there: torch.ops.aten._openreg_clip_factor([here, there], 1.0),
    ],
)
@pytest.mark.parametrize("device", ["cpu", "openreg:1"])
def test_operands_on_several_devices_are_refused(operation, device):
    with pytest.raises(RuntimeError, match="same device"):
        operation(torch.ones(3, device=DEVICE), torch.ones(3, device=device))


@pytest.mark.parametrize(
    ("operation", "said"),
    [
        (lambda x: swiglu(x, x[1:]), r"openreg::swiglu: .*shape.*\[3\].*\[2\]"),
        (lambda x: swiglu(x, x.double()), "openreg::swiglu: .*dtype"),
        (lambda x: swiglu(x.int(), x.int()), "openreg::swiglu: .*float, double, half or bfloat16"),
        (lambda x: add_rms_norm(x, x, x[1:]), r"add_rms_norm: .*weight.*\[3\].*\[2\]"),
        (lambda x: add_rms_norm(x, x[1:], x), "add_rms_norm: .*shape"),
        (lambda x: torch.ops.aten._openreg_clip_factor([x, x.double()], 1.0), "dtype"),
    ],
)
@pytest.mark.parametrize("device", [DEVICE, "meta"])
def test_mistakes_are_named_on_the_calling_line(operation, said, device):
    with pytest.raises(RuntimeError, match=said):
        operation(torch.ones(3, device=device))


# clip_grad_norm_


def parameters(device, *shapes):
    """With a gradient each, but for the first one."""
    generator = torch.Generator().manual_seed(1)
    result = [torch.nn.Parameter(torch.ones(shape, device=device)) for shape in shapes]
    for parameter in result[1:]:
        parameter.grad = torch.randn(parameter.shape, generator=generator).to(device)
    return result


@pytest.mark.parametrize("max_norm", [0.5, 1e6, 0])
def test_clipping_gradients_equals_pytorchs(max_norm):
    ours, theirs = (parameters(device, (2,), (3, 4), (), (5,)) for device in (DEVICE, "cpu"))
    norm, expected = clip_grad_norm_(ours, max_norm), torch.nn.utils.clip_grad_norm_(theirs, max_norm)
    torch.testing.assert_close(norm.cpu(), expected)
    for mine, reference in zip(ours[1:], theirs[1:], strict=True):
        torch.testing.assert_close(mine.grad.cpu(), reference.grad)


@pytest.mark.no_fallback
def test_clipping_gradients_does_not_wait(gate):
    ours = parameters(DEVICE, *[(3, 3)] * 8)
    gate.close()
    clip_grad_norm_(ours, 1.0)
    assert is_busy()


def test_clipping_the_gradient_of_one_tensor():
    ours, theirs = (parameters(device, (2,), (3, 4))[1] for device in (DEVICE, "cpu"))
    norm, expected = clip_grad_norm_(ours, 0.5), torch.nn.utils.clip_grad_norm_(theirs, 0.5)
    torch.testing.assert_close((norm.cpu(), ours.grad.cpu()), (expected, theirs.grad))


def test_clipping_nothing():
    assert clip_grad_norm_([torch.nn.Parameter(torch.ones(2, device=DEVICE))], 1.0).item() == 0
    with pytest.raises(ValueError, match=r"max_norm .*\b0\b.*-1"):
        clip_grad_norm_(parameters(DEVICE, (2,), (2,)), -1.0)


def test_the_factor_has_no_derivative():
    norm, _ = torch.ops.aten._openreg_clip_factor([torch.ones(3, device=DEVICE, requires_grad=True)], 0.5)
    with pytest.raises(RuntimeError, match="aten::_openreg_clip_factor"):
        norm.backward()


# rotary_embedding


def test_a_batch_of_rotations():
    x, angles = rotary_operands(requires_grad=False)
    by_both = torch.vmap(rotary_embedding)(torch.stack([x, 2 * x]), torch.stack([angles, -angles]))
    torch.testing.assert_close(by_both[1], rotary_embedding(2 * x, -angles))
    by_x = torch.vmap(rotary_embedding, (1, None))(torch.stack([x, 2 * x], 1), angles)
    torch.testing.assert_close(by_x[1], rotary_embedding(2 * x, angles))
    by_angles = torch.vmap(rotary_embedding, (None, 2))(x, torch.stack([angles, -angles], 2))
    torch.testing.assert_close(by_angles[1], rotary_embedding(x, -angles))


@pytest.mark.parametrize("device", [DEVICE, "meta"])
@pytest.mark.parametrize("sizes", [(1,), (3, 2, 2), (1, 1, 2), (3, 2)], ids=str)
def test_angles_that_do_not_fit_are_refused(device, sizes):
    """Fewer than half of the features, or a shape that would broadcast the features."""
    with pytest.raises(ValueError, match=rf"angles.*{re.escape(str(list(sizes)))}.*\[2, 4\]"):
        rotary_embedding(torch.ones(2, 4, device=device), torch.ones(sizes, device=device))


def test_other_devices_have_no_rotary_embedding():
    with pytest.raises(NotImplementedError, match="openreg::rotary_embedding"):
        rotary_embedding(torch.ones(2, 4), torch.ones(2))


# Names that code written for PyTorch's own example backend calls


def test_stock_operators():
    x = torch.tensor([-1.0, 2.0], device=DEVICE, requires_grad=True)
    assert torch.ops.openreg.custom_abs(x).cpu().tolist() == [1, 2]
    assert torch.ops.openreg.custom_abs(torch.empty(3, device="meta")).shape == (3,)


@pytest.mark.parametrize("name", ["custom_autograd_fn_returns_self", "custom_autograd_fn_aliasing"])
@pytest.mark.parametrize("compiled", [False, True])
def test_stock_functions_scale_the_gradient(name, compiled):
    operator = getattr(torch.ops.openreg, name)
    function = torch.compile(operator, backend="aot_eager") if compiled else operator
    x = torch.tensor([-1.0, 2.0], device=DEVICE, requires_grad=True)
    y = function(x)
    assert y.tolist() == x.tolist()
    y.sum().backward()
    assert x.grad.cpu().tolist() == [0.5, 0.5]


def test_the_minimal_set_has_none_of_them(run_python):
    result = run_python("import openreg_ops.functional", OPENREG_OPS="minimal")
    assert "openreg_ops.functional needs" in result.stderr


ALL_REGISTERED = """
import sys, torch
before = set(sys.modules)
import openreg_ops
heavy = {"sympy", "torch._dynamo", "torch._inductor", "torch._functorch.apis", "torch.fx"} & (set(sys.modules) - before)
assert not heavy, heavy
operators = set(torch._C._dispatch_get_all_op_names())
import importlib, pkgutil
for module in pkgutil.walk_packages(openreg_ops.__path__, "openreg_ops."):
    if module.name != "openreg_ops.onnx":  # needs what the extra "onnx" brings
        importlib.import_module(module.name)
print(sorted(set(torch._C._dispatch_get_all_op_names()) - operators))
print(torch.ops.openreg.rotary_embedding(torch.ones(2, device="openreg"), torch.zeros(1, device="openreg")).tolist())
"""


def test_importing_the_package_registers_every_operator_and_no_heavy_module(run_python):
    result = run_python(ALL_REGISTERED)
    assert (result.stdout, result.stderr) == ("[]\n[1.0, 1.0]\n", "")
