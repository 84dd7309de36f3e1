# SPDX-License-Identifier: BSD-3-Clause
"""Generated kernels: a race names the compiled function and the line that calls it, and a correct step is silent."""

import pytest
import torch

pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.:DeprecationWarning")


def scale(x):
    return (x * 2 + 1).sin()


@pytest.fixture(scope="module")
def scaled():
    compiled = torch.compile(scale)
    compiled(torch.ones(256, device="openreg"))
    return compiled


def work(function, fixed):
    side = torch.openreg.Stream()
    x = torch.zeros(256, device="openreg")
    torch.openreg.synchronize()
    with torch.openreg.stream(side):
        x.fill_(1)
    if fixed:
        torch.openreg.current_stream().wait_stream(side)
    y = function(x)
    torch.openreg.synchronize()
    return y


def test_a_race_with_a_generated_kernel_is_found(scaled):
    with torch.openreg.sanitizer("collect") as session:
        work(scaled, fixed=False)
    (finding,) = session.findings
    assert finding.kind == "race"
    first, second = finding.frames
    assert (first.source, second.function) == ("x.fill_(1)", "scale")
    assert "y = function(x)" in [frame.source for frame in finding.second.stack]
    assert "wait_stream(side)" in finding.missing


def test_its_correct_form_is_silent(scaled):
    with torch.openreg.sanitizer("collect") as session:
        work(scaled, fixed=True)
    assert session.findings == []


def test_a_compiled_training_step_is_silent():
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.GELU(), torch.nn.Linear(32, 4)).to("openreg")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    step = torch.compile(lambda x: model(x).square().mean())
    with torch.openreg.sanitizer("collect") as session:
        for _ in range(2):
            optimizer.zero_grad()
            step(torch.randn(8, 16).to("openreg")).backward()
            optimizer.step()
    assert session.findings == []


def test_a_captured_function_with_new_inputs_at_the_same_address_is_silent():
    """openreg-compile replays a graph only if its inputs are where they were when it was captured."""

    def add(x, y):
        x.add_(y)
        return x * 2

    captured = torch.compile(add, mode="reduce-overhead")
    state = torch.zeros(4, device="openreg")
    with torch.openreg.sanitizer("collect") as session:
        for _ in range(6):
            result = captured(state, torch.ones(4, device="openreg"))
        assert result.tolist() == [12.0] * 4
    assert session.findings == []
