# SPDX-License-Identifier: BSD-3-Clause
"""Autocast works in programs with nested contexts, threads, checkpoints and gradients. openreg-amp tests the rules."""

import threading

import pytest
import torch
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

LOWER = (torch.float16, torch.bfloat16)


def matrix(seed=0):
    return torch.rand(8, 8, generator=torch.Generator().manual_seed(seed)) * 0.9


def product_type(device="openreg"):
    """The type in which products run now, by running one."""
    x = torch.ones(2, 2, device=device)
    return (x @ x).dtype


def test_contexts_nest_in_any_order():
    with torch.autocast("openreg", dtype=torch.bfloat16):
        assert product_type() is torch.bfloat16
        with torch.autocast("openreg", enabled=False):
            assert product_type() is torch.float32
            with torch.autocast("openreg", dtype=torch.float16):
                assert product_type() is torch.float16
            assert product_type() is torch.float32
        assert product_type() is torch.bfloat16
    assert product_type() is torch.float32


def test_each_device_has_its_own_autocast():
    with torch.autocast("openreg", dtype=torch.float16), torch.autocast("cpu", dtype=torch.bfloat16):
        assert (product_type(), product_type("cpu")) == (torch.float16, torch.bfloat16)
        with torch.autocast("openreg", enabled=False):
            assert (product_type(), product_type("cpu")) == (torch.float32, torch.bfloat16)
    assert (product_type(), product_type("cpu")) == (torch.float32, torch.float32)


def test_an_unsupported_type_changes_nothing():
    with pytest.warns(UserWarning, match="autocast"):
        context = torch.autocast("openreg", dtype=torch.float64)
    with context:
        assert product_type() is torch.float32


def test_each_thread_has_its_own_autocast():
    seen = {}
    together = threading.Barrier(3, timeout=240)

    def run(name, **options):
        with torch.autocast("openreg", **options):
            together.wait()
            seen[name] = [product_type() for _ in range(20)]
            together.wait()

    threads = [
        threading.Thread(target=run, args=("half",)),
        threading.Thread(target=run, args=("bfloat16",), kwargs={"dtype": torch.bfloat16}),
    ]
    for thread in threads:
        thread.start()
    run("off", enabled=False)
    for thread in threads:
        thread.join()
    assert {name: set(types) for name, types in seen.items()} == {
        "half": {torch.float16},
        "bfloat16": {torch.bfloat16},
        "off": {torch.float32},
    }


class Probe(torch.autograd.Function):
    """The identity; its backward notes the type of products and the thread."""

    @staticmethod
    def forward(ctx, x, seen):
        ctx.seen = seen
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        ctx.seen.append((product_type(), threading.current_thread() is threading.main_thread()))
        return gradient, None


def test_backward_runs_in_the_state_of_who_calls_it_though_in_another_thread():
    seen = []
    x = torch.ones(3, device="openreg", requires_grad=True)
    with torch.autocast("openreg", dtype=torch.bfloat16):
        Probe.apply(x, seen).sum().backward()
        loss = Probe.apply(x, seen).sum()
    loss.backward()
    assert seen == [(torch.bfloat16, False), (torch.float32, False)]


def test_backward_of_a_decorated_function_runs_in_the_state_of_its_forward():
    seen = []

    class Decorated(Probe):
        forward = staticmethod(torch.openreg.amp.custom_fwd(Probe.forward))
        backward = staticmethod(torch.openreg.amp.custom_bwd(Probe.backward))

    x = torch.ones(3, device="openreg", requires_grad=True)
    with torch.autocast("openreg", dtype=torch.bfloat16):
        loss = Decorated.apply(x, seen).sum()
    loss.backward()
    with torch.autocast("openreg", enabled=False):
        loss = Decorated.apply(x, seen).sum()
    with torch.autocast("openreg"):
        loss.backward()
    assert seen == [(torch.bfloat16, False), (torch.float32, False)]


