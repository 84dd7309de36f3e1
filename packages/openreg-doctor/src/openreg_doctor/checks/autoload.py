# SPDX-License-Identifier: BSD-3-Clause
"""Checks what `import torch` loads: the entry points of the group torch.backends."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from importlib.util import find_spec

from .. import children, installed
from ..backend import DeclaredBackend
from ..examination import AUTOLOAD_SWITCH, Examination, loads_backends
from ..finding import Finding
from ..probes.request import Request

TITLE = "Loading with torch"
POSITION = 40

_NO_BACKEND = "no backend for PrivateUse1 is loaded: no installed package registers one"


def check(examination: Examination) -> Iterator[Finding]:
    """Yields findings about entry points that cannot work or that conflict, and about a plain `import torch`."""
    points = list(installed.entry_points(installed.BACKENDS))
    for distribution, point in points:
        yield from _unusable(distribution, point)
    yield from _conflicts(examination, points)
    yield from _import_result(examination, points)


def _unusable(distribution: str, point: EntryPoint) -> Iterator[Finding]:
    """Yields a finding if the module of an entry point does not exist."""
    module = point.value.partition(":")[0].strip()
    try:
        exists = find_spec(module.partition(".")[0]) is not None
    except (ImportError, ValueError):
        exists = False
    if not exists:
        yield Finding(
            f"autoload.entry-point.{point.name}",
            "problem",
            f"{distribution} announces {point.name} = {point.value} in torch.backends, but there is no module {module}",
            "`import torch` fails in every program",
            f"pip install --force-reinstall {distribution}, or pip uninstall {distribution}",
        )


def _conflicts(examination: Examination, points: list[tuple[str, EntryPoint]]) -> Iterator[Finding]:
    """Yields findings about entry points of one name, and about those of other packages than the examined backend."""
    named: dict[str, list[str]] = {}
    for distribution, point in points:
        named.setdefault(point.name, []).append(distribution)
    for name, owners in named.items():
        if len(owners) > 1:
            yield Finding(
                f"autoload.entry-point.{name}",
                "problem",
                f"{' and '.join(owners)} both announce {name} in torch.backends",
                "PyTorch calls both, but a process can have only one backend for PrivateUse1",
                f"keep one: pip uninstall {' or '.join(owners)}",
            )
    ours = examination.backend.distributions if examination.backend is not None else []
    others = [f"{point.name} ({owner})" for owner, point in points if owner not in ours]
    if ours and others:
        yield Finding(
            "autoload.others",
            "note",
            f"import torch also loads: {', '.join(others)}",
            f"if one of them is a PrivateUse1 backend, the process cannot have {examination.order.device}",
            f"set {AUTOLOAD_SWITCH}=0 to load none of them",
        )


def _import_result(examination: Examination, points: list[tuple[str, EntryPoint]]) -> Iterator[Finding]:
    """Yields a finding about what a plain `import torch` does: it fails, loads the device, or loads something else."""
    results, device = examination.autoloaded, examination.order.device
    switched_off = not loads_backends(os.environ)
    failure = results.failure("import torch", children.START_STEP)
    first_step = examination.results.value("import torch")  # without autoload if the examination has modules to import
    if failure is not None and first_step and points and not switched_off:
        yield _failed(examination, failure)
        return
    found = results.value("import torch") or first_step
    if not found:
        return
    yield from _accelerator(found["accelerator"], found["backend"])
    backend = found["backend"]
    backend_packages = examination.backend.distributions if examination.backend is not None else []
    loaders = [owner for owner, _ in points if owner in backend_packages]
    if backend == device and found["present"]:
        yield Finding("autoload.device", "ok", f"import torch loads {device}")
    elif backend not in ("privateuseone", device):
        yield _name_taken(examination, backend)
    elif switched_off and points:
        yield Finding(
            "autoload.device",
            "note",
            f"{AUTOLOAD_SWITCH}={os.environ[AUTOLOAD_SWITCH]}: import torch loads no backend",
            "programs have to import the backend's package themselves",
            f"unset {AUTOLOAD_SWITCH}",
        )
    elif loaders and examination.backend is not None:
        yield _not_loaded(loaders[0], examination.backend, device)
    elif examination.order.no_device_found and not examination.present:
        yield Finding(
            "autoload.device",
            "problem",
            _NO_BACKEND,
            "there is no device to examine, and none to use",
            "install a backend, or give the module that registers one: --import MODULE and --device NAME",
        )


def _not_loaded(loader: str, backend: DeclaredBackend, device: str) -> Finding:
    """Returns a finding about a package that should load the device with torch; a setting of it may say not to."""
    settings = [
        item.name for package in backend.packages if package.distribution == loader for item in package.settings
    ]
    chosen = [name for name in settings if os.environ.get(name)]
    what = "".join(f"{name}={os.environ[name]}: " for name in chosen)
    fix = f"unset {', '.join(chosen)}, if that is not intended; otherwise " if chosen else ""
    return Finding(
        "autoload.device",
        "warning" if chosen else "problem",
        f"{what}{loader} is installed, but import torch does not load {device}",
        f"programs that import torch alone find no {device}",
        f"{fix}see the packages above, and the warnings of python -c 'import torch'; "
        f"pip install --force-reinstall {loader} {backend.device_package.distribution}",
    )


def _accelerator(accelerator: str, backend: str) -> Iterator[Finding]:
    """Yields a finding about the device that torch.accelerator uses after a plain `import torch`, if any, and why."""
    if accelerator == backend:
        why = "a backend for PrivateUse1 goes before PyTorch's own devices"
    else:
        why = "no backend for PrivateUse1 is registered, so PyTorch takes its own device that was compiled in"
    if accelerator:
        yield Finding("autoload.accelerator", "ok", f"torch.accelerator is {accelerator}: {why}")


def _failed(examination: Examination, failure: children.StepResult) -> Finding:
    """Returns a finding about a backend that loads with torch and makes `import torch` fail."""
    calls = _call_entry_points(examination)
    culprit = _culprit(examination, calls)
    if culprit:
        point, backend = culprit
        return _other_backend(examination, point, backend, f"import torch fails: {failure.root_cause}")
    raised = {call["point"]: call["error"] for call in calls if call["error"]}
    errors = [f"{point}{_of_its_owner(point)}: {error}" for point, error in raised.items()]
    uninstall = sorted({f"pip uninstall {owner}" for point in raised for owner in _owners(point)})
    return Finding(
        "autoload.import-torch",
        "problem",
        f"import torch fails because of a backend that loads with it: {'; '.join(errors) or failure.root_cause}",
        "every program that imports torch fails, also those that do not use the device",
        f"{', or '.join(['fix what the error names', *uninstall])}; until then, {AUTOLOAD_SWITCH}=0 keeps import "
        "torch working",
    )


def _name_taken(examination: Examination, backend: str) -> Finding:
    """Returns a finding about another backend, which has given PrivateUse1 the name ``backend``."""
    culprit = _culprit(examination, _call_entry_points(examination))
    return _other_backend(
        examination,
        culprit[0] if culprit else "a module that Python imports at start-up",
        backend,
        "the name is taken",
    )


def _call_entry_points(examination: Examination) -> list[dict[str, str]]:
    """Returns the result of each entry point's call, as the child process reports it.

    The list is empty if a call ended the process.
    """
    request = Request(examination.order.device, call_entry_points=True)
    results = children.run(request, {**os.environ, AUTOLOAD_SWITCH: "0"}, examination.order.patience)
    calls: list[dict[str, str]] = results.value("entry points") or []
    return calls


def _culprit(examination: Examination, calls: list[dict[str, str]]) -> tuple[str, str] | None:
    """Returns the entry point that gives PrivateUse1 another name than the device's, and the name; None if none."""
    names = [(call["point"], call["backend"]) for call in calls if call["backend"]]
    return next((found for found in names if found[1] != examination.order.device), None)


