# SPDX-License-Identifier: BSD-3-Clause
"""What the checks look at: the arguments, the table, and what the children reported."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from . import children, installed, table
from .children import Outcome, Step
from .probes.request import Request, import_step
from .probes.unreachable import needs_compiler

OWN_DEVICE = "openreg"
RUNTIME = "openreg_runtime"
AUTOLOAD_SWITCH = "TORCH_DEVICE_BACKEND_AUTOLOAD"

_ALLOCATOR_VARIABLE = "PYTORCH_ALLOC_CONF"
# Of other variables a message may speak without refusing them; without PATH, say, the rest could not be examined.
_REFUSED = re.compile(rf"environment variable (OPENREG_\w+|{_ALLOCATOR_VARIABLE})\b")
# PyTorch's own refusal of a setting of its allocators does not name the variable.
_REFUSED_ALLOCATOR_SETTING = re.compile(
    rf"{_ALLOCATOR_VARIABLE}: |llocator config|allocator setting|AllocatorConfig", re.IGNORECASE
)


@dataclass(frozen=True)
class Order:
    """What to examine."""

    device: str = OWN_DEVICE
    imports: tuple[str, ...] = ()  # modules that bring the device up, or for openreg further ones; none: autoload
    operator: str = ""
    patience: float = 60.0  # seconds without a sign of life after which a child is given up
    compiler: bool = False  # whether to examine what needs PyTorch's compiler

    @property
    def own(self) -> bool:
        """Whether the device is openreg rather than another backend."""
        return self.device == OWN_DEVICE


@dataclass(frozen=True)
class Examination:
    """The order and all that was gathered for it."""

    order: Order
    groups: list[table.Group]
    started: Outcome  # imports and probes
    autoloaded: Outcome  # `import torch` alone, as programs do it; empty where no backend loads with torch
    refused: dict[str, str] = field(default_factory=dict)  # settings that were refused, and what was said

    def probe(self, name: str) -> Step | None:
        """What became of a probe; None if it did not run."""
        return self.started.steps.get(Request.PROBE + name)

    @property
    def reached(self) -> bool:
        """Whether the device could be examined at all."""
        return any(name.startswith(Request.PROBE) for name in self.started.steps)

    @property
    def backend(self) -> str:
        """The name under which the dispatch key PrivateUse1 was found, if that far was come."""
        for outcome, step in ((self.started, "device"), (self.autoloaded, "device"), (self.started, "import torch")):
            value = outcome.value(step)
            if value:
                return str(value["backend"])
        return ""


def loads_backends(environment: Mapping[str, str]) -> bool:
    """Whether `import torch` loads the backends that are installed; PyTorch takes any value but 1 for a no."""
    return environment.get(AUTOLOAD_SWITCH, "1") == "1"


def examine(order: Order, groups: list[table.Group], plugins: tuple[str, ...]) -> Examination:
    """Runs the children: at once, because most of their time goes into importing torch."""
    environment = dict(os.environ)
    with ThreadPoolExecutor(1) as pool:
        alone = pool.submit(_import_torch, order, environment)
        started, refused = _start(order, groups, plugins, environment)
        return Examination(order, groups, started, alone.result(), refused)


def _import_torch(order: Order, environment: Mapping[str, str]) -> Outcome:
    """What a plain `import torch` does; empty where nothing loads with it, because others import it too."""
    loads = loads_backends(environment) and any(installed.entry_points(installed.BACKENDS))
    return children.run(Request(order.device), environment, order.patience) if loads else Outcome()


def _start(
    order: Order, groups: list[table.Group], plugins: tuple[str, ...], environment: Mapping[str, str]
) -> tuple[Outcome, dict[str, str]]:
    """Imports and exercises; again without what is refused or ends the process, so that the rest is examined too."""
    request = _request(order, groups, plugins)
    environment = dict(environment)
    if request.imports:
        environment[AUTOLOAD_SWITCH] = "0"  # one module after the other, so that each is known by its own error
    refused: dict[str, str] = {}
    crashed: dict[str, Step] = {}
    while True:
        outcome = children.run(request, environment, order.patience)
        outcome.steps.update(crashed)
        variable, text = _refused_setting(outcome, environment)
        ended = next((step for step in outcome.steps.values() if step.ended and step.name not in crashed), None)
        if variable:
            refused[variable] = text
            del environment[variable]
        elif ended is not None and ended.name in map(import_step, request.imports[1:]):
            crashed[ended.name] = ended
            request = replace(request, imports=tuple(m for m in request.imports if import_step(m) not in crashed))
        else:
            return outcome, refused


def _request(order: Order, groups: list[table.Group], plugins: tuple[str, ...]) -> Request:
    rows = [row for group in groups for row in group.rows if group.key != "module"]
    names = [
        name
        for group in groups
        if group.key == "module"
        for row in group.rows
        if not row.status.startswith("not applicable") and " " not in row.names[0]
        for name in row.names
    ]
    imports = (RUNTIME, *plugins, *order.imports) if order.own else order.imports
    if order.operator:
        return Request(order.device, imports, operator=order.operator)
    keys = [row.key for row in rows if not row.status and (order.compiler or not needs_compiler(row.key))]
    return Request(order.device, imports, tuple(keys), tuple(names))


def _refused_setting(outcome: Outcome, environment: Mapping[str, str]) -> tuple[str, str]:
    """The first environment variable that a step refused, and what it said; empty if there was none."""
    for step in outcome.steps.values():
        for text in (step.cause, step.error):
            found = _REFUSED.search(text)
            if found and found.group(1) in environment:
                return found.group(1), text
            if _REFUSED_ALLOCATOR_SETTING.search(text) and _ALLOCATOR_VARIABLE in environment:
                return _ALLOCATOR_VARIABLE, text
    return "", ""
