# SPDX-License-Identifier: BSD-3-Clause
"""Environment variables have their documented effect, and other values are refused with the accepted form."""

from __future__ import annotations

import pytest

from .conftest import MIB, RunScript

GIB = 1 << 30
SHOW = """
free, total = api.memory_info()
print(api.device_count(), total, api.properties(0).totalGlobalMem)
"""


@pytest.mark.parametrize("value", [1, 2, 3, 64])
def test_device_count_is_accepted(run_script: RunScript, value: int) -> None:
    done = run_script(SHOW, env={"OPENREG_DEVICE_COUNT": str(value)})
    assert done.output.split() == [str(value), str(64 * MIB), str(64 * MIB)], done.errors


@pytest.mark.parametrize(
    ("value", "size"),
    [
        ("2MiB", 2 * MIB),
        ("2097152", 2 * MIB),
        ("2097152B", 2 * MIB),
        ("4096KiB", 4 * MIB),
        ("3GiB", 3 * GIB),
        ("1024GiB", 1024 * GIB),
        ("2097153", 2 * MIB),  # rounded down to pages
    ],
)
def test_device_memory_is_accepted(run_script: RunScript, value: str, size: int) -> None:
    done = run_script(SHOW, env={"OPENREG_DEVICE_MEMORY": value})
    assert done.output.split() == ["2", str(size), str(size)], done.errors


REFUSED = {
    "OPENREG_DEVICE_COUNT": ["0", "65", "-1", "+2", "two", "", " 2", "2 ", "1.5", "0x2", "9" * 40],
    "OPENREG_DEVICE_MEMORY": [
        "0",
        "1",
        "2097151",
        "1025GiB",
        "-5MiB",
        "8 GiB",
        "8gib",
        "8GB",
        "8G",
        "GiB",
        "",
        "1.5GiB",
        "99999999999999999999GiB",
        "18014398509481984KiB",  # 2**54: times 1024 it overflows to 0
        "17179869186GiB",  # overflows to 2 GiB
    ],
    "OPENREG_POISON": ["", "2", "yes"],
    "OPENREG_LAUNCH_BLOCKING": ["", "2", "yes", "true", "01", " 1"],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in REFUSED.items() for value in values])
def test_other_values_are_refused_with_the_accepted_form(run_script: RunScript, name: str, value: str) -> None:
    done = run_script(
        """
        for attempt in range(2):  # the second call must not find half an initialization
            for call in (api.device_count, lambda: api.malloc(4096), lambda: api.set_device(0)):
                try:
                    call()
                except DriverError as error:
                    assert error.code == Error.orErrorInvalidConfiguration, error
                    print(error.message)
                else:
                    print("accepted")
        """,
        env={name: value},
    )
    lines = done.output.splitlines()
    assert len(lines) == 6, done.errors
    for line in lines:
        assert line.startswith(f"environment variable {name}='{value}' is not accepted")
        assert "give " in line
        assert "unset it" in line


def test_defaults(run_script: RunScript) -> None:
    done = run_script(
        """
        del os.environ["OPENREG_DEVICE_COUNT"], os.environ["OPENREG_DEVICE_MEMORY"]
        free, total = api.memory_info()
        print(api.device_count(), free == total, total % os.sysconf("SC_PAGESIZE") if libc else 0)
        print(total)
        """
    )
    count, all_free, rest, total = done.output.split()
    assert (count, all_free, rest) == ("2", "True", "0"), done.errors
    assert 2 * MIB <= int(total) <= 1024 * GIB


def test_settings_are_read_once(run_script: RunScript) -> None:
    done = run_script(
        """
        print(api.device_count())
        os.environ["OPENREG_DEVICE_COUNT"] = "5"
        api.malloc(4096)
        print(api.device_count())
        """
    )
    assert done.output.split() == ["2", "2"], done.errors


def test_a_board_that_does_not_fit_the_address_space_is_refused(run_script: RunScript) -> None:
    done = run_script(
        """
        for attempt in range(2):
            try:
                api.malloc(4096)
            except DriverError as error:
                print(error.code.name, error.message)
        """,
        env={"OPENREG_DEVICE_COUNT": "64", "OPENREG_DEVICE_MEMORY": "1024GiB"},
    )
    lines = done.output.splitlines()
    assert len(lines) == 2, done.errors
    for line in lines:
        assert line.startswith("orErrorMemoryAllocation")
        assert "64 devices" in line
        assert "lower OPENREG_DEVICE_MEMORY or OPENREG_DEVICE_COUNT" in line


def test_launch_blocking_waits_for_each_launch(run_script: RunScript) -> None:
    done = run_script(
        """
        ran = []
        stream = api.stream()
        host = ctypes.create_string_buffer(b"x" * 4096, 4096)
        device = api.malloc(2 << 20)
        for index in range(5):
            api.launch(stream, lambda: ran.append(index), release=lambda _: ran.append("released"))
            assert ran == [index, "released"], ran
            ran.clear()
            api.copy_async(device, host, 4096, stream)
            assert api.stream_ready(stream)
            api.call("orMemsetAsync", device, 1, 2 << 20, stream)
            assert api.stream_ready(stream)
        api.delay(stream, 3600)
        assert not api.stream_ready(stream)  # a pause is no kernel
        print("ok")
        """,
        env={"OPENREG_LAUNCH_BLOCKING": "1"},
    )
    assert done.output.split() == ["ok"], done.errors


def test_launch_blocking_raises_where_the_kernel_was_launched_and_leaves_its_state(
    run_script: RunScript,
) -> None:
    done = run_script(
        """
        released = []
        failing = api.kernel(lambda: "no such number", name=b"bad", release=released.append)
        for expected in ("no such number", "error state"):  # its own failure, then a refused launch
            assert api.c.orLaunchKernel(None, ctypes.byref(failing)) == Error.orErrorLaunchFailure
            assert expected in api.message(), api.message()
        copied = api.c.orMemcpyAsync(api.malloc(64), b"x" * 64, 64, 4, None)
        assert copied == Error.orErrorLaunchFailure
        assert released == [], released  # the caller still owns the state
        api.reset()
        api.launch(None, lambda: None, release=released.append)
        assert released == [None]
        print("ok")
        """,
        env={"OPENREG_LAUNCH_BLOCKING": "1"},
    )
    assert done.output.split() == ["ok"], done.errors


@pytest.mark.parametrize(("poison", "content"), [("0", b"\0"), ("1", b"\xff")])
def test_poison_fills_new_memory(run_script: RunScript, poison: str, content: bytes) -> None:
    done = run_script(
        f"""
        for _ in range(2):
            address = api.malloc(10000)
            assert api.download(address, 12288) == {content!r} * 12288
            api.upload(address, b"1" * 12288)
            api.free(address)
        print("seen")
        """,
        env={"OPENREG_POISON": poison},
    )
    assert done.output.split() == ["seen"], done.errors
