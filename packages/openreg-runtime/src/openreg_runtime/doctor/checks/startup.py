# SPDX-License-Identifier: BSD-3-Clause
"""Whether the packages can be imported, one after the other, without autoload; and if not, why."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from openreg_runtime._plugins import installed_plugins, is_module_name

from .. import installed
from ..children import Step
from ..examination import RUNTIME, Examination
from ..finding import Finding
from ..probes.request import Request, import_step

TITLE = "Start-up"
POSITION = 60


class _Fault(NamedTuple):
    """A kind of failure, known by what its error says."""

    pattern: str
    name: str
    fix: str


_REINSTALL = "pip install --force-reinstall --no-deps {distribution}"
# The first that fits.
_FAULTS = (
    _Fault(r"ABI|version \d+ of the openreg-runtime headers", "wrong ABI number", "install packages of one release: "
           "pip install --upgrade openreg-runtime {distribution}"),
    _Fault(r"compiled for another Python", "another Python", _REINSTALL),
    _Fault(r"works with torch .* a debug build", "debug build of torch", "pip install --force-reinstall "
           "'torch=={torch}.*'"),
    _Fault(r"\bopenreg-runtime works with torch", "wrong torch", "pip install 'torch=={torch}.*', or another release "
           "of openreg: pip install --upgrade openreg-runtime"),
    _Fault(r"works with torch", "wrong torch", "pip install --upgrade {distribution}"),
    _Fault(r"room for one PrivateUse1 backend", "shadowed device name", "let nothing else name the dispatch key first: "
           "look at sitecustomize, .pth files, and what the packages import"),
    _Fault(r"cannot open shared object|Library not loaded|DLL load failed|image not found", "missing shared library",
           _REINSTALL),
    _Fault(r"undefined symbol|Symbol not found|procedure could not be found", "compiled for another torch or runtime",
           _REINSTALL),
    _Fault(r"invalid ELF|file too short|not a mach-o|not a valid Win32", "damaged shared library", _REINSTALL),
    _Fault(r"No module named", "missing module", _REINSTALL + ", or install the module that is named"),
    _Fault(r"the process ended with signal", "crash", _REINSTALL + "; the calls above say where it happened"),
    _Fault(r"gave no answer", "hang", "run `python -X faulthandler -c 'import {module}'` to see where; or give the "
           "doctor a longer --timeout"),
)  # fmt: skip
_NO_MODULE_NAME = _Fault("", "not the name of a module", "correct the entry point in the package, or remove it: "
                         "pip uninstall {distribution}")  # fmt: skip
_ANY_FAULT = _Fault("", "broken plug-in", _REINSTALL + ", or remove it: pip uninstall {distribution}")


def check(examination: Examination) -> Iterator[Finding]:
    """One finding per module that brings the device up, and one for the device's initialisation."""
    steps = examination.started.steps
    for name, step in steps.items():
        if name.startswith(import_step("")) and name != import_step("torch"):
            yield _imported(examination, name.removeprefix(import_step("")), step)
    start = steps.get(f"{Request.PROBE}initialise")
    if start is not None and start.root:
        fix = "see the cause" if not examination.order.own else "see the settings above and what the cause names"
        yield Finding("startup.initialise", "problem", f"the device does not start: {start.text}", "everything", fix)
    elif start is not None and start.done:
        yield Finding("startup.initialise", "ok", "the device starts")
    end = steps.get("end of the process")
    if end is not None and end.ended:
        yield Finding("startup.exit", "problem", end.ended, "the process ends abnormally", "see its standard error")


def _imported(examination: Examination, module: str, step: Step) -> Finding:
    name = f"startup.{module}"
    if step.done:
        return Finding(name, "ok", f"{module} loads")
    fault = next((fault for fault in _FAULTS if re.search(fault.pattern, step.text)), _ANY_FAULT)
    if not is_module_name(module):
        fault = _NO_MODULE_NAME
    distribution = installed.distribution_of(module)
    own = examination.order.own
    return Finding(
        name,
        "problem",
        f"{module} does not load ({fault.name}): {step.text}",
        "everything" if module == RUNTIME or not own else f"what {distribution} brings",
        fault.fix.format(distribution=distribution, module=module, torch=_torch_of_the_runtime()),
    )


def _torch_of_the_runtime() -> str:
    """The minor version of torch that the runtime was compiled for."""
    versions = [plugin.torch_version for plugin in installed_plugins() if plugin.module == RUNTIME]
    return ".".join((versions[0] or "").split(".")[:2]) if versions else ""
