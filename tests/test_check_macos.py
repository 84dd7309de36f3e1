# SPDX-License-Identifier: BSD-3-Clause
"""A library for macOS passes when others export what it takes from them, and not otherwise."""

from types import SimpleNamespace

import lief
import pytest

from tools import check_macos
from tools._platform import MACOS_LIBRARY_SUFFIX as LIB

OWN_NAME = lief.MachO.LoadCommand.TYPE.ID_DYLIB
NEEDED = lief.MachO.LoadCommand.TYPE.LOAD_DYLIB
EXPORTS = {f"libc10{LIB}": {"__ZN3c105ErrorE"}, f"libopenreg{LIB}": {"_orMalloc"}}


def library(*symbols, needs=(f"@rpath/libopenreg{LIB}", f"/usr/lib/libSystem.B{LIB}", f"@rpath/libc10{LIB}")):
    """As much of a library as is looked at; a symbol is its name and the number of the library it is asked of."""
    return SimpleNamespace(
        libraries=[
            SimpleNamespace(name=f"@rpath/libopenreg_runtime{LIB}", command=OWN_NAME),
            *(SimpleNamespace(name=name, command=NEEDED) for name in needs),
        ],
        imported_symbols=[SimpleNamespace(name=name, library_ordinal=number) for name, number in symbols],
        exported_symbols=[SimpleNamespace(name="__ZTV9Generator")],
    )


def found(binary):
    exports = {**EXPORTS, f"libopenreg_runtime{LIB}": set()}
    return check_macos.problems(f"lib/libopenreg_runtime{LIB}", binary, exports)


def test_a_library_whose_symbols_are_all_there_passes():
    assert found(library(("_orMalloc", 1), ("_malloc", 2), ("__ZN3c105ErrorE", 3), ("_PyLong_Type", 0))) == []
    assert found(library(("__ZTV9Generator", 0), ("__Py_NoneStruct", 254))) == []


@pytest.mark.parametrize(
    ("binary", "line"),
    [
        (library(("_orGone", 1)), f"@rpath/libopenreg{LIB} does not export _orGone"),
        (library(("_orMalloc", 3)), f"@rpath/libc10{LIB} does not export _orMalloc"),
        (library(("_GOMP_parallel", 254)), "_GOMP_parallel is in no library that it is linked with"),
        (library(("__ZTV6Stream", 0)), "__ZTV6Stream is in no library that it is linked with"),
        (library(needs=[f"@rpath/libgomp{LIB}"]), f"needs @rpath/libgomp{LIB}, which is in no package"),
    ],
)
def test_what_is_nowhere_is_named(binary, line):
    assert found(binary) == [f"lib/libopenreg_runtime{LIB}: {line}"]


def test_a_folder_without_libraries_does_not_pass(tmp_path):
    assert check_macos.main(str(tmp_path)) == 1
