# SPDX-License-Identifier: BSD-3-Clause
"""The options of the plug-in, and the steps that must precede the import of conftest.py files and torch."""

from __future__ import annotations

import argparse
import copy
import functools
import importlib
import os
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from openreg_testing.plugin import devices, libraries
from openreg_testing.plugin.sizes import size_in_bytes

if TYPE_CHECKING:
    from openreg_testing.plugin.cuda_asked import CudaUses

SETTINGS = pytest.StashKey["PluginSettings"]()
CUDA_USES: pytest.StashKey[CudaUses] = pytest.StashKey()  # in runs on a device that is neither cuda nor named cuda
ENVIRONMENT = pytest.StashKey[libraries.Environment]()

# Each option is --openreg-NAME, and also --NAME unless another plug-in or a conftest.py has that option.
_OPTIONS: dict[str, dict[str, Any]] = {
    "device": {
        "metavar": "NAME",
        "help": "run on this device (openreg, openreg:1, npu, cpu): sets the variables from which libraries choose it; "
        f"default: ${libraries.DEVICE_VARIABLE}",
    },
    "cuda-as": {
        "metavar": "NAME",
        "help": "run code that names cuda on this accelerator (openreg), for suites that name cuda; "
        f"default: ${libraries.CUDA_VARIABLE}",
    },
    "default-device": {
        "action": "store_true",
        "help": "make the device of --device PyTorch's default device in each test",
    },
    "no-fallback": {
        "action": "store_true",
        "help": "a test fails if an operator falls back to the CPU",
    },
    "no-sync": {
        "action": "store_true",
        "help": "a test fails if a library's code makes the host wait for the device",
    },
    "memory-limit": {
        "metavar": "SIZE",
        "help": "a test fails if its tensors need more on the device (512MiB)",
    },
    "check-leaks": {
        "action": "store_true",
        "help": "a test fails if it leaves tensors on the device; the report names them",
    },
    "sanitize": {
        "action": "store_true",
        "help": "a test fails if work of its streams races, or a wait is missing (needs openreg-sanitizer)",
    },
    "report": {
        "metavar": "FILE",
        "help": "write what each test did on the device to this HTML file",
    },
}


@dataclass(frozen=True)
class PluginSettings:
    """The settings of the plug-in, from the command line and the environment."""

    device: str  # as given; empty without one
    option: str  # the source of the device: --device, or the environment variable
    cuda_as: str
    cuda_option: str  # --cuda-as, or the environment variable
    default_device: bool
    report: Path | None
    no_fallback: bool
    no_sync: bool
    memory_limit: int | None
    check_leaks: bool
    sanitize: bool

    @property
    def target(self) -> str:
        """The name in PyTorch's C++ code of the device that runs the tests; empty without one."""
        return self.device or self.cuda_as

    @property
    def name(self) -> str:
        """The name that Python code sees for the device that runs the tests."""
        if not self.cuda_as:
            return self.device
        _, separator, index = self.target.partition(":")
        return f"cuda{separator}{index}"

    @property
    def on_cpu(self) -> bool:
        """True if the tests run on the CPU, which is not watched."""
        return self.target.partition(":")[0] == "cpu"

    @property
    def needing_device(self) -> list[str]:
        """The options of the command line that need a device."""
        given = {
            "--no-fallback": self.no_fallback,
            "--no-sync": self.no_sync,
            "--memory-limit": self.memory_limit is not None,
            "--check-leaks": self.check_leaks,
            "--sanitize": self.sanitize,
            "--default-device": self.default_device,
            "--openreg-report": self.report is not None,
        }
        return [name for name, present in given.items() if present]


# An option has an effect only if the backend measures this quantity; see WatchedDevices.unknown.
_MEASUREMENT_OF = {
    "--no-fallback": "fallbacks",
    "--no-sync": "host waits",
    "--memory-limit": "memory",
    "--check-leaks": "memory",
}


