# SPDX-License-Identifier: BSD-3-Clause
"""The main program of a child process: runs imports and probes as steps, and reports before and after each step.

A *probe* is a step that examines the device. Most probes are *exercises*: calls from Python that fail if the backend
lacks a row of the hook table (hooks.toml). A row is a hook, name or registration that PyTorch uses.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import os
import sys
from collections.abc import Callable, Mapping
from functools import partial
from io import RawIOBase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .request import UNNAMED, CannotCheck, Request, import_step, registration_probe
from .unreachable import needs_compiler

if TYPE_CHECKING:  # the first step imports torch, and nothing may import it before
    from .device import ProbedDevice


def main(report: str, request: str, succeeded: str) -> None:
    """Runs a request, writes the report and ends the process.

    ``report`` is a path; ``request`` and ``succeeded`` are JSON. ``succeeded`` contains the probes that earlier
    children ran, each with True if it returned a value.
    """
    data = json.loads(request)
    for name in ("imports", "row_keys", "attributes"):
        data[name] = tuple(data[name])
    with Path(report).open("ab", buffering=0) as stream:  # once, because the backend's code may rename or delete it
        runner = _StepRunner(stream, Request(**data), json.loads(succeeded))
        runner.run()
        runner.finish()
        os._exit(0)  # skips the finalization of torch and Python, which takes most of a second


class _StepRunner:
    """Runs the steps of a request, and writes a line to the report before and after each one."""

    def __init__(self, report: RawIOBase, request: Request, succeeded: Mapping[str, bool]) -> None:
        self._report = report
        self._request = request
        self._succeeded = dict(succeeded)

    def run(self) -> None:
        """Runs the imports, and then the probes, if the request includes them.

        The probes require torch and a device, but not that the other imports succeed.
        """
        request = self._request
        if not self._step("import torch", self._import_torch):
            return
        if request.call_entry_points:
            self._step("entry points", _call_entry_points)
        for module in request.imports:
            self._step(import_step(module), partial(_import, module))
        if not self._step("device", lambda: _describe_backend(request.device)) or not request.probe:
            return
        from .device import ProbedDevice

        device = ProbedDevice.find(request.device)
        if device is not None:
            self._probe_all(device)

    def finish(self) -> None:
        """Writes the last line, because the backend's code may also end the process with status 0."""
        self._write(json.dumps({"finished": True}))

    def _probe_all(self, device: ProbedDevice) -> None:
        from . import attributes, autocast, interfaces, operators, registrations, trial

        request = self._request
        self._probe("attributes", lambda: attributes.look_up(device, request.attributes))
        if request.row_keys or request.operator:
            self._probe("initialize", device.initialize)
        if request.row_keys:
            self._probe("properties", device.describe)
            self._probe("operators", operators.count)
        exercises = {**interfaces.EXERCISES, **registrations.EXERCISES}
        if any(map(needs_compiler, request.row_keys)):
            from . import compiler

            exercises.update(compiler.EXERCISES)
        for row in request.row_keys:
            if row in exercises:
                self._exercise(row, device, exercises[row])
        if request.operator:
            self._probe("operator", lambda: operators.explain(request.operator))
            self._probe("autocast", lambda: autocast.observe(device, operators.resolve(request.operator)))
            self._probe("trial", lambda: trial.run(device, operators.resolve(request.operator)))

    def _exercise(self, row: str, device: ProbedDevice, exercise: Callable[[ProbedDevice], object]) -> None:
        """Runs the exercise of a row, unless its interface is not registered. ``row`` is the key of the row.

        Without a registration PyTorch would end the process for some calls.
        """
        from . import interfaces

        call = interfaces.REGISTRATION_CALLS.get(row.partition(".")[0])
        registered = call is None or self._probe(registration_probe(row), lambda: _succeeds(call, device))

        def run() -> bool:
            if not registered:
                raise CannotCheck("the interface is not registered")
            return _succeeds(exercise, device)

        self._probe(row, run)

    def _probe(self, name: str, function: Callable[[], Any]) -> bool:
        """Runs a step, unless an earlier child did. Returns True if the step succeeded."""
        name = Request.PROBE_PREFIX + name
        if name not in self._succeeded:
            self._succeeded[name] = self._step(name, function)
        return self._succeeded[name]

    def _step(self, name: str, function: Callable[[], Any]) -> bool:
        """Runs a step and reports its result: "value", "unseen" (it could not check), or "error" with "cause".

        Returns True if the step returned a value.
        """
        self._write(json.dumps({"begin": name}))
        done = False
        try:
            line = json.dumps({"name": name, "value": function()}, default=str)  # may raise for objects of the backend
            done = True
        except CannotCheck as reason:
            line = json.dumps({"name": name, "unseen": str(reason)})
        except BaseException as error:  # also SystemExit, because a plug-in that ends the process is faulty
            root = _root_cause(error)
            line = json.dumps({"name": name, "error": _line(error), "cause": "" if root is error else _line(root)})
        self._write(line)
        return done

    def _write(self, line: str) -> None:
        self._report.write(f"{line}\n".encode())  # one write, because forked processes may write too

    @staticmethod
    def _import_torch() -> dict[str, Any]:
        import torch

        return {
            "version": str(torch.__version__),
            "file": str(torch.__file__),
            "backend": torch._C._get_privateuse1_backend_name(),
            "present": _is_present(),
            "accelerator": _accelerator(),
        }


