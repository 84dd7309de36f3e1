# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch's profilers get times from the device, and warn if no package records its tasks."""

import importlib.util
import time
from pathlib import Path

import pytest
import torch
from torch.autograd import profiler

from openreg_runtime.openreg import _profiler

without_the_package = pytest.mark.skipif(
    importlib.util.find_spec("openreg_profiler") is not None,
    reason="openreg-profiler is there and records the device",
)
BOTH = "[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]"

# A process of its own, because the warning comes once in each.
PROFILE = """
import sys, warnings
sys.path.insert(0, ".")
import torch, torch_openreg
from torch.profiler import ProfilerActivity, profile, schedule
from torch.autograd import profiler
"""


def said(stderr):
    """Standard error without what Kineto writes about every profile, and about a build for CUDA without a GPU."""
    kinetos = ("USDT:", "DeviceProperties.cpp", "init.cpp:")
    return "".join(line for line in stderr.splitlines(keepends=True) if not any(one in line for one in kinetos))


@pytest.mark.covers("module.synchronize")
def test_the_profiler_waits_for_the_device_before_it_stops(gate):
    with profiler.profile(use_device="openreg"):
        gate.close()
        assert not torch.openreg.current_stream().query()
        gate.open_soon()
    assert gate.is_open
    assert torch.openreg.current_stream().query()


# profile(use_device="openreg"): the device's time for each operator, by events.


def device_times(profiled):
    """Microseconds of the device by operator."""
    return {event.key: event.device_time_total for event in profiled.key_averages()}


@pytest.mark.covers("registration.torch::profiler::impl::registerPrivateUse1Methods")
def test_times_of_operators_are_those_of_the_device(capfd):
    x = torch.ones(1000, device="openreg:1")
    side = torch.openreg.Stream("openreg:1")
    side.wait_stream(torch.openreg.current_stream("openreg:1"))
    begin = time.perf_counter()
    with profiler.profile(use_device="openreg") as profiled:
        torch.ones(1000).mul(2)
        with torch.openreg.device(1), torch.openreg.stream(side), profiler.record_function("asleep"):
            torch.openreg._sleep(30_000_000)
            x.mul(2)
        x.add(1)
    times = device_times(profiled)
    whole = (time.perf_counter() - begin) * 1e6
    assert 30_000 <= times["asleep"] <= whole
    assert 0 <= times["aten::add"] <= whole
    assert all(0 <= took <= whole for took in times.values()), times
    assert "aten::mul" in profiled.key_averages().table(sort_by="device_time_total")
    assert said(capfd.readouterr().err) == ""


def test_a_profile_of_the_host_alone_does_not_bring_the_device_up(python):
    result = python(
        PROFILE
        + """
with profiler.profile(use_device="openreg") as profiled:
    torch.ones(3).mul(2)
    print(torch.openreg.is_initialized())
print({event.device_time_total for event in profiled.key_averages()})
"""
    )
    assert result.stdout == "False\n{0}\n", result.stderr
    assert said(result.stderr) == ""


def test_a_capture_and_a_failed_device_have_no_times(capfd):
    stream, graph = torch.Stream("openreg"), torch.accelerator.Graph()
    x = torch.ones(4, device="openreg")
    with profiler.profile(use_device="openreg") as profiled:
        with stream, graph:
            y = x * 2
        graph.replay()
    assert device_times(profiled)["aten::mul"] == 0
    assert y.cpu().tolist() == [2, 2, 2, 2]
    with profiler.profile(use_device="openreg") as profiled:
        with torch.openreg.inject_faults("launch:1"), pytest.raises(torch.AcceleratorError):
            (x + 1).cpu()
        torch.openreg.reset_device()
    assert all(0 <= time < 10_000_000 for time in device_times(profiled).values())
    assert said(capfd.readouterr().err) == ""


# torch.profiler with ProfilerActivity.PrivateUse1.


