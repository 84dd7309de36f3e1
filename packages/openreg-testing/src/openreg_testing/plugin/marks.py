# SPDX-License-Identifier: BSD-3-Clause
"""Checks of what a test does on the device, selected by a mark or for the whole run.

Each check has a mark and an option: ``no_fallback``, ``no_sync``, ``memory_limit`` and ``check_leaks``. The argument of
a mark takes precedence over that of the option. ``launch_budget`` is only a mark (``budgets.py``).
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Generator, Iterable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from openreg_testing.plugin.budgets import budget
from openreg_testing.plugin.options import settings
from openreg_testing.plugin.sizes import show_bytes, show_exactly, size_in_bytes
from openreg_testing.plugin.usage import CURRENT, USAGE, DeviceUsage, fail_if_device_lost, shown

if TYPE_CHECKING:
    import torch

__tracebackhide__ = True  # pytest omits frames of this module from tracebacks

_MARKS = {
    "no_fallback": "no_fallback: the test fails if an operator falls back to the CPU, on the line that called it",
    "no_sync": "no_sync(strict=False): the test fails if a library's code makes the host wait for the device, on that "
    "line; strict=True: also if the test's own file does",
    "memory_limit": 'memory_limit(size): the test fails if its tensors need more on the device ("512MiB")',
    "sound_device": "sound_device: the device is synchronized after the test, so that an error of its kernels fails "
    "this test and the next test gets a working device; --device implies it",
    "check_leaks": 'check_leaks(allowed="0"): the test fails if more than this many bytes stay on the device after it',
}
_MOST_NAMED = 5  # leaked tensors that a failure describes

# Bytes that fixtures of wider scope hold, by fixture. They outlive the test that first requested them.
_BYTES_OF_FIXTURES = pytest.StashKey[dict[Any, int]]()
_BYTES_HELD = pytest.StashKey[int]()  # bytes on the device at the last measurement
# Before the test: bytes on the device, bytes of fixtures of wider scope, and the addresses of tensors.
_HELD_BEFORE = pytest.StashKey[tuple[int, int, set[int]]]()


def pytest_configure(config: pytest.Config) -> None:
    """Registers the marks, for --markers and --strict-markers."""
    for line in _MARKS.values():
        config.addinivalue_line("markers", line)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Raises UsageError for a mark with invalid arguments."""
    if hasattr(config, "workerinput"):
        return  # xdist does not report usage errors of its workers, so pytest_runtest_setup fails the test
    for item in items:
        problem = _problem(item)
        if problem:
            raise pytest.UsageError(f"{item.nodeid}: {problem}")


def _problem(item: pytest.Item) -> str:
    """Returns the error in the marks of a test; empty if they are valid."""
    try:
        _flag(item, "no_fallback")
        _strict(item)
        _limit(item)
        _allowed(item)
        _flag(item, "sound_device")
        budget(item)
    except (TypeError, ValueError) as error:
        return str(error)
    return ""


def _flag(item: pytest.Item, name: str) -> bool:
    """Returns True if the test has this mark. Raises TypeError if the mark has arguments."""
    mark = item.get_closest_marker(name)
    if mark is not None and (mark.args or mark.kwargs):
        raise TypeError(f"the mark {name} takes no arguments, got {shown(mark)}")
    return mark is not None


def _strict(item: pytest.Item) -> bool | None:
    """Returns True if waits of the test's own file count, False if only others do, and None if no wait does."""
    mark = item.get_closest_marker("no_sync")
    if mark is None:
        return False if settings(item.config).no_sync else None
    if mark.args or set(mark.kwargs) - {"strict"} or not isinstance(mark.kwargs.get("strict", False), bool):
        raise TypeError(f"the mark is no_sync or no_sync(strict=True), got {shown(mark)}")
    return bool(mark.kwargs.get("strict", False))


def _limit(item: pytest.Item) -> int | None:
    """Returns the limit of the memory of the test's tensors in bytes, or None without a limit."""
    mark = item.get_closest_marker("memory_limit")
    if mark is None:
        return settings(item.config).memory_limit
    if len(mark.args) != 1 or mark.kwargs:
        raise TypeError(f'the mark is memory_limit("512MiB"), got {shown(mark)}')
    return _size(mark, mark.args[0])


