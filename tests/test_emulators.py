# SPDX-License-Identifier: BSD-3-Clause
"""Where an emulator is missing, the session says which, why, and how to get it; nothing is skipped."""

import re
import shutil

import pytest

from tools import emulators
from tools.emulators import EMULATORS, Emulator
from tools.native_driver import configure_cross
from tools.packages import ROOT


@pytest.fixture
def installed(monkeypatch):
    """The programs that are on the path; a test adds to them."""
    programs = set()
    monkeypatch.setattr(shutil, "which", lambda name: f"/bin/{name}" if name in programs else None)
    monkeypatch.setattr(emulators, "version_of", lambda program: "10.0")
    return programs


def test_what_is_missing_is_named_with_the_command(installed):
    installed.add("wine")
    message = emulators.missing(EMULATORS)
    assert "aarch64-linux-gnu needs QEMU: no program qemu-aarch64" in message
    assert "Wine" not in message
    assert message.endswith("apt-get install --no-install-recommends qemu-user libc6-arm64-cross")
    installed.clear()
    assert "x86_64-windows-gnu needs Wine: no program wine64 or wine is on the path" in emulators.missing(EMULATORS)


def test_an_old_wine_is_refused(installed, monkeypatch):
    installed.add("wine")
    monkeypatch.setattr(emulators, "version_of", lambda program: "8.0")
    message = emulators.missing(["x86_64-windows-gnu"])
    assert "needs Wine: /bin/wine is 8.0, and 9.0 or later is needed (Debian 13 and Ubuntu 24.04 have it)" in message


def test_a_version_is_read_from_what_the_program_says(tmp_path):
    program = tmp_path / "wine"
    program.write_text("#!/bin/sh\necho 'wine-10.0 (Debian 10.0~repack-6)'\n")
    program.chmod(0o755)
    assert emulators.version_of(str(program)) == "10.0"


def test_the_libraries_of_the_target_are_looked_for(installed, monkeypatch, tmp_path):
    installed.add("qemu")
    emulator = Emulator("QEMU", ("other", "qemu"), "qemu-user", root=str(tmp_path / "target"))
    monkeypatch.setitem(EMULATORS, "target", emulator)
    assert f"there is no folder {tmp_path / 'target'}" in emulators.missing(["target"])
    (tmp_path / "target").mkdir()
    assert emulators.missing(["target"]) == ""
    assert emulator.command() == ["/bin/qemu", "-L", str(tmp_path / "target")]


def test_cmake_runs_programs_under_the_emulator(installed):
    installed.add("wine64")
    assert "-DCMAKE_CROSSCOMPILING_EMULATOR=/bin/wine64" in configure_cross("x86_64-windows-gnu")
    assert "-DCMAKE_CROSSCOMPILING_EMULATOR=" in configure_cross("aarch64-macos")


def test_the_workflow_installs_what_the_session_asks_for():
    text = (ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8")
    (line,) = re.findall(r"matrix.session == 'emulated'\n +run: (.*)", text)
    for emulator in EMULATORS.values():
        assert set(emulator.packages.split()) <= set(line.split())
