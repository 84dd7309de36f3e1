# SPDX-License-Identifier: BSD-3-Clause
"""What the suites' tests are written with, and the pytest plug-in that runs them in a worker.

A test says what PyTorch expects in its docstring and names the rows of the doctor's table of hooks that promise it.
Where a backend does not claim a row that not every backend has to have, its test is skipped with the reason.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Generator, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    import torch

    from openreg_doctor.table import Row


class Device:
    """The device that is tested, for a test to use."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __str__(self) -> str:
        return self.name

    @property
    def is_cpu(self) -> bool:
        """Whether the kit tests itself."""
        return self.name == "cpu"

    @property
    def module(self) -> Any:
        """torch.<device>. Fails where there is none."""
        import torch

        module = getattr(torch, self.name, None)
        assert module is not None, f"there is no module torch.{self.name}: torch._register_device_module registers one"
        return module

    @property
    def count(self) -> int:
        """How many there are."""
        return 1 if self.is_cpu else int(self.module.device_count())

    @property
    def first(self) -> torch.device:
        """The first one."""
        import torch

        return torch.device("cpu") if self.is_cpu else torch.device(self.name, 0)

    @property
    def second(self) -> torch.device:
        """The second one. Skips where there is none."""
        import torch

        if self.count < 2:
            pytest.skip(f"needs two devices; {self.name} has {self.count}")
        return torch.device(self.name, 1)

    def tensor(self, *values: float, device: torch.device | None = None) -> torch.Tensor:
        """Numbers on the device."""
        import torch

        return torch.tensor(values or (1.0, 2.0, 3.0), dtype=torch.float32).to(device or self.first)

    def wait(self) -> None:
        """Until all work is done."""
        from .operators import subject

        subject.synchronize(self.name)


def promise(*rows: str) -> pytest.MarkDecorator:
    """Marks a test with the rows of the table of hooks, as the doctor names them, that it holds a backend to."""
    return pytest.mark.promise(*rows)


@functools.cache
def rows() -> dict[str, Row]:
    """The table of hooks by the names of its rows."""
    from openreg_doctor import table

    return {row.key: row for group in table.read() for row in group.rows}


@pytest.fixture
def device() -> Iterator[Device]:
    """The device; it is as it was when the test ends."""
    import torch

    from .operators import subject

    name = subject.device()
    torch.manual_seed(2026)
    here = Device(name)
    yield here
    try:
        if not here.is_cpu:
            torch.accelerator.set_device_index(0)
            subject.synchronize(name)  # an error of a kernel belongs to the test that launched it
    except RuntimeError as error:
        if not subject.is_unclaimed(error):
            raise


@pytest.fixture
def accelerator(device: Device) -> Device:
    """The device, for what the CPU does not have."""
    if device.is_cpu:
        pytest.skip("the CPU is no accelerator")
    return device


@pytest.fixture
def streams(accelerator: Device) -> Device:
    """The device, for tests that need streams."""
    import torch

    torch.Stream(accelerator.first)
    return accelerator


def promises_of(item: pytest.Item) -> tuple[str, ...]:
    """The rows that a test is marked with."""
    return tuple(row for mark in item.iter_markers("promise") for row in mark.args)


def pytest_configure(config: pytest.Config) -> None:
    """Makes the mark known."""
    config.addinivalue_line("markers", "promise(*rows): rows of the table of hooks that the test is about")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """A test of what the backend does not claim is skipped; one that fails says who counts on it."""
    report: Any = yield
    if report.failed:
        error = call.excinfo.value if call.excinfo is not None else None
        asked = [rows()[row] for row in promises_of(item)]
        required = any(row.required for row in asked)
        message = str(error).strip() or type(error).__name__
        if not required and isinstance(error, (RuntimeError, ValueError, AttributeError)) and _is_unclaimed(error):
            report.outcome = "skipped"
            report.longrepr = ("", 0, f"not claimed: {message.splitlines()[0][:300]}")
        else:
            told = message if isinstance(error, AssertionError) else _typed(error)
            lines = [line for line in told.splitlines() if line.strip()][:12]
            report.conformance = explained(expected(item), "\n  ".join(lines), promises_of(item))
    return report


def _typed(error: BaseException | None) -> str:
    return f"{type(error).__name__}: {error}".strip()


def _is_unclaimed(error: BaseException) -> bool:
    from .operators import subject

    if isinstance(error, AttributeError):  # a name that the device's module does not have, which may be any object
        name = subject.device()
        of_module = error.obj is not None and error.obj is subject.module(name)
        return of_module or bool(re.search(rf"module '[\w.]*{re.escape(name)}[\w.]*' has no attribute", str(error)))
    return subject.is_unclaimed(error)


def expected(item: pytest.Item) -> str:
    """What a test says that PyTorch expects."""
    return " ".join((getattr(getattr(item, "function", None), "__doc__", None) or "").split())


def explained(expects: str, what_came: str, promises: Sequence[str]) -> str:
    """A failure in words: what PyTorch expects, what came, and who counts on it."""
    text = [f"PyTorch expects: {expects}" if expects else "", what_came]
    for row in map(rows().__getitem__, promises):
        text.append(f"{row.key} is asked for by {row.reader}" + (f"; without it {row.cost}" if row.cost else ""))
    return "\n  ".join(line for line in text if line)