def _allowed(item: pytest.Item) -> int | None:
    """Returns the bytes that may stay on the device after the test, or None if leaks are not checked."""
    mark = item.get_closest_marker("check_leaks")
    if mark is None:
        return 0 if settings(item.config).check_leaks else None
    if mark.args or set(mark.kwargs) - {"allowed"}:
        raise TypeError(f'the mark is check_leaks or check_leaks(allowed="1MiB"), got {shown(mark)}')
    return _size(mark, mark.kwargs.get("allowed", 0))


def _size(mark: pytest.Mark, value: object) -> int:
    try:
        return size_in_bytes(value)
    except ValueError as error:
        raise ValueError(f"the mark {shown(mark)}: {error}") from None


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Fails a test whose checks are impossible, and records the tensors on the device before its fixtures."""
    problem = _problem(item)
    if problem:
        pytest.fail(problem, pytrace=False)
    usage = item.stash.get(USAGE, None)
    if usage is None:
        return
    fail_if_device_lost(item)
    _fail_if_unmeasurable(item, usage)
    if _allowed(item) is not None:
        # Tensors that an earlier test left, for example a failed one, must not hide a leak of this test.
        held = usage.devices.settle(item.config.stash.get(_BYTES_HELD, 0)) or 0
        item.config.stash[_BYTES_HELD] = held
        addresses = {_address(tensor) for tensor in usage.devices.tensors()} if held else set()
        item.stash[_HELD_BEFORE] = (held, _bytes_of_fixtures(item), addresses)


def _fail_if_unmeasurable(item: pytest.Item, usage: DeviceUsage) -> None:
    """Fails the test if the backend cannot measure what a check needs, because that check would always pass."""
    requested = {"memory_limit": _limit(item) is not None, "check_leaks": _allowed(item) is not None}
    memory = [name for name, is_requested in requested.items() if is_requested]
    checks = {
        "fallbacks": ("no_fallback", _flag(item, "no_fallback") or settings(item.config).no_fallback),
        "host waits": ("no_sync", _strict(item) is not None),
        "memory": (" and ".join(memory), bool(memory)),
    }
    for what, (name, is_active) in checks.items():
        why = usage.devices.unknown.get(what)
        if is_active and why:
            pytest.fail(f"{name} cannot be checked on {usage.devices.type}: {why}", pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Fails the test on the line of a forbidden fallback or host wait, and at its end if it needed too much memory."""
    usage = item.stash.get(USAGE, None)
    if usage is None:
        return (yield)
    strict = _strict(item)
    refused: list[str] = []

    def refuse(place: str, of_tests: bool) -> None:
        __tracebackhide__ = True
        if strict or not of_tests:
            refused.append(place)
            pytest.fail(f"the host waits for the device at {place} (no_sync, --no-sync)")

    with ExitStack() as stack:
        if _flag(item, "no_fallback") or settings(item.config).no_fallback:
            context = usage.devices.refuse_fallbacks()
            if context is not None:
                stack.enter_context(context)
        if strict is not None and usage.waits is not None:
            stack.enter_context(usage.waits.reporting_to(refuse))
        outcome = yield
    if refused:  # the library caught the failure that refuse() raised
        pytest.fail(f"the host waited for the device at {', '.join(refused)} (no_sync, --no-sync)", pytrace=False)
    _check_peak(item, usage)
    return outcome


def _check_peak(item: pytest.Item, usage: DeviceUsage) -> None:
    """Fails the test if its peak memory exceeds its limit."""
    limit, peak = _limit(item), usage.devices.peak()
    if limit is None or peak is None:
        return
    usage.facts["memory_limit"] = limit
    if peak > limit:
        pytest.fail(
            f"tensors of the test needed {show_exactly(peak)} on {usage.devices.type}, and the limit is "
            f"{show_exactly(limit)} (memory_limit, --memory-limit)",
            pytrace=False,
        )


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: Any, request: Any) -> Generator[None, object, object]:
    """Records the bytes that a fixture of wider scope allocates, because tensors of such fixtures are no leaks."""
    item = request.config.stash.get(CURRENT, None)
    if item is None or fixturedef.scope == "function" or _HELD_BEFORE not in item.stash:
        return (yield)
    usage = item.stash[USAGE]
    before = usage.devices.allocated() or 0
    outcome = yield
    held = item.config.stash.setdefault(_BYTES_OF_FIXTURES, {})
    held[fixturedef] = (usage.devices.allocated() or 0) - before
    return outcome


