# SPDX-License-Identifier: BSD-3-Clause
"""The gate of the tests: it holds what it should, and never forever."""

import ctypes

import gate as gates
import pytest
import torch

from openreg_runtime import openreg

pytestmark = pytest.mark.usefixtures("clean_device")


def test_a_closed_gate_holds_the_kernels_of_all_streams_and_no_pause(gate, driver):
    ran = []
    gate.close()
    for device in range(2):
        driver.launch(openreg.default_stream(device).native_handle, lambda: ran.append(1))
    other = openreg.Stream()
    with openreg.stream(other):
        openreg._sleep(1000)
    other.synchronize()
    assert not openreg.current_stream().query()
    assert ran == []
    gate.open()
    openreg.synchronize(0)
    openreg.synchronize(1)
    assert ran == [1, 1]


def test_a_gate_may_be_closed_again(gate):
    for stream in (openreg.Stream(0), openreg.Stream(1)):
        gate.close(stream)
        assert not stream.query()
        gate.open()
        stream.synchronize()
        assert gate.is_open


def test_a_gate_that_nobody_opens_fails_its_device(gate, monkeypatch):
    monkeypatch.setattr(gates, "LONGEST", 1)
    gate.close()
    with pytest.raises(torch.AcceleratorError, match="a gate that nobody opened in time"):
        openreg.synchronize()
    assert not gate.is_open


def test_a_host_that_waits_with_the_gil_held_gets_that_error_too(gate, monkeypatch, driver):
    monkeypatch.setattr(gates, "LONGEST", 1)
    gate.close()
    with_gil = ctypes.PyDLL(driver.c._name)  # releases it in no call
    assert with_gil.orDeviceSynchronize() == 10  # orErrorLaunchFailure
    assert not gate.is_open
