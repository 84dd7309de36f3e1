# SPDX-License-Identifier: BSD-3-Clause
"""Error codes have names and messages, and each thread has a last error of its own."""

from __future__ import annotations

import ctypes
import enum
import re
import threading

import pytest

from .conftest import Gate
from .device_api import HEADER, Api, CaptureMode, CaptureStatus, DriverError, Error, EventFlags, Kind, MemoryType
from .device_header import Access, MemoryAction, SyncKind, TaskKind

ENUMS = {
    "orError_t": Error,
    "orMemcpyKind": Kind,
    "orMemoryType": MemoryType,
    "orEventFlags": EventFlags,
    "orStreamCaptureStatus": CaptureStatus,
    "orStreamCaptureMode": CaptureMode,
    "orAccess": Access,
    "orTaskKind": TaskKind,
    "orSyncKind": SyncKind,
    "orMemoryAction": MemoryAction,
}


def enumerators(name: str) -> dict[str, int]:
    """The names and numbers of an enum in the header."""
    found = re.search(rf"typedef enum {name} {{(.*?)}} {name};", HEADER.read_text(), re.DOTALL)
    assert found
    return {key: int(value, 0) for key, value in re.findall(r"(or\w+) = (\w+)", found[1])}


@pytest.mark.parametrize("name", ENUMS)
def test_numbers_are_those_of_the_header(name: str) -> None:
    binding: type[enum.IntEnum] = ENUMS[name]
    assert {entry.name: entry.value for entry in binding} == enumerators(name)


@pytest.mark.parametrize("error", Error)
def test_every_code_has_its_name_and_a_sentence(api: Api, error: Error) -> None:
    assert api.c.orGetErrorName(error).decode() == error.name
    assert len(api.c.orGetErrorString(error)) >= 8


def test_sentences_differ(api: Api) -> None:
    assert len({api.c.orGetErrorString(error) for error in Error}) == len(Error)


@pytest.mark.parametrize("code", [-1, 99, 999])
def test_unknown_codes_are_named_so(api: Api, code: int) -> None:
    assert b"unknown" in api.c.orGetErrorName(code)
    assert api.c.orGetErrorString(code)


def test_last_error_is_cleared_by_get_and_not_by_peek(api: Api) -> None:
    assert api.c.orSetDevice(99) == Error.orErrorInvalidDevice
    assert api.c.orPeekAtLastError() == Error.orErrorInvalidDevice
    assert api.c.orPeekAtLastError() == Error.orErrorInvalidDevice
    assert api.c.orGetLastError() == Error.orErrorInvalidDevice
    assert api.c.orGetLastError() == Error.orSuccess


def test_success_keeps_the_last_error(api: Api) -> None:
    assert api.c.orSetDevice(99) == Error.orErrorInvalidDevice
    api.set_device(0)
    assert "99" in api.message()
    assert api.c.orGetLastError() == Error.orErrorInvalidDevice


def test_a_later_failure_replaces_an_earlier_one(api: Api) -> None:
    assert api.c.orSetDevice(99) == Error.orErrorInvalidDevice
    assert api.c.orEventQuery(12345) == Error.orErrorInvalidResourceHandle
    assert "orEventQuery" in api.message()
    assert api.c.orGetLastError() == Error.orErrorInvalidResourceHandle


def test_not_ready_is_no_failure(api: Api, gate: Gate) -> None:
    gate.close(None)
    assert api.c.orStreamQuery(None) == Error.orErrorNotReady
    assert api.c.orPeekAtLastError() == Error.orSuccess


def test_each_thread_has_its_own_last_error(api: Api) -> None:
    seen: list[tuple[int, str, int]] = []

    def other() -> None:
        before = api.c.orPeekAtLastError()
        api.c.orSetDevice(77)
        seen.append((before, api.message(), api.c.orPeekAtLastError()))

    assert api.c.orSetDevice(99) == Error.orErrorInvalidDevice
    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    before, message, after = seen[0]
    assert before == Error.orSuccess
    assert "77" in message
    assert after == Error.orErrorInvalidDevice
    assert "99" in api.message()


def test_a_new_thread_has_an_empty_message(api: Api) -> None:
    seen: list[str] = []
    thread = threading.Thread(target=lambda: seen.append(api.message()))
    thread.start()
    thread.join()
    assert seen == [""]


# Function and limit that were broken, and the way out.
MESSAGES = {
    "device": (
        ("orSetDevice", 2),
        ["orSetDevice", "device index", "2", "0 to 1", "OPENREG_DEVICE_COUNT"],
    ),
    "memory": (
        ("orMalloc", "out", 1 << 40),
        ["orMalloc", "device 0", str(1 << 40), "free", "OPENREG_DEVICE_MEMORY"],
    ),
    "free": (("orFree", 4096), ["orFree", "0x1000", "orMalloc"]),
    "stream": (("orStreamQuery", 0x77), ["orStreamQuery", "0x77", "orStreamCreate"]),
    "event": (("orEventQuery", 0x77), ["orEventQuery", "0x77", "orEventCreate"]),
    "null": (("orGetDevice", None), ["orGetDevice", "`device`", "null"]),
    "flags": (("orEventCreateWithFlags", "out", 9), ["orEventCreateWithFlags", "9", "Timing"]),
}


@pytest.mark.parametrize("case", MESSAGES)
def test_message_names_function_value_and_way_out(api: Api, case: str) -> None:
    (name, *arguments), words = MESSAGES[case]
    out = ctypes.create_string_buffer(64)
    with pytest.raises(DriverError) as caught:
        api.call(name, *(out if argument == "out" else argument for argument in arguments))
    assert [word for word in words if word not in caught.value.message] == []


def test_a_message_of_any_length_is_cut_and_stays_readable(api: Api) -> None:
    api.launch(None, lambda: "x" * 5000, name=b"n" * 100)
    with pytest.raises(DriverError, match=r"n{100}.*x{300}"):
        api.synchronize()
    api.reset()
