# SPDX-License-Identifier: BSD-3-Clause
"""The commands of the conformance kit and of the fuzzer: their arguments, their output and their exit status."""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import sys
from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import card as cards
from . import manifest, run_changes, spyre, suite_tests, upstream
from .bring_up import Setup
from .operators import run as operators
from .operators.checks import CHECKS, COMPILED, FLAGS, ON_DEMAND
from .operators.tasks import TABLE
from .pool import FailedTask, Processes, WorkerPool

if TYPE_CHECKING:
    from .card import Card

PASSED, PROBLEMS, WRONG_USE = 0, 1, 2  # the exit statuses
OPERATORS = "operators"  # the suite of PyTorch's table of operators, which has no file in the folder suites
_MORE_THAN_A_DAY = 86401  # seconds
_DTYPES = ("float32", "int64", "bool", "complex64", "bfloat16", "float16", "first")  # "first": the first of each entry

_EPILOG = """\
exit status: 0 no problems; 1 problems, or a suite of which all tests were skipped although no manifest excludes it;
2 wrong arguments, an unknown device or an invalid manifest

examples:
  %(prog)s --device npu --import torch_npu
  %(prog)s --device npu --import torch_npu --suite streams --suite events
  %(prog)s --device npu --import torch_npu --op 'fft.*' --dtype float32 --check forward --check backward
  %(prog)s --device npu --import torch_npu --pytorch-tests ~/pytorch/test --file test_view_ops.py
"""


class WrongUseError(Exception):
    """An error for arguments that cannot be used; the message names what is accepted."""


def parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    program = "python -m openreg_testing"
    whole = argparse.ArgumentParser(prog=program, description="Tests of a PyTorch backend behind PrivateUse1.")
    commands = whole.add_subparsers(dest="command", required=True, metavar="conformance|fuzz")
    raw = argparse.RawDescriptionHelpFormatter
    kit = commands.add_parser(
        "conformance",
        help="test what PyTorch requires of a backend",
        description="Tests what PyTorch requires of a backend. A crash or a hang costs only the test that caused it.",
        epilog=_EPILOG,
        formatter_class=raw,
    )
    _add_device(kit)
    selection = kit.add_argument_group("selection (default: all suites except compiled)")
    selection.add_argument("--suite", action="append", default=[], metavar="NAME", help="run this suite; repeatable")
    selection.add_argument(
        "--test", action="append", default=[], metavar="PATTERN", help="run tests of this name, such as 'streams::*'"
    )
    selection.add_argument("--list", action="store_true", help="print the names of the suites and exit")
    table = kit.add_argument_group("the suite operators")
    table.add_argument("--dtype", action="append", default=[], choices=_DTYPES, help="run this dtype; repeatable")
    table.add_argument("--op", action="append", default=[], metavar="PATTERN", help="run entries of this name")
    table.add_argument("--check", action="append", choices=(*CHECKS, *ON_DEMAND), help="run this check; repeatable")
    table.add_argument("--quick", action="store_true", help="run each entry in one dtype, with few samples")
    table.add_argument("--table", type=_table, default=TABLE, metavar="MODULE:NAME", help="run another operator table")
    upstream_tests = kit.add_argument_group("PyTorch's own tests")
    upstream_tests.add_argument(
        "--pytorch-tests", type=Path, metavar="DIR", help="the folder test/ of a checkout of the installed torch"
    )
    upstream_tests.add_argument(
        "--file", action="append", default=[], metavar="PATH", help="run this file or folder below DIR; repeatable"
    )
    execution = kit.add_argument_group("execution")
    execution.add_argument(
        "--shard", type=_shard, default=(1, 1), metavar="K/N", help="run the K-th of N equal parts of the selection"
    )
    execution.add_argument("--jobs", type=_count, default=os.cpu_count() or 1, help="number of parallel processes")
    execution.add_argument(
        "--limit", type=_seconds, default=300.0, metavar="SECONDS", help="timeout of one test (default: 300)"
    )
    scorecard = kit.add_argument_group("the scorecard")
    scorecard.add_argument("--json", type=Path, metavar="FILE", help="write all results as JSON")
    scorecard.add_argument("--html", type=Path, metavar="FILE", help="write all results as an HTML page")
    scorecard.add_argument("--relay", type=Path, metavar="FILE", help="write what PyTorch's CI relay accepts")
    scorecard.add_argument("--compare", type=Path, metavar="OLD.json", help="list changes since that scorecard")
    scorecard.add_argument("--verbose", action="store_true", help="list the skipped tests with their reasons")
    random_calls = commands.add_parser(
        "fuzz",
        help="compare random calls of operators with the CPU",
        description="Compares random calls of PyTorch's operators with the CPU. Each seed determines one call.",
    )
    _add_device(random_calls)
    random_calls.add_argument("--seconds", type=_seconds, default=600.0, help="duration (default: 600)")
    random_calls.add_argument("--seed", type=int, default=None, help="the first seed (default: random)")
    random_calls.add_argument("--count", type=_count, default=None, help="maximal number of seeds; 1 repeats a call")
    random_calls.add_argument(
        "--table", type=_table, default=TABLE, metavar="MODULE:NAME", help="draw from another operator table"
    )
    return whole


