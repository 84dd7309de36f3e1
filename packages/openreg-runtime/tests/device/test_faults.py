# SPDX-License-Identifier: BSD-3-Clause
"""Faults injected from Python raise the documented exceptions, and end with their context."""

import pytest
import torch

from openreg_runtime import openreg

pytestmark = pytest.mark.usefixtures("clean_device")


@pytest.mark.covers("module.inject_faults")
def test_a_kernel_fails_and_the_device_recovers(driver):
    with openreg.inject_faults("launch:2@0"):
        for device in (0, 1, 0):
            driver.launch(openreg.default_stream(device).native_handle, lambda: None, name=b"victim")
        openreg.synchronize(1)
        with pytest.raises(torch.AcceleratorError, match=r"'victim'.*injected fault"):
            openreg.synchronize(0)
        openreg.reset_device(0)
    driver.launch(openreg.default_stream(0).native_handle, lambda: None)
    openreg.synchronize(0)


def test_a_failed_allocation_is_tried_again_before_it_is_out_of_memory():
    with openreg.inject_faults("alloc:1"):
        assert torch.UntypedStorage(32 << 20, device="openreg").nbytes() == 32 << 20
    openreg.empty_cache()
    every_attempt = ",".join(f"alloc:{number}" for number in range(1, 9))
    with openreg.inject_faults(every_attempt), pytest.raises(torch.OutOfMemoryError):
        torch.UntypedStorage(32 << 20, device="openreg")


def test_what_did_not_strike_is_disarmed(driver):
    with pytest.raises(KeyError), openreg.inject_faults("launch:1"):
        raise KeyError
    driver.launch(None, lambda: None)
    openreg.synchronize()


@pytest.mark.covers("module.inject_faults")
@pytest.mark.parametrize("specification", ["launch", "launch:0", "launch:x", "fire:1", "launch:1@9", "launch:1,,"])
def test_another_form_is_refused_and_arms_nothing(specification, driver):
    with pytest.raises(ValueError, match="KIND:N"), openreg.inject_faults(specification):
        pass
    driver.launch(None, lambda: None)
    openreg.synchronize()


@pytest.mark.covers("registration.c10::AcceleratorError")
def test_a_lost_device_is_an_accelerator_error_for_the_rest_of_the_process(succeed):
    succeed("""
        import torch, openreg_runtime
        openreg = torch.openreg
        with openreg.inject_faults("lose:1@0"):
            openreg._sleep(1)
            storage = torch.UntypedStorage(8, device="openreg")
            storage.resize_(16)  # a copy
            for attempt in (openreg.synchronize, openreg.reset_device):
                try:
                    attempt(0)
                except torch.AcceleratorError as error:
                    assert "device 0 is lost" in str(error)
                else:
                    raise AssertionError(attempt)
        openreg.synchronize(1)
        del storage
    """)
