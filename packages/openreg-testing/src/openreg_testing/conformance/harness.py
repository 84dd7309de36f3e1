# SPDX-License-Identifier: BSD-3-Clause
"""The fixtures and the decorator of the suites' tests, and the pytest plug-in for the processes that run them.

The docstring of a test states what PyTorch expects. The decorator `covers` names the rows of the hook table that the
test covers. That table is the file hooks.toml of openreg-doctor, with a row for each hook, name or registration of a
backend that PyTorch uses. The key of a row is "group.name", such as "guard.getStream". If a backend has not implemented
an optional row, its test is skipped as "not claimed", with the reason.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Generator, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    import torch

    from openreg_doctor.table import HookRow


SIZE = 1 << 18  # elements of a tensor whose kernels take a while


class DeviceUnderTest:
    """The device that the kit tests, with what tests need of it."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __str__(self) -> str:
        return self.name

    @property
    def is_cpu(self) -> bool:
        """True if the device is the CPU, with which the kit tests itself."""
        return self.name == "cpu"

    @property
    def module(self) -> Any:
        """The device module torch.<device>. Raises AssertionError if none is registered."""
        import torch

        module = getattr(torch, self.name, None)
        assert module is not None, (
            f"there is no module torch.{self.name}; register one with torch._register_device_module()"
        )
        return module

    @property
    def count(self) -> int:
        """The number of devices."""
        return 1 if self.is_cpu else int(self.module.device_count())

    @property
    def first(self) -> torch.device:
        """The first device."""
        import torch

        return torch.device("cpu") if self.is_cpu else torch.device(self.name, 0)

    @property
    def second(self) -> torch.device:
        """The second device. Skips the test if there is only one."""
        import torch

        if self.count < 2:
            pytest.skip(f"needs two devices; {self.name} has {self.count}")
        return torch.device(self.name, 1)

    def tensor(self, *values: float, device: torch.device | None = None) -> torch.Tensor:
        """Returns a float32 tensor of the values, or of 1, 2 and 3, on a device: by default, the first one."""
        import torch

        return torch.tensor(values or (1.0, 2.0, 3.0), dtype=torch.float32).to(device or self.first)

    def wait(self) -> None:
        """Synchronizes with the current device."""
        from .operators import device_under_test

        device_under_test.synchronize()


def much_work(x: torch.Tensor) -> torch.Tensor:
    """Launches several dependent kernels that do not change a tensor of ones."""
    for _ in range(30):
        x = x * 3 - 2
    return x


def covers(*row_keys: str) -> pytest.MarkDecorator:
    """Returns a mark with what a test covers: keys of openreg-doctor's hooks.toml, such as "guard.getStream"."""
    return pytest.mark.covers(*row_keys)


@functools.cache
def hook_rows() -> dict[str, HookRow]:
    """Returns the rows of the hook table by key."""
    from openreg_doctor import table

    return {row.key: row for group in table.read() for row in group.rows}


@pytest.fixture
def device() -> Iterator[DeviceUnderTest]:
    """The device under test, which may be the CPU; tests of features that the CPU lacks use `accelerator` instead.

    After the test, the first device is current again and has no pending tasks.
    """
    import torch

    from .operators import device_under_test

    name = device_under_test.device()
    torch.manual_seed(2026)
    here = DeviceUnderTest(name)
    yield here
    try:
        if not here.is_cpu:
            torch.accelerator.set_device_index(0)
            device_under_test.synchronize()  # reports an asynchronous error in the test that launched the kernel
    except RuntimeError as error:
        if not device_under_test.is_unimplemented(error):
            raise


@pytest.fixture
def accelerator(device: DeviceUnderTest) -> DeviceUnderTest:
    """The device under test, as `device`, for tests of features that the CPU lacks. On the CPU the test is skipped."""
    if device.is_cpu:
        pytest.skip("the CPU is not an accelerator")
    return device


@pytest.fixture
def streams(accelerator: DeviceUnderTest) -> DeviceUnderTest:
    """The device under test, as `accelerator`, for tests that need streams.

    Creating a stream raises if the backend has none. Then the test is skipped, or fails if it covers a required row.
    """
    import torch

    torch.Stream(accelerator.first)
    return accelerator


def covered_rows(item: pytest.Item) -> tuple[str, ...]:
    """Returns the keys of the rows of the hook table that a test covers."""
    return tuple(key for mark in item.iter_markers("covers") for key in mark.args)


def pytest_configure(config: pytest.Config) -> None:
    """Registers the mark `covers`."""
    config.addinivalue_line("markers", "covers(*row_keys): rows of the hook table that the test covers")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """Turns a failure because of an unimplemented interface into a skip, and explains every other failure.

    A test that covers a required row is not skipped.
    """
    report: Any = yield
    if report.failed:
        error = call.excinfo.value if call.excinfo is not None else None
        required = any(hook_rows()[key].required for key in covered_rows(item))
        message = str(error).strip() or type(error).__name__
        if not required and isinstance(error, (RuntimeError, ValueError, AttributeError)) and _is_unimplemented(error):
            report.outcome = "skipped"
            report.longrepr = ("", 0, f"not claimed: {message.splitlines()[0][:300]}")
        else:
            text = message if isinstance(error, AssertionError) else _with_type(error)
            lines = [line for line in text.splitlines() if line.strip()][:12]
            report.conformance = explain_failure(expectation(item), "\n  ".join(lines), covered_rows(item))
    return report


def _with_type(error: BaseException | None) -> str:
    """Returns the type and the message of an exception."""
    return f"{type(error).__name__}: {error}".strip()


def _is_unimplemented(error: BaseException) -> bool:
    """Returns True if an error means that the backend has not implemented an interface."""
    from .operators import device_under_test

    if isinstance(error, AttributeError):  # a name that the device module lacks; the module may be any object
        name = device_under_test.device()
        of_module = error.obj is not None and error.obj is device_under_test.module()
        return of_module or bool(re.search(rf"module '[\w.]*{re.escape(name)}[\w.]*' has no attribute", str(error)))
    return device_under_test.is_unimplemented(error)


def expectation(item: pytest.Item) -> str:
    """Returns what PyTorch expects: the docstring of a test, in one line."""
    return " ".join((getattr(getattr(item, "function", None), "__doc__", None) or "").split())


def explain_failure(expects: str, observed: str, row_keys: Sequence[str]) -> str:
    """Returns the reason of a failure: what PyTorch expects, what was observed, and the users of each covered row."""
    text = [f"PyTorch expects: {expects}" if expects else "", observed]
    for row in map(hook_rows().__getitem__, row_keys):
        text.append(f"{row.key} is used by {row.reader}" + (f"; without it {row.cost}" if row.cost else ""))
    return "\n  ".join(line for line in text if line)