def _add_device(command: argparse.ArgumentParser) -> None:
    command.add_argument("--device", metavar="NAME", help="name of the backend, or cpu to test the kit itself")
    command.add_argument(
        "--import",
        dest="imports",
        action="append",
        default=[],
        metavar="MODULE",
        help="module that registers the backend; repeatable (default: backends that load with torch)",
    )
    command.add_argument(
        "--manifest", type=Path, metavar="FILE", help="expected failures of the backend: .toml, or torch-spyre's .yaml"
    )


def _table(text: str) -> str:
    module, _, name = text.partition(":")
    if not module or not name.isidentifier():
        raise argparse.ArgumentTypeError(f"expected MODULE:NAME, such as {TABLE}, got {text!r}")
    return text


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < _MORE_THAN_A_DAY:
        raise argparse.ArgumentTypeError(f"expected seconds up to a day, got {text!r}")
    return value


def _shard(text: str) -> tuple[int, int]:
    part, _, parts = text.partition("/")
    if not part.isdigit() or not parts.isdigit() or not 1 <= int(part) <= int(parts):
        raise argparse.ArgumentTypeError(f"expected K/N, such as 1/4, got {text!r}")
    return int(part), int(parts)


def _count(text: str) -> int:
    if not text.isdigit() or not int(text):
        raise argparse.ArgumentTypeError(f"expected a number from 1, got {text!r}")
    return int(text)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command and returns its exit status. Raises SystemExit(2) if the arguments cannot be parsed."""
    options = parser().parse_args(arguments)
    try:
        if options.command == "fuzz":
            return _fuzz(options)
        return _conformance(options)
    except (
        WrongUseError,
        manifest.ManifestError,
        run_changes.ComparisonError,
        upstream.UpstreamError,
        operators.TableError,
    ) as error:
        print(f"{options.command}: {error}", file=sys.stderr)
        return WRONG_USE


def _conformance(options: argparse.Namespace) -> int:
    if options.list:
        print("\n".join([OPERATORS, *suite_tests.names()]))
        return PASSED
    _refuse_contradictions(options)
    suites = _suites(options)
    old = run_changes.read(options.compare) if options.compare is not None else None
    for path in filter(None, (options.json, options.html, options.relay)):
        _refuse_unwritable(path)
    setup = _setup(options)
    if FLAGS in (options.check or ()) and not setup.manifest.flags_environment:
        raise WrongUseError(
            f"--check {FLAGS} needs variables that defer all kernels until the host waits; pass a --manifest with "
            "[flags] environment = { ... }"
        )
    if options.pytorch_tests is not None:
        upstream.refuse_other_version(options.pytorch_tests, metadata.version("torch"))
    with Processes() as processes:
        card = _card(setup, suites, options, processes)
    return _report(card, options, old)


def _card(setup: Setup, suites: list[str], options: argparse.Namespace, processes: Processes) -> Card:
    """Runs the selected tests and returns their results."""
    found = _probe(setup, processes)
    card = cards.Card(setup.device, found["torch"], found["commit"])
    if options.pytorch_tests is not None:
        how: dict[str, Any] = {"jobs": options.jobs, "limit": options.limit, "shard": options.shard}
        _add(card, upstream.run(setup, options.pytorch_tests, options.file, options.test, **how))
    else:
        if OPERATORS in suites:  # before the other suites, whose results an error would lose
            for table in (options.table, *_flag_tables(setup, options)):
                operators.refuse_unusable(setup, table, processes)
        others = [suite for suite in suites if suite != OPERATORS]
        # A suite in card.suites is a problem if all its tests were skipped. On the CPU and in a shard, that is normal.
        if options.shard == (1, 1) and setup.device != "cpu":
            card.suites = tuple(others)
        if others:
            try:
                how = {"jobs": options.jobs, "limit": options.limit, "shard": options.shard, "processes": processes}
                _add(card, suite_tests.run(setup, others, options.test, **how))
            except suite_tests.SuiteError as error:
                card.notes.append(f"the suites cannot be collected: {error}")
        if OPERATORS in suites:
            _add_operators(card, setup, options, processes)
    return card


def _add(card: Card, results: Any) -> None:
    for result, note in results:
        if result is not None:
            card.results.append(result)
        if note:
            card.notes.append(note)
    card.results.sort(key=lambda result: result.name)


def _add_operators(card: Card, setup: Setup, options: argparse.Namespace, processes: Processes) -> None:
    shared: dict[str, Any] = {
        "processes": processes,
        "jobs": options.jobs,
        "limit": options.limit,
        "table": options.table,
        "shard": options.shard,
    }
    if options.quick:
        card.operators.append(operators.quick(setup, options.op, **shared))
        return
    checks = _checks(setup, options)
    dtypes = options.dtype or (["float32"] if checks == [COMPILED] else [])
    card.operators.append(operators.run(setup, dtypes, options.op, checks, **shared))
    for table in _flag_tables(setup, options):
        card.operators.append(operators.run(setup, options.dtype, (), (FLAGS,), **{**shared, "table": table}))


def _checks(setup: Setup, options: argparse.Namespace) -> list[str]:
    """Returns the checks to run: those of the options or, by default, all that the device supports.

    The check of flags changes flags, which are global settings of PyTorch such as the default dtype, between the launch
    and the execution of kernels. This requires that the manifest's environment variables defer kernels.
    """
    return [check for check in options.check or CHECKS if check != FLAGS or setup.manifest.flags_environment]


def _flag_tables(setup: Setup, options: argparse.Namespace) -> list[str]:
    """Returns the manifest's other table of operators for the check of flags, if the run includes it."""
    whole = options.table == TABLE and not options.op and not options.quick
    more = setup.manifest.flag_table
    return [more] if more and whole and FLAGS in _checks(setup, options) else []