@pytest.mark.covers("registration.REGISTER_PRIVATEUSE1_PROFILER")
@without_the_package
def test_a_profile_of_the_device_says_once_what_is_missing(python_with_dynamo):
    result = python_with_dynamo(
        PROFILE
        + f"""
x = torch.ones(2, device="openreg")
torch.openreg.synchronize()
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for _ in range(2):
        with profile(activities={BOTH}) as profiled:
            x + 1
(warning,) = caught
print(warning.category.__name__, warning.filename, warning.lineno, warning.message, sep="|")
print("aten::add" in [event.key for event in profiled.key_averages()])
"""
    )
    assert said(result.stderr) == ""
    first, last = result.stdout.splitlines()
    category, filename, line, text = first.split("|")
    assert (category, filename, line) == ("UserWarning", "<string>", "13")
    assert "pip install openreg-profiler" in text
    assert "activities=[ProfilerActivity.CPU]" in text
    assert last == "True"


def test_the_warning_is_on_the_line_of_a_library_whose_name_begins_with_torch():
    warn = _profiler.warn_that_nothing_is_recorded.__wrapped__  # without the cache, which lets it warn once
    file = str(Path(torch.__file__).parents[1] / "torchvision" / "library.py")
    inside_torch = compile("warn()", str(Path(torch.__file__).parent / "profiler" / "profiler.py"), "exec")
    with pytest.warns(UserWarning, match="does not record") as caught:
        exec(compile("exec(inside_torch)", file, "exec"), {"inside_torch": inside_torch, "warn": warn})
    assert caught[0].filename == file


WAYS = {
    "first use": f"with profile(activities={BOTH}): torch.ones(2, device='openreg')",  # which is in the profile
    "default": "x = torch.ones(2, device='openreg')\nwith profile(): x + 1",  # all activities
    "device alone": (
        "x = torch.ones(2, device='openreg')\nwith profile(activities=[ProfilerActivity.PrivateUse1]): x + 1"
    ),
    "autograd's profiler": (
        "x = torch.ones(2, device='openreg')\nwith profiler.profile(use_device='openreg', use_kineto=True): x + 1"
    ),
    "schedule": f"""
x = torch.ones(2, device="openreg")
with profile(activities={BOTH}, schedule=schedule(wait=1, warmup=1, active=1)) as profiled:
    for _ in range(4):
        x + 1
        profiled.step()
""",
}


@without_the_package
@pytest.mark.parametrize("use", WAYS.values(), ids=WAYS)
def test_every_way_to_ask_for_the_device_is_answered(python_with_dynamo, use):
    result = python_with_dynamo(PROFILE + use)
    assert result.returncode == 0, result.stderr
    assert result.stderr.count("UserWarning: torch.profiler does not record what openreg devices do") == 1, (
        result.stderr
    )
    assert said(result.stderr).startswith("<string>:")


OTHERS = {
    "host": "with profile(activities=[ProfilerActivity.CPU]): torch.ones(2, device='openreg') + 1",
    "device that is not used": f"with profile(activities={BOTH}): torch.ones(2) + 1",
    "default without device": "with profile(): torch.ones(2) + 1",
    "autograd's profiler": "with profiler.profile(): torch.ones(2, device='openreg') + 1",
    "its device times": "with profiler.profile(use_device='openreg'): torch.ones(2, device='openreg') + 1",
}


@pytest.mark.parametrize("use", OTHERS.values(), ids=OTHERS)
def test_other_uses_do_not_warn(python_with_dynamo, use):
    result = python_with_dynamo("import warnings; warnings.simplefilter('error')" + PROFILE + use)
    assert (result.returncode, said(result.stderr)) == (0, "")


@without_the_package
def test_where_warnings_are_errors_it_is_shown_and_the_profiler_stays_usable(python_with_dynamo):
    result = python_with_dynamo(
        PROFILE
        + f"""
x = torch.ones(2, device="openreg")
torch.openreg.synchronize()
warnings.filterwarnings("error", "torch.profiler does not record")
with profile(activities={BOTH}):
    pass
with profile(activities=[ProfilerActivity.CPU]) as profiled:
    x + 1
print("aten::add" in [event.key for event in profiled.key_averages()])
"""
    )
    assert result.stdout == "True\n", result.stderr
    assert "UserWarning: torch.profiler " in result.stderr


@pytest.mark.covers("registration.REGISTER_PRIVATEUSE1_PROFILER")
@without_the_package
def test_an_installed_profiler_is_left_alone(python_with_dynamo, bring):
    bring("profiler")
    use = f"x = torch.ones(2, device='openreg')\nwith profile(activities={BOTH}): x + 1"
    result = python_with_dynamo(PROFILE + use, TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    assert (result.returncode, said(result.stderr)) == (0, "")
