# SPDX-License-Identifier: BSD-3-Clause
"""Generated kernels run asynchronously, with the right stream, device and arguments. Their failures are reported."""

import copy
import threading

import pytest
import torch
from torch._inductor import config
from torch._inductor.utils import run_and_get_code

from openreg_testing.budgets import launch_budget

DEVICE = "openreg"

pytestmark = pytest.mark.filterwarnings("ignore:::torch")


@pytest.fixture(autouse=True)
def forget():
    """A test compiles its functions itself."""
    torch._dynamo.reset()


def double(x):
    return x * 2 + 1


@pytest.mark.covers("registration.Scheduling and PythonWrapperCodegen")
def test_a_compiled_call_returns_before_its_kernels_end(gate):
    compiled, x = torch.compile(double), torch.ones(8, device=DEVICE)
    compiled(x)
    gate.close()
    y = compiled(x)
    assert not torch.openreg.current_stream().query()
    gate.open()
    assert y.tolist() == [3.0] * 8


def test_kernels_run_on_the_current_stream(gate):
    compiled, x = torch.compile(double), torch.ones(8, device=DEVICE)
    compiled(x)
    torch.accelerator.synchronize()
    side = torch.Stream(DEVICE)
    with side:
        gate.close()
        y = compiled(x)
    assert torch.openreg.current_stream().query()  # it has nothing to do
    assert not side.query()
    gate.open()
    side.synchronize()
    assert y.tolist() == [3.0] * 8


@pytest.mark.skipif(torch.openreg.device_count() < 2, reason="needs two devices")
def test_kernels_run_where_their_operands_are():
    compiled = torch.compile(double)
    for index in (1, 0):
        y = compiled(torch.ones(8, device=f"{DEVICE}:{index}"))
        assert y.device.index == index
        assert y.tolist() == [3.0] * 8


@pytest.mark.skipif(torch.openreg.device_count() < 2, reason="needs two devices")
def test_a_function_may_use_two_devices():
    def both(x):
        return (x + 1).to(f"{DEVICE}:1") * 2, x.sin()

    x = torch.ones(8, device=DEVICE)
    there, here = torch.compile(both)(x)
    assert (there.device.index, here.device.index) == (1, 0)
    assert there.tolist() == [4.0] * 8
    torch.testing.assert_close(here, x.sin())


@pytest.mark.parametrize(
    "other",
    [
        "cpu",
        pytest.param(
            f"{DEVICE}:1", marks=pytest.mark.skipif(torch.openreg.device_count() < 2, reason="needs two devices")
        ),
    ],
)
def test_operands_on_two_devices_are_refused_as_without_a_compiler(other):
    with pytest.raises(Exception, match=rf"on the same device, but found at least two devices, {DEVICE}:0 and {other}"):
        torch.compile(torch.add)(torch.ones(3, device=DEVICE), torch.ones(3, device=other))


def test_a_number_on_the_host_is_read_by_the_launch(gate):
    compiled = torch.compile(lambda x, factor: x * factor)
    x, factor = torch.ones(4, device=DEVICE), torch.tensor(3.0)
    compiled(x, factor)
    gate.close()
    y = compiled(x, factor)
    factor.fill_(7.0)  # before the kernel runs
    gate.open()
    assert y.tolist() == [3.0] * 4


def test_a_failed_check_arrives_like_any_error_of_a_kernel():
    compiled = torch.compile(lambda x, index: x[index].sin())
    x, index = torch.ones(10, 4, device=DEVICE), torch.zeros(5000, dtype=torch.int64, device=DEVICE)
    compiled(x, index)
    torch.accelerator.synchronize()
    index[77] = 10
    compiled(x, index)
    with pytest.raises(torch.AcceleratorError, match=r"cpp_fused_index_sin.*index out of bounds"):
        torch.accelerator.synchronize()
    with pytest.raises(torch.AcceleratorError, match="reset_device"):
        compiled(x, index)
    torch.openreg.reset_device()


def test_generated_kernels_are_launched_under_their_names():
    _, code = run_and_get_code(torch.compile(double), torch.ones(8, device=DEVICE))
    assert "compile_kernel(async_compile, 'cpp_fused_add_mul'" in code[0]


@pytest.mark.no_fallback
def test_nothing_falls_back_to_the_cpu():
    x = torch.randn(6, 6, device=DEVICE)
    torch.compile(lambda x: (x @ x).softmax(1).sort(0).values + x.cumsum(1))(x)


def test_a_fused_function_is_one_launch():
    compiled, x = torch.compile(double), torch.ones(8, device=DEVICE)
    compiled(x)
    with launch_budget(1, copies=0):
        compiled(x)