def _report(card: Card, options: argparse.Namespace, old: dict[str, Any] | None) -> int:
    """Prints and writes the results, and returns the exit status. ``old`` is the scorecard of --compare."""
    cards.show(card, options.verbose)
    if old is not None:
        found = run_changes.changes(old, card)
        print(f"{len(found)} tests changed since {options.compare}")
        for change in found:
            print(f"  {change.describe()}")
    if options.json is not None:
        options.json.write_text(json.dumps(card.as_dictionary(), indent=1), "utf-8")
    if options.html is not None:
        cards.write_html(card, options.html)
    if options.relay is not None:
        options.relay.write_text(json.dumps(card.relay()) + "\n", "utf-8")
    return PROBLEMS if card.problems() else PASSED


def _fuzz(options: argparse.Namespace) -> int:
    setup = _setup(options)
    with Processes() as processes:
        _probe(setup, processes)
        return _fuzz_until(setup, options, processes)


def _fuzz_until(setup: Setup, options: argparse.Namespace, processes: Processes) -> int:
    from .operators import fuzz  # which imports torch

    seed = random.SystemRandom().randrange(10**9) if options.seed is None else options.seed
    print(f"from seed {seed}")
    failures, calls = fuzz.fuzz(setup, options.seconds, seed, options.count or math.inf, options.table, processes)
    print(f"{_counted(calls, 'call')}, {_counted(len(failures), 'failure')}")
    if not calls:
        print("nothing was tested: the operators or the manifest exclude the calls of all seeds; use other seeds")
    return PROBLEMS if failures or not calls else PASSED


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def _refuse_unwritable(path: Path) -> None:
    """Raises WrongUseError if a file cannot be written. Called before a run, whose results would be lost otherwise.

    An existing file is not changed, and no file is left behind.
    """
    folder = path.resolve().parent
    try:
        if not folder.is_dir():
            raise WrongUseError(f"{path}: the folder {folder} does not exist; create it or name another file")
        if path.is_dir():
            raise WrongUseError(f"{path} is a folder; name a file in it")
        is_new = not path.exists()
        path.open("a").close()
        if is_new:
            path.unlink()
    except OSError as error:
        raise WrongUseError(f"{path}: {error.strerror}; name a file that can be written") from error


