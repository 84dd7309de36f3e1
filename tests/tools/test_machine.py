# SPDX-License-Identifier: BSD-3-Clause
"""A missing compiler or too little disk space is reported before anything is downloaded."""

from types import SimpleNamespace

import pytest
from nox.command import CommandFailed

from tools.pages import trace
from tools.sessions import machine, stopwatch, wheelhouse


@pytest.fixture
def bare(tmp_path, monkeypatch):
    """A folder for programs that is the whole path, and no setting that names a compiler."""
    monkeypatch.setattr(machine, "FINDS_COMPILERS_ITSELF", False)
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in ("CXX", "CMAKE_ARGS"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def add_program(folder, name):
    program = folder / name
    program.touch()
    program.chmod(0o755)


def test_a_missing_compiler_is_reported_with_the_way_to_get_one(bare):
    assert "install one with C++20" in machine.lacks_compiler()
    add_program(bare, "clang++")
    assert machine.lacks_compiler() is None


@pytest.mark.parametrize("named", ["g++-99", "ccache g++-99"])
def test_a_compiler_that_is_named_and_missing_is_reported(bare, monkeypatch, named):
    add_program(bare, "c++")
    monkeypatch.setenv("CXX", named)
    assert f"not there: {named}" in machine.lacks_compiler()
    add_program(bare, named.split()[0])
    assert machine.lacks_compiler() is None


def test_a_compiler_that_is_passed_to_cmake_is_accepted(bare, monkeypatch):
    monkeypatch.setenv("CMAKE_ARGS", "-DCMAKE_CXX_COMPILER=compiler")
    assert machine.lacks_compiler() is None


@pytest.mark.parametrize(
    ("named", "kind"),
    [("", "g++ 12"), ("g++-12", "g++ 12"), ("launcher clang++-18 -m64", "clang++ 18"), ("c++", "g++ 12")],
)
def test_the_compiler_of_a_record_is_that_of_the_build_by_its_kind(bare, monkeypatch, named, kind):
    for name, text in {"g++-12": "echo 12.2.0", "clang++-18": "echo 18.1.8", "launcher": '"$@"'}.items():
        add_program(bare, name)
        (bare / name).write_text(f"#!/bin/sh\n{text}\n")
    (bare / "c++").symlink_to("g++-12")
    monkeypatch.setenv("CXX", named)
    assert trace.compiler() == kind


def test_a_record_without_a_compiler_is_refused_with_the_way_to_get_one(bare, monkeypatch, capsys):
    with pytest.raises(SystemExit, match="2"):
        trace.compiler()
    assert "install one with C++20" in capsys.readouterr().err
    monkeypatch.setenv("CMAKE_ARGS", "-DCMAKE_CXX_COMPILER=compiler")
    with pytest.raises(SystemExit, match="2"):
        trace.compiler()
    assert "set CC and CXX" in capsys.readouterr().err


def test_a_full_disk_is_reported_with_what_is_needed(tmp_path, monkeypatch):
    for free, expected in ((machine.ROOM, None), (machine.ROOM - 1, "4.0 GiB are free"), (0, "0.0 GiB are free")):
        monkeypatch.setattr(machine.shutil, "disk_usage", lambda _, free=free: SimpleNamespace(free=free))
        problem = machine.lacks_room(tmp_path)
        assert problem is None if expected is None else expected in problem and "make room" in problem


class Session:
    """One of nox in which pip fails."""

    name = "wheels"

    def __init__(self, folder):
        self.cache_dir = folder
        self.commands = []

    def run(self, *command, **_):
        self.commands.append(command)
        if "pip" in command:
            raise CommandFailed

    def error(self, message):
        raise RuntimeError(message)


@pytest.fixture
def house(tmp_path, monkeypatch):
    monkeypatch.setattr(wheelhouse, "lacks_compiler", lambda: None)
    monkeypatch.setattr(wheelhouse, "lacks_room", lambda _: None)
    return wheelhouse.Wheelhouse(tmp_path, {}, stopwatch.Stopwatch())


def test_an_environment_that_pip_could_not_fill_is_made_anew(house, tmp_path):
    for _ in range(2):
        session = Session(tmp_path)
        with pytest.raises(RuntimeError, match="name one by PIP_INDEX_URL"):
            house.prepare(session)
        made, filled = session.commands
        assert "--clear" in made
        assert "pip" in filled


@pytest.mark.parametrize("what", ["lacks_compiler", "lacks_room"])
def test_nothing_is_downloaded_where_nothing_can_be_built(house, tmp_path, monkeypatch, what):
    monkeypatch.setattr(wheelhouse, what, lambda *_: "the problem")
    session = Session(tmp_path)
    with pytest.raises(RuntimeError, match="the problem"):
        house.prepare(session)
    assert session.commands == []
