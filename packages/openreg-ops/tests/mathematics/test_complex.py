# SPDX-License-Identifier: BSD-3-Clause
"""Operators, copies and fallbacks on complex tensors and on conjugated or negated views give the CPU's results."""

import warnings

import pytest
import torch
from parity import DEVICE, check

pytestmark = pytest.mark.no_fallback

VIEWS = {
    "plain": lambda z: z,
    "conj": torch.conj,
    "adjoint": lambda z: z.mH,
    "imag of conj": lambda z: z.conj().imag,
    "real": lambda z: z.real,
    "neg view": torch._neg_view,
    "neg view of conj": lambda z: torch._neg_view(z.conj()),
}
CLOSE = {"rtol": 1e-4, "atol": 1e-4}


def numbers():
    torch.manual_seed(7)
    return torch.randn(4, 4, dtype=torch.complex64)


OPERATIONS = {
    "add": lambda v: v + 2,
    "mul": lambda v: v * v,
    "exp": torch.exp,
    "abs": torch.abs,
    "angle": torch.angle,
    "sum": lambda v: v.sum(0),
    "mean": torch.mean,
    "matmul": lambda v: v @ v,
    "matmul with a vector": lambda v: v @ v[0],
    "baddbmm": lambda v: torch.baddbmm(v[None], v[None], v[None]),
    "cat": lambda v: torch.cat([v, v.t()]),
    "stack of both": lambda v: torch.stack([v.contiguous(), v]),
    "index": lambda v: v[torch.tensor([2, 0], device=v.device)],
    "where": lambda v: torch.where(v.abs() > 1, v, v * 0),
    "comparison": lambda v: v == v.clone(),
    "cumsum": lambda v: v.cumsum(1),
    "prod": lambda v: v.prod(1),
    "clone": torch.clone,
    "contiguous": lambda v: v.t().contiguous(),
    "convert": lambda v: v.to(torch.complex128 if v.is_complex() else torch.float64),
    "foreach": lambda v: torch._foreach_add([v, v], 1),
    "solve": lambda v: torch.linalg.solve(v + torch.tensor([4.0, 5, 6, 7], device=v.device).diag_embed(), v),
    "vector_norm": torch.linalg.vector_norm,
    "flip": lambda v: v.flip(0),
}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_operators_on_views(operation, view):
    check(lambda z: OPERATIONS[operation](VIEWS[view](z)), numbers(), strides=False, tolerance=CLOSE)


@pytest.mark.parametrize("view", ["conj", "adjoint", "imag of conj"])
@pytest.mark.parametrize("operation", ["add", "mul", "exp", "abs", "sum", "matmul", "cat", "solve", "index"])
def test_gradients_of_views(operation, view):
    z = numbers().requires_grad_()
    check(lambda t: OPERATIONS[operation](VIEWS[view](t)), z, strides=False, tolerance=CLOSE)


@pytest.mark.parametrize("view", VIEWS)
def test_copies_of_views(view):
    z = numbers()
    ours, theirs = VIEWS[view](z.to(DEVICE)), VIEWS[view](z)
    torch.testing.assert_close(ours.cpu(), theirs)
    torch.testing.assert_close(ours.to("openreg:1").cpu(), theirs)
    torch.testing.assert_close(theirs.to(DEVICE).cpu(), theirs)
    into = torch.zeros_like(theirs).to(DEVICE)
    into.copy_(ours)
    torch.testing.assert_close(into.cpu(), theirs.resolve_conj().resolve_neg())
    assert ours[1, 2].item() == theirs[1, 2].item()
    assert ours.tolist() == theirs.tolist()


@pytest.mark.parametrize("view", VIEWS)
def test_views_as_outputs(view):
    """A result goes through the view: what is stored is its conjugate or negative."""
    results = []
    for device in ("cpu", DEVICE):
        z = numbers().to(device)
        into = VIEWS[view](z)
        torch.mul(into.clone(), 3, out=into)
        into.add_(1)
        into[0].fill_(2)
        into[1].zero_()
        into.t().mul_(2)
        into[:, 1:3].copy_(torch.ones(4, 2, device=device) * 5)
        results.append(z.cpu())
    torch.testing.assert_close(results[1], results[0])


@pytest.mark.parametrize("view", ["conj", "imag of conj", "neg view"])
def test_matrix_products_into_views(view):
    results = []
    for device in ("cpu", DEVICE):
        z = numbers().to(device)
        into = VIEWS[view](z)
        torch.mm(into.clone(), into.clone(), out=into)
        results.append(z.cpu())
    torch.testing.assert_close(results[1], results[0], **CLOSE)


