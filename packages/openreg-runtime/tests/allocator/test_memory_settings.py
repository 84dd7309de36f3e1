# SPDX-License-Identifier: BSD-3-Clause
"""The memory fraction, PYTORCH_ALLOC_CONF and OPENREG_POISON have their documented effects on the caching allocator."""

import pytest
import torch
from driver.conftest import find_library

from openreg_runtime import openreg

pytestmark = pytest.mark.usefixtures("clean_device")

SMALL = {"OPENREG_DEVICE_MEMORY": "128MiB"}


@pytest.fixture
def alloc_conf():
    """Changes settings at run time, and puts them back."""
    yield torch._C._accelerator_setAllocatorSettings
    torch._C._accelerator_setAllocatorSettings(
        "max_split_size_mb:1048576,max_non_split_rounding_mb:20,"
        "roundup_power2_divisions:1,large_segment_size_mb:20,per_process_memory_fraction:1.0"
    )


@pytest.mark.covers("module.set_per_process_memory_fraction", "module.get_per_process_memory_fraction")
def test_the_fraction_limits_one_device_and_says_so(succeed):
    succeed(
        """
        import torch, openreg_runtime
        memory = torch.openreg.memory
        assert memory.get_per_process_memory_fraction() == 1.0
        memory.set_per_process_memory_fraction(0.5, "openreg:1")
        assert [memory.get_per_process_memory_fraction(i) for i in (0, 1)] == [1.0, 0.5]
        kept = torch.UntypedStorage(60 << 20, device="openreg:1")
        try:
            torch.UntypedStorage(6 << 20, device="openreg:1")
        except torch.OutOfMemoryError as error:
            text = str(error)
        for part in ("64.00 MiB", "0.5 of", "68.00 MiB is free",
                     "set_per_process_memory_fraction()"):
            assert part in text, (part, text)
        torch.UntypedStorage(100 << 20, device="openreg:0")
        memory.set_per_process_memory_fraction(1.0, 1)
        torch.UntypedStorage(60 << 20, device="openreg:1")
        """,
        env=SMALL,
    )


@pytest.mark.covers("module.set_per_process_memory_fraction")
def test_a_fraction_out_of_range_or_of_another_type_is_refused():
    with pytest.raises(TypeError, match=r"float.*0 to 1"):
        openreg.set_per_process_memory_fraction(1)
    for wrong in (-0.1, 1.1, float("nan")):
        with pytest.raises(ValueError, match=r"0 to 1 for openreg:0"):
            openreg.set_per_process_memory_fraction(wrong)
    assert openreg.get_per_process_memory_fraction() == 1.0


@pytest.mark.covers("module.get_per_process_memory_fraction", "registration.REGISTER_ALLOCATOR_CONFIG_PARSE_HOOK")
def test_the_variable_sets_the_fraction_of_all_devices(succeed):
    succeed(
        """
        import torch, openreg_runtime
        torch.openreg.init()
        assert [torch.openreg.get_per_process_memory_fraction(i) for i in (0, 1)] == [0.25, 0.25]
        try:
            torch.UntypedStorage(40 << 20, device="openreg")
        except torch.OutOfMemoryError as error:
            assert "32.00 MiB" in str(error)
        else:
            raise AssertionError("not limited")
        """,
        env={**SMALL, "PYTORCH_ALLOC_CONF": "max_split_size_mb:64, per_process_memory_fraction:0.25"},
    )


@pytest.mark.covers("registration.REGISTER_ALLOCATOR_CONFIG_PARSE_HOOK")
@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("per_process_memory_fraction:1.5", "from 0 to 1"),
        ("per_process_memory_fraction:half", "from 0 to 1"),
        ("speed:fast", "Unrecognized key 'speed'"),
    ],
)
def test_a_refused_setting_is_named(succeed, value, reason):
    succeed(
        f"""
        import torch, openreg_runtime
        for _ in range(2):
            try:
                torch.UntypedStorage(8, device="openreg")
            except ValueError as error:
                assert {reason!r} in str(error), error
            else:
                raise AssertionError("not refused")
        """,
        env={"PYTORCH_ALLOC_CONF": value},
    )


