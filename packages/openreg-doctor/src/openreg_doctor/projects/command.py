# SPDX-License-Identifier: BSD-3-Clause
"""The commands `new`, `update` and `operators`: their arguments, what they print, and their exit status."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from shutil import which

from . import files, names, update
from .names import Names, ProjectError

DONE, DECISIONS, WRONG_USE = 0, 1, 2  # the exit statuses

_STEPS = """\
steps, each with what the ones before it have:
  3  devices, memory, the minimal operators, and a fallback to the CPU for all others
  4  operators with kernels of their own
  5  operators that PyTorch does not have
  6  streams, events, random numbers, pinned memory
  7  autocast, and a device that loads with `import torch`
  8  torch.compile
  9  torch.distributed
"""

_UPDATE = """\
Brings the project of a backend to what this version of openreg-doctor writes. Your changes
stay: a file that both sides changed is merged, and what cannot be merged is marked in it.
The exit status is 0, or 1 if you have to decide about a file or your driver lacks a function
of csrc/driver.h, or 2 with an error.
"""
_WRITTEN = """\
wrote {count} files into {folder}, the project of step {step}; README.md says what is next
to build, install and test it:
  cd {folder}
  pip install --no-build-isolation --no-deps .
  python -m pytest tests
to bring it to a new PyTorch, with the openreg-doctor of that release:
  {typed} update"""


def main(arguments: Sequence[str], typed: str) -> int:
    """Runs a command and returns its exit status. `typed` is the command before the arguments, as the user typed it.

    Raises SystemExit if the arguments cannot be parsed, and after --help.
    """
    options = _parser(typed).parse_args(arguments)
    try:
        match options.command:
            case "new":
                return _new(options, typed)
            case "operators":
                return _operators(options)
            case _:
                return _update(options)
    except BrokenPipeError:
        raise  # of who reads what is printed; the project is written
    except (ProjectError, OSError) as error:
        print(f"{options.command}: {error}", file=sys.stderr)
        return WRONG_USE


def _parser(typed: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=typed)
    commands = parser.add_subparsers(dest="command", required=True)
    new = commands.add_parser(
        "new",
        description="Writes the project of a backend: a step of the tutorial under your names.",
        epilog=_STEPS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    new.add_argument("package", metavar="PACKAGE", help="the name of the distribution, such as torch-aurora")
    new.add_argument("--device", required=True, metavar="NAME", help='the device, as in torch.device("aurora")')
    new.add_argument("--step", type=_step, default=files.DEFAULT, metavar="N", help=f"default: {files.DEFAULT}")
    new.add_argument("--folder", type=Path, metavar="FOLDER", help="where; new or empty (default: ./PACKAGE)")
    newer = commands.add_parser(
        "update",
        description=_UPDATE,
        epilog=_STEPS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    newer.add_argument("folder", type=Path, nargs="?", default=Path(), metavar="FOLDER", help="default: this one")
    newer.add_argument("--step", type=_step, metavar="N", help="a later step (default: that of the project)")
    more = commands.add_parser(
        "operators",
        description="Adds an operator of each kind to a project, under its names, as csrc/kinds.cpp, and their check, "
        "which the project's tests run. Both are yours then.",
    )
    more.add_argument("folder", type=Path, nargs="?", default=Path(), metavar="FOLDER", help="default: this one")
    return parser


def _step(text: str) -> int:
    if text not in map(str, range(files.FIRST, files.LAST + 1)):
        raise argparse.ArgumentTypeError(f"expected a step from {files.FIRST} to {files.LAST}, got {text!r}")
    return int(text)


def _new(options: argparse.Namespace, typed: str) -> int:
    chosen = Names(options.package, options.device)
    names.check_package(chosen.package)
    # The code is that of the last step, because an update can lead there.
    code = [text for path, text in files.templates(files.LAST).items() if path.startswith(("csrc/", "src/"))]
    names.check_device(chosen.device, code)
    folder = options.folder or Path(chosen.package)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ProjectError(f"{folder} is not an empty folder; name a new one with --folder, or use update")
    project = files.make(chosen, options.step)
    notes = [names.check_with_torch(chosen.device), _other_release(project.files), *_missing_tools()]
    for path, text in {**project.files, files.RECORD: files.record_of(project)}.items():
        update.write(folder / path, text)
    print(_WRITTEN.format(count=len(project.files), folder=folder, step=options.step, typed=typed))
    _print_notes(notes)
    return DONE


def _print_notes(notes: Sequence[str]) -> None:
    for note in filter(None, notes):
        print(f"note: {note}", file=sys.stderr)


def _other_release(project: Mapping[str, str]) -> str:
    """Returns a line if the installed torch is not of the release that a project is for, or else ""."""
    (release,) = re.findall(r'(?m)^dependencies = \["torch==(.+)\.\*"\]$', project["pyproject.toml"])
    try:
        installed = version("torch")
    except PackageNotFoundError:
        return ""
    if installed.startswith(f"{release}."):
        return ""
    return (
        f"the project is for torch {release}, and torch {installed} is installed; install torch=={release}.*, or "
        "bring the project to the installed torch by `update` with the openreg-doctor of its release"
    )


def _missing_tools() -> list[str]:
    """Returns a line for each tool that a build needs and that this machine lacks."""
    compilers = os.environ.get("CXX", "").split()[:1] or ["c++", "g++", "clang++", "cl"]
    found = []
    if not any(map(which, compilers)):
        found.append(f"there is no C++ compiler ({', '.join(compilers)}): the build needs one with C++20")
    modules = {"cmake": "cmake", "ninja": "ninja", "scikit_build_core": "scikit-build-core"}
    absent = [name for module, name in modules.items() if find_spec(module) is None and which(name) is None]
    if absent:
        found.append(f"the build also needs: pip install {' '.join(absent)}")
    return found


def _update(options: argparse.Namespace) -> int:
    before = files.read_record(options.folder)
    if files.is_newer(before.written_by):
        raise ProjectError(
            f"the project was written by openreg-doctor {before.written_by}, and this is {files.own_version()}; "
            "install that one or a newer one"
        )
    step = options.step or before.step
    if step < before.step:
        raise ProjectError(f"the project is one of step {before.step}; an update does not go back to step {step}")
    after = files.make(before.names, step)
    planned = update.plan(options.folder, before, after)
    try:
        update.carry_out(options.folder, planned, before, after)
    except OSError as error:
        raise ProjectError(f"{error}; the update is not complete: mend that, and update again") from error
    for what, paths in {
        "added": planned.added,
        "replaced, as you had not changed it": planned.replaced,
        "merged with your changes": planned.merged,
        "removed": planned.removed,
    }.items():
        for path in paths:
            print(f"{path}: {what}")
    if update.HEADER in planned.texts:
        print(f"{update.HEADER}: what changed of its functions and their comments:")
        print(update.changed_contracts(before, after))
    _print_notes([_other_release(after.files)])
    decisions = _decisions(planned, before, after, update.undefined_functions(options.folder, after.names))
    if decisions:
        sys.stdout.flush()  # what is last on a terminal is last in a file, too
        print("updated; decide about these, then build and test:", *decisions, sep="\n", file=sys.stderr)
        return DECISIONS
    print("up to date" if not planned.texts and not planned.removed else "updated; now build and test")
    return DONE


def _decisions(
    planned: update.Update, before: files.Project, after: files.Project, undefined: Sequence[str]
) -> list[str]:
    """Returns a line for each file about which the author has to decide, some with a diff.

    The last line names the undefined functions, if there are some.
    """
    lines = []
    for path in planned.conflicts:
        lines.append(f"{path}:{update.marked(planned.texts[path])}: CONFLICT: {update.DECIDE}")
    lines += [f"{path}: you changed it, and it is no part of the project any more: it stays" for path in planned.kept]
    for path in planned.deleted:
        lines.append(f"{path}: you deleted it, and the update changes it; what you have instead may need the same:")
        lines.append(update.changes(before, after, path))
    if undefined:
        declares = "it declares functions that no file in csrc defines, and that your driver has to"
        lines.append(f"{update.HEADER}: {declares}: {', '.join(undefined)}")
    return lines


def _operators(options: argparse.Namespace) -> int:
    project = files.read_record(options.folder)
    if project.step < files.FIRST_WITH_OPERATORS:
        raise ProjectError(
            f"the project is one of step {project.step}, and the operators need step {files.FIRST_WITH_OPERATORS}; "
            f"update it with --step {files.FIRST_WITH_OPERATORS}"
        )
    written = files.operators(project.names)
    for path in written:
        if (options.folder / path).exists():
            raise ProjectError(f"{options.folder / path} is there already; rename or delete it first")
    for path, text in written.items():
        update.write(options.folder / path, text)
        print(f"wrote {path}")
    print("now build, and run: python -m pytest tests, which also run check_operators.py")
    return DONE
