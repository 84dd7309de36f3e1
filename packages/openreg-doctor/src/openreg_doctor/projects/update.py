# SPDX-License-Identifier: BSD-3-Clause
"""Merges a newer project into one that its author has changed.

For each file there are three texts: as it was written, as it is now, and as it would be written today. Where the author
or the template has changed nothing, the other's text is taken. Otherwise git merges both, line by line, and marks what
it cannot.

The first of these texts is in the project's own record. Copier and similar tools get it from the git history of a
template's repository, which a package that was installed from a wheel does not have.
"""

from __future__ import annotations

import difflib
import re
import subprocess
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from shutil import which

from .files import RECORD, Project, record_of
from .names import Names, ProjectError

DECIDE = "decide what stays, and delete the lines with <<<<<<<, |||||||, ======= and >>>>>>>"
HEADER = "csrc/driver.h"  # which declares what a driver of the author's has to define
# Without "=======", which may underline a heading.
_MARK = re.compile(r"(?m)^(?:<<<<<<<|\|\|\|\|\|\|\||>>>>>>>) ")
# Parameters, also such as void (*kernel)(void*), whose parentheses are at most two deep.
_IN_PARENTHESES = r"(?:[^()]|\((?:[^()]|\([^()]*\))*\))*"


@dataclass
class Update:
    """What an update does. Paths are relative to the project."""

    texts: dict[str, str] = field(default_factory=dict)  # of the files to write
    added: list[str] = field(default_factory=list)
    replaced: list[str] = field(default_factory=list)  # which the author had not changed
    merged: list[str] = field(default_factory=list)
    conflicts: list[str] = field(default_factory=list)  # merged, with marks where the author has to choose
    removed: list[str] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)  # by the author, while the template changed it: it stays deleted
    kept: list[str] = field(default_factory=list)  # the author changed it, and the template has it no more: it stays


def plan(folder: Path, before: Project, after: Project) -> Update:
    """Returns what to do in a project's folder. Writes nothing. Raises ProjectError if nothing can be done."""
    if which("git") is None:
        raise ProjectError("the update needs git, to merge your changes; install git")
    update = Update()
    current = {path: _read(folder / path) for path in sorted({*before.files, *after.files})}
    unfinished = [f"{path}:{line}" for path, text in current.items() if text is not None and (line := marked(text))]
    if unfinished:
        raise ProjectError(f"{', '.join(unfinished)}: has marks of an earlier conflict; {DECIDE}")
    for path, now in current.items():
        _plan_file(update, path, before.files.get(path), now, after.files.get(path))
    return update


def marked(text: str) -> int:
    """Returns the line of the first mark of a conflict, or 0 without one."""
    found = _MARK.search(text)
    return text.count("\n", 0, found.start()) + 1 if found else 0


def changes(before: Project, after: Project, path: str) -> str:
    """Returns what the template changed in a file, as a diff."""
    old, new = (project.files.get(path, "").splitlines(keepends=True) for project in (before, after))
    return "".join(difflib.unified_diff(old, new, "as it was written", "update"))


def changed_contracts(before: Project, after: Project) -> str:
    """Returns each paragraph of the driver's header that the template changed, whole, as a diff.

    So a function stands with its comment, which says what callers expect of it.
    """
    old, new = (project.files.get(HEADER, "").split("\n\n") for project in (before, after))
    removed = "\n\n".join(paragraph for paragraph in old if paragraph not in new).splitlines()
    added = "\n\n".join(paragraph for paragraph in new if paragraph not in old).splitlines()
    every_line = len(removed) + len(added)
    diff = difflib.unified_diff(removed, added, "as it was written", "update", n=every_line, lineterm="")
    return "\n".join(diff)


def undefined_functions(folder: Path, names: Names) -> list[str]:
    """Returns the functions that a project's driver header declares, and that no file in its folder `csrc` defines."""
    header = _read(folder / HEADER)
    if header is None:
        return []
    function = rf"\b({names.substituted('pocket')}[A-Z]\w*)\s*\("
    declared = re.findall(function, _code(header))
    sources = [path.read_text("utf-8", "replace") for path in (folder / "csrc").rglob("*") if path.is_file()]
    definition = rf"{function}{_IN_PARENTHESES}\)\s*(?:noexcept\s*)?{{"
    defined = {name for source in sources for name in re.findall(definition, _code(source))}
    return [name for name in dict.fromkeys(declared) if name not in defined]


def _code(text: str) -> str:
    """Returns C or C++ without its comments and the content of its strings."""
    return re.sub(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/', " ", text, flags=re.DOTALL)


def _plan_file(update: Update, path: str, base: str | None, now: str | None, new: str | None) -> None:
    if now == new or base == new:
        return  # is up to date already, or has only changes of the author
    if new is None:
        (update.removed if now == base else update.kept).append(path)
    elif now is None and base is not None:
        update.deleted.append(path)
    elif now is None:
        update.added.append(path)
        update.texts[path] = new
    elif now == base:
        update.replaced.append(path)
        update.texts[path] = new
    else:
        text, clean = _merge(now, base or "", new)
        (update.merged if clean else update.conflicts).append(path)
        update.texts[path] = text


def _merge(now: str, base: str, new: str) -> tuple[str, bool]:
    """Returns the merged text, and whether it is without conflicts."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, text in (("now", now), ("base", base), ("new", new)):
            (folder / file).write_bytes(text.encode())
        command = ["git", "merge-file", "--stdout", "--diff3"]
        for label in ("yours", "as it was written", "update"):
            command += ["-L", label]
        done = subprocess.run([*command, "now", "base", "new"], cwd=folder, capture_output=True, check=False)
    if not 0 <= done.returncode < 128:  # otherwise the number of conflicts
        raise ProjectError(f"git merge-file ended with {done.returncode}: {done.stderr.decode(errors='replace')}")
    return done.stdout.decode(), done.returncode == 0


def carry_out(folder: Path, update: Update, before: Project, after: Project) -> None:
    """Writes and deletes files, and the record last.

    If it is interrupted, or a file cannot be written, the record has the new text of each file that was. So the same
    update can be repeated, and does not repeat a conflict that the author has decided meanwhile.
    """
    files = dict(before.files)
    try:
        for path, text in update.texts.items():
            write(folder / path, text)
            files[path] = after.files[path]
        for path in update.removed:
            (folder / path).unlink()
            del files[path]
    except BaseException:
        write(folder / RECORD, record_of(replace(before, files=files)))
        raise
    write(folder / RECORD, record_of(after))


def write(path: Path, text: str) -> None:
    """Writes a file, with the ends of lines that it had."""
    path.parent.mkdir(parents=True, exist_ok=True)
    windows = path.is_file() and b"\r\n" in path.read_bytes()
    path.write_text(text, "utf-8", newline="\r\n" if windows else "\n")


def _read(path: Path) -> str | None:
    """Returns the text of a file, with lines that end as in the record, or None without a file."""
    try:
        return path.read_text("utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise ProjectError(f"{path} cannot be read as text: {error}") from error
