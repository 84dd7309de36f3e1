# SPDX-License-Identifier: BSD-3-Clause
"""The doctor's command line: its arguments, messages and exit status."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches
from importlib.util import find_spec

from . import backend, checks, document, explanation, installed, table
from .device_types import PYTORCH_DEVICES
from .examination import AUTOLOAD_SWITCH, Examination, Order, examine, find_device
from .finding import Finding, Section, matches
from .probes.request import UNNAMED, Request

HEALTHY, PROBLEMS, WRONG_USE = 0, 1, 2  # the exit statuses
_LONGEST_TIMEOUT = 86400  # seconds

_EPILOG = """\
exit status: 0 healthy, 1 problems found, 2 wrong use (also: no such device, no such operator)

examples:
  %(prog)s
  %(prog)s --op aten::add.Tensor
  %(prog)s --device npu --import torch_npu
  %(prog)s --device npu --import torch_npu --missing
  %(prog)s --json --ignore 'settings.*'      in CI

other commands, with a --help of their own:
  %(prog)s new PACKAGE --device NAME         writes a backend to begin with
  %(prog)s update                            brings it to a new PyTorch
"""


class DoctorUsageError(Exception):
    """An error in the arguments of the command. Its text contains the wrong value and what is accepted."""


def parser(typed: str, device: str = "") -> argparse.ArgumentParser:
    """Returns the parser of the arguments.

    ``typed`` is the command as the user typed it; ``device`` is the default of ``--device``, or empty.
    """
    doctor = argparse.ArgumentParser(
        prog=typed,
        description="Checks the environment and a PyTorch backend behind PrivateUse1, hook by hook and name by name.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    default = device or "the one that is installed"
    doctor.add_argument(
        "--device",
        metavar="NAME",
        help=f"the backend to check; {UNNAMED} for one that did not rename the dispatch key (default: {default})",
    )
    doctor.add_argument(
        "--import",
        dest="imports",
        action="append",
        default=[],
        metavar="MODULE",
        help="a module that registers the backend; may be repeated (default: the modules that load with torch)",
    )
    doctor.add_argument(
        "--op", metavar="OPERATOR", help="explain how this operator is implemented, instead of listing all findings"
    )
    doctor.add_argument(
        "--compiler",
        action="store_true",
        help="also check what the backend registers with PyTorch's compiler, whose import takes seconds",
    )
    doctor.add_argument("--json", action="store_true", help="print the report as JSON")
    doctor.add_argument(
        "--missing",
        action="store_true",
        help="also list missing parts that not every backend has, each with its chapter of openreg's guide",
    )
    doctor.add_argument("--verbose", action="store_true", help="list all findings, also those without a fault")
    doctor.add_argument(
        "--ignore",
        action="append",
        default=[],
        metavar="CHECK",
        help="do not count problems of this check, or of a pattern such as module.*; may be repeated",
    )
    doctor.add_argument(
        "--timeout",
        type=_seconds,
        default=60.0,
        metavar="SECONDS",
        help="end a step that reports nothing for this time (default: 60)",
    )
    return doctor


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= _LONGEST_TIMEOUT:
        raise argparse.ArgumentTypeError(f"expected seconds up to {_LONGEST_TIMEOUT}, got {text!r}")
    return value


def main(arguments: Sequence[str], typed: str, device: str = "") -> int:
    """Runs the command and returns its exit status.

    ``typed`` and ``device`` are those of ``parser()``. Raises SystemExit(2) if the arguments cannot be parsed, and
    SystemExit(0) after ``--help``.
    """
    options = parser(typed, device).parse_args(arguments)
    try:
        if options.op is not None and not options.op.strip():
            raise DoctorUsageError("--op names no operator; give one, such as aten::add.Tensor")
        if options.device is not None:
            _require_backend_name(options.device)
        _require_modules(options.imports)
        return _examine(options, device)
    except DoctorUsageError as error:
        print(f"doctor: {error}", file=sys.stderr)
        return WRONG_USE


def _examine(options: argparse.Namespace, default: str) -> int:
    backends, undeclared = backend.declared()
    order = _order(options, default, backends)
    declared = next((item for item in backends if item.device == order.device), None)
    groups = table.read(installed.version("torch"), declared.packages if declared is not None else ())
    examination = replace(examine(order, groups, declared), undeclared=undeclared)
    _require_device(examination)
    sections = checks.run(examination)
    if examination.any_probe_ran:  # otherwise the report lacks the checks of the device, which patterns may name
        _report_unmatched_patterns(tuple(options.ignore), sections)
    explained = None
    if order.operator:
        try:
            explained = explanation.explain(examination)
        except LookupError as error:
            raise DoctorUsageError(str(error)) from error
    report = document.DoctorReport(order.device, _visible(order, sections), explained, tuple(options.ignore))
    if options.json:
        print(document.render(report))
    else:
        from . import terminal

        terminal.show(report, verbose=options.verbose, missing=options.missing)
    return PROBLEMS if report.problems else HEALTHY


def _order(options: argparse.Namespace, default: str, backends: list[backend.DeclaredBackend]) -> Order:
    """Returns what to examine.

    The device is that of ``--device`` or of the command. Without these it is the only device that packages declare, if
    there is no ``--import``, or else the one that ``find_device()`` returns.
    """
    imports = tuple(options.imports)
    device = options.device or default
    if not device and not imports and len(backends) == 1:
        device = backends[0].device
    if not device:
        device = find_device(imports, options.timeout)
    operator = options.op or ""
    return Order(device or UNNAMED, imports, operator, options.timeout, options.compiler, no_device_found=not device)


def _visible(order: Order, sections: list[Section]) -> list[Section]:
    """Returns the sections to print.

    With an operator to explain, only problems and the operator's overloads without a kernel remain.
    """
    if not order.operator:
        return sections
    wrong = [Section(item.title, tuple(f for f in item.findings if _is_shown_with_operator(f))) for item in sections]
    return [section for section in wrong if section.findings]


def _is_shown_with_operator(finding: Finding) -> bool:
    return finding.status == "problem" or finding.check.startswith("operators.overload.")


def _require_backend_name(device: str) -> None:
    if device in PYTORCH_DEVICES:
        raise DoctorUsageError(
            f"--device: {device!r} is one of PyTorch's own devices, not a backend behind PrivateUse1; give --device "
            "the name of a PrivateUse1 backend, and --import the module that registers it"
        )
    if not device.isidentifier():
        raise DoctorUsageError(
            f"--device: {device!r} is not the name of a device; give a name such as npu, without index"
        )


def _require_modules(modules: Sequence[str]) -> None:
    for module in modules:
        if not _exists(module.partition(".")[0]):
            raise DoctorUsageError(f"--import: there is no module {module!r} to import; install it or correct its name")


def _report_unmatched_patterns(patterns: tuple[str, ...], sections: list[Section]) -> None:
    """Prints a line for each pattern that matches no check, which may be misspelled.

    This is no error, because a check that is named after its fault disappears with the fault.
    """
    findings = [finding for section in sections for finding in section.findings]
    for pattern in patterns:
        if not any(matches(finding, (pattern,)) for finding in findings):
            close = get_close_matches(pattern, dict.fromkeys(finding.check for finding in findings), 5)
            hint = f"; similar checks: {', '.join(close)}" if close else ""
            print(f"doctor: --ignore {pattern!r} matches no check of this report{hint}", file=sys.stderr)


def _exists(module: str) -> bool:
    try:
        return module.isidentifier() and module != "__main__" and find_spec(module) is not None
    except ValueError:  # a module that this process created without a spec, which no other process can import
        return False


def _require_device(examination: Examination) -> None:
    """Raises DoctorUsageError if a device that the caller named does not exist.

    Does not raise if packages declare the device, or if a step before the probes failed, such as an import. That
    failure may be why the device is missing.
    """
    order, steps = examination.order, examination.results.steps
    failed = any(step.root_cause for name, step in steps.items() if not name.startswith(Request.PROBE_PREFIX))
    found = examination.name
    if order.no_device_found or failed or examination.backend is not None or found == "":
        return
    if found == order.device and (examination.present or order.imports):
        return
    state = "no PrivateUse1 backend is loaded" if found == UNNAMED else f"the loaded backend is called {found!r}"
    how = f"after importing {', '.join(order.imports)}" if order.imports else "after `import torch`"
    raise DoctorUsageError(
        f"there is no device {order.device!r}: {how}, {state}; give --device the backend's name and --import the "
        f"module that registers it (installed backends load with torch unless {AUTOLOAD_SWITCH}=0)"
    )