def test_a_setting_without_effect_is_warned_about(run_python):
    outcome = run_python(
        "import torch, openreg_runtime; torch.openreg.init()",
        env={"PYTORCH_ALLOC_CONF": "expandable_segments:True"},
    )
    assert outcome.code == 0
    assert "expandable_segments" in outcome.errors


def test_sizes_are_rounded_to_divisions_of_powers_of_two(alloc_conf):
    base = openreg.memory_allocated()
    alloc_conf("roundup_power2_divisions:4")
    for size, block in ((100, 512), (1900, 2048), (5000, 5120), (5121, 6144), (9 << 20, 10 << 20)):
        storage = torch.UntypedStorage(size, device="openreg")
        assert openreg.memory_allocated() - base == block, size
        del storage


def test_each_interval_of_sizes_has_divisions_of_its_own(alloc_conf):
    base = openreg.memory_allocated()
    alloc_conf("roundup_power2_divisions:[1:2,2:8,>:4]")
    mib = 1 << 20
    for size, block in (
        (5000, 6144),
        (2 * mib - 1, 2 * mib),
        (2 * mib + 1, 2 * mib + mib // 4),
        (4 * mib + 1, 5 * mib),
    ):
        storage = torch.UntypedStorage(size, device="openreg")
        assert openreg.memory_allocated() - base == block, size
        del storage


def test_large_segments_have_the_size_that_is_set(alloc_conf):
    alloc_conf("large_segment_size_mb:40")
    openreg.empty_cache()
    storage = torch.UntypedStorage(3 << 20, device="openreg")
    assert openreg.memory_reserved() == 40 << 20
    del storage


def test_blocks_above_the_split_size_are_neither_divided_nor_lent_to_small_requests(alloc_conf):
    openreg.empty_cache()
    openreg.reset_accumulated_memory_stats()
    alloc_conf("max_split_size_mb:32,max_non_split_rounding_mb:20")
    assert openreg.memory_stats()["max_split_size"] == 32 << 20
    address = torch.UntypedStorage(60 << 20, device="openreg").data_ptr()
    stats = openreg.memory_stats()
    assert (stats["oversize_allocations.allocated"], stats["oversize_segments.current"]) == (1, 1)
    small = torch.UntypedStorage(12 << 20, device="openreg")
    assert small.data_ptr() != address  # not a part of the large one
    far_smaller = torch.UntypedStorage(33 << 20, device="openreg")
    assert far_smaller.data_ptr() != address  # it would waste more than the rounding allows
    close = torch.UntypedStorage(50 << 20, device="openreg")
    assert close.data_ptr() == address
    assert openreg.memory_stats()["allocated_bytes.all.current"] >= (60 + 12 + 33) << 20  # the whole block
    del small, far_smaller, close
    openreg.empty_cache()
    stats = openreg.memory_stats()
    assert (stats["oversize_allocations.current"], stats["oversize_segments.current"]) == (0, 0)


def test_only_oversize_blocks_are_given_back_for_an_oversize_request(succeed):
    succeed(
        """
        import torch, openreg_runtime
        torch.UntypedStorage(20 << 20, device="openreg")
        torch.UntypedStorage(70 << 20, device="openreg")
        torch.UntypedStorage(46 << 20, device="openreg")  # the 70 MiB would waste too much
        stats = torch.openreg.memory_stats()
        assert (stats["num_device_free"], stats["segment.all.current"]) == (1, 2), stats
        assert stats["reserved_bytes.all.current"] == (20 + 46) << 20
        """,
        env={**SMALL, "PYTORCH_ALLOC_CONF": "max_split_size_mb:30"},
    )


def test_garbage_above_the_threshold_is_collected_oldest_first(succeed):
    succeed(
        """
        import torch, openreg_runtime
        old, new = (torch.UntypedStorage(size << 20, device="openreg") for size in (30, 32))
        del old
        torch.UntypedStorage(3000, device="openreg")
        new_address = new.data_ptr()
        del new
        kept = torch.UntypedStorage(50 << 20, device="openreg")
        sizes = sorted(s["total_size"] >> 20 for s in torch.openreg.memory_snapshot())
        assert sizes == [2, 32, 50], sizes
        stats = torch.openreg.memory_stats()
        assert (stats["num_alloc_retries"], stats["num_device_free"]) == (0, 1)
        assert torch.UntypedStorage(32 << 20, device="openreg").data_ptr() == new_address
        """,
        env={**SMALL, "PYTORCH_ALLOC_CONF": "garbage_collection_threshold:0.4"},
    )


def test_waits_for_the_device_are_counted():
    openreg.reset_accumulated_memory_stats()
    torch.UntypedStorage(8, device="openreg")
    assert openreg.memory_stats()["num_sync_all_streams"] == 0
    openreg.empty_cache()
    assert openreg.memory_stats()["num_sync_all_streams"] == 1


POISON = f"""
import ctypes, torch, openreg_runtime
LIBRARY = {str(find_library())!r}
copy = ctypes.CDLL(LIBRARY).orMemcpy
copy.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
def content(address, size):
    torch.openreg.synchronize()
    text = ctypes.create_string_buffer(size)
    assert copy(text, address, size, 4) == 0
    return text.raw
def write(address, text):
    assert copy(address, text, len(text), 4) == 0
storage = torch.UntypedStorage(1000, device="openreg")
address = storage.data_ptr()
"""


def test_poison_fills_whole_blocks_on_allocation_and_on_release(succeed):
    succeed(
        POISON
        + """
assert content(address, 1024) == b"\\xff" * 1024
write(address, b"1" * 1000)
del storage
assert content(address, 1024) == b"\\xff" * 1024
write(address, b"1" * 1024)  # late, as a kernel may be that still uses it
storage = torch.UntypedStorage(700, device="openreg")
assert storage.data_ptr() == address
assert content(address, 1024) == b"\\xff" * 1024
""",
        env={"OPENREG_POISON": "1"},
    )


def test_poison_comes_after_the_work_that_uses_the_memory(succeed):
    succeed(
        POISON
        + """
from openreg_testing.plugin.gate import Gate
write(address, b"1" * 1000)
gate = Gate()
gate.close()
fill = ctypes.CDLL(LIBRARY).orMemsetAsync
fill.argtypes = (ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t, ctypes.c_void_p)
assert fill(address, 7, 1000, torch.openreg.current_stream().native_handle) == 0
del storage
assert not torch.openreg.current_stream().query()
gate.open()
assert content(address, 1000) == b"\\xff" * 1000
""",
        env={"OPENREG_POISON": "1"},
    )


def test_without_poison_memory_keeps_what_was_written(succeed):
    succeed(
        POISON
        + """
assert content(address, 1000) == bytes(1000)
write(address, b"1" * 1000)
del storage
assert content(address, 1000) == b"1" * 1000
"""
    )


def test_a_failed_device_releases_memory_without_poison(succeed):
    succeed(
        POISON
        + """
write(address, b"1" * 1000)
driver = ctypes.CDLL(LIBRARY)
assert driver.orSetFaults(b"copy:1") == 0
driver.orMemset.argtypes = (ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t)
assert driver.orMemset(address, 7, 1000) != 0
del storage
torch.UntypedStorage(1000, device="openreg")
assert torch.openreg.memory_allocated() == 0
torch.openreg.reset_device()
assert content(address, 1000) == b"1" * 1000
""",
        env={"OPENREG_POISON": "1"},
    )


@pytest.mark.parametrize("value", ["yes", "", "2"])
def test_another_value_of_poison_is_refused(succeed, value):
    succeed(
        f"""
        import torch, openreg_runtime
        try:
            torch.openreg.init()
        except (RuntimeError, ValueError) as error:
            for part in ("OPENREG_POISON", repr({value!r}), "0 or 1", "unset it"):
                assert part in str(error), (part, error)
        else:
            raise AssertionError("not refused")
        """,
        env={"OPENREG_POISON": value},
    )
