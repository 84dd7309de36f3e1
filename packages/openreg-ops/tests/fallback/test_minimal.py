# SPDX-License-Identifier: BSD-3-Clause
"""With OPENREG_OPS=minimal the set and the fallback suffice, and every operator of the set is necessary."""

import json
from pathlib import Path

import pytest
from minimal_scenarios import SCENARIOS

# What falls back operator by operator, because its composite kernel throws.
BY_OPERATOR = {"aten::convolution", "aten::convolution_backward"}


@pytest.fixture(scope="session")
def report(run_program, tmp_path_factory):
    """How each scenario ended with the set, and without its operator."""
    program = Path(__file__).with_name("minimal_scenarios.py")
    result = run_program(str(program), folder=tmp_path_factory.mktemp("minimal"))
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_set_suffices(report, name):
    assert report[name][0] is None


@pytest.mark.parametrize("name", SCENARIOS)
def test_no_operator_can_be_left_out(report, name):
    assert report[name][1].startswith(f"NotImplementedError: operator {name} has no kernel for the openreg device")


REGISTERED = """
import torch
def registered():
    return set(torch._C._dispatch_get_registrations_for_dispatch_key("PrivateUse1"))
before = registered()
import openreg_ops
print(*sorted(registered() - before))
"""


def test_only_the_set_is_registered(run_python):
    result = run_python(REGISTERED, OPENREG_OPS="minimal")
    assert set(result.stdout.split()) == set(SCENARIOS) | BY_OPERATOR, result.stderr


def test_the_full_set_has_it_too(run_python):
    names = set(run_python(REGISTERED, OPENREG_OPS="full").stdout.split())
    assert names > set(SCENARIOS)
    assert not names & BY_OPERATOR
    assert names == set(run_python(REGISTERED).stdout.split())


TRAINING = """
import torch, openreg_ops
from torch import nn

def losses(device):
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64, 10)
    )
    images, labels = torch.randn(16, 1, 8, 8), torch.arange(16) % 10
    net, images, labels = net.to(device), images.to(device), labels.to(device)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    result = []
    for _ in range(5):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(images), labels)
        loss.backward()
        optimizer.step()
        result.append(loss.item())
    return torch.tensor(result)

torch.testing.assert_close(losses("openreg"), losses("cpu"), rtol=1e-3, atol=1e-4)
print(*torch.openreg.fallback_stats())
"""


def test_a_convolutional_network_learns_as_on_the_cpu(run_python):
    result = run_python(TRAINING, OPENREG_OPS="minimal")
    assert result.returncode == 0, result.stderr
    assert set(result.stdout.split()) >= {*BY_OPERATOR, "aten::native_batch_norm", "aten::addmm.out"}


OTHERS = """
import torch, openreg_ops
x = torch.arange(6.0, device="openreg")
print(x, (x + 1).mean(), x.to("openreg:1").device)
stream = torch.openreg.current_stream()
for operation in (
    lambda: x.unfold(0, 2, 1), lambda: x.set_(), lambda: x.record_stream(stream), lambda: x + torch.ones(6)
):
    try:
        operation()
    except RuntimeError as error:
        print(f"{type(error).__name__}: {error}")
"""


def test_mistakes_and_other_views_are_refused_by_name(run_python):
    result = run_python(OTHERS, OPENREG_OPS="minimal")
    assert result.returncode == 0, result.stderr
    first, view, storage, stream, devices = result.stdout.splitlines()
    assert first == "tensor([0., 1., 2., 3., 4., 5.], device='openreg:0') tensor(3.5000, device='openreg:0') openreg:1"
    assert view.startswith("NotImplementedError: operator aten::unfold has no kernel")
    assert storage.startswith("NotImplementedError: operator aten::set_ has no kernel")
    assert stream.startswith("NotImplementedError: operator aten::record_stream has no kernel")
    assert "allocator" in stream
    assert devices.startswith("RuntimeError: Expected all tensors to be on the same device")


REFUSED = """
import torch
try:
    import openreg_ops
except ImportError as error:
    print(error)
print(torch.ones(2).sum().item())
"""


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"OPENREG_OPS": "some"}, "OPENREG_OPS='some' is not accepted; give full or minimal"),
        ({"OPENREG_OPS": ""}, "OPENREG_OPS='' is not accepted; give full or minimal"),
        (
            {"OPENREG_OPS_LEAVE_OUT": "aten::view"},
            (
                "environment variable OPENREG_OPS_LEAVE_OUT='aten::view' is not accepted: it leaves operators out of "
                "the minimal set; give OPENREG_OPS=minimal as well, or unset it"
            ),
        ),
        (
            {"OPENREG_OPS": "minimal", "OPENREG_OPS_LEAVE_OUT": "aten::view,view"},
            (
                "environment variable OPENREG_OPS_LEAVE_OUT='aten::view,view' is not accepted: 'view' is not in the "
                "minimal set; unset it, or give names of the set, separated by commas, and start the process again: "
                "aten::_copy_from, "
            ),
        ),
    ],
)
def test_settings_that_make_no_sense_are_refused(run_python, variables, said):
    refusal, usable = run_python(REFUSED, **variables).stdout.splitlines()
    assert said in refusal
    assert usable == "2.0"
