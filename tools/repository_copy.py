# SPDX-License-Identifier: BSD-3-Clause
"""The checkout once more, in another folder, to change there what must not change here."""

from __future__ import annotations

import filecmp
import shutil
from pathlib import Path

from tools.affected import git
from tools.packages import ROOT


def copy_repository(target: Path) -> None:
    """The files of the checkout, committed or not, as the first commit of a new repository.

    A file that is what it was in an earlier copy keeps its time, and any other gets the present one. Builds that are
    kept beside the copy compare times: one of an object that was compiled from the earlier file has to be older.
    """
    shutil.rmtree(target / ".git", ignore_errors=True)
    names = git(ROOT, "ls-files", "--cached", "--others", "--exclude-standard", "-z").split("\0")
    wanted = {target / name: ROOT / name for name in names if name and (ROOT / name).is_file()}
    for path in files(target):
        if path not in wanted:
            path.unlink()
    for path, origin in wanted.items():
        if not path.is_file() or not filecmp.cmp(origin, path, shallow=False):
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(origin, path)
    git(target, "init", "--quiet")
    git(target, "add", "--all")


def files(folder: Path) -> list[Path]:
    """Those of a copy, without what git keeps."""
    return [path for path in folder.rglob("*") if path.is_file() and ".git" not in path.relative_to(folder).parts[:1]]