def _accelerator() -> str:
    """Returns the type of the current accelerator; empty if there is none, or if the backend makes the query fail.

    The query initializes no device. Also empty before torch 2.6, which has no torch.accelerator.
    """
    import torch

    try:
        return str(torch.accelerator.current_accelerator() or "")
    except (AttributeError, RuntimeError):
        return ""


def _is_present() -> bool:
    """Returns True if PrivateUse1 has a name, a module, or a kernel that is not PyTorch's own.

    A backend that has registered hooks alone is not found, because PyTorch has no function that reports them.
    """
    import torch

    from .operators import PYTORCH, count

    named = torch._C._get_privateuse1_backend_name() != UNNAMED
    return named or hasattr(torch, UNNAMED) or bool(set(count()["libraries"]) - {PYTORCH})


def _succeeds(exercise: Callable[[ProbedDevice], object], device: ProbedDevice) -> bool:
    """Runs the exercise and returns True, whatever the exercise returns."""
    exercise(device)
    return True


def _import(module: str) -> str:
    """Imports a module and returns the path of its file; empty if it has none."""
    return str(getattr(importlib.import_module(module), "__file__", ""))


def _describe_backend(device: str) -> dict[str, Any]:
    """Returns the name of PrivateUse1, and whether torch.<device> and any backend exist."""
    import torch

    return {
        "backend": torch._C._get_privateuse1_backend_name(),
        "module": hasattr(torch, device),
        "present": _is_present(),
    }


def _call_entry_points() -> list[dict[str, str]]:
    """Calls the entry points of torch.backends in PyTorch's order and returns a result for each.

    A result has ``point``, the entry point, ``backend``, its new name for the dispatch key, and ``error``, its error.
    The last two are empty if there is none.
    """
    import torch

    calls: list[dict[str, str]] = []
    for point in importlib.metadata.entry_points(group="torch.backends"):
        before = torch._C._get_privateuse1_backend_name()
        error = ""
        try:
            point.load()()
        except (Exception, SystemExit) as raised:
            error = _line(_root_cause(raised))
        after = torch._C._get_privateuse1_backend_name()
        backend = after if after != before else ""
        calls.append({"point": f"{point.name} = {point.value}", "backend": backend, "error": error})
    return calls


def _root_cause(error: BaseException) -> BaseException:
    """Returns the exception at the root of a chain of causes and contexts."""
    seen = {id(error)}  # a backend may make an exception the cause of itself
    while True:
        before = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
        if before is None or id(before) in seen:
            return error
        error = before
        seen.add(id(error))


def _line(error: BaseException) -> str:
    """Returns the type and the message of an exception in one line, without a C++ stack."""
    try:
        text = str(error)
    except Exception as another:
        text = f"its message cannot be read: {type(another).__name__}"
    lines = [line.strip() for line in text.split("Exception raised from")[0].splitlines() if line.strip()]
    return f"{type(error).__name__}: {' '.join(lines)[:1500]}" if lines else type(error).__name__


sys.dont_write_bytecode = True  # an examination does not change the installation