def test_settings_of_other_devices_stay():
    before = config.cuda_backend, config.cpp.dynamic_threads, config.triton.cudagraphs
    torch.compile(double)(torch.ones(8, device=DEVICE))
    assert (config.cuda_backend, config.cpp.dynamic_threads, config.triton.cudagraphs) == before
    x = torch.ones(8)
    torch.testing.assert_close(torch.compile(double)(x), double(x))


def test_dropout_draws_from_the_devices_generator():
    compiled = torch.compile(lambda x: torch.nn.functional.dropout(x, 0.5))
    x = torch.ones(1000, device=DEVICE)
    results = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        results.append(compiled(x))
    assert torch.equal(results[0], results[1])
    assert not torch.equal(results[0], results[2])
    assert 300 < (results[0] == 0).sum().item() < 700
    with config.patch(fallback_random=True):
        torch._dynamo.reset()
        torch.manual_seed(3)
        compiled = torch.compile(lambda x: torch.nn.functional.dropout(x, 0.5))(x)
    torch.manual_seed(3)
    assert torch.equal(compiled, torch.nn.functional.dropout(x, 0.5))


def test_autocast_holds_in_compiled_code():
    linear = torch.nn.Linear(8, 4).to(DEVICE)
    x = torch.randn(3, 8, device=DEVICE)
    with torch.autocast(DEVICE, dtype=torch.bfloat16):
        ours, theirs = torch.compile(linear)(x), linear(x)
    assert ours.dtype == theirs.dtype == torch.bfloat16
    torch.testing.assert_close(ours, theirs)


def test_several_threads_compile_at_once():
    """Functions that are alike and such that are not, on one device."""
    failures = []

    def work(number):
        try:
            x = torch.full((4,), float(number), device=DEVICE)
            for k in range(2):
                y = torch.compile(lambda x, k=k: (x + k).exp().log() * (number % 2))(x)
                torch.testing.assert_close(
                    y.cpu(), torch.full((4,), (number + k) * (number % 2.0)), rtol=1e-4, atol=1e-4
                )
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


OPTIMIZERS = {
    "SGD": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9),
    "AdamW": lambda parameters: torch.optim.AdamW(parameters, lr=0.1),
    "AdamW, capturable": lambda parameters: torch.optim.AdamW(parameters, lr=0.1, capturable=True),
    "AdamW, fused": lambda parameters: torch.optim.AdamW(parameters, lr=0.1, fused=True),
}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("SGD", marks=pytest.mark.endurance),
        "AdamW",  # whose numbers of steps are on the host
        pytest.param("AdamW, capturable", marks=pytest.mark.endurance),
        "AdamW, fused",
    ],
)
def test_a_compiled_optimizer_takes_the_same_steps(name):
    torch.manual_seed(0)
    plain = torch.nn.Linear(4, 3).to(DEVICE)
    model = copy.deepcopy(plain)
    optimizers = [OPTIMIZERS[name](one.parameters()) for one in (plain, model)]
    steps = optimizers[0].step, torch.compile(optimizers[1].step)
    for _ in range(3):
        x = torch.randn(5, 4, device=DEVICE)
        for one, optimizer, step in zip((plain, model), optimizers, steps, strict=True):
            optimizer.zero_grad()
            one(x).square().mean().backward()
            step()
    torch.testing.assert_close(list(model.parameters()), list(plain.parameters()))


@pytest.mark.parametrize("context", [torch.no_grad, torch.inference_mode])
def test_a_compiled_model_infers(context):
    model = torch.nn.Sequential(torch.nn.Conv2d(2, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU()).to(DEVICE).eval()
    x = torch.randn(2, 2, 6, 6, device=DEVICE)
    with context():
        ours, theirs = torch.compile(model, fullgraph=True)(x), model(x)
    torch.testing.assert_close(ours, theirs, check_stride=True)
    assert ours.is_inference() == theirs.is_inference()


@pytest.mark.parametrize("name", ["SGD", "AdamW, capturable"])
def test_a_compiled_step_is_captured_whole(name):
    """Forward, backward and optimizer as one graph, as the README has it."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1)).to(DEVICE)
    plain = copy.deepcopy(model)
    optimizer, other = (OPTIMIZERS[name](one.parameters()) for one in (model, plain))
    compiled = torch.compile(model)
    x, target = torch.randn(32, 8, device=DEVICE), torch.zeros(32, 1, device=DEVICE)

    def step():
        optimizer.zero_grad(set_to_none=False)
        loss = (compiled(x) - target).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    for _ in range(2):
        step()
    graph = torch.openreg.Graph()
    with torch.openreg.graph(graph):
        loss = step()
    losses = []
    for _ in range(5):
        graph.replay()
        losses.append(loss.item())
    expected = []
    for _ in range(7):
        other.zero_grad()
        expected.append((plain(x) - target).square().mean())
        expected[-1].backward()
        other.step()
    torch.testing.assert_close(losses, [loss.item() for loss in expected[2:]], rtol=1e-4, atol=1e-5)