def settings(config: pytest.Config) -> PluginSettings:
    """Returns the settings of this run."""
    return config.stash[SETTINGS]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the options under their long names; ``_ShortNames`` later adds the short names that are free."""
    group = parser.getgroup(
        "openreg", "devices (openreg-testing); --openreg-NAME if the suite has another option --NAME"
    )
    for name, attributes in _OPTIONS.items():
        group.addoption(f"--openreg-{name}", dest=_destination(name), **attributes)


def _destination(name: str) -> str:
    return f"openreg_{name.replace('-', '_')}"


class _ShortNames:
    """The short names, such as ``--device`` for ``--openreg-device``, that no other plug-in and no conftest.py has.

    pytest raises an error for two options of one name, and this package must not break a suite that has ``--device``.
    """

    def __init__(self, parser: pytest.Parser) -> None:
        self._known: dict[str, Any] = parser.optparser._option_string_actions
        self._ours = {f"--{name}": self._known[f"--openreg-{name}"] for name in _OPTIONS if name != "report"}

    def claim(self) -> None:
        """Adds the short names that are free."""
        for name, action in self._ours.items():
            if self._known.setdefault(name, action) is action and name not in action.option_strings:
                action.option_strings.append(name)

    def release(self) -> None:
        """Removes the short names, so that a conftest.py can add an option of that name."""
        for name, action in self._ours.items():
            if self._known.get(name) is action:
                del self._known[name]
                action.option_strings.remove(name)


class _ShortNamesOfPytest8:
    """Same as ``_ShortNames``, for pytest 8, which builds a new parser from its option groups for each parse."""

    def __init__(self, parser: pytest.Parser) -> None:
        self._parser: Any = parser
        self._group: Any = parser.getgroup("openreg")
        self._long = list(self._group.options)

    def claim(self) -> None:
        groups = (self._parser._anonymous, *self._parser._groups)
        taken = {name for group in groups for option in group.options for name in option.names()}
        for name, attributes in _OPTIONS.items():
            if name != "report" and f"--{name}" not in taken:
                self._group.addoption(f"--{name}", dest=_destination(name), **attributes)

    def release(self) -> None:
        self._group.options[:] = self._long


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests(
    early_config: pytest.Config, parser: pytest.Parser, args: list[str]
) -> Generator[None, object, object]:
    """Sets the environment, lets pytest import the conftest.py files, and checks that the device exists."""
    names = _ShortNames(parser) if hasattr(parser, "optparser") else _ShortNamesOfPytest8(parser)
    undo: list[Any] = []
    early_config.add_cleanup(lambda: _undo(undo))
    inherited = tuple(os.environ.get(name, "") for name in (libraries.DEVICE_VARIABLE, libraries.CUDA_VARIABLE))

    def parsed(*, conftests_known: bool) -> PluginSettings:
        names.claim()
        options = parser.parse_known_args(args, namespace=copy.copy(early_config.option))
        try:
            return _read(options, inherited)
        except pytest.UsageError as refusal:
            if conftests_known or getattr(options, _destination("device")) is None:
                raise
            setattr(options, _destination("device"), None)  # --device may be an option of a conftest.py
            try:
                return _read(options, inherited)
            except pytest.UsageError:
                raise refusal from None

    given = parsed(conftests_known=False)
    _apply(given, early_config, undo)
    names.release()
    try:
        outcome = yield
    except Exception:
        _require(given)  # a missing device is the likely reason why a conftest.py fails, so report it instead
        raise
    if (again := parsed(conftests_known=True)) != given:  # an option of a conftest.py was taken for one of this plug-in
        _undo(undo)
        _apply(again, early_config, undo)
    _require(again)
    return outcome


def _apply(given: PluginSettings, config: pytest.Config, undo: list[Any]) -> None:
    """Stores the settings and applies them to the process. Appends functions to ``undo`` that revert the changes."""
    config.stash[SETTINGS] = given
    if given.device:
        environment = libraries.Environment(given.name, given.target)
        undo.append(environment.restore)
        config.stash[ENVIRONMENT] = environment
        environment.apply(libraries.read(config.rootpath / "pyproject.toml"))
        if not given.cuda_as and given.device.partition(":")[0] not in ("cpu", "cuda"):
            from openreg_testing.plugin import cuda_asked

            config.stash[CUDA_USES] = cuda_asked.begin_recording(config)
            undo.append(config.stash[CUDA_USES].end)
    if given.cuda_as:
        from openreg_testing.plugin import cuda_names

        devices.require(given.cuda_as, given.cuda_option)
        undo.append(cuda_names.activate(given.cuda_as, given.cuda_option))
        undo.append(_inherit(libraries.CUDA_VARIABLE, given.cuda_as))


def _inherit(name: str, value: str) -> Callable[[], None]:
    """Sets an environment variable and returns a function that restores it."""
    restore = functools.partial(libraries.restore_variable, name, os.environ.get(name))
    os.environ[name] = value
    return restore


def _require(given: PluginSettings) -> None:
    """Raises UsageError if the device does not exist, or cannot measure what an option checks."""
    if given.device:
        devices.require(given.target, given.option)
    if given.sanitize:
        _require_sanitizer(given)
    if given.needing_device:
        unknown = devices.WatchedDevices(given.target.partition(":")[0]).unknown if not given.on_cpu else {}
        for name in given.needing_device:
            why = unknown.get(_MEASUREMENT_OF.get(name, ""))
            if why:
                raise pytest.UsageError(f"{name} cannot be checked on {given.target}: {why}; leave it out")


def _require_sanitizer(given: PluginSettings) -> None:
    """Raises UsageError if --sanitize cannot work on the device of the run."""
    if given.target.partition(":")[0] != "openreg":
        source = given.option if given.device else given.cuda_option
        raise pytest.UsageError(
            f"--sanitize observes openreg devices, and {source} is {given.target}; set {source} to openreg"
        )
    try:
        importlib.import_module("openreg_sanitizer")
    except ModuleNotFoundError as error:
        if error.name != "openreg_sanitizer":
            raise
        raise pytest.UsageError(
            "--sanitize needs the package openreg-sanitizer, which is not installed. Install it with: "
            "pip install openreg-sanitizer"
        ) from None


def _undo(steps: list[Any]) -> None:
    while steps:
        steps.pop()()


def _read(options: argparse.Namespace, inherited: tuple[str, ...]) -> PluginSettings:
    """Returns the settings. ``inherited`` are the values of --device and --cuda-as in the environment.

    Raises UsageError if they are invalid.
    """
    values = {name: getattr(options, _destination(name)) for name in _OPTIONS}
    device, option, cuda_as, cuda_option = values["device"], "--device", values["cuda-as"], "--cuda-as"
    if device is None and cuda_as is None:
        device, cuda_as = inherited
        option, cuda_option = f"${libraries.DEVICE_VARIABLE}", f"${libraries.CUDA_VARIABLE}"
    for name in ("device", "cuda-as", "report"):
        if values[name] == "":
            option = "--openreg-report" if name == "report" else f"--{name}"
            raise pytest.UsageError(f"{option}: expected a value, got an empty one")
    given = PluginSettings(
        device or "",
        option,
        cuda_as or "",
        cuda_option,
        values["default-device"],
        Path(os.path.abspath(values["report"])) if values["report"] else None,  # noqa: PTH100
        values["no-fallback"],
        values["no-sync"],
        _memory_limit(values["memory-limit"]),
        values["check-leaks"],
        values["sanitize"],
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


def _check(given: PluginSettings) -> None:
    """Raises UsageError if settings are invalid or contradict each other."""
    kind, other = given.device.partition(":")[0], given.cuda_as.partition(":")[0]
    cuda_as = f"{given.cuda_option} {given.cuda_as}"
    if other in ("cpu", "cuda"):
        raise pytest.UsageError(f"{cuda_as}: expected an accelerator other than cuda, such as openreg")
    if ":" in given.cuda_as:
        raise pytest.UsageError(f"{cuda_as}: expected a type without an index, such as --cuda-as {other}")
    if kind and other and kind != other:
        raise pytest.UsageError(
            f"{given.option} {given.device} and {cuda_as} exclude each other: a run has one device; "
            "name it in both options, or leave one out"
        )
    if given.needing_device and not given.target:
        raise pytest.UsageError(f"{given.needing_device[0]} needs a device: add --device NAME, as in --device openreg")
    if given.on_cpu and (counted := [name for name in given.needing_device if name != "--default-device"]):
        raise pytest.UsageError(
            f"{counted[0]} needs an accelerator, and {given.option} is {given.device}; leave out {counted[0]}"
        )


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Reports the device, the variables that were set, and those that keep the user's value."""
    given = settings(config)
    if not given.target:
        return []
    lines = [f"device: {given.target}" + (", which tests see as cuda (--cuda-as)" if given.cuda_as else "")]
    environment = config.stash.get(ENVIRONMENT, None)
    if environment is not None:
        names = {name: value for name, value in environment.set_here.items() if "_SPEC" not in name}
        if config.get_verbosity() > 0:
            lines.append("device: set " + " ".join(f"{name}={value}" for name, value in names.items()))
        for library, variables in environment.kept.items():
            lines.append(f"device: {library} keeps {variables}, which the environment sets")
    return lines
