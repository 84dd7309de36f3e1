# SPDX-License-Identifier: BSD-3-Clause
"""Compares PyTorch's interfaces for backends, as the installed torch declares them, with the record, or records them.

usage: python packages/openreg-doctor/tools/interfaces.py             writes the release into interfaces.json
       python packages/openreg-doctor/tools/interfaces.py --compare   prints a line for each function that differs

Needs torch alone and does not import it, so it also works with a torch for which nothing was built yet. Record each
supported release once. `nox -s interfaces` compares with the torch that the wheels are built against.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from importlib.util import find_spec
from pathlib import Path

# The sources beside this file, whatever is installed.
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from openreg_doctor import declarations, table


def torch_folder() -> Path:
    """Returns the folder in which torch is installed."""
    found = find_spec("torch")
    if found is None or found.origin is None:
        raise SystemExit(f"interfaces: there is no torch in {sys.prefix}; install one: pip install torch")
    return Path(found.origin).parent


def torch_version(folder: Path) -> str:
    """Returns the version of that torch, without importing it."""
    match = re.search(r"__version__ = '([^']+)'", (folder / "version.py").read_text("utf-8"))
    if match is None:
        raise SystemExit(f"interfaces: {folder / 'version.py'} names no version; install torch again")
    return match[1]


def release_of(version: str) -> str:
    """Returns the release of a version, such as "2.13"."""
    return ".".join(version.split(".")[:2])


def compare(folder: Path) -> list[str]:
    """Returns one sentence for each function that differs from the record."""
    groups = table.read()
    record, version = declarations.read_record(), torch_version(folder)
    release = declarations.closest(record, release_of(version))
    found = declarations.differences(groups, record[release], declarations.interfaces(folder, groups))
    return [item.text(f"torch {release}", f"torch {version}") for item in found]


def render(folder: Path) -> str:
    """Returns the text of the record with the installed release."""
    groups = table.read()
    installed = {release_of(torch_version(folder)): declarations.interfaces(folder, groups)}
    record = {**declarations.read_record(), **installed}
    ordered = {release: record[release] for release in sorted(record, key=lambda item: int(item.partition(".")[2]))}
    return json.dumps(ordered, indent=1) + "\n"


def main() -> None:
    """Compares or writes."""
    parser = argparse.ArgumentParser(description="Records the interfaces of the installed PyTorch for backends.")
    parser.add_argument("--compare", action="store_true", help="print what differs from the record; write nothing")
    folder = torch_folder()
    if parser.parse_args().compare:
        for line in compare(folder):
            print(line)
        return
    page = table.FOLDER / declarations.RECORD
    page.write_text(render(folder), encoding="utf-8")
    print(f"wrote torch {release_of(torch_version(folder))} into {page.name}")


if __name__ == "__main__":
    main()
