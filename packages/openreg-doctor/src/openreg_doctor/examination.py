# SPDX-License-Identifier: BSD-3-Clause
"""The input of the checks: the order (what to examine), the hook table, and the results of child processes.

A child process runs *steps*: imports, and then *probes*, which examine the device. The hook table (hooks.toml) lists
the hooks, names and registrations that PyTorch uses, as rows in groups.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from . import children, installed, table
from .backend import DeclaredBackend
from .children import ChildResults, StepResult
from .probes.request import UNNAMED, Request, import_step
from .probes.unreachable import needs_compiler

AUTOLOAD_SWITCH = "TORCH_DEVICE_BACKEND_AUTOLOAD"

_ALLOCATOR_VARIABLE = "PYTORCH_ALLOC_CONF"
# Matches PyTorch's errors about a rejected value of that variable, which do not always name it.
_REFUSED_ALLOCATOR_SETTING = re.compile(
    rf"{_ALLOCATOR_VARIABLE}: |llocator config|allocator setting|AllocatorConfig", re.IGNORECASE
)


@dataclass(frozen=True)
class Order:
    """The user's order: what to examine, and how long to wait for a child process."""

    device: str = UNNAMED
    imports: tuple[str, ...] = ()  # modules that register the device; imported after those that packages declare
    operator: str = ""  # the operator to explain; empty: examine everything
    patience: float = 60.0  # seconds without a report after which a child process is ended
    compiler: bool = False  # True: also examine what needs PyTorch's compiler
    no_device_found: bool = False  # True: no device was named or declared, and none was found


@dataclass(frozen=True)
class Examination:
    """An order and all results that were collected for it."""

    order: Order
    groups: list[table.HookGroup]  # the hook table
    results: ChildResults  # results of the imports and probes
    autoloaded: ChildResults  # result of `import torch` alone, as in programs; empty if no backend loads with torch
    refused: dict[str, str] = field(default_factory=dict)  # environment variables whose value was rejected -> the error
    backend: DeclaredBackend | None = None  # the doctor.toml of the examined device; None if there is none
    undeclared: dict[str, str] = field(default_factory=dict)  # packages whose doctor.toml is invalid -> the reason

    def probe(self, name: str) -> StepResult | None:
        """Returns the result of a probe; None if it did not run."""
        return self.results.steps.get(Request.PROBE_PREFIX + name)

    @property
    def any_probe_ran(self) -> bool:
        """Returns True if any probe ran: the child processes got as far as the device."""
        return any(name.startswith(Request.PROBE_PREFIX) for name in self.results.steps)

    @property
    def present(self) -> bool:
        """Returns True if anything is registered for the dispatch key PrivateUse1, under any name."""
        values = (self.results.value("device"), self.autoloaded.value("device"), self.results.value("import torch"))
        return any(value and value["present"] for value in values)

    @property
    def name(self) -> str:
        """Returns the name of the dispatch key PrivateUse1; empty if no child process got far enough to report it."""
        for results, step in ((self.results, "device"), (self.autoloaded, "device"), (self.results, "import torch")):
            value = results.value(step)
            if value:
                return str(value["backend"])
        return ""


def loads_backends(environment: Mapping[str, str]) -> bool:
    """Returns True if `import torch` loads installed backends: PyTorch does so if the variable is unset or 1."""
    return environment.get(AUTOLOAD_SWITCH, "1") == "1"


def find_device(imports: tuple[str, ...], patience: float) -> str:
    """Returns the name of the device that these modules register, or without modules `import torch` alone.

    Returns an empty text if they register none. ``patience`` is in seconds.
    """
    value = children.run(Request(UNNAMED, imports, probe=False), _environment(imports), patience).value("device")
    return str(value["backend"]) if value and value["present"] else ""


def examine(order: Order, groups: list[table.HookGroup], backend: DeclaredBackend | None = None) -> Examination:
    """Runs the child processes and returns their results.

    Two children run in parallel, because importing torch takes most of their time.
    """
    with ThreadPoolExecutor(1) as pool:
        autoloaded = pool.submit(_import_torch, order)
        results, refused = _run_steps(order, groups, backend)
        return Examination(order, groups, results, autoloaded.result(), refused, backend)


def _environment(imports: tuple[str, ...]) -> dict[str, str]:
    """Returns the environment of a child process.

    With modules to import it switches autoload off, so that each module is imported separately and reports its error.
    """
    return {**os.environ, AUTOLOAD_SWITCH: "0"} if imports else dict(os.environ)


def _import_torch(order: Order) -> ChildResults:
    """Returns the result of a plain `import torch`.

    It is empty if no backend loads with torch, because then the child of ``_run_steps()`` runs the same import.
    """
    loads = loads_backends(os.environ) and any(installed.entry_points(installed.BACKENDS))
    request = Request(order.device, probe=False)
    return children.run(request, dict(os.environ), order.patience) if loads else ChildResults()


def _run_steps(
    order: Order, groups: list[table.HookGroup], backend: DeclaredBackend | None
) -> tuple[ChildResults, dict[str, str]]:
    """Runs the imports and probes. Returns their results, and the rejected environment variables with the errors.

    Repeats them without a rejected variable, and without a module whose import ends the process, so that the rest is
    examined too. The first module is never left out, because it registers the device.
    """
    request = _request(order, groups, backend)
    environment = _environment(request.imports)
    refused: dict[str, str] = {}
    crashed: dict[str, StepResult] = {}
    while True:
        results = children.run(request, environment, order.patience)
        results.steps.update(crashed)
        variable, text = _refused_setting(results, environment, backend.prefix if backend is not None else "")
        ended = next((step for step in results.steps.values() if step.ended and step.name not in crashed), None)
        if variable:
            refused[variable] = text
            del environment[variable]
        elif ended is not None and ended.name in map(import_step, request.imports[1:]):
            crashed[ended.name] = ended
            request = replace(request, imports=tuple(m for m in request.imports if import_step(m) not in crashed))
        else:
            return results, refused


def _request(order: Order, groups: list[table.HookGroup], backend: DeclaredBackend | None) -> Request:
    """Returns the steps that a child process has to run for an order."""
    rows = [row for group in groups for row in group.rows if group.key != "module"]
    names = [
        name
        for group in groups
        if group.key == "module"
        for row in group.rows
        if not row.status.startswith("not applicable") and " " not in row.names[0]
        for name in row.names
    ]
    imports = (*backend.imports, *order.imports) if backend is not None else order.imports
    if order.operator:
        return Request(order.device, imports, operator=order.operator)
    keys = [row.key for row in rows if not row.status and (order.compiler or not needs_compiler(row.key))]
    return Request(order.device, imports, tuple(keys), tuple(names), probe=not order.no_device_found)


def _refused_setting(results: ChildResults, environment: Mapping[str, str], prefix: str) -> tuple[str, str]:
    """Returns the first environment variable that a step rejected, and the step's error; both are empty if none.

    ``prefix`` is the beginning of the names of the backend's variables.
    """
    # A message may name other variables without rejecting them. Without PATH, for example, the rest could not run.
    names = rf"{re.escape(prefix)}\w+|{_ALLOCATOR_VARIABLE}" if prefix else _ALLOCATOR_VARIABLE
    refusal = re.compile(rf"environment variable ({names})\b")
    for step in results.steps.values():
        for text in (step.cause, step.error):
            found = refusal.search(text)
            if found and found.group(1) in environment:
                return found.group(1), text
            if _REFUSED_ALLOCATOR_SETTING.search(text) and _ALLOCATOR_VARIABLE in environment:
                return _ALLOCATOR_VARIABLE, text
    return "", ""
