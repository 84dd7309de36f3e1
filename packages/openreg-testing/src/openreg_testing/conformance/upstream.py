# SPDX-License-Identifier: BSD-3-Clause
"""Runs PyTorch's own test files on the device, from a checkout of the installed version.

A test file instantiates each test for all device types, for a backend through ``PrivateUse1TestBase``. PyTorch's
variables PYTORCH_TESTING_DEVICE_ONLY_FOR and PYTORCH_TESTING_DEVICE_FOR_CUSTOM select the tests of the backend. The
manifest is the file of a backend's expected failures. ``declarations`` declares it to PyTorch's test framework.
"""

from __future__ import annotations

import fnmatch
import functools
import itertools
import os
import re
import sys
import time
import unittest
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import declarations
from .bring_up import Setup
from .card import ConformanceResult, apply_exclusion
from .pool import CompletedTask, FailedTask, WorkerPool

# The files that are run by default: their tests are instantiated for each device type.
FILES = (
    "test_view_ops.py",
    "test_shape_ops.py",
    "test_indexing.py",
    "test_tensor_creation_ops.py",
    "test_unary_ufuncs.py",
    "test_binary_ufuncs.py",
    "test_reductions.py",
    "test_type_promotion.py",
    "test_torch.py",
    "test_autograd.py",
    "test_nn.py",
    "test_modules.py",
    "test_optim.py",
    "test_ops.py",
)
# The tests of torch_openreg, PyTorch's example of a backend. They are for a device that is called openreg.
OF_OPENREG = "cpp_extensions/open_registration_extension/torch_openreg/tests"


class UpstreamError(Exception):
    """An error for test files that cannot be used; the message names the file or folder and the remedy."""


@dataclass(frozen=True)
class PrepareUpstream:
    """A picklable object whose `run()` prepares a worker process to import one of PyTorch's test files."""

    setup: Setup
    folder: Path
    file: Path

    def run(self) -> dict[str, Any]:
        """Initializes the device and returns the result of Setup.run()."""
        os.environ["PYTORCH_TESTING_DEVICE_ONLY_FOR"] = "privateuse1" if self.setup.device != "cpu" else "cpu"
        if self.setup.device != "cpu":
            os.environ["PYTORCH_TESTING_DEVICE_FOR_CUSTOM"] = "privateuse1"
        sys.path[:0] = dict.fromkeys([str(self.file.parent), str(self.folder)])
        found = self.setup.run()
        _restore_default_warnings()
        sys.argv = sys.argv[:1]  # torch.testing parses sys.argv
        declarations.apply(self.setup.manifest)
        _set_tolerances_of_this_thread()
        return found


def _set_tolerances_of_this_thread() -> None:
    """Sets PyTorch's default tolerances of device tests, which it keeps for each thread.

    PyTorch sets them in the thread that imports its test framework. This process may have been forked from another
    thread of a process that had imported it.
    """
    from torch.testing._internal.common_device_type import DeviceTypeTestBase
    from torch.testing._internal.common_utils import TestCase

    tolerances: Any = DeviceTypeTestBase._tls
    tolerances.precision, tolerances.rel_tol = TestCase._precision, TestCase._rel_tol


def _restore_default_warnings() -> None:
    """Restores the default filters of Python and PyTorch, because the tests count warnings."""
    import torch

    warnings.resetwarnings()
    warnings.simplefilter("default")
    torch.set_warn_always(False)


@dataclass(frozen=True)
class ListFile:
    """A picklable object whose `run()`, in a worker process, imports a file and lists its tests.

    Processes that are forked afterwards need not import the file again.
    """

    file: Path

    def run(self) -> list[str]:
        """Returns the names Class::method of the tests."""
        return list(_tests(self.file))


@dataclass(frozen=True)
class RunUpstreamTest:
    """A picklable object whose `run()`, in a worker process, runs one of PyTorch's tests."""

    file: Path
    name: str  # Class::method

    def run(self) -> CompletedTask:
        """Returns (outcome, reason, seconds); the outcome is "passed", "failed" or "skipped"."""
        from .operators import device_under_test

        test = _tests(self.file)[self.name]
        result = unittest.TestResult()
        start = time.monotonic()
        unittest.TestSuite([test]).run(result)
        seconds = time.monotonic() - start
        wrong = [*result.errors, *result.failures]
        if wrong:
            device_under_test.reset()
            text = [line for line in wrong[0][1].strip().splitlines() if line.strip()]
            last = next(
                (index for index in range(len(text) - 1, -1, -1) if re.match(r"\w[\w.]*(:|$)", text[index])), -1
            )
            return CompletedTask(
                ("failed", "\n".join(text[last:][:8]), seconds), bool(device_under_test.unusable_reason())
            )
        if result.unexpectedSuccesses:
            return CompletedTask(("failed", "it passes, but PyTorch's own table lists an expected failure", seconds))
        if result.skipped:
            return CompletedTask(("skipped", result.skipped[0][1], seconds))
        if result.expectedFailures:
            return CompletedTask(("skipped", "an expected failure in PyTorch's own table", seconds))
        return CompletedTask(("passed", "", seconds))


