# SPDX-License-Identifier: BSD-3-Clause
"""Whole networks have the CPU's losses without fallback, for every schedule and number of threads."""

import functools

import pytest
import torch
from _platform import HAS_FORK
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
FURTHER = pytest.mark.endurance  # a network and an optimizer that the default session runs with others


def networks_and_pairs():
    """Every optimizer with the first network, and each further network with every fourth of them; endurance has all."""
    for place, name in enumerate(NETWORKS):
        for number, pair in enumerate(PAIRS):
            in_default_session = place == 0 or number % (len(NETWORKS) - 1) == place - 1
            yield pytest.param(name, *pair, marks=() if in_default_session else FURTHER)


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


@functools.cache
def losses_of_the_cpu(name, optimizer, autocast=None):
    enabled = torch._C._get_mkldnn_enabled()
    if autocast is not None:
        torch._C._set_mkldnn_enabled(False)  # it has an LSTM for 16 bits on some processors alone
    try:
        return train(name, "cpu", optimizer, "plain", autocast)[0]
    finally:
        torch._C._set_mkldnn_enabled(enabled)


@pytest.mark.no_fallback
@pytest.mark.parametrize(("name", "optimizer", "form"), [*networks_and_pairs()])
def test_losses_equal_the_cpus(name, optimizer, form):
    losses, _ = train(name, "openreg", optimizer, form)
    torch.testing.assert_close(losses, losses_of_the_cpu(name, optimizer), rtol=2e-3, atol=2e-4)
    assert losses[-1] < losses[0]


@pytest.mark.no_fallback
@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize(
    ("dtype", "form"),
    [
        (torch.bfloat16, "foreach"),
        pytest.param(torch.bfloat16, "fused", marks=FURTHER),  # without a scaler as without autocast
        (torch.float16, "fused"),
        pytest.param(torch.float16, "foreach", marks=FURTHER),  # test_grad_scaler.py
    ],
    ids=str,
)
def test_losses_equal_the_cpus_under_autocast(name, dtype, form):
    losses, model = train(name, "openreg", "AdamW", form, autocast=dtype)
    torch.testing.assert_close(losses, losses_of_the_cpu(name, "AdamW", dtype), rtol=0.05, atol=0.02)
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


# Each child is the first to use the device, so that its settings are its own.
IN_CHILDREN = """
import hashlib, os, torch
from networks import make
from torch.nn import functional

def digest(tensors):
    parts = [each.detach().cpu().view(torch.uint8).numpy().tobytes() for each in tensors]
    return hashlib.sha256(b"".join(parts)).hexdigest()

def run_with(settings, function):
    for setting in settings:
        child = os.fork()
        if child == 0:
            os.environ.update(setting)
            print(*function(), flush=True)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""

STEP = """
def step(streams):
    model, x, target = make("encoder")
    model = model.to("openreg")
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    current = torch.accelerator.current_stream()
    copies = torch.Stream("openreg") if streams else current
    with copies:
        x, target = x.to("openreg"), target.to("openreg")
    work = torch.Stream("openreg") if streams else current
    work.wait_stream(copies)
    work.wait_stream(current)  # the parameters
    with work:
        loss = functional.cross_entropy(model(x), target)
        loss.backward()
    current.wait_stream(work)
    optimizer.step()
    return digest([loss.reshape(1), *model.parameters()])

seeds = [{}, *({"OPENREG_SCHEDULE_SEED": str(seed)} for seed in range(1, 6))]
run_with([{"OPENREG_NUM_THREADS": "2", **seed} for seed in seeds], lambda: (step(False), step(True)))
"""

THREADS = """
def losses():
    torch.manual_seed(3)
    model, x, target = make("resnet")
    model, x, target = model.to("openreg"), x.to("openreg"), target.to("openreg")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    found = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(x), target)
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found

run_with([{"OPENREG_NUM_THREADS": count} for count in ("1", "2", "3")], losses)
"""

RANDOM = """
def draw():
    torch.manual_seed(11)
    big = torch.empty(300_001, device="openreg")
    made = [big.uniform_().clone(), big.normal_().clone(), big.exponential_().clone(), big.bernoulli_(0.3).clone()]
    made += [torch.randint(1000, (70_001,), device="openreg"), functional.dropout(big + 1, 0.5)]
    made += [torch.randn(50_001, dtype=torch.float64, device="openreg"), torch.rand(50_001, device="openreg").half()]
    # All weights are 1/64 or dropped, and each is an element of the result.
    operands = (torch.zeros(1), torch.ones(1), torch.eye(64))
    zeros, ones, values = (each.expand(8, 4, 64, 64).to("openreg") for each in operands)
    made += [functional.scaled_dot_product_attention(zeros, ones, values, dropout_p=0.5)]
    return (digest(made),)

one, two = {"OPENREG_NUM_THREADS": "1"}, {"OPENREG_NUM_THREADS": "2"}
run_with([one, two, {**one, "OPENREG_SCHEDULE_SEED": "5"}], draw)
"""


@pytest.fixture
def words_of(python_with_dynamo, request):
    """What a program for children prints."""

    def run(code):
        result = python_with_dynamo(IN_CHILDREN + code, PYTHONPATH=str(request.path.parent))
        assert (result.returncode, result.stderr) == (0, "")
        return result.stdout.split()

    return run


@pytest.mark.skipif(not HAS_FORK, reason="gives each schedule a process by fork()")
def test_a_step_is_the_same_in_every_schedule_and_on_other_streams(words_of):
    digests = words_of(STEP)
    assert len(digests) == 12
    assert len(set(digests)) == 1


@pytest.mark.skipif(not HAS_FORK, reason="gives each number of threads a process by fork()")
def test_random_numbers_are_the_same_for_any_number_of_threads(words_of):
    digests = words_of(RANDOM)
    assert len(digests) == 3
    assert len(set(digests)) == 1


@pytest.mark.skipif(not HAS_FORK, reason="gives each number of threads a process by fork()")
def test_losses_are_within_tolerance_for_any_number_of_threads(words_of):
    losses = [float(word) for word in words_of(THREADS)]
    one, two, three = losses[:3], losses[3:6], losses[6:]
    assert two == pytest.approx(one, rel=1e-4)
    assert three == pytest.approx(one, rel=1e-4)
