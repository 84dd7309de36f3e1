# SPDX-License-Identifier: BSD-3-Clause
"""The options of the plug-in, and what has to happen before conftest.py files and torch are imported."""

from __future__ import annotations

import os
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from openreg_testing import devices, libraries
from openreg_testing.sizes import size_in_bytes

SETTINGS = pytest.StashKey["Settings"]()
_UNDO = pytest.StashKey[list[Any]]()


@dataclass(frozen=True)
class Settings:
    """What the command line asks for."""

    device: str  # as given; empty if none was
    option: str  # what gave it: --device, or the environment variable
    cuda_as: str
    default_device: bool
    report: Path | None
    no_fallback: bool
    no_sync: bool
    memory_limit: int | None
    check_leaks: bool
    environment: libraries.Environment | None = None

    @property
    def target(self) -> str:
        """The device that the tests run on, as PyTorch's C++ code calls it; empty if none was asked for."""
        return self.device or self.cuda_as

    @property
    def name(self) -> str:
        """The name that Python code sees of it."""
        if not self.cuda_as:
            return self.device
        _, separator, index = self.target.partition(":")
        return f"cuda{separator}{index}"

    @property
    def wanted(self) -> list[str]:
        """The options given that need a device to look at."""
        given = {
            "--no-fallback": self.no_fallback,
            "--no-sync": self.no_sync,
            "--memory-limit": self.memory_limit is not None,
            "--check-leaks": self.check_leaks,
            "--default-device": self.default_device,
            "--openreg-report": self.report is not None,
        }
        return [name for name, present in given.items() if present]


def settings(config: pytest.Config) -> Settings:
    """The settings of this run."""
    return config.stash[SETTINGS]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the options."""
    group = parser.getgroup("openreg", "devices (openreg-testing)")
    group.addoption(
        "--device",
        metavar="NAME",
        help="run on this device (openreg, openreg:1, npu, cpu): sets what libraries read to choose theirs. "
        f"Default: ${libraries.DEVICE_VARIABLE}",
    )
    group.addoption(
        "--cuda-as",
        metavar="NAME",
        help="code that says cuda runs on this device (openreg), for suites that name cuda",
    )
    group.addoption(
        "--default-device",
        action="store_true",
        help="make the device of --device PyTorch's default device in each test",
    )
    group.addoption("--no-fallback", action="store_true", help="an operator that falls back to the CPU ends its test")
    group.addoption("--no-sync", action="store_true", help="a wait for the device in a library's code ends its test")
    group.addoption(
        "--memory-limit", metavar="SIZE", help="a test whose tensors need more on the device fails (512MiB)"
    )
    group.addoption(
        "--check-leaks", action="store_true", help="a test that leaves tensors on the device fails, with their names"
    )
    group.addoption("--openreg-report", metavar="FILE", help="write what each test did on the device to an HTML file")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Generator[None, object, object]:
    """Sets what is read at import, lets conftest.py files be imported, and checks that the device is there."""
    given = _read(early_config)
    undo: list[Any] = early_config.stash.setdefault(_UNDO, [])
    early_config.stash[SETTINGS] = given
    early_config.add_cleanup(lambda: _undo(undo))
    if given.environment is not None:
        undo.append(given.environment.restore)
        given.environment.apply(libraries.read(early_config.rootpath / "pyproject.toml"))
    if given.cuda_as:
        from openreg_testing import cuda_names

        devices.require(given.cuda_as, "--cuda-as")
        undo.append(cuda_names.activate(given.cuda_as))
    try:
        outcome = yield
    except Exception:
        _require(given)  # the reason why a conftest.py fails, if the device is not there
        raise
    _require(given)
    return outcome


def _require(given: Settings) -> None:
    if given.device:
        devices.require(given.target, given.option)


def _undo(steps: list[Any]) -> None:
    while steps:
        steps.pop()()


def _read(config: pytest.Config) -> Settings:
    options = config.known_args_namespace
    device, option = options.device, "--device"
    if device is None and not options.cuda_as:
        device, option = os.environ.get(libraries.DEVICE_VARIABLE, ""), f"${libraries.DEVICE_VARIABLE}"
    elif device == "":
        raise pytest.UsageError("--device: expected the name of a device, as openreg or openreg:1; got nothing")
    device, cuda_as = device or "", options.cuda_as or ""
    given = Settings(
        device,
        option,
        cuda_as,
        options.default_device,
        Path(os.path.abspath(options.openreg_report)) if options.openreg_report else None,  # noqa: PTH100
        options.no_fallback,
        options.no_sync,
        _memory_limit(options.memory_limit),
        options.check_leaks,
        _environment(device, cuda_as),
    )
    _check(given)
    return given


def _memory_limit(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return size_in_bytes(text)
    except ValueError as error:
        raise pytest.UsageError(f"--memory-limit {text}: {error}") from None


def _environment(device: str, cuda_as: str) -> libraries.Environment | None:
    if not device:
        return None
    # One device has one name: where cuda is the name that tests see, it is the one that libraries are told.
    _, separator, index = device.partition(":")
    return libraries.Environment(f"cuda{separator}{index}" if cuda_as else device)


def _check(given: Settings) -> None:
    kind, other = given.device.partition(":")[0], given.cuda_as.partition(":")[0]
    if other in ("cpu", "cuda"):
        raise pytest.UsageError(f"--cuda-as {given.cuda_as}: expected an accelerator other than cuda, as openreg")
    if ":" in given.cuda_as:
        raise pytest.UsageError(f"--cuda-as {given.cuda_as}: expected a type without an index, as --cuda-as {other}")
    if kind and other and kind != other:
        raise pytest.UsageError(
            f"{given.option} {given.device} and --cuda-as {given.cuda_as} exclude each other: code has one device, so "
            "name the same in both, or leave one out"
        )
    if given.wanted and not given.target:
        raise pytest.UsageError(f"{given.wanted[0]} needs a device: add --device NAME, as in --device openreg")
    if kind == "cpu" and (counted := [name for name in given.wanted if name != "--default-device"]):
        raise pytest.UsageError(f"{counted[0]} looks at an accelerator, and --device is {given.device}")


def pytest_configure(config: pytest.Config) -> None:
    """Gives settings to a run whose early hook was not called, as pytest's own tests of plug-ins make them."""
    if SETTINGS not in config.stash:
        config.stash[SETTINGS] = _read(config)


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Says what was set, and what was not because the user had set it."""
    given = settings(config)
    if not given.target:
        return []
    lines = [f"device: {given.target}" + (", which tests see as cuda (--cuda-as)" if given.cuda_as else "")]
    if given.environment is not None:
        names = {name: value for name, value in given.environment.set_here.items() if "_SPEC" not in name}
        if config.get_verbosity() > 0:
            lines.append("device: set " + " ".join(f"{name}={value}" for name, value in names.items()))
        for library, variables in given.environment.kept.items():
            lines.append(f"device: {library} keeps {variables}, which the environment sets")
    return lines