def _owners(point: str) -> list[str]:
    """Returns the distributions that announce an entry point, which is given as "name = value"."""
    points = installed.entry_points(installed.BACKENDS)
    return [owner for owner, item in points if point == f"{item.name} = {item.value}"]


def _of_its_owner(point: str) -> str:
    """Returns the distribution that announces an entry point, as a part of a sentence; empty if it is unknown."""
    owners = _owners(point)
    return f", of {owners[0]}" if owners else ""


def _other_backend(examination: Examination, point: str, backend: str, state: str) -> Finding:
    """Returns a finding about another backend than the examined one, which names PrivateUse1 first.

    ``point`` is its entry point, and ``state`` the effect on the examined backend.
    """
    device = examination.order.device
    owners = _owners(point)
    # A backend that programs import explicitly works if loading with torch is switched off.
    avoidable = bool(examination.order.imports) and examination.backend is None
    return Finding(
        "autoload.shadowed",
        "warning" if avoidable else "problem",
        f"the backend {backend!r} names PrivateUse1 before {device} does ({point}{_of_its_owner(point)}); {state}",
        f"a process has one PrivateUse1 backend, so there is no {device}",
        f"use one of the two per process: set {AUTOLOAD_SWITCH}=0 and import that one"
        + (f", or pip uninstall {owners[0]}" if owners else ""),
    )