@functools.cache
def _tests(file: Path) -> dict[str, unittest.TestCase]:
    """Returns the tests of a file for the device by Class::method, or all tests if the file makes none per device."""
    import importlib.util

    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module
    spec.loader.exec_module(module)
    from .operators import device_under_test
    from .templates import made_of_templates

    vars(module).update(made_of_templates(module, device_under_test.device()))
    classes = {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, unittest.TestCase) and value.__module__ == module.__name__
    }
    made = {name: value for name, value in classes.items() if hasattr(value, "device_type")}
    loader = unittest.TestLoader()
    return {
        f"{name}::{method}": value(method)
        for name, value in (made or classes).items()
        if declarations.selects(device_under_test.manifest(), value)
        for method in loader.getTestCaseNames(value)
    }


def refuse_other_version(folder: Path, torch: str) -> None:
    """Raises UpstreamError if a folder contains no tests, or those of another release than the installed torch."""
    if not folder.is_dir():
        raise UpstreamError(f"there is no folder {folder}; give the folder test/ of a checkout of PyTorch")
    if not list(folder.glob("test_*.py")):
        raise UpstreamError(f"{folder} has no files test_*.py; give the folder test/ of a checkout of PyTorch")
    version = folder.resolve().parent / "version.txt"
    try:
        theirs = version.read_text("utf-8").strip()
    except OSError as error:
        raise UpstreamError(
            f"{folder}: the release of PyTorch is unknown, because {version} cannot be read; give the folder test/ of "
            f"a checkout of torch {_release(torch)}"
        ) from error
    if _release(theirs) != _release(torch):
        raise UpstreamError(
            f"{folder} is of PyTorch {theirs}, and torch {torch} is installed; check out the branch "
            f"release/{_release(torch)}"
        )


def _release(version: str) -> str:
    return ".".join(re.split(r"[.+a-z]", version)[:2])


def run(
    setup: Setup,
    folder: Path,
    files: Sequence[str],
    patterns: Sequence[str],
    jobs: int,
    limit: float,
    shard: tuple[int, int] = (1, 1),
) -> Iterator[tuple[ConformanceResult | None, str]]:
    """Yields the result of each test, and a problem if the manifest's entry for the test is wrong, else "".

    In a run of all default files, None and a problem follow for each entry that names none of their tests. `shard` is
    (K, N) and selects the K-th of N parts of the tests of all files. Raises UpstreamError if a file does not exist.
    """
    folder = folder.resolve()
    chosen = _chosen(folder, files, setup.device)
    manifest = setup.manifest
    every: list[str] = []
    unlisted: list[str] = []  # the files that cannot be imported, as suites
    number = itertools.count()
    for file in chosen:
        suite = file.relative_to(folder).with_suffix("").as_posix()
        listing = ListFile(file)
        with WorkerPool((PrepareUpstream(setup, folder, file), listing), jobs, limit, manifest.environment) as pool:
            listed = pool.ask(listing)
            if isinstance(listed, FailedTask):
                yield ConformanceResult(suite, f"{suite}::import", "failed", f"{listed.reason}\n{listed.output}"), ""
                unlisted.append(suite)
                continue
            names = {f"{suite}::{name}": name for name in listed.value}
            every += names
            selected = {
                full: name
                for full, name in names.items()
                if _matches(full, patterns) and next(number) % shard[1] == shard[0] - 1
            }
            tasks = []
            for full, name in selected.items():
                if skip := manifest.pytorch_test(full).skip:
                    yield ConformanceResult(suite, full, "skipped", skip, excluded=True), ""
                else:
                    tasks.append(RunUpstreamTest(file, name))
            for task, outcome in pool.run(tasks):
                assert isinstance(task, RunUpstreamTest)
                full = f"{suite}::{task.name}"
                status, reason, seconds = (
                    ("failed", outcome.describe(), 0.0) if isinstance(outcome, FailedTask) else outcome.value
                )
                yield apply_exclusion(suite, full, status, reason, manifest.pytorch_test(full), seconds=seconds)
    if not files and not patterns:
        entries = [entry for entry in manifest.pytorch if not _matches_any(entry.partition("::")[0], unlisted)]
        for problem in manifest.unknown("pytorch", entries, every):
            yield None, problem


def _chosen(folder: Path, names: Sequence[str], device: str) -> list[Path]:
    """Returns the named files and the files of the named folders; without names, the default files that exist.

    Raises UpstreamError if a name is outside of the folder or does not exist, or if no file is found.
    """
    chosen: list[Path] = []
    for name in names:
        place = (folder / name).resolve()
        if not place.is_relative_to(folder):
            raise UpstreamError(f"--file {name!r}: lies outside of {folder}; give a path inside of it")
        found = sorted(place.glob("test_*.py")) if place.is_dir() else [place]
        if not found or not found[0].is_file():
            there = ", ".join(sorted(path.name for path in folder.glob("test_*.py"))[:20])
            what = "contains no files test_*.py" if place.is_dir() else "there is no such file"
            raise UpstreamError(f"--file {name!r}: {what} in {folder}; there are {there}")
        chosen += found
    if not names:
        chosen = [folder / name for name in FILES if (folder / name).is_file()]
        chosen += sorted((folder / OF_OPENREG).glob("test_*.py")) if device == "openreg" else []
    if not chosen:
        raise UpstreamError(f"{folder} contains none of the default files; name files with --file")
    return list(dict.fromkeys(chosen))


def _matches_any(pattern: str, names: Iterable[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for name in names)


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return not patterns or any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