def _suites(options: argparse.Namespace) -> list[str]:
    """Returns the names of the suites to run. Raises WrongUseError for an unknown name."""
    known = [OPERATORS, *suite_tests.names()]
    for name in options.suite:
        if name not in known:
            close = get_close_matches(name, known, 1)
            hint = f" (the closest is {close[0]})" if close else ""
            raise WrongUseError(f"--suite {name!r} is unknown{hint}; accepted are {', '.join(known)}")
    chosen = list(dict.fromkeys(options.suite))
    if not chosen and (options.op or options.dtype or options.check or options.quick or options.table != TABLE):
        return [OPERATORS]
    if not chosen and options.test:
        return known[1:]  # a pattern also selects the suites of EXTRA
    return chosen or [name for name in known if name not in suite_tests.EXTRA]


def _refuse_contradictions(options: argparse.Namespace) -> None:
    """Raises WrongUseError for options that exclude each other."""
    of_operators = {
        "--op": options.op,
        "--dtype": options.dtype,
        "--check": options.check,
        "--quick": options.quick,
        "--table": options.table != TABLE,
    }
    given = [name for name, value in of_operators.items() if value]
    if options.suite and OPERATORS not in options.suite and given:
        raise WrongUseError(f"{given[0]} is for the suite {OPERATORS}, which --suite excludes; add --suite {OPERATORS}")
    if options.quick and (options.check or options.dtype):
        raise WrongUseError("--quick chooses checks and dtypes itself; leave out --check and --dtype, or --quick")
    if options.pytorch_tests is not None and (given or options.suite):
        raise WrongUseError(
            f"--pytorch-tests runs PyTorch's files instead of the kit's suites; leave out {(given or ['--suite'])[0]}"
        )
    if options.file and options.pytorch_tests is None:
        raise WrongUseError("--file chooses among PyTorch's own tests; give their folder with --pytorch-tests DIR")
    if options.test and given:
        raise WrongUseError(
            f"--test selects tests of the other suites, {given[0]} selects entries of {OPERATORS}; give one of them"
        )


def _setup(options: argparse.Namespace) -> Setup:
    """Returns the Setup by which worker processes prepare the device. Raises WrongUseError without a usable one."""
    try:
        version = metadata.version("torch")
    except metadata.PackageNotFoundError as error:
        raise WrongUseError("torch is not installed; install the version that the backend supports") from error
    known = read_manifest(options.manifest, version) if options.manifest is not None else manifest.Manifest()
    device = options.device or known.device
    if not device:
        raise WrongUseError(
            "no backend is named; give --device NAME, and --import MODULE unless it loads with torch "
            "(--device npu --import torch_npu), or a --manifest that names it"
        )
    if known.device and device != known.device:
        raise WrongUseError(f"--device {device!r}, but {known.path} is for {known.device!r}; give one of them")
    if not device.isidentifier():
        raise WrongUseError(f"{device!r} is not the name of a device; give a name such as npu, without index")
    imports = tuple(options.imports) or known.imports
    for name in imports:
        if not _exists(name):
            raise WrongUseError(f"--import {name!r}: there is no such module; install it or correct the name")
    return Setup(device, imports, replace(known, device=device))


def read_manifest(path: Path, torch: str) -> manifest.Manifest:
    """Reads a file and returns its manifest for a version of torch. A YAML file has torch-spyre's format.

    Raises ManifestError if the file cannot be read or is invalid.
    """
    return spyre.read(path) if path.suffix in (".yaml", ".yml") else manifest.read(path, torch)


def _exists(module: str) -> bool:
    try:
        return find_spec(module.partition(".")[0]) is not None
    except (ValueError, ImportError):
        return False


def _probe(setup: Setup, processes: Processes) -> dict[str, Any]:
    """Initializes the device in a process. Returns what Setup.run() found: the version and the commit of torch.

    Raises WrongUseError if that fails.
    """
    with WorkerPool((setup,), 1, 1.0, setup.manifest.environment, processes=processes) as pool:
        outcome = pool.probe()
    if isinstance(outcome, FailedTask):
        if outcome.reason.startswith("NoDeviceError: "):
            raise WrongUseError(outcome.reason.removeprefix("NoDeviceError: "))
        last = f"\n{outcome.output}" if outcome.output else ""
        raise WrongUseError(f"the device {setup.device!r} cannot be initialized: {outcome.reason}{last}")
    found: dict[str, Any] = outcome.value
    return found