@pytest.mark.parametrize("use_reentrant", [True, False])
def test_a_checkpoint_recomputes_in_the_same_types(use_reentrant):
    seen = []

    def block(x, weight):
        y = x @ weight
        seen.append(y.dtype)
        return torch.tanh(y) @ weight

    def gradients(run):
        x, weight = (matrix(seed).to("openreg").requires_grad_() for seed in (1, 2))
        with torch.autocast("openreg", dtype=torch.bfloat16):
            loss = run(x, weight).float().sum()
        loss.backward()
        return x.grad.cpu(), weight.grad.cpu()

    plain = gradients(block)
    again = gradients(lambda *args: checkpoint(block, *args, use_reentrant=use_reentrant))
    assert seen == [torch.bfloat16] * 3
    assert all(map(torch.equal, plain, again))


def test_binary_cross_entropy_is_refused_and_its_advice_works():
    logits, target = torch.randn(4, generator=torch.Generator().manual_seed(0)), torch.ones(4)
    x, on_device = logits.to("openreg").requires_grad_(), target.to("openreg")
    with torch.autocast("openreg"):
        for loss in (functional.binary_cross_entropy, torch.nn.BCELoss()):
            with pytest.raises(RuntimeError, match="binary_cross_entropy_with_logits"):
                loss(torch.sigmoid(x), on_device)
        with_logits = functional.binary_cross_entropy_with_logits(x, on_device)
        with torch.autocast("openreg", enabled=False):
            in_float32 = functional.binary_cross_entropy(torch.sigmoid(x.float()), on_device)
        (gradient,) = torch.autograd.grad(in_float32, x)
    expected = functional.binary_cross_entropy_with_logits(logits, target)
    torch.testing.assert_close(with_logits.detach().cpu(), expected)
    torch.testing.assert_close(in_float32.detach().cpu(), expected)
    torch.testing.assert_close(gradient.cpu(), (torch.sigmoid(logits) - target) / 4)


def test_binary_cross_entropy_of_tensors_elsewhere_is_not_refused():
    x = torch.full((2,), 0.5)
    with torch.autocast("openreg"):
        torch.testing.assert_close(functional.binary_cross_entropy(x, torch.ones(2)).item(), 0.6931472)


def test_gradients_have_the_types_of_the_parameters():
    torch.manual_seed(0)
    reference = torch.nn.Linear(8, 4)
    model = torch.nn.Linear(8, 4).to("openreg")
    model.load_state_dict(reference.state_dict())
    x = matrix()
    with torch.autocast("openreg", dtype=torch.bfloat16):
        output = model(x.to("openreg"))
        loss = functional.mse_loss(output, torch.zeros(8, 4, device="openreg"))
    assert output.dtype is torch.bfloat16
    assert loss.dtype is torch.float32
    loss.backward()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        functional.mse_loss(reference(x).float(), torch.zeros(8, 4)).backward()
    for ours, theirs in zip(model.parameters(), reference.parameters(), strict=True):
        assert ours.grad.dtype is torch.float32
        torch.testing.assert_close(ours.grad.cpu(), theirs.grad, rtol=2e-2, atol=2e-2)


@pytest.mark.no_fallback
@pytest.mark.parametrize("dtype", LOWER, ids=str)
def test_autocast_needs_no_fallback(dtype):
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.LayerNorm(8), torch.nn.Linear(8, 3)).to("openreg")
    x, target = matrix().to("openreg"), torch.arange(8, device="openreg") % 3
    with torch.autocast("openreg", dtype=dtype):
        loss = functional.cross_entropy(model(x), target)
    loss.backward()
    assert loss.dtype is torch.float32


@pytest.mark.no_fallback
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors is in prototype stage")
def test_attention_on_ragged_batches_runs_in_the_lower_precision():
    values = torch.ones(5, 2, 8, device="openreg")
    operand = torch.nested.nested_tensor_from_jagged(values, torch.tensor([0, 2, 5], device="openreg")).transpose(1, 2)
    with torch.autocast("openreg", dtype=torch.bfloat16):
        assert functional.scaled_dot_product_attention(operand, operand, operand).dtype is torch.bfloat16