def test_the_bits_are_kept_by_views_and_dropped_by_results():
    z = numbers().to(DEVICE)
    assert z.conj().is_conj()
    assert z.conj().t()[1:].is_conj()
    assert not z.conj().resolve_conj().is_conj()
    assert z.conj().imag.is_neg()
    assert not z.conj().imag.resolve_neg().is_neg()
    assert not (z.conj() + 1).is_conj()
    assert z.conj().conj().data_ptr() == z.data_ptr()


@pytest.mark.parametrize("view", VIEWS)
def test_printing(view):
    z = numbers()[:2, :2]
    assert repr(VIEWS[view](z.to(DEVICE))).replace(f", device='{DEVICE}:0'", "") == repr(VIEWS[view](z))


def test_real_and_imaginary_parts_are_views():
    z = torch.zeros(3, dtype=torch.complex64, device=DEVICE)
    z.real.fill_(1)
    z.imag += 2
    torch.view_as_real(z)[0] = 7
    assert z.cpu().tolist() == [7 + 7j, 1 + 2j, 1 + 2j]


@pytest.fixture
def fallen():
    """Two operators without kernels for the device, one of them in place."""
    library = torch.library.Library("openreg_test_complex", "FRAGMENT")
    library.define("shifted(Tensor x) -> Tensor")
    library.define("shift_(Tensor(a!) x, Tensor y) -> Tensor(a!)")
    library.impl("shifted", lambda x: x + 1, "CPU")
    library.impl("shift_", lambda x, y: x.add_(y), "CPU")
    yield torch.ops.openreg_test_complex
    library._destroy()


@pytest.mark.parametrize("view", VIEWS)
def test_fallbacks_take_views_as_they_are(fallen, view):
    results = []
    with torch.openreg.fallback_mode("allow"):
        for device in ("cpu", DEVICE):
            z, into = numbers().to(device), numbers().to(device)
            result = fallen.shifted(VIEWS[view](z))
            fallen.shift_(VIEWS[view](into), result)
            results.append([result.cpu(), into.cpu()])
    torch.testing.assert_close(results[1], results[0])


@pytest.mark.parametrize("there", ["cpu", DEVICE])
def test_what_discards_an_imaginary_part_warns_as_on_the_cpu(there):
    values = torch.ones(2, dtype=torch.complex64, device=DEVICE)
    torch.set_warn_always(True)
    try:
        with pytest.warns(UserWarning, match="discards the imaginary part"):
            values.to(there, torch.float32)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            values.to(there, torch.bool)
            values[:0].to(there, torch.float32)
    finally:
        torch.set_warn_always(False)


def test_a_transform_may_write_over_its_operand():
    values = torch.randn(3, 4, dtype=torch.complex64)
    ours = values.to(DEVICE)
    torch.fft.fft(ours, out=ours)
    torch.testing.assert_close(ours.cpu(), torch.fft.fft(values))


def test_the_angle_of_a_transposed_matrix_is_stored_by_rows():
    assert torch.randn(3, 4, dtype=torch.complex64, device=DEVICE).t().angle().stride() == (3, 1)


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("second", [False, True])
def test_vdot_is_conjugated_lazily_where_pytorchs_is(first, second):
    x, y = torch.randn(2, 5, dtype=torch.complex64)
    operands = [value.conj() if flag else value for value, flag in ((x, first), (y, second))]
    ours = [value.conj() if flag else value for value, flag in ((x.to(DEVICE), first), (y.to(DEVICE), second))]
    expected, found = torch.vdot(*operands), torch.vdot(*ours)
    assert found.is_conj() == expected.is_conj()
    torch.testing.assert_close(found.cpu(), expected)


@pytest.mark.parametrize("name", ["std", "var"])
def test_a_spread_of_complex_numbers_is_not_written_into_an_expanded_output(name):
    with pytest.raises(RuntimeError, match="single memory location"):
        getattr(torch, name)(
            torch.randn(3, 4, dtype=torch.complex64, device=DEVICE), 1, out=torch.empty(1, device=DEVICE).expand(3)
        )


def test_logit_of_whole_numbers_has_the_default_dtype_of_the_call(gate):
    values = torch.zeros(4, dtype=torch.int64, device=DEVICE)
    gate.close()
    result = torch.logit(values, 0.2)
    torch.set_default_dtype(torch.float64)
    try:
        gate.open()
        torch.openreg.synchronize()
    finally:
        torch.set_default_dtype(torch.float32)
    assert torch.equal(result.cpu(), torch.logit(torch.zeros(4, dtype=torch.int64), 0.2))
