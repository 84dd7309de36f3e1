# SPDX-License-Identifier: BSD-3-Clause
"""Fused optimizers update each element by its own gradient, also if gradients or state have other strides than the
parameter. Tensors that are not dense are refused."""

import pytest
import torch
from parity import DEVICE

pytestmark = pytest.mark.no_fallback

SHAPE = (2, 3, 4, 5)
OPTIMIZERS = [
    (torch.optim.SGD, {"lr": 0.1}),
    (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.1}),
    (torch.optim.Adam, {"lr": 0.1}),
    (torch.optim.Adam, {"lr": 0.1, "amsgrad": True, "maximize": True}),
    (torch.optim.AdamW, {"lr": 0.1}),
    (torch.optim.Adagrad, {"lr": 0.1}),
]
IDS = ["-".join((cls.__name__, *options)) for cls, options in OPTIMIZERS]


def stepped(x):
    """Every second element of a larger tensor along the last dimension."""
    return x.repeat_interleave(2, dim=-1)[..., ::2]


def in_a_bucket(x):
    """A view into a flat buffer, which begins somewhere else."""
    bucket = x.new_zeros(x.numel() + 7)
    view = bucket[7:].as_strided(x.size(), x.stride(), 7)
    return view.copy_(x)


DENSE = {
    "channels_last": lambda x: x.contiguous(memory_format=torch.channels_last),
    "transposed": lambda x: x.transpose(0, -1).contiguous().transpose(0, -1),
    "in_a_bucket": in_a_bucket,
}
NOT_DENSE = {
    "stepped": stepped,
    "expanded": lambda x: x[:1].expand(x.shape),
}


def values(device):
    """A parameter of numbers that differ, and a gradient whose first dimension repeats, so that it can be expanded."""
    x = torch.arange(120, dtype=torch.float32, device=device).view(SHAPE) / 100
    return torch.nn.Parameter(x), (x[:1] - 0.3).repeat(2, 1, 1, 1)


def run(cls, options, device, of_gradient, of_state, **form):
    """The parameter after two steps; the state is laid out anew between them."""
    parameter, gradient = values(device)
    optimizer = cls([parameter], **options, **form)
    for _ in range(2):
        parameter.grad = of_gradient(gradient)
        optimizer.step()
        state = optimizer.state[parameter]
        for name, value in state.items():
            if isinstance(value, torch.Tensor) and value.shape == SHAPE:
                state[name] = of_state(value)
    return parameter.detach().cpu()


@pytest.mark.parametrize("layout", DENSE)
@pytest.mark.parametrize(("cls", "options"), OPTIMIZERS, ids=IDS)
def test_gradients_of_any_strides_step_their_own_elements(cls, options, layout):
    expected = run(cls, options, "cpu", torch.clone, torch.clone, foreach=False)
    torch.testing.assert_close(run(cls, options, DEVICE, DENSE[layout], torch.clone, fused=True), expected)


@pytest.mark.parametrize("layout", DENSE)
@pytest.mark.parametrize(("cls", "options"), OPTIMIZERS, ids=IDS)
def test_state_of_any_strides_stays_with_its_elements(cls, options, layout):
    expected = run(cls, options, "cpu", torch.clone, torch.clone, foreach=False)
    torch.testing.assert_close(run(cls, options, DEVICE, torch.clone, DENSE[layout], fused=True), expected)


@pytest.mark.parametrize("layout", DENSE)
@pytest.mark.parametrize(("cls", "options"), OPTIMIZERS, ids=IDS)
def test_parameters_of_any_strides_take_contiguous_gradients(cls, options, layout):
    (ours, gradient), (theirs, reference) = values(DEVICE), values("cpu")
    ours.data, ours.grad, theirs.grad = DENSE[layout](ours.data), gradient, reference
    cls([ours], **options, fused=True).step()
    cls([theirs], **options, foreach=False).step()
    torch.testing.assert_close(ours.detach().cpu(), theirs.detach())


@pytest.mark.parametrize("layout", NOT_DENSE)
@pytest.mark.parametrize(("cls", "options"), OPTIMIZERS, ids=IDS)
def test_what_is_not_dense_is_refused_with_the_way_out(cls, options, layout):
    parameter, gradient = values(DEVICE)
    parameter.grad = NOT_DENSE[layout](gradient)
    before = parameter.detach().clone()
    with pytest.raises(RuntimeError, match=r"has to be dense.*contiguous\(\)"):
        cls([parameter], **options, fused=True).step()
    assert parameter.detach().equal(before)


def adam(parameter, gradient, average, square, largest, step, **options):
    rates = {"lr": 0.1, "beta1": 0.9, "beta2": 0.99, "weight_decay": 0.0, "eps": 1e-8}
    rest = {"amsgrad": True, "maximize": False}
    torch._fused_adam_([parameter], [gradient], [average], [square], [largest], [step], **{**rates, **rest, **options})


MISFITS = {
    "grads": (1, lambda x: x[:1], "grads"),
    "exp_avgs": (2, lambda x: x[..., :1], "exp_avgs"),
    "exp_avg_sqs": (3, lambda x: x.flatten(), "exp_avg_sqs"),
    "max_exp_avg_sqs": (4, lambda x: x.expand(2, *x.shape), "max_exp_avg_sqs"),
    "dtype": (2, lambda x: x.double(), "exp_avgs"),
    "device": (1, lambda x: x.cpu(), "grads"),
    "steps": (5, lambda x: x.expand(2), "state_steps"),
}


@pytest.mark.parametrize("case", MISFITS)
def test_operands_that_do_not_fit_are_refused_by_name(case):
    place, change, operand = MISFITS[case]
    operands = [torch.ones(SHAPE, device=DEVICE) for _ in range(5)] + [torch.ones((), device=DEVICE)]
    operands[place] = change(operands[place])
    with pytest.raises(RuntimeError, match=operand):
        adam(*operands)
    torch.openreg.synchronize()
    assert operands[0].cpu().eq(1).all()
