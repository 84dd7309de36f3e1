# SPDX-License-Identifier: BSD-3-Clause
"""Training of whole networks: the CPU's losses, without a single fallback, whatever the schedule."""

import pytest
import torch
from networks import NETWORKS, make
from torch.nn import functional

STEPS = 20

OPTIMIZERS = {
    "SGD": lambda parameters, **form: torch.optim.SGD(parameters, lr=0.05, momentum=0.9, **form),
    "Adam": lambda parameters, **form: torch.optim.Adam(parameters, lr=2e-3, **form),
    "AdamW": lambda parameters, **form: torch.optim.AdamW(parameters, lr=2e-3, weight_decay=0.1, **form),
    "RMSprop": lambda parameters, **form: torch.optim.RMSprop(parameters, lr=1e-3, **form),
}
FORMS = {"plain": {"foreach": False}, "foreach": {"foreach": True}, "fused": {"fused": True}}
PAIRS = [(name, form) for name in OPTIMIZERS for form in FORMS if (name, form) != ("RMSprop", "fused")]


def train(name, device, optimizer="SGD", form="plain", autocast=None, steps=STEPS):
    """The loss of each step, with gradient scaling where autocast is to float16, and the trained model."""
    model, x, target = (item.to(device) for item in make(name))
    stepper = OPTIMIZERS[optimizer](model.parameters(), **FORMS[form])
    kind = torch.device(device).type
    scaler = torch.amp.GradScaler(kind, init_scale=256.0, enabled=autocast == torch.float16)
    losses = []
    for _ in range(steps):
        stepper.zero_grad()
        with torch.autocast(kind, dtype=autocast, enabled=autocast is not None):
            loss = functional.cross_entropy(model(x), target)
        scaler.scale(loss).backward()
        scaler.step(stepper)
        scaler.update()
        losses.append(loss.detach().float())
    return torch.stack(losses).cpu(), model


def train_natively(*args, **kwargs):
    torch.openreg.reset_fallback_stats()
    with torch.openreg.fallback_mode("error"):
        result = train(*args, **kwargs)
    assert torch.openreg.fallback_stats() == {}
    return result


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize(("optimizer", "form"), PAIRS)
def test_losses_equal_the_cpus(name, optimizer, form):
    losses, _ = train_natively(name, "openreg", optimizer, form)
    expected, _ = train(name, "cpu", optimizer, "plain")
    torch.testing.assert_close(losses, expected, rtol=2e-3, atol=2e-4)
    assert losses[-1] < losses[0]


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("form", ["foreach", "fused"])
def test_losses_equal_the_cpus_under_autocast(name, dtype, form):
    losses, model = train_natively(name, "openreg", "AdamW", form, autocast=dtype)
    expected, _ = train(name, "cpu", "AdamW", "plain", autocast=dtype)
    torch.testing.assert_close(losses, expected, rtol=0.05, atol=0.02)
    assert losses[-1] < losses[0]
    assert all(parameter.dtype == torch.float32 for parameter in model.parameters())


@pytest.mark.parametrize("name", NETWORKS)
def test_evaluation_equals_the_cpus(name):
    outputs = []
    for device in ("openreg", "cpu"):
        model, x, _ = (item.to(device) for item in make(name))
        with torch.no_grad():
            outputs.append(model.eval()(x).cpu())
    torch.testing.assert_close(*outputs, rtol=1e-4, atol=1e-5)


STEP = """
import hashlib, torch
from networks import make
from torch.nn import functional

def digest(tensors):
    return hashlib.sha256(b"".join(tensor.detach().cpu().numpy().tobytes() for tensor in tensors)).hexdigest()

def step(streams):
    model, x, target = make("encoder")
    model = model.to("openreg")
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    current = torch.accelerator.current_stream()
    copies = torch.Stream("openreg") if streams else current
    with copies:
        x, target = x.to("openreg"), target.to("openreg")
    current.wait_stream(copies)
    work = torch.Stream("openreg") if streams else current
    work.wait_stream(current)
    with work:
        loss = functional.cross_entropy(model(x), target)
        loss.backward()
    current.wait_stream(work)
    optimizer.step()
    return digest([loss, *model.parameters()])

print(step(streams=False), step(streams=True))
"""


def run_everywhere(python, code, settings):
    """What a program prints in fresh processes with different settings."""
    outputs = []
    for setting in settings:
        result = python(code, **setting)
        assert result.returncode == 0, result.stderr
        outputs.append(result.stdout.strip())
    return outputs


@pytest.fixture
def python_with_networks(python, monkeypatch, request):
    monkeypatch.setenv("PYTHONPATH", str(request.path.parent))
    return python


def test_a_step_is_the_same_in_every_schedule(python_with_networks):
    settings = [{}, {"OPENREG_SCHEDULE_SEED": "1"}, {"OPENREG_SCHEDULE_SEED": "2"}]
    outputs = run_everywhere(python_with_networks, STEP, [{**each, "OPENREG_NUM_THREADS": "2"} for each in settings])
    assert len({digest for line in outputs for digest in line.split()}) == 1
    assert len(outputs[0].split()) == 2


RANDOM = """
import hashlib, torch
from torch.nn import functional

torch.manual_seed(11)
big = torch.empty(300_001, device="openreg")
made = [big.uniform_().clone(), big.normal_().clone(), big.exponential_().clone(), big.bernoulli_(0.3).clone()]
made += [torch.randint(1000, (70_001,), device="openreg"), functional.dropout(big + 1, 0.5)]
made += [torch.randn(50_001, dtype=torch.float64, device="openreg"), torch.rand(50_001, device="openreg").bfloat16()]
print(hashlib.sha256(b"".join(each.cpu().view(torch.uint8).numpy().tobytes() for each in made)).hexdigest())
"""


def test_random_numbers_are_the_same_for_any_number_of_threads(python):
    settings = [
        {"OPENREG_NUM_THREADS": "1"},
        {"OPENREG_NUM_THREADS": "2"},
        {"OPENREG_NUM_THREADS": "2", "OPENREG_SCHEDULE_SEED": "5"},
    ]
    assert len(set(run_everywhere(python, RANDOM, settings))) == 1
