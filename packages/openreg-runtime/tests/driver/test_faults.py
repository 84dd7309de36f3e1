# SPDX-License-Identifier: BSD-3-Clause
"""Injected faults make the n-th operation of a kind fail once. A lost device stays lost."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .conftest import Gate, RunScript
from .device_api import Api, DriverError, Error


@pytest.fixture
def faulty(api: Api) -> Iterator[Api]:
    """The device; faults are disarmed afterwards."""
    yield api
    api.set_faults(None)


def test_the_nth_allocation_fails_once(faulty: Api) -> None:
    faulty.set_faults("alloc:3")
    blocks = [faulty.malloc(4096), faulty.malloc(4096)]
    with pytest.raises(DriverError, match="injected fault") as caught:
        faulty.malloc(4096)
    assert caught.value.code == Error.orErrorMemoryAllocation
    blocks.append(faulty.malloc(4096))
    for block in blocks:
        faulty.free(block)


def test_a_fault_of_one_device_leaves_the_others_alone(faulty: Api) -> None:
    faulty.set_faults("alloc:1@1")
    block = faulty.malloc(4096)
    faulty.set_device(1)
    with pytest.raises(DriverError, match="device 1"):
        faulty.malloc(4096)
    faulty.set_device(0)
    faulty.free(block)


def test_the_nth_kernel_fails_without_running(faulty: Api, gate: Gate) -> None:
    ran: list[int] = []
    gate.close(None)  # a launch after the failure would be refused
    faulty.set_faults("launch:2")
    for index in range(3):
        faulty.launch(None, lambda i=index: ran.append(i), name=b"victim")
    gate.open()
    with pytest.raises(DriverError, match=r"'victim'.*injected fault") as caught:
        faulty.synchronize()
    assert caught.value.code == Error.orErrorLaunchFailure
    assert ran == [0]
    faulty.reset()
    faulty.launch(None, lambda: ran.append(9))
    faulty.synchronize()
    assert ran == [0, 9]


def test_the_nth_copy_or_fill_fails(faulty: Api) -> None:
    block = faulty.malloc(4096)
    faulty.set_faults("copy:2")
    faulty.upload(block, b"kept")
    faulty.call("orMemsetAsync", block, 0, 4, None)
    with pytest.raises(DriverError, match=r"fill of 4 bytes"):
        faulty.synchronize()
    faulty.reset()
    assert faulty.download(block, 4) == b"kept"
    faulty.free(block)


def test_a_failed_kernel_still_releases_its_state(faulty: Api) -> None:
    released: list[int | None] = []
    faulty.set_faults("launch:1")
    faulty.launch(None, lambda: None, state=7, release=released.append)
    with pytest.raises(DriverError):
        faulty.synchronize()
    assert released == [7]


def test_disarming_forgets_what_was_armed(faulty: Api) -> None:
    faulty.set_faults("launch:1,copy:1,alloc:1,lose:1")
    faulty.set_faults("")
    faulty.launch(None, lambda: None)
    block = faulty.malloc(4096)
    faulty.upload(block, b"x")
    faulty.free(block)


def test_a_lost_device_stays_lost_and_the_others_work(run_script: RunScript) -> None:
    done = run_script(
        """
        ran = []
        kept = api.malloc(4096)
        api.launch(None, lambda: ran.append("before"))
        api.launch(None, lambda: ran.append("lost"))
        for attempt in range(2):
            for call in (api.synchronize, api.reset, lambda: api.launch(None, lambda: ran.append("after"))):
                try:
                    call()
                except DriverError as error:
                    assert error.code == Error.orErrorDeviceLost, error
                    assert "device 0 is lost" in error.message and "start the process" in error.message
                else:
                    raise AssertionError("the device came back")
        api.free(kept)  # releasing must work, or clean-up code would fail
        api.set_device(1)
        api.launch(None, lambda: ran.append("other"))
        api.synchronize()
        print(ran)
        """,
        env={"OPENREG_FAULTS": "lose:2@0"},
    )
    assert done.output.strip() == "['before', 'other']", done.errors


def test_a_library_brings_a_kind_of_its_own(faulty: Api) -> None:
    kind = faulty.register_fault_kind("melt")
    assert faulty.register_fault_kind("melt") == kind != faulty.register_fault_kind("melt_down")
    assert faulty.register_fault_kind("copy") != kind
    faulty.set_faults("melt:2,melt:1@1")
    assert [faulty.count_for_fault(kind) for _ in range(3)] == [False, True, False]
    assert [faulty.count_for_fault(kind, 1) for _ in range(2)] == [True, False]
    faulty.set_faults(None)
    assert not faulty.count_for_fault(kind)


def test_what_is_no_kind_is_refused_with_those_there_are(faulty: Api) -> None:
    faulty.register_fault_kind("melt")
    with pytest.raises(
        DriverError, match=r"'freeze:1' are not accepted; .* alloc, copy, launch, lose,.* melt"
    ) as caught:
        faulty.set_faults("freeze:1")
    assert caught.value.code == Error.orErrorInvalidValue


def test_there_is_room_for_many_kinds_and_not_for_any_number(run_script: RunScript) -> None:
    done = run_script(
        """
        names = ["".join(chr(97 + int(digit)) for digit in str(number)) for number in range(100, 200)]
        kinds = []
        try:
            for name in names:
                kinds.append(api.register_fault_kind(name))
        except DriverError as error:
            print(len(kinds), len(set(kinds)), error.message)
        assert api.register_fault_kind(names[0]) == kinds[0]
        """
    )
    count, different, message = done.output.split(maxsplit=2)
    assert int(count) == int(different) >= 32, done.errors
    assert "no room for" in message


def test_the_environment_takes_a_kind_that_is_there_when_the_device_is_first_used(run_script: RunScript) -> None:
    script = """
        kind = api.register_fault_kind("melt") if {early} else 0
        try:
            api.malloc(4096)
            print(api.count_for_fault(kind))
        except DriverError as error:
            print(error.message)
    """
    assert run_script(script.format(early=True), env={"OPENREG_FAULTS": "melt:1"}).output.strip() == "True"
    refused = run_script(script.format(early=False), env={"OPENREG_FAULTS": "melt:1"}).output
    assert "OPENREG_FAULTS='melt:1' is not accepted" in refused
    assert "a package that has further kinds is imported before the device is used" in refused


def test_the_environment_arms_faults(run_script: RunScript) -> None:
    done = run_script(
        """
        api.malloc(4096)
        try:
            api.malloc(4096)
        except DriverError as error:
            print(error.code.name)
        """,
        env={"OPENREG_FAULTS": "alloc:2"},
    )
    assert done.output.split() == ["orErrorMemoryAllocation"], done.errors
