# SPDX-License-Identifier: BSD-3-Clause
"""The main program of a child: imports, then exercises, each a step that is reported before and after."""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import os
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .request import UNNAMED, Request, Unseen, import_step
from .unreachable import needs_compiler

if TYPE_CHECKING:  # importing torch is the first step, not what comes before it
    from .device import Device


def main(report: str, request: str, known: str) -> None:
    """Runs the request and ends the process; ``known`` names the probes that earlier children ran, and whether well."""
    data = json.loads(request)
    for name in ("imports", "rows", "attributes"):
        data[name] = tuple(data[name])
    worker = _Worker(Path(report), Request(**data), json.loads(known))
    worker.run()
    worker.finish()
    os._exit(0)  # taking torch apart takes most of a second


class _Worker:
    def __init__(self, report: Path, request: Request, known: Mapping[str, bool]) -> None:
        self._report = report
        self._request = request
        self._passed = dict(known)

    def run(self) -> None:
        request = self._request
        if not self._step("import torch", self._import_torch):
            return
        if request.call_entry_points:
            self._step("entry points", _call_entry_points)
        for module in request.imports:
            self._step(import_step(module), partial(_import, module))
        if not self._step("device", lambda: _describe_backend(request.device)) or not request.probe:
            return
        from .device import Device

        device = Device.find(request.device)
        if device is not None:
            self._probe_all(device)

    def finish(self) -> None:
        """Tells that nothing comes any more: the backend's code may end the process without a fault, too."""
        self._write(json.dumps({"finished": True}))

    def _probe_all(self, device: Device) -> None:
        from . import attributes, autocast, interfaces, operators, registrations, trial

        request = self._request
        self._probe("attributes", lambda: attributes.look_up(device, request.attributes))
        if request.rows or request.operator:
            self._probe("initialise", device.initialise)
        if request.rows:
            self._probe("properties", device.describe)
            self._probe("operators", operators.count)
        exercises = {**interfaces.EXERCISES, **registrations.EXERCISES}
        if any(map(needs_compiler, request.rows)):
            from . import compiler

            exercises.update(compiler.EXERCISES)
        for row in request.rows:
            if row in exercises:
                self._exercise(row, device, exercises[row])
        if request.operator:
            self._probe("operator", lambda: operators.explain(request.operator))
            self._probe("autocast", lambda: autocast.observe(device, operators.meant(request.operator)))
            self._probe("trial", lambda: trial.run(device, operators.meant(request.operator)))

    def _exercise(self, row: str, device: Device, exercise: Callable[[Device], object]) -> None:
        """Nothing of an interface is exercised that is not registered: PyTorch would end the process for some."""
        from . import interfaces

        group = row.partition(".")[0]
        anchor = interfaces.ANCHORS.get(group)
        registered = anchor is None or self._probe(f"{group}.", lambda: _answers(anchor, device))

        def run() -> bool:
            if not registered:
                raise Unseen("the interface is not registered")
            return _answers(exercise, device)

        self._probe(row, run)

    def _probe(self, name: str, function: Callable[[], Any]) -> bool:
        """A step that runs once in all children."""
        name = Request.PROBE + name
        if name not in self._passed:
            self._passed[name] = self._step(name, function)
        return self._passed[name]

    def _step(self, name: str, function: Callable[[], Any]) -> bool:
        self._write(json.dumps({"begin": name}))
        done = False
        try:
            line = json.dumps({"name": name, "value": function()}, default=str)  # of the backend's objects: may raise
            done = True
        except Unseen as reason:
            line = json.dumps({"name": name, "unseen": str(reason)})
        except BaseException as error:  # a plug-in may end the process by SystemExit, which is a fault too
            root = _root_cause(error)
            line = json.dumps({"name": name, "error": _line(error), "cause": "" if root is error else _line(root)})
        self._write(line)
        return done

    def _write(self, line: str) -> None:
        with self._report.open("ab", buffering=0) as stream:
            stream.write(f"{line}\n".encode())  # at once: other processes may write, too

    @staticmethod
    def _import_torch() -> dict[str, Any]:
        import torch

        return {
            "version": str(torch.__version__),
            "file": str(torch.__file__),
            "backend": torch._C._get_privateuse1_backend_name(),
            "present": _is_present(),
        }


def _is_present() -> bool:
    """Whether anything answers for PrivateUse1: a name, a module, or a kernel that is not PyTorch's own.

    Nothing tells whether hooks are registered for a backend that has none of these.
    """
    import torch

    from .operators import PYTORCH, count

    named = torch._C._get_privateuse1_backend_name() != UNNAMED
    return named or hasattr(torch, UNNAMED) or bool(set(count()["libraries"]) - {PYTORCH})


def _answers(exercise: Callable[[Device], object], device: Device) -> bool:
    """Calls it; what it gives does not matter."""
    exercise(device)
    return True


def _import(module: str) -> str:
    """Imports a module and says from where; names the module, not what it imports, if it does not exist."""
    return str(getattr(importlib.import_module(module), "__file__", ""))


def _describe_backend(wanted: str) -> dict[str, Any]:
    import torch

    return {
        "backend": torch._C._get_privateuse1_backend_name(),
        "module": hasattr(torch, wanted),
        "present": _is_present(),
    }


def _call_entry_points() -> list[dict[str, str]]:
    """Calls those of torch.backends, in PyTorch's order.

    Each as ``point``, with ``backend``, the name that it gave the dispatch key, and ``error``, what it raised.
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
    """The exception that the others were raised from."""
    seen = {id(error)}  # a backend may give an exception as its own cause
    while True:
        before = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
        if before is None or id(before) in seen:
            return error
        error = before
        seen.add(id(error))


def _line(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception as another:
        text = f"its text cannot be had: {type(another).__name__}"
    lines = [line.strip() for line in text.split("Exception raised from")[0].splitlines() if line.strip()]
    return f"{type(error).__name__}: {' '.join(lines)[:1500]}" if lines else type(error).__name__


sys.dont_write_bytecode = True  # examining an installation leaves it as it is
