# SPDX-License-Identifier: BSD-3-Clause
"""Checks that libraries export the functions of a C header and nothing else.

check_exports.py HEADER LIBRARY...     needs the package lief, which reads the formats of Linux, macOS and Windows
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import lief

# The symbols that zig adds on macOS: the visible operators new and delete of the C++ library, which it links
# statically, and symbols that the linker generates.
OF_THE_TOOLS = re.compile(r"_Zn[aw]|_Zd[al]|__dso_handle$|_mh_dylib_header$")


def declared(header: Path) -> set[str]:
    """Returns the functions that a header marks as part of the interface."""
    return set(re.findall(r"^OPENREG_API [\w ]*?\**\s*\b(or\w+)\(", header.read_text(encoding="utf-8"), re.MULTILINE))


def exported(library: Path) -> set[str]:
    """Returns the names that a library exports, as C spells them. Raises ValueError if lief cannot read the library."""
    binary = lief.parse(str(library))
    if not isinstance(binary, (lief.ELF.Binary, lief.MachO.Binary, lief.PE.Binary)):
        raise ValueError(f"{library} is no library that lief can read")
    names = {str(item.name) for item in (*binary.exported_functions, *getattr(binary, "exported_symbols", ()))}
    if isinstance(binary, lief.MachO.Binary):
        names = {name.removeprefix("_") for name in names}
    return {name for name in names if not OF_THE_TOOLS.match(name)}


def problems(header: Path, library: Path) -> list[str]:
    """Returns one line for each name that is only declared, or only exported."""
    wanted, found = declared(header), exported(library)
    return [
        *(f"{library.name}: {name} is declared in {header.name} and not exported" for name in sorted(wanted - found)),
        *(f"{library.name}: {name} is exported and not declared in {header.name}" for name in sorted(found - wanted)),
    ]


def main(header: str, *libraries: str) -> int:
    """Prints the problems of the libraries. Returns the exit status, which is 0 if there are none."""
    lines = [line for library in libraries for line in problems(Path(header), Path(library))]
    print("\n".join(lines) or f"{len(libraries)} libraries export the {len(declared(Path(header)))} functions")
    return 1 if lines or not libraries else 0


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
