# SPDX-License-Identifier: BSD-3-Clause
"""Checks that every symbol that our libraries for macOS import from another library is exported by it.

usage: python -m tools.systems.check_macos SITE_PACKAGES     needs lief; the folder contains torch and our packages

The linker relies on descriptions of libraries, which may be wrong. So this program looks up each imported symbol among
the exports of the library that it is imported from. A symbol that is imported from no particular library must be one of
Python, which the interpreter exports, or one of the importing library itself, which another copy may replace.
"""

from __future__ import annotations

import sys
from pathlib import Path

import lief

from tools._platform import MACOS_LIBRARY_SUFFIX, MODULE_SUFFIX

SYSTEM = ("/usr/lib/", "/System/")
OF_NO_LIBRARY = {0, 254}  # ordinals of imports without a library: from the library itself, and from any
OF_PYTHON = ("_Py", "__Py")


def parse(path: Path) -> lief.MachO.Binary:
    """Returns the library at a path. Raises ValueError if it is not a library for macOS on arm64."""
    binary = lief.parse(str(path))
    if not isinstance(binary, lief.MachO.Binary):
        raise ValueError(f"{path} is not in macOS's format")
    if binary.header.cpu_type != lief.MachO.Header.CPU_TYPE.ARM64:
        raise ValueError(f"{path} is for {binary.header.cpu_type.name}, not for arm64")
    return binary


def our_libraries(folder: Path) -> list[Path]:
    """Returns the libraries and extension modules of our packages below a folder."""
    suffixes = (MACOS_LIBRARY_SUFFIX, MODULE_SUFFIX)
    found = (path for suffix in suffixes for path in folder.glob(f"openreg_*/**/*{suffix}"))
    return sorted(path for path in found if not path.is_symlink())


def exported(binary: lief.MachO.Binary) -> set[str]:
    """Returns copies of the names that a library exports, because lief's symbols are valid only as long as `binary`."""
    return {str(item.name) for item in binary.exported_symbols}


def problems(file: str, binary: lief.MachO.Binary, exports: dict[str, set[str]]) -> list[str]:
    """Returns one line for each symbol that no library exports, and for each library that is missing."""
    names, own = dependencies(binary), exported(binary)
    absent = {name for name in names if not name.startswith(SYSTEM) and Path(name).name not in exports}
    lines = [f"{file}: needs {name}, which is in no package" for name in sorted(absent)]
    for symbol in binary.imported_symbols:
        name = str(symbol.name)
        if symbol.library_ordinal in OF_NO_LIBRARY:
            if not name.startswith(OF_PYTHON) and name not in own:
                lines.append(f"{file}: {name} is in no library that it is linked with")
            continue
        library = names[symbol.library_ordinal - 1]
        if library.startswith(SYSTEM) or library in absent:
            continue
        if name not in exports[Path(library).name]:
            lines.append(f"{file}: {library} does not export {name}")
    return lines


def dependencies(binary: lief.MachO.Binary) -> list[str]:
    """Returns the libraries that a library is linked with, in the order of their ordinals, without itself."""
    own = lief.MachO.LoadCommand.TYPE.ID_DYLIB
    return [str(library.name) for library in binary.libraries if library.command != own]


def main(folder: str) -> int:
    """Prints the problems of the libraries. Returns the exit status, which is 0 if there are none."""
    libraries = {path.relative_to(folder).as_posix(): parse(path) for path in our_libraries(Path(folder))}
    # Extension modules are left out of the exports, because nothing is linked with them.
    offering = [*Path(folder).glob(f"torch/lib/*{MACOS_LIBRARY_SUFFIX}"), *our_libraries(Path(folder))]
    exports = {path.name: exported(parse(path)) for path in offering if path.suffix == MACOS_LIBRARY_SUFFIX}
    lines = [line for name, binary in libraries.items() for line in problems(name, binary, exports)]
    count = sum(len(list(binary.imported_symbols)) for binary in libraries.values())
    print("\n".join(lines) or f"{', '.join(libraries)}: for macOS arm64, and all {count} symbols are found")
    return 1 if lines or not libraries else 0


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
