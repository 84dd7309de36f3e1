# SPDX-License-Identifier: BSD-3-Clause
"""Formats docs/trace/account.json for a page of the guide: the instructions of one small operator, by library.

tools/pages/trace.py writes the record, and compares a new one with it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

RECORD = Path("docs", "trace", "account.json")
CPU, HOST, ENGINE = COLUMNS = ("CPU", "host", "engine")
OTHERS = "others"
# Title of a row -> the paths of its libraries.
LIBRARIES = {
    "Python": r"libpython|/python[\d.]*$|/_ctypes\.|libffi",
    "PyTorch: calls from Python": r"libtorch_python",
    "PyTorch: dispatcher, autograd, kernels": r"libtorch_cpu",
    "PyTorch: tensors and storages": r"libc10",
    "C library: memory, locks": r"/libc[.-]|libstdc\+\+|libm[.-]|/ld-linux|libpthread",
    "openreg-ops": r"/openreg_ops/",
    "driver": r"/libopenreg\.",
    "openreg-runtime": r"/openreg_runtime/",
}

OURS = ("openreg-ops", "driver", "openreg-runtime")
GROWTH = 1.05  # so much more than the record is accepted: the driver's threads meet at its lock now and then

# The instructions of each column, by the title of a row.
Account = dict[str, dict[str, int]]
# Beside them, the record has the compiler of the wheels: another one makes other code.
COMPILER = "compiler"


def by_title(counts: Mapping[str, int], operators: int) -> dict[str, int]:
    """Returns the instructions of one operator by the titles of LIBRARIES. `counts` has those of several operators."""
    found = dict.fromkeys([*LIBRARIES, OTHERS], 0)
    for path, count in counts.items():
        title = next((title for title, pattern in LIBRARIES.items() if re.search(pattern, path)), OTHERS)
        found[title] += count
    return {title: round(count / operators) for title, count in found.items()}


def write(root: Path, account: Account, compiler: str) -> None:
    """Writes the record of a repository."""
    record = {COMPILER: compiler, **account}
    (root / RECORD).write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


def read(root: Path) -> tuple[Account, str]:
    """Returns the record of a repository, and the compiler."""
    found = json.loads((root / RECORD).read_text("utf-8"))
    return {column: found[column] for column in COLUMNS}, found[COMPILER]


def grown(recorded: Account, measured: Account) -> list[str]:
    """Returns a line for each thread that executes more of OURS than the record and GROWTH allow."""
    found = []
    for column in (HOST, ENGINE):
        before, now = (sum(each[column][title] for title in OURS) for each in (recorded, measured))
        if now > before * GROWTH:
            rows = [(title, recorded[column][title], measured[column][title]) for title in OURS]
            grew = ", ".join(f"{title} {old} -> {new}" for title, old, new in rows if new > old)
            found.append(f"{column}: {before} -> {now} instructions ({grew})")
    return found


def table(root: Path) -> str:
    """Returns a Markdown table of the recorded instructions, and their sums."""
    account, _ = read(root)
    titles = [title for title in [*LIBRARIES, OTHERS] if any(account[column].get(title) for column in COLUMNS)]
    lines = ["| library | PyTorch's CPU | openreg: host | openreg: engine |", "|---|---:|---:|---:|"]
    for title in titles:
        lines.append(f"| {title} | {' | '.join(str(account[column].get(title) or '') for column in COLUMNS)} |")
    lines.append(f"| together | {' | '.join(str(sum(account[column].values())) for column in COLUMNS)} |")
    return "\n".join(lines) + "\n"
