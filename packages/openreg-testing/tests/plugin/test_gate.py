# SPDX-License-Identifier: BSD-3-Clause
"""The fixture ``gate`` delays kernels of the streams that it closes. Without an open() it fails the device in time."""

import ctypes

import pytest
import torch
from library_runs import run, says

from openreg_testing.plugin import gate as gates

pytest_plugins = ["pytester"]

DEVICE = "openreg"


@pytest.fixture(autouse=True)
def clean_device():
    yield
    for device in range(torch.openreg.device_count()):
        torch.openreg.reset_device(device)


def test_a_closed_gate_holds_the_kernels_of_all_streams_and_no_pause(gate):
    numbers = [torch.zeros(1, device=f"{DEVICE}:{device}") for device in range(2)]
    torch.openreg.synchronize(0)
    torch.openreg.synchronize(1)
    gate.close()
    for x in numbers:
        x.add_(1)
    other = torch.openreg.Stream()
    with torch.openreg.stream(other):
        torch.openreg._sleep(1000)
    other.synchronize()
    assert [torch.openreg.default_stream(device).query() for device in range(2)] == [False, False]
    gate.open()
    assert [x.item() for x in numbers] == [1, 1]


def test_a_gate_may_be_closed_again(gate):
    for stream in (torch.openreg.Stream(0), torch.openreg.Stream(1)):
        gate.close(stream)
        assert not stream.query()
        gate.open()
        stream.synchronize()
        assert gate.is_open


def test_it_opens_while_the_host_waits(gate):
    gate.close()
    gate.open_soon()
    torch.openreg.synchronize()
    assert gate.is_open


def test_a_gate_that_is_never_opened_fails_its_device(gate, monkeypatch):
    monkeypatch.setattr(gates, "LONGEST", 1)
    gate.close()
    with pytest.raises(torch.AcceleratorError, match="a gate that was not opened in time"):
        torch.openreg.synchronize()
    assert not gate.is_open


def test_a_host_that_waits_with_the_gil_held_gets_that_error_too(gate, monkeypatch):
    monkeypatch.setattr(gates, "LONGEST", 1)
    gate.close()
    with_gil = ctypes.PyDLL(gates.driver()._name)  # releases it in no call
    assert with_gil.orDeviceSynchronize() == 10  # orErrorLaunchFailure
    assert not gate.is_open


def test_a_stream_that_is_none_is_refused(gate):
    class Gone:
        native_handle = 8

    with pytest.raises(RuntimeError, match="the gate cannot be closed: "):
        gate.close(Gone)
    assert gate.is_open


def test_what_a_test_leaves_closed_is_opened_before_its_work_is_waited_for(pytester, monkeypatch):
    pytester.makepyfile(
        """
        import pytest, torch

        pytestmark = [pytest.mark.sound_device, pytest.mark.launch_budget(3)]

        def test_leaves_it_closed(gate):
            x = torch.ones(3, device="openreg")
            gate.close()
            x.add_(1)
            assert not torch.openreg.current_stream().query()

        def test_fails_with_it_closed(gate):
            gate.close()
            assert False, "of its own"
        """
    )
    result = run(pytester, monkeypatch)
    result.assert_outcomes(passed=1, failed=1)
    says(result, "AssertionError: of its own")


def test_a_suite_keeps_a_fixture_of_that_name(pytester, monkeypatch):
    pytester.makepyfile(
        """
        import pytest

        @pytest.fixture
        def gate():
            return object()

        def test_has_its_own(gate):
            assert type(gate) is object
        """
    )
    run(pytester, monkeypatch).assert_outcomes(passed=1)


def test_without_openreg_there_is_nothing_to_hold(pytester, monkeypatch):
    """Whether it is installed or not."""
    pytester.makepyfile("def test_holds(gate):\n    gate.close()")
    result = run(pytester, monkeypatch, TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    result.assert_outcomes(skipped=1)
    says(result, "a gate stops tasks of openreg, which is not loaded")
