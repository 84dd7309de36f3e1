# SPDX-License-Identifier: BSD-3-Clause
"""Copies the repository, or a folder of it, for sessions that change the copy."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from tools.packages import ROOT, git

# Folders of the repository that git ignores, into which the sessions of a copy build.
BUILT = ("build", "dist")


def copy_repository(target: Path) -> None:
    """Copies the files of the checkout, committed or not, into a new git repository, and stages them.

    What sessions have built in an earlier copy stays there.
    """
    shutil.rmtree(target / ".git", ignore_errors=True)
    copy_folder(ROOT, target, {})
    git(target, "init", "--quiet")
    git(target, "add", "--all")


def copy_folder(origin: Path, target: Path, changed: Mapping[str, str]) -> None:
    """Copies the files of a folder that git tracks or does not ignore. `changed` has other texts for some, by path.

    A file that is equal in an earlier copy keeps its modification time, and any other gets the current time. So the
    object files of builds that are kept beside the copy are older than a source that has changed.
    """
    names = git(origin, "ls-files", "--cached", "--others", "--exclude-standard", "-z").split("\0")
    wanted = {target / name: (origin / name).read_bytes() for name in names if name and (origin / name).is_file()}
    wanted.update({target / name: text.encode() for name, text in changed.items()})
    for path in files(target):
        if path not in wanted:
            path.unlink()
    for path, content in wanted.items():
        if not path.is_file() or path.read_bytes() != content:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            if (source := origin / path.relative_to(target)).is_file():
                shutil.copymode(source, path)


def files(folder: Path) -> list[Path]:
    """Returns the files of a copy, without those of git and of sessions."""
    inside = (path for path in folder.rglob("*") if path.is_file())
    return [path for path in inside if path.relative_to(folder).parts[0] not in (".git", *BUILT)]
