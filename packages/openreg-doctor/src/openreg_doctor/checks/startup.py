# SPDX-License-Identifier: BSD-3-Clause
"""Checks that the packages can be imported, one after the other, and explains failures.

A child process imports them with autoload off: `import torch` then loads no backend.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from .. import answers, installed
from ..backend import ImportFault
from ..children import StepResult
from ..examination import Examination
from ..finding import Finding
from ..probes.request import Request, import_step

TITLE = "Start-up"
POSITION = 60

_REINSTALL = "pip install --force-reinstall --no-deps {distribution}"
# The first fault whose pattern matches applies. The faults in the files doctor.toml of the device's packages come
# before these.
_FAULTS = (
    ImportFault(r"cannot open shared object|Library not loaded|DLL load failed|image not found",
                "missing shared library", _REINSTALL),
    ImportFault(r"undefined symbol|Symbol not found|procedure could not be found",
                "compiled for another torch or runtime", _REINSTALL),
    ImportFault(r"invalid ELF|file too short|not a mach-o|not a valid Win32", "damaged shared library", _REINSTALL),
    ImportFault(r"No module named", "missing module", _REINSTALL + ", or install the module that is named"),
    ImportFault(r"the process ended with signal", "crash",
                _REINSTALL + "; the calls in the error show where it happened"),
    ImportFault(r"reported nothing within", "hang", "run `python -X faulthandler -c 'import {module}'` to see where; "
                "or give the doctor a longer --timeout"),
)  # fmt: skip
_NO_MODULE_NAME = ImportFault("", "not the name of a module", "correct the entry point in the package, or remove it: "
                              "pip uninstall {distribution}")  # fmt: skip
_ANY_FAULT = ImportFault("", "broken plug-in", _REINSTALL + ", or remove it: pip uninstall {distribution}")


def check(examination: Examination) -> Iterator[Finding]:
    """Yields findings about each module of the device, its initialization, and the end and report of the child."""
    steps = examination.results.steps
    for name, step in steps.items():
        if name.startswith(import_step("")) and name != import_step("torch"):
            yield _imported(examination, name.removeprefix(import_step("")), step)
    start = steps.get(f"{Request.PROBE_PREFIX}initialize")
    if start is not None and start.root_cause:
        fix = "resolve the error shown" if examination.backend is None else "correct the settings or resolve the error"
        what = f"the device cannot be initialized: {start.text}"
        yield Finding("startup.initialize", "problem", what, "the device cannot be used", fix)
    elif start is not None and start.done:
        yield Finding("startup.initialize", "ok", "the device initializes")
    end = steps.get(answers.END)
    if end is not None and end.ended:
        yield Finding("startup.exit", "problem", end.ended, "the process ends abnormally", "resolve the error shown")
    device = steps.get("device")
    if device is not None and device.root_cause:
        what = f"PyTorch's name for the device cannot be read: {device.text}"
        yield Finding("startup.device", "problem", what, "the device could not be examined", "resolve the error shown")
    report = steps.get(answers.REPORT)
    if report is not None and report.error:
        costs = "the results in these lines are unknown"
        fix = "look for code that forks or writes to files that it did not open, when the backend is imported"
        yield Finding("startup.report", "problem", report.error, costs, fix)


def _imported(examination: Examination, module: str, step: StepResult) -> Finding:
    """Returns the finding about a module, from the step that imports it."""
    name = f"startup.{module}"
    if step.done:
        return Finding(name, "ok", f"{module} loads")
    backend = examination.backend
    faults = (*(backend.faults if backend is not None else ()), *_FAULTS)
    fault = next((fault for fault in faults if re.search(fault.pattern, step.text)), _ANY_FAULT)
    if not _is_module_name(module):
        fault = _NO_MODULE_NAME
    distribution = backend.distribution_of(module) if backend is not None else installed.distribution_of(module)
    initializes_device = backend is None or module == backend.device_package.module
    torch = installed.required(backend.device_package.distribution, "torch") if backend is not None else "torch"
    return Finding(
        name,
        "problem",
        f"{module} does not load ({fault.name}): {step.text}",
        "the device cannot be used" if initializes_device else f"what {distribution} provides",
        fault.fix.format(distribution=distribution, module=module, torch=torch),
    )


def _is_module_name(value: str) -> bool:
    """Returns True if an entry point's value is the name of a module, without attribute or extras."""
    return re.fullmatch(r"\w+(\.\w+)*", value) is not None
