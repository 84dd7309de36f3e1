# SPDX-License-Identifier: BSD-3-Clause
"""A forked child gets an error with the reason if it uses the device, and does not harm its parent."""

import pytest
from driver._platform import HAS_FORK
from driver.conftest import find_library

pytestmark = pytest.mark.skipif(not HAS_FORK, reason="this system has no fork()")

IN_CHILD = """
import os, sys, torch, openreg_runtime
storage = torch.UntypedStorage(4096, device="openreg")
pinned = torch.ones(10).pin_memory()
cached = torch.ones(3000).pin_memory()
del cached  # the child inherits a pinned block that is free
stream, event, generator = torch.openreg.Stream(), torch.openreg.Event(), torch.Generator("openreg")
event.record(stream)
torch.openreg._sleep(20_000_000)
child = os.fork()
if child == 0:
    try:
{body}
    except BaseException:
        import traceback
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)
    sys.stdout.flush()
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
torch.openreg.synchronize()
assert torch.openreg.memory_allocated() == 4096
assert torch.UntypedStorage(8, device="openreg").nbytes() == 8
assert event.query() and stream.query() and pinned.is_pinned() and pinned.sum() == 10
assert torch.ones(3000).pin_memory().is_pinned()
"""


def in_child(body):
    lines = (f"        {line}" for line in body.strip().splitlines())
    return IN_CHILD.format(body="\n".join(lines))


REFUSED = [
    'torch.UntypedStorage(8, device="openreg")',
    "storage.resize_(9999)",
    "torch.ones(10).pin_memory()",
    "torch.ones(3000).pin_memory()",
    "torch.empty(3000, pin_memory=True)",
    "torch.openreg.init()",
    "torch.openreg.Stream()",
    "torch.openreg.current_stream()",
    "torch.openreg.synchronize()",
    "torch.openreg.reset_device()",
    "torch.openreg.mem_get_info()",
    "torch.openreg.device_stats()",
    "torch.openreg._sleep(1)",
    "event.record(stream)",
    "event.query()",
    "event.synchronize()",
    "torch.openreg.Event().record(stream)",
    "stream.query()",
    "stream.synchronize()",
]


@pytest.mark.covers("module._lazy_init", "module._is_in_bad_fork")
def test_a_forked_child_cannot_use_the_device(succeed):
    checks = "\n".join(
        f"""
try:
    {code}
except RuntimeError as error:
    assert str(error).startswith("Cannot re-initialize OpenReg in forked subprocess."), error
    assert "spawn" in str(error), error
else:
    raise AssertionError({code!r} + " was not refused")"""
        for code in REFUSED
    )
    succeed(in_child(checks))


def test_a_child_can_do_what_needs_no_device(succeed):
    succeed(
        in_child("""
assert torch.openreg._is_in_bad_fork()
assert not torch.openreg.is_initialized() and not torch.openreg._initialized
assert torch.openreg.is_available() and torch.openreg.device_count() == 2
assert torch.openreg.get_device_name() == "OpenReg simulated accelerator"
assert torch.manual_seed(3).initial_seed() == 3
torch.openreg.default_generators[1].manual_seed(4)
assert (torch.ones(2) + 1).tolist() == [2, 2]
assert pinned.sum() == 10
""")
    )


def test_releasing_in_a_child_does_nothing(succeed):
    succeed(
        in_child("""
import gc
del storage, pinned, stream, event, generator
gc.collect()
torch.openreg.empty_cache()
""")
    )


def test_a_child_that_ends_by_itself_ends_well(succeed):
    succeed(
        """
        import os, torch, openreg_runtime
        keep = torch.UntypedStorage(64, device="openreg"), torch.ones(3).pin_memory(), torch.openreg.Event()
        keep[2].record()
        child = os.fork()
        if child != 0:
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
            assert torch.openreg.memory_allocated() == 512
    """,
        finalize=True,
    )


def test_only_a_process_that_used_the_device_spoils_its_children(succeed):
    succeed("""
        import os, torch, openreg_runtime
        torch.openreg.is_available(), torch.openreg.device_count(), torch.openreg.current_device()
        torch.openreg.get_device_properties(), torch.openreg.manual_seed_all(1)
        torch.openreg.set_device(1)
        torch.accelerator.current_accelerator(), torch.ones(2).is_pinned()
        child = os.fork()
        if child == 0:
            assert not torch.openreg._is_in_bad_fork()
            torch.UntypedStorage(64, device="openreg")
            torch.openreg.synchronize()
            os._exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    """)


def test_a_child_of_a_process_that_used_no_device_reads_the_settings_itself(succeed):
    succeed("""
        import os, torch, openreg_runtime
        assert torch.openreg.device_count() == 2
        child = os.fork()
        if child == 0:
            os.environ["OPENREG_DEVICE_MEMORY"] = "64MiB"
            os._exit(3 if torch.openreg.mem_get_info()[1] == 64 << 20 else 4)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
        child = os.fork()
        if child == 0:
            os.environ["OPENREG_DEVICE_COUNT"] = "3"
            try:
                torch.openreg.synchronize()
            except RuntimeError as error:
                said = "OPENREG_DEVICE_COUNT='3' is not accepted; give 2, inherited from the parent process"
                os._exit(3 if said in str(error) else 4)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
        assert torch.openreg.mem_get_info()[1] != 64 << 20
    """)


@pytest.mark.covers("registration.device_lazy_init")
@pytest.mark.parametrize(
    "use",
    [
        "torch.openreg.Stream()",
        "torch.openreg.Event().record()",
        "torch.openreg.synchronize()",
        "torch.openreg._sleep(1)",
        "torch.openreg.mem_get_info()",
        "torch.openreg.current_stream().query()",
    ],
)
def test_every_first_use_counts_as_one(succeed, use):
    succeed(f"""
        import os, torch, openreg_runtime
        {use}
        assert torch.openreg.is_initialized() and torch.openreg._initialized
        child = os.fork()
        if child == 0:
            os._exit(5 if torch.openreg._is_in_bad_fork() else 6)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 5
    """)


def test_a_child_poisons_nothing_of_its_parent(succeed):
    succeed(
        f"""
import ctypes, os, torch, openreg_runtime
copy = ctypes.CDLL({str(find_library())!r}).orMemcpy
copy.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
storage = torch.UntypedStorage(1000, device="openreg")
address = storage.data_ptr()
assert copy(address, b"1" * 1000, 1000, 4) == 0
child = os.fork()
if child == 0:
    code = 1
    try:
        del storage
        torch.openreg.empty_cache()
        code = 0
    finally:
        os._exit(code)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
text = ctypes.create_string_buffer(1000)
assert copy(text, address, 1000, 4) == 0
assert text.raw == b"1" * 1000
""",
        env={"OPENREG_POISON": "1"},
    )
