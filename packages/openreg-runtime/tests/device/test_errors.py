# SPDX-License-Identifier: BSD-3-Clause
"""Driver errors become PyTorch's exceptions, and a reset makes a device usable after a failed kernel."""

import pytest
import torch

from openreg_runtime import openreg

pytestmark = pytest.mark.usefixtures("clean_device")


@pytest.fixture
def failed(driver):
    """A stream of device 0, one of whose kernels has failed."""
    stream = openreg.Stream(0)
    driver.launch(stream.native_handle, lambda: "division by zero", name=b"broken_kernel")
    with pytest.raises(torch.AcceleratorError):
        stream.synchronize()
    return stream


@pytest.mark.covers("registration.c10::AcceleratorError")
def test_a_failed_kernel_is_named_with_its_reason_and_the_way_out(failed):
    with pytest.raises(torch.AcceleratorError) as error:
        openreg.synchronize()
    for part in ("device 0", "'broken_kernel' failed: division by zero", "torch.openreg.reset_device()"):
        assert part in str(error.value)


def test_every_use_of_a_failed_device_says_so(failed):
    uses = [
        openreg.synchronize, torch.accelerator.synchronize, failed.synchronize, failed.query,
        failed.record_event, lambda: openreg._sleep(1), lambda: openreg.Event().record(),
        lambda: torch.UntypedStorage(8, device="openreg").resize_(16),
    ]  # fmt: skip
    for use in uses:
        with pytest.raises(torch.AcceleratorError, match="broken_kernel"):
            use()


def test_other_devices_go_on(failed):
    openreg.synchronize(1)
    storage = torch.UntypedStorage(8, device="openreg:1").resize_(4000)
    openreg.Stream(1).synchronize()
    assert storage.nbytes() == 4000


@pytest.mark.covers("module.reset_device")
def test_a_reset_brings_the_device_back(failed):
    event = openreg.Event()
    openreg.reset_device(0)
    openreg.synchronize()
    assert failed.query()
    event.record(failed)
    event.synchronize()
    assert event.query()


def test_an_event_of_skipped_work_fails_after_the_reset_too(driver, gate):
    event = torch.Event(device="openreg")
    gate.close()
    driver.launch(None, lambda: "division by zero", name=b"broken_kernel")
    event.record()
    gate.open()
    openreg.reset_device()
    for use in (event.query, event.synchronize):
        with pytest.raises(
            torch.AcceleratorError, match=r"may have been skipped.*reset \(torch.openreg.reset_device\(\)\)"
        ):
            use()
    event.wait()
    event.record()
    event.synchronize()


def test_memory_is_released_and_reused_on_a_failed_device(failed, driver, capfd, gate):
    openreg.reset_device()
    before = openreg.memory_stats()["active_bytes.all.current"]
    storage = torch.UntypedStorage(5000, device="openreg")
    pinned = torch.ones(1000).pin_memory()
    with openreg.stream(failed):
        gate.close()
        storage.resize_(6000)  # the old block now waits for this stream
    driver.launch(failed.native_handle, lambda: "again")
    driver.launch(failed.native_handle, lambda: None)
    gate.open()
    with pytest.raises(torch.AcceleratorError, match="again"):
        openreg.synchronize()
    del storage, pinned
    replacement = torch.UntypedStorage(9000, device="openreg")
    del replacement
    openreg.empty_cache()
    openreg.empty_host_cache()
    openreg.reset_device()
    torch.UntypedStorage(10, device="openreg")
    stats = openreg.memory_stats()
    assert stats["active_bytes.all.current"] == before
    openreg.empty_cache()
    assert openreg.memory_reserved() == 0 or before > 0
    assert driver.c.orPeekAtLastError() == 0  # the driver calls of the allocators leave no error
    assert capfd.readouterr().err == ""


def test_waiting_inside_a_kernel_is_not_implemented(driver):
    seen = []

    def kernel():
        try:
            openreg.synchronize()
        except NotImplementedError as error:
            seen.append(str(error))

    driver.launch(openreg.default_stream().native_handle, kernel)
    openreg.synchronize()
    assert len(seen) == 1
    assert "called by a kernel" in seen[0]


def test_an_unknown_handle_is_a_runtime_error():
    real = openreg.Stream()
    forged = torch.Stream(stream_id=12345, device_index=0, device_type=real.device_type)
    with pytest.raises(RuntimeError, match=r"orStreamQuery.*stream"):
        forged.query()


def test_an_error_that_was_reported_is_not_pending_any_more(driver):
    with pytest.raises(RuntimeError, match="out of range"):
        torch.Stream(device="openreg:9")
    assert driver.c.orPeekAtLastError() == 0


def test_asking_whether_work_is_done_leaves_no_error_behind(driver, gate):
    gate.close()
    assert not openreg.current_stream().query()
    assert driver.c.orPeekAtLastError() == 0


def test_out_of_memory_is_a_runtime_error_too():
    with pytest.raises(RuntimeError) as error:
        torch.UntypedStorage(1 << 60, device="openreg")
    assert type(error.value) is torch.OutOfMemoryError
