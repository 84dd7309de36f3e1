# SPDX-License-Identifier: BSD-3-Clause
"""Whether the packages can be imported, one after the other, without autoload; and if not, why."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .. import answers, installed
from ..backend import Fault
from ..children import Step
from ..examination import Examination
from ..finding import Finding
from ..probes.request import Request, import_step

TITLE = "Start-up"
POSITION = 60

_REINSTALL = "pip install --force-reinstall --no-deps {distribution}"
# The first that fits, after those that the device's packages declare.
_FAULTS = (
    Fault(r"cannot open shared object|Library not loaded|DLL load failed|image not found", "missing shared library",
           _REINSTALL),
    Fault(r"undefined symbol|Symbol not found|procedure could not be found", "compiled for another torch or runtime",
           _REINSTALL),
    Fault(r"invalid ELF|file too short|not a mach-o|not a valid Win32", "damaged shared library", _REINSTALL),
    Fault(r"No module named", "missing module", _REINSTALL + ", or install the module that is named"),
    Fault(r"the process ended with signal", "crash", _REINSTALL + "; the calls above say where it happened"),
    Fault(r"gave no answer", "hang", "run `python -X faulthandler -c 'import {module}'` to see where; or give the "
           "doctor a longer --timeout"),
)  # fmt: skip
_NO_MODULE_NAME = Fault("", "not the name of a module", "correct the entry point in the package, or remove it: "
                         "pip uninstall {distribution}")  # fmt: skip
_ANY_FAULT = Fault("", "broken plug-in", _REINSTALL + ", or remove it: pip uninstall {distribution}")


def check(examination: Examination) -> Iterator[Finding]:
    """One finding per module that brings the device up, one for the device's initialisation, and what went wrong."""
    steps = examination.started.steps
    for name, step in steps.items():
        if name.startswith(import_step("")) and name != import_step("torch"):
            yield _imported(examination, name.removeprefix(import_step("")), step)
    start = steps.get(f"{Request.PROBE}initialise")
    if start is not None and start.root:
        fix = "see the cause" if examination.backend is None else "see the settings above and what the cause names"
        yield Finding("startup.initialise", "problem", f"the device does not start: {start.text}", "everything", fix)
    elif start is not None and start.done:
        yield Finding("startup.initialise", "ok", "the device starts")
    end = steps.get(answers.END)
    if end is not None and end.ended:
        yield Finding("startup.exit", "problem", end.ended, "the process ends abnormally", "see its standard error")
    device = steps.get("device")
    if device is not None and device.root:
        what = f"PyTorch does not tell which device there is: {device.text}"
        yield Finding("startup.device", "problem", what, "the device could not be examined", "see the cause")
    report = steps.get(answers.REPORT)
    if report is not None and report.error:
        costs = "what those lines would have told is unknown"
        fix = "look for code of the backend that forks, or writes to files that it did not open, when it is imported"
        yield Finding("startup.report", "problem", report.error, costs, fix)


def _imported(examination: Examination, module: str, step: Step) -> Finding:
    name = f"startup.{module}"
    if step.done:
        return Finding(name, "ok", f"{module} loads")
    backend = examination.backend
    faults = (*(backend.faults if backend is not None else ()), *_FAULTS)
    fault = next((fault for fault in faults if re.search(fault.pattern, step.text)), _ANY_FAULT)
    if not _is_module_name(module):
        fault = _NO_MODULE_NAME
    distribution = backend.distribution_of(module) if backend is not None else installed.distribution_of(module)
    everything = backend is None or module == backend.root.module
    torch = installed.required(backend.root.distribution, "torch") if backend is not None else "torch"
    return Finding(
        name,
        "problem",
        f"{module} does not load ({fault.name}): {step.text}",
        "everything" if everything else f"what {distribution} brings",
        fault.fix.format(distribution=distribution, module=module, torch=torch),
    )


def _is_module_name(value: str) -> bool:
    """Whether an entry point's value is a module, without attribute or extras."""
    return re.fullmatch(r"\w+(\.\w+)*", value) is not None
