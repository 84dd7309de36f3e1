# SPDX-License-Identifier: BSD-3-Clause
"""Rules for the workflows: what they run is fixed, and only who publishes can prove who he is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

USES = re.compile(r"^\s*(?:- )?uses:\s*(.*)$")
# A name can be moved to other code, a commit cannot. The comment is for readers and Dependabot, which updates both.
PINNED = re.compile(r"(\./\S+|[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+)$")
# What lets a job sign, and upload to the package index.
IDENTITY = re.compile(r"^\s*id-token:\s*write\b")
JOB = re.compile(r"^  ([\w-]+):\s*(#.*)?$")


def workflows(root: Path) -> Iterator[Path]:
    """The workflows of the repository."""
    for pattern in ("*.yml", "*.yaml"):
        yield from sorted((root / ".github" / "workflows").glob(pattern))


def actions_are_pinned(root: Path) -> list[str]:
    """Every action is named by a commit, with the version in a comment."""
    return [
        f"{path.relative_to(root)}:{number}: {found.group(1)!r}: name the commit and the version: "
        "uses: owner/action@<40 hexadecimal digits> # v1.2.3"
        for path in workflows(root)
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if (found := USES.match(line)) and not PINNED.match(found.group(1))
    ]


def identity_only_to_publish(root: Path) -> list[str]:
    """No job but one called publish gets a token that proves who runs it."""
    problems = []
    for path in workflows(root):
        job = "every job"
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
            found = JOB.match(line)
            job = found.group(1) if found else job
            if IDENTITY.match(line) and job != "publish":
                problems.append(f"{path.relative_to(root)}:{number}: id-token for {job}: only the job publish needs it")
    return problems