def pytest_fixture_post_finalizer(fixturedef: Any, request: Any) -> None:
    """Removes the record of a fixture that was torn down."""
    request.config.stash.get(_BYTES_OF_FIXTURES, {}).pop(fixturedef, None)


def _bytes_of_fixtures(item: pytest.Item) -> int:
    """Returns the bytes that fixtures of wider scope hold on the device."""
    return sum(item.config.stash.get(_BYTES_OF_FIXTURES, {}).values())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    """Checks for leaks after the teardown of the test's fixtures."""
    outcome = yield
    usage = item.stash.get(USAGE, None)
    # The traceback of a failure keeps the test's variables alive.
    if usage is not None and not usage.failed and _HELD_BEFORE in item.stash:
        _check_leaks(item, usage)
    return outcome


def _check_leaks(item: pytest.Item, usage: DeviceUsage) -> None:
    """Fails the test if more bytes than allowed stay on the device, and describes the tensors that hold them."""
    held, of_fixtures, addresses = item.stash[_HELD_BEFORE]
    allowed = _allowed(item) or 0
    _release_objects(item)
    expected = max(held + _bytes_of_fixtures(item) - of_fixtures, 0)
    stays = usage.devices.settle(expected + allowed) or 0
    item.config.stash[_BYTES_HELD] = stays
    left = stays - expected
    if left <= 0:
        return
    usage.facts["leaked_bytes"] = left
    if left > allowed:
        names = _descriptions(tensor for tensor in usage.devices.tensors() if _address(tensor) not in addresses)
        usage.facts["leaks"] = names
        pytest.fail(
            f"{show_exactly(left)} stay on {usage.devices.type} after the test and its fixtures "
            f"(check_leaks, --check-leaks): {'; '.join(names) or 'no Python object holds them'}",
            pytrace=False,
        )


def _release_objects(item: pytest.Item) -> None:
    """Drops the objects of a finished test that pytest keeps: the values of its fixtures, the instance of its class."""
    getattr(item, "funcargs", {}).clear()
    for name in ("_instance", "_obj"):
        vars(item).pop(name, None)


def _address(tensor: torch.Tensor) -> int:
    """Returns the address of a tensor's storage, or the tensor's id if it has no storage."""
    import torch

    with torch._C.DisableTorchFunction():
        try:
            return tensor.untyped_storage().data_ptr()
        except (RuntimeError, NotImplementedError):  # a subclass without storage
            return id(tensor)


def _descriptions(tensors: Iterable[torch.Tensor]) -> list[str]:
    """Returns a line for each of the largest tensors: dtype, shape, size and the variable that holds it."""
    import torch

    with torch._C.DisableTorchFunction():
        found = sorted(tensors, key=lambda tensor: -tensor.nbytes)
        lines = []
        for tensor in found[:_MOST_NAMED]:
            shape = "x".join(map(str, tensor.shape)) or "scalar"
            dtype = str(tensor.dtype).removeprefix("torch.")
            lines.append(f"{dtype} {shape}, {show_bytes(tensor.nbytes)}, {_holder(tensor)}")
    more = len(found) - _MOST_NAMED
    return [*lines, f"and {more} more"] if more > 0 else lines


def _holder(tensor: torch.Tensor) -> str:
    """Returns the module variable or class attribute that holds a tensor, directly or in a container, as text."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some modules warn when their attributes are read
        return _variable_of(tensor)


def _variable_of(tensor: torch.Tensor) -> str:
    for name, module in list(sys.modules.items()):
        for key, value in list(getattr(module, "__dict__", {}).items()):
            if value is tensor or _contains(value, tensor):
                return f"in {name}.{key}"
            if isinstance(value, type) and value.__module__ == name:
                for attribute, inner in list(vars(value).items()):
                    if inner is tensor or _contains(inner, tensor):
                        return f"in {name}.{key}.{attribute}"
    return "held by no module's variable"


def _contains(value: object, tensor: torch.Tensor) -> bool:
    """Returns True if a list, tuple, set or dictionary directly contains the tensor."""
    if type(value) is dict:
        return any(item is tensor for item in value.values())
    return type(value) in (list, tuple, set) and any(item is tensor for item in value)  # type: ignore[attr-defined]
