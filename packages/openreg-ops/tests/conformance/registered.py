# SPDX-License-Identifier: BSD-3-Clause
"""Lists the operators that this package registers, and calls those that no entry of PyTorch's table reaches."""

import json

import registered_calls
import test_foreach
import test_optimizer
import test_structured
import torch
from parity import DEVICE, check, move_all

from openreg_testing.conformance.operators import outcome, record
from openreg_testing.conformance.operators.check_overloads import OverloadChecker

LIST = """
import json, torch
import openreg_runtime
before = set(torch._C._dispatch_get_registrations_for_dispatch_key("PrivateUse1"))
import openreg_ops
print(json.dumps(sorted(set(torch._C._dispatch_get_registrations_for_dispatch_key("PrivateUse1")) - before)))
"""


def names(run_python):
    """Names "aten::add.Tensor" of all kernels that importing the package registers for the device."""
    result = run_python(LIST)
    assert result.returncode == 0, result.stderr
    return set(json.loads(result.stdout.splitlines()[-1]))


def exercise():
    """Makes every call below, and calls the overloads of what runs; gives the names of all operators that ran."""
    overloads = OverloadChecker()

    def with_overloads(call):
        with overloads:
            call()

    with record.operators() as seen:
        for call in [*CALLS, *registered_calls.CALLS]:
            made = outcome.attempt(lambda call=call: with_overloads(call), DEVICE)
            if made.error is not None:
                raise made.error
    assert overloads.differences == []
    return seen


def tables():
    for name, samples in test_structured.SAMPLES.items():
        for i in range(len(samples)):
            there = move_all(test_structured.sample(name, i), DEVICE)
            test_structured.overload(name)(*there[0], **there[1])


def lists_of_tensors():
    for name in test_foreach.REGISTERED:
        operation = test_foreach.overload(name)
        operation(*test_foreach.to_device(test_foreach.arguments(operation)))


def optimizers():
    for cls, options in test_optimizer.OPTIMIZERS:
        net = test_optimizer.model().to(DEVICE)
        test_optimizer.train(net, cls(net.parameters(), **options, fused=True), DEVICE, steps=1)
    for cls in (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW):
        net = test_optimizer.model().to(DEVICE)
        test_optimizer.train(net, cls(net.parameters(), lr=torch.tensor(0.05), fused=True), DEVICE, steps=1)


def gradient_scaling():
    scale, growth = torch.full((), 4.0, device=DEVICE), torch.zeros((), dtype=torch.int32, device=DEVICE)
    found = torch.zeros((), device=DEVICE)
    gradients = [torch.full((3,), 8.0, device=DEVICE)]
    torch._amp_foreach_non_finite_check_and_unscale_(gradients, found, torch.full((), 0.25, device=DEVICE))
    torch._amp_update_scale_(scale, growth, found, 2.0, 0.5, 1)
    assert (gradients[0].tolist(), scale.item()) == ([2.0] * 3, 8.0)


def storages():
    x = torch.arange(6.0, device=DEVICE)
    for y in (
        torch.empty(0, device=DEVICE).set_(x),
        torch.empty(0, device=DEVICE).set_(x.untyped_storage()),
        torch.empty(0, device=DEVICE).set_(x.untyped_storage(), 0, (6,), (1,)),
    ):
        assert y.data_ptr() == x.data_ptr()
    assert torch.empty(2, device=DEVICE).set_().numel() == 0
    assert torch._has_compatible_shallow_copy_type(x, x)
    assert x.is_set_to(x)
    x.record_stream(torch.openreg.current_stream())
    out = torch.empty(0, device=DEVICE)
    torch.ops.aten._copy_from_and_resize(torch.ones(3), out)
    assert out.tolist() == [1.0] * 3


def random_numbers():
    x = torch.empty(100, device=DEVICE)
    assert x.random_().min() >= 0
    assert x.random_(5).max() < 5


def resampling():
    x = torch.rand(1, 2, 6, 6, requires_grad=True)
    for kind in (torch.ops.aten._upsample_bicubic2d_aa, torch.ops.aten._upsample_lanczos2d_aa):
        check(lambda t, kind=kind: kind(t, [4, 4], False), x)


def functional(function, *args, **kwargs):
    """A call whose result and gradients are compared with the CPU's."""
    return lambda: check(lambda *tensors: function(*tensors, **kwargs), *args)


def leaf(*shape):
    return torch.linspace(-2, 2, torch.Size(shape).numel()).view(shape).requires_grad_()


X = leaf(3, 4).detach()
INDEX = torch.tensor([[0, 1, 2, 0], [2, 0, 1, 1]])
VOLUME = (1, 2, 3, 4, 3)
CALLS = [
    tables,
    lists_of_tensors,
    optimizers,
    gradient_scaling,
    storages,
    random_numbers,
    resampling,
    functional(lambda t: torch._addmm_activation(t[:, 0], t, t.t()), X[:, :3]),
    functional(lambda t: torch._convert_indices_from_coo_to_csr(t, 4), torch.tensor([0, 1, 1, 3])),
    functional(torch._convert_indices_from_csr_to_coo, torch.tensor([0, 1, 3]), torch.arange(3)),
    functional(lambda t: torch.isin(t, 2), X),
    functional(lambda t: torch.all(t, (0, 1)), X > 0),
    functional(lambda t: torch.any(t, (0, 1)), X > 0),
    functional(torch.clamp_max, X, max=0.5),
    functional(torch.lerp, leaf(3, 4), leaf(3, 4), X),
    functional(lambda t: torch.ops.aten.norm.ScalarOpt_dim_dtype(t, 2, [0], False, dtype=torch.float64), X),
    functional(lambda t, i, s: torch.scatter(t, 0, i, s, reduce="add"), X, INDEX, X[:2] * 3),
    functional(lambda t, i: torch.scatter(t, 0, i, 2.5, reduce="multiply"), X, INDEX),
    functional(torch.sort, leaf(3, 4), stable=True),
    functional(torch.nn.functional.interpolate, leaf(*VOLUME), scale_factor=2.0, mode="nearest"),
    functional(torch.nn.functional.interpolate, leaf(*VOLUME), scale_factor=2.0, mode="nearest-exact"),
    functional(torch.nn.functional.pad, leaf(*VOLUME), pad=(1, 1, 1, 1, 1, 1), mode="reflect"),
    functional(torch.nn.functional.pad, leaf(*VOLUME), pad=(1, 1, 1, 1, 1, 1), mode="replicate"),
]
