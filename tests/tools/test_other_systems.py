# SPDX-License-Identifier: BSD-3-Clause
"""Tools that cross-compilation lacks are named with a command, and wrong symbols of libraries are found."""

import shutil
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import lief
import pytest

from tools._platform import MACOS_LIBRARY_SUFFIX as LIB
from tools.sessions.lock import VARIABLE
from tools.sessions.stopwatch import Stopwatch
from tools.systems import check_exports, check_macos, native_driver
from tools.systems.native_driver import EMULATORS, configure_cross

WINDOWS, LINUX = EMULATORS


@pytest.fixture
def installed(monkeypatch, tmp_path):
    """Installs a program that says a version; nothing else is there but the libraries of the target."""
    root = tmp_path / "target"
    root.mkdir()
    monkeypatch.setitem(EMULATORS, LINUX, EMULATORS[LINUX]._replace(root=str(root)))
    monkeypatch.setattr(shutil, "which", lambda name: str(tmp_path / name) if (tmp_path / name).exists() else None)

    def install(name, version):
        (tmp_path / name).write_text(f"#!/bin/sh\necho '{version} (Debian 11.0)'\n")
        (tmp_path / name).chmod(0o755)
        return str(tmp_path / name)

    return install


def test_what_is_missing_is_named_with_the_command(installed):
    said = native_driver.missing(EMULATORS)
    assert f"{WINDOWS} needs wine 9.0 or later" in said
    assert f"{LINUX} needs qemu-aarch64 and {EMULATORS[LINUX].root}" in said
    assert said.endswith("apt-get install --no-install-recommends wine wine64 qemu-user libc6-arm64-cross")
    installed("wine", "wine-8.0")
    assert native_driver.missing(EMULATORS) == said
    installed("wine", "wine-10.0")
    assert "wine" not in native_driver.missing(EMULATORS)


def test_cmake_runs_programs_under_the_emulator(installed):
    wine, qemu = installed("wine", "wine-10.0"), installed("qemu-aarch64", "7.2")
    assert f"-DCMAKE_CROSSCOMPILING_EMULATOR={wine}" in configure_cross(WINDOWS)
    assert f"-DCMAKE_CROSSCOMPILING_EMULATOR={qemu};-L;{EMULATORS[LINUX].root}" in configure_cross(LINUX)
    assert "-DCMAKE_CROSSCOMPILING_EMULATOR=" in configure_cross("aarch64-macos")
    Path(EMULATORS[LINUX].root).rmdir()
    assert LINUX in native_driver.missing([LINUX])


def test_a_target_for_which_no_library_was_made_fails_the_session(monkeypatch, tmp_path):
    monkeypatch.setenv(VARIABLE, str(tmp_path.resolve()))
    monkeypatch.setattr(native_driver, "build_cross", lambda _, target: tmp_path / target)
    (tmp_path / WINDOWS).mkdir()
    (tmp_path / WINDOWS / native_driver.DRIVER_LIBRARIES[0]).touch()

    def error(message):
        raise RuntimeError(message)

    session = Mock(cache_dir=tmp_path, posargs=[WINDOWS, LINUX], error=error)
    session.name = "cross"
    with pytest.raises(RuntimeError, match=f"{LINUX}: none of "):
        native_driver.cross_compile(session, Stopwatch())
    session.posargs = [WINDOWS]
    native_driver.cross_compile(session, Stopwatch())


OWN_NAME = lief.MachO.LoadCommand.TYPE.ID_DYLIB
NEEDED = lief.MachO.LoadCommand.TYPE.LOAD_DYLIB
EXPORTS = {f"libc10{LIB}": {"__ZN3c105ErrorE"}, f"libopenreg{LIB}": {"_orMalloc"}}


def library(*symbols, needs=(f"@rpath/libopenreg{LIB}", f"/usr/lib/libSystem.B{LIB}", f"@rpath/libc10{LIB}")):
    """As much of a library as is looked at; a symbol is its name and the number of the library it is asked of."""
    libraries = [(f"@rpath/libopenreg_runtime{LIB}", OWN_NAME), *((name, NEEDED) for name in needs)]
    return SimpleNamespace(
        libraries=[SimpleNamespace(name=name, command=command) for name, command in libraries],
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


def test_the_export_check_finds_what_is_missing_and_what_is_too_much(tmp_path):
    header = tmp_path / "some.h"
    header.write_text("/* OPENREG_API int orInComment(void); */\nOPENREG_API const char* orMissing(int code);\n")
    found = check_exports.problems(header, Path(lief._lief.__file__))
    said = {line.partition(": ")[2] for line in found}
    assert {
        "orMissing is declared in some.h and not exported",
        "PyInit__lief is exported and not declared in some.h",
    } <= said
    assert "orInComment" not in str(said)
