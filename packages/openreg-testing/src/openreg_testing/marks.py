# SPDX-License-Identifier: BSD-3-Clause
"""What a test must keep on the device, by a mark or for the whole run: the test that does not fails.

Each check has a mark and an option: ``no_fallback``, ``no_sync``, ``memory_limit`` and ``check_leaks``. A mark's
argument counts more than the option's. ``launch_budget`` is a mark alone (``budgets.py``).
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Generator, Iterable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from openreg_testing.budgets import budget
from openreg_testing.options import settings
from openreg_testing.sizes import show_bytes, show_exactly, size_in_bytes
from openreg_testing.usage import CURRENT, RECORD, Record, refuse_lost_device, shown

if TYPE_CHECKING:
    import torch

__tracebackhide__ = True  # pytest's name for frames that no report shows

_MARKS = {
    "no_fallback": "no_fallback: an operator that falls back to the CPU ends the test, on the line that called it",
    "no_sync": "no_sync(strict=False): a wait of the host for the device, made by a library's code, ends the test "
    "there; strict=True: also one that the test's own file makes",
    "memory_limit": 'memory_limit(size): the test fails if tensors needed more on the device ("512MiB")',
    "sound_device": "sound_device: the test is waited for, so that an error of its kernels is its own, and the next "
    "test gets a device without one; with --device each test is",
    "check_leaks": 'check_leaks(allowed="0"): the test fails if more than this many bytes stay on the device after it',
}
_MOST_NAMED = 5

# Bytes that fixtures of wider scope hold, by fixture: they outlive the test that asked for them first.
_OF_FIXTURES = pytest.StashKey[dict[Any, int]]()
_SETTLED = pytest.StashKey[int]()  # bytes on the device when it was looked at last
_HELD_BEFORE = pytest.StashKey[tuple[int, int, set[int]]]()


def pytest_configure(config: pytest.Config) -> None:
    """Names the marks, for --markers and --strict-markers."""
    for line in _MARKS.values():
        config.addinivalue_line("markers", line)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Refuses marks that say nothing a test can be held to."""
    if hasattr(config, "workerinput"):
        return  # xdist takes no refusal from its workers: pytest_runtest_setup fails the test there
    for item in items:
        problem = _problem(item)
        if problem:
            raise pytest.UsageError(f"{item.nodeid}: {problem}")


def _problem(item: pytest.Item) -> str:
    """What is wrong with the marks of a test; empty if nothing is."""
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
    mark = item.get_closest_marker(name)
    if mark is not None and (mark.args or mark.kwargs):
        raise TypeError(f"the mark {name} takes no arguments, got {shown(mark)}")
    return mark is not None


def _strict(item: pytest.Item) -> bool | None:
    """Whether waits of the test's own file count; None where none does."""
    mark = item.get_closest_marker("no_sync")
    if mark is None:
        return False if settings(item.config).no_sync else None
    if mark.args or set(mark.kwargs) - {"strict"} or not isinstance(mark.kwargs.get("strict", False), bool):
        raise TypeError(f"the mark is no_sync or no_sync(strict=True), got {shown(mark)}")
    return bool(mark.kwargs.get("strict", False))


def _limit(item: pytest.Item) -> int | None:
    mark = item.get_closest_marker("memory_limit")
    if mark is None:
        return settings(item.config).memory_limit
    if len(mark.args) != 1 or mark.kwargs:
        raise TypeError(f'the mark is memory_limit("512MiB"), got {shown(mark)}')
    return _size(mark, mark.args[0])


def _allowed(item: pytest.Item) -> int | None:
    """Bytes that may stay on the device after the test; None where nobody looks."""
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
    """Refuses what cannot be checked, and notes what is on the device before the test and its fixtures."""
    problem = _problem(item)
    if problem:
        pytest.fail(problem, pytrace=False)
    record = item.stash.get(RECORD, None)
    if record is None:
        return
    refuse_lost_device(item)
    _refuse_blind_checks(item, record)
    if _allowed(item) is not None:
        # What an earlier test left, a failed one for instance, must not hide what this one leaves.
        held = record.backend.settle(item.config.stash.get(_SETTLED, 0)) or 0
        item.config.stash[_SETTLED] = held
        addresses = {_address(tensor) for tensor in record.backend.tensors()} if held else set()
        item.stash[_HELD_BEFORE] = (held, _of_fixtures(item), addresses)


