# SPDX-License-Identifier: BSD-3-Clause
"""Where an emulator is missing, the session says which, why, and how to get it; nothing is skipped."""

import shutil
from pathlib import Path

import pytest

from tools import emulators
from tools.emulators import EMULATORS
from tools.native_driver import configure_cross

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
    said = emulators.missing(EMULATORS)
    assert f"{WINDOWS} needs wine 9.0 or later" in said
    assert f"{LINUX} needs qemu-aarch64 and {EMULATORS[LINUX].root}" in said
    assert said.endswith("apt-get install --no-install-recommends wine wine64 qemu-user libc6-arm64-cross")
    installed("wine", "wine-8.0")
    assert emulators.missing(EMULATORS) == said
    installed("wine", "wine-10.0")
    assert "wine" not in emulators.missing(EMULATORS)


def test_cmake_runs_programs_under_the_emulator(installed):
    wine, qemu = installed("wine", "wine-10.0"), installed("qemu-aarch64", "7.2")
    assert f"-DCMAKE_CROSSCOMPILING_EMULATOR={wine}" in configure_cross(WINDOWS)
    assert f"-DCMAKE_CROSSCOMPILING_EMULATOR={qemu};-L;{EMULATORS[LINUX].root}" in configure_cross(LINUX)
    assert "-DCMAKE_CROSSCOMPILING_EMULATOR=" in configure_cross("aarch64-macos")
    Path(EMULATORS[LINUX].root).rmdir()
    assert LINUX in emulators.missing([LINUX])
