# SPDX-License-Identifier: BSD-3-Clause
"""What the checks look at: the arguments, the table, and what the children reported."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from . import children, installed, table
from .backend import Backend
from .children import Outcome, Step
from .probes.request import UNNAMED, Request, import_step
from .probes.unreachable import needs_compiler

AUTOLOAD_SWITCH = "TORCH_DEVICE_BACKEND_AUTOLOAD"

_ALLOCATOR_VARIABLE = "PYTORCH_ALLOC_CONF"
# PyTorch's own refusal of a setting of its allocators does not name the variable.
_REFUSED_ALLOCATOR_SETTING = re.compile(
    rf"{_ALLOCATOR_VARIABLE}: |llocator config|allocator setting|AllocatorConfig", re.IGNORECASE
)


@dataclass(frozen=True)
class Order:
    """What to examine."""

    device: str = UNNAMED
    imports: tuple[str, ...] = ()  # modules that bring the device up, or further ones where packages declare that
    operator: str = ""
    patience: float = 60.0  # seconds without a sign of life after which a child is given up
    compiler: bool = False  # whether to examine what needs PyTorch's compiler
    sought: bool = False  # whether nobody named a device, and none was found


@dataclass(frozen=True)
class Examination:
    """The order and all that was gathered for it."""

    order: Order
    groups: list[table.Group]
    started: Outcome  # imports and probes
    autoloaded: Outcome  # `import torch` alone, as programs do it; empty where no backend loads with torch
    refused: dict[str, str] = field(default_factory=dict)  # settings that were refused, and what was said
    backend: Backend | None = None  # what the device's packages declare, where any is installed
    undeclared: dict[str, str] = field(default_factory=dict)  # packages whose declaration cannot be used, and why

    def probe(self, name: str) -> Step | None:
        """What became of a probe; None if it did not run."""
        return self.started.steps.get(Request.PROBE + name)

    @property
    def reached(self) -> bool:
        """Whether the device could be examined at all."""
        return any(name.startswith(Request.PROBE) for name in self.started.steps)

    @property
    def present(self) -> bool:
        """Whether anything answers for the dispatch key PrivateUse1, under whatever name."""
        values = (self.started.value("device"), self.autoloaded.value("device"), self.started.value("import torch"))
        return any(value and value["present"] for value in values)

    @property
    def name(self) -> str:
        """The name under which the dispatch key PrivateUse1 was found, if that far was come."""
        for outcome, step in ((self.started, "device"), (self.autoloaded, "device"), (self.started, "import torch")):
            value = outcome.value(step)
            if value:
                return str(value["backend"])
        return ""


def loads_backends(environment: Mapping[str, str]) -> bool:
    """Whether `import torch` loads the backends that are installed; PyTorch takes any value but 1 for a no."""
    return environment.get(AUTOLOAD_SWITCH, "1") == "1"


def find_device(imports: tuple[str, ...], patience: float) -> str:
    """The device that these modules, or else `import torch` alone, bring up; empty where they bring none."""
    value = children.run(Request(UNNAMED, imports, probe=False), _environment(imports), patience).value("device")
    return str(value["backend"]) if value and value["present"] else ""


def examine(order: Order, groups: list[table.Group], backend: Backend | None = None) -> Examination:
    """Runs the children: at once, because most of their time goes into importing torch."""
    with ThreadPoolExecutor(1) as pool:
        alone = pool.submit(_import_torch, order)
        started, refused = _start(order, groups, backend)
        return Examination(order, groups, started, alone.result(), refused, backend)


def _environment(imports: tuple[str, ...]) -> dict[str, str]:
    """With modules to import, one after the other, so that each is known by its own error."""
    return {**os.environ, AUTOLOAD_SWITCH: "0"} if imports else dict(os.environ)


def _import_torch(order: Order) -> Outcome:
    """What a plain `import torch` does; empty where nothing loads with it, because others import it too."""
    loads = loads_backends(os.environ) and any(installed.entry_points(installed.BACKENDS))
    request = Request(order.device, probe=False)
    return children.run(request, dict(os.environ), order.patience) if loads else Outcome()


def _start(order: Order, groups: list[table.Group], backend: Backend | None) -> tuple[Outcome, dict[str, str]]:
    """Imports and exercises; again without what is refused or ends the process, so that the rest is examined too."""
    request = _request(order, groups, backend)
    environment = _environment(request.imports)
    refused: dict[str, str] = {}
    crashed: dict[str, Step] = {}
    while True:
        outcome = children.run(request, environment, order.patience)
        outcome.steps.update(crashed)
        variable, text = _refused_setting(outcome, environment, backend.prefix if backend is not None else "")
        ended = next((step for step in outcome.steps.values() if step.ended and step.name not in crashed), None)
        if variable:
            refused[variable] = text
            del environment[variable]
        elif ended is not None and ended.name in map(import_step, request.imports[1:]):
            crashed[ended.name] = ended
            request = replace(request, imports=tuple(m for m in request.imports if import_step(m) not in crashed))
        else:
            return outcome, refused


def _request(order: Order, groups: list[table.Group], backend: Backend | None) -> Request:
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
    return Request(order.device, imports, tuple(keys), tuple(names), probe=not order.sought)


def _refused_setting(outcome: Outcome, environment: Mapping[str, str], prefix: str) -> tuple[str, str]:
    """The first environment variable that a step refused, and what it said; empty if there was none."""
    # Of other variables a message may speak without refusing them; without PATH, say, the rest could not be examined.
    names = rf"{re.escape(prefix)}\w+|{_ALLOCATOR_VARIABLE}" if prefix else _ALLOCATOR_VARIABLE
    refusal = re.compile(rf"environment variable ({names})\b")
    for step in outcome.steps.values():
        for text in (step.cause, step.error):
            found = refusal.search(text)
            if found and found.group(1) in environment:
                return found.group(1), text
            if _REFUSED_ALLOCATOR_SETTING.search(text) and _ALLOCATOR_VARIABLE in environment:
                return _ALLOCATOR_VARIABLE, text
    return "", ""
