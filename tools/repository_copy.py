# SPDX-License-Identifier: BSD-3-Clause
"""The checkout once more, in another folder, to change there what must not change here."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

from tools.affected import git
from tools.packages import ROOT


def copy_repository(target: Path) -> None:
    """The files of the checkout, committed or not, as the first commit of a new repository.

    A file that is what it was in an earlier copy keeps its time, and any other gets the present one. Builds that are
    kept beside the copy compare times: one of an object that was compiled from the earlier file has to be older.
    """
    earlier = {path.relative_to(target): (digest(path), path.stat().st_mtime_ns) for path in files(target)}
    shutil.rmtree(target, ignore_errors=True)
    names = git(ROOT, "ls-files", "--cached", "--others", "--exclude-standard", "-z").split("\0")
    for name in names:
        if name and (ROOT / name).is_file():
            path = target / name
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, path)
            before, time = earlier.get(Path(name), ("", 0))
            if before == digest(path):
                os.utime(path, ns=(time, time))
    git(target, "init", "--quiet")
    git(target, "add", "--all")


def files(folder: Path) -> list[Path]:
    """Those of a copy, without what git keeps."""
    return [path for path in folder.rglob("*") if path.is_file() and ".git" not in path.relative_to(folder).parts[:1]]


def digest(path: Path) -> str:
    """Stands for the content."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