def _refuse_blind_checks(item: pytest.Item, record: Record) -> None:
    """A check that cannot see anything would pass whatever the test does."""
    wanted = {
        "fallbacks": ("no_fallback", _flag(item, "no_fallback") or settings(item.config).no_fallback),
        "host waits": ("no_sync", _strict(item) is not None),
        "memory": ("memory_limit and check_leaks", _limit(item) is not None or _allowed(item) is not None),
    }
    for what, (name, asked) in wanted.items():
        why = record.backend.unknown.get(what)
        if asked and why:
            pytest.fail(f"{name} cannot be checked on {record.backend.type}: {why}", pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Puts the checks around the test."""
    record = item.stash.get(RECORD, None)
    if record is None:
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
            context = record.backend.refuse_fallbacks()
            if context is not None:
                stack.enter_context(context)
        if strict is not None and record.waits is not None:
            stack.enter_context(record.waits.telling(refuse))
        outcome = yield
    if refused:  # and the library went on with whatever it does after an error
        pytest.fail(f"the host waited for the device at {', '.join(refused)} (no_sync, --no-sync)", pytrace=False)
    _check_peak(item, record)
    return outcome


def _check_peak(item: pytest.Item, record: Record) -> None:
    limit, peak = _limit(item), record.backend.peak()
    if limit is None or peak is None:
        return
    record.facts["memory_limit"] = limit
    if peak > limit:
        pytest.fail(
            f"tensors of the test needed {show_exactly(peak)} on {record.backend.type}, and the limit is "
            f"{show_exactly(limit)} (memory_limit, --memory-limit)",
            pytrace=False,
        )


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: Any, request: Any) -> Generator[None, object, object]:
    """Notes what fixtures of wider scope put on the device: what outlives a test on purpose is no leak."""
    item = request.config.stash.get(CURRENT, None)
    if item is None or fixturedef.scope == "function" or _HELD_BEFORE not in item.stash:
        return (yield)
    record = item.stash[RECORD]
    before = record.backend.allocated() or 0
    outcome = yield
    held = item.config.stash.setdefault(_OF_FIXTURES, {})
    held[fixturedef] = (record.backend.allocated() or 0) - before
    return outcome


def pytest_fixture_post_finalizer(fixturedef: Any, request: Any) -> None:
    """Forgets them when they are torn down."""
    request.config.stash.get(_OF_FIXTURES, {}).pop(fixturedef, None)


def _of_fixtures(item: pytest.Item) -> int:
    return sum(item.config.stash.get(_OF_FIXTURES, {}).values())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    """Looks for what stays on the device when all fixtures of the test are gone."""
    outcome = yield
    record = item.stash.get(RECORD, None)
    # A failure's traceback holds the test's variables.
    if record is not None and not record.failed and _HELD_BEFORE in item.stash:
        _check_leaks(item, record)
    return outcome


def _check_leaks(item: pytest.Item, record: Record) -> None:
    held, of_fixtures, addresses = item.stash[_HELD_BEFORE]
    allowed = _allowed(item) or 0
    _let_go(item)
    expected = max(held + _of_fixtures(item) - of_fixtures, 0)
    stays = record.backend.settle(expected + allowed) or 0
    item.config.stash[_SETTLED] = stays
    left = stays - expected
    if left <= 0:
        return
    record.facts["leaked_bytes"] = left
    if left > allowed:
        names = _described(tensor for tensor in record.backend.tensors() if _address(tensor) not in addresses)
        record.facts["leaks"] = names
        pytest.fail(
            f"{show_exactly(left)} stay on {record.backend.type} after the test and its fixtures "
            f"(check_leaks, --check-leaks): {'; '.join(names) or 'no Python object holds them'}",
            pytrace=False,
        )


def _let_go(item: pytest.Item) -> None:
    """Drops what pytest keeps of a test that is done: the values of its fixtures, and the instance of its class."""
    getattr(item, "funcargs", {}).clear()
    for name in ("_instance", "_obj"):
        vars(item).pop(name, None)


def _address(tensor: torch.Tensor) -> int:
    import torch

    with torch._C.DisableTorchFunction():
        try:
            return tensor.untyped_storage().data_ptr()
        except (RuntimeError, NotImplementedError):  # a subclass without storage
            return id(tensor)


def _described(tensors: Iterable[torch.Tensor]) -> list[str]:
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
    """The variable of a module, or the attribute of a class, that keeps a tensor, directly or in a container."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of modules that object to being read
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
    if type(value) is dict:
        return any(item is tensor for item in value.values())
    return type(value) in (list, tuple, set) and any(item is tensor for item in value)  # type: ignore[attr-defined]
