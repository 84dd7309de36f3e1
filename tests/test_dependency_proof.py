# SPDX-License-Identifier: BSD-3-Clause
"""Wheels lose a dependency as if their package did not declare it, and a lane that does not mind is reported."""

import csv
import sys
import zipfile

import pytest

from tools import dependency_proof, lane, packages
from tools.dependency_proof import Removal
from tools.packages import ROOT

METADATA = """\
Metadata-Version: 2.4
Name: openreg-ops
Version: 0.1.0
Requires-Dist: openreg-runtime==0.1.*
Requires-Dist: openreg_amp (==0.1.*)
Requires-Dist: openreg-runtime==0.1.*; extra == "test"

Requires-Dist: openreg-runtime, says the long description.
"""
INFO = "openreg_ops-0.1.0.dist-info"


@pytest.fixture
def wheel(tmp_path):
    path = tmp_path / "openreg_ops-0.1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("openreg_ops/__init__.py", "")
        archive.writestr(f"{INFO}/METADATA", METADATA)
        lines = [
            "openreg_ops/__init__.py,sha256=x,0",
            dependency_proof.renew_record(f"{INFO}/METADATA,,", f"{INFO}/METADATA", METADATA.encode()),
            f"{INFO}/RECORD,,",
        ]
        archive.writestr(f"{INFO}/RECORD", "\n".join(lines) + "\n")
    return path


def changed_wheel(wheel, dependency):
    folder = wheel.parent / "changed"
    folder.mkdir()
    return dependency_proof.remove_dependency(wheel, dependency, folder)


def test_every_dependency_of_every_package_is_taken_away_once():
    everything = packages.discover(ROOT)
    found = {name: everything[name] for name in packages.closure("openreg-meta", everything)}
    assert set(dependency_proof.removals(found)) == {
        *(Removal("openreg-doctor", name) for name in ("packaging", "rich")),
        *([Removal("openreg-doctor", "tomli")] if sys.version_info < (3, 11) else []),
        *(Removal("openreg-runtime", name) for name in ("openreg-doctor", "torch")),
        Removal("openreg-autoload", "torch"),
        Removal("openreg-ops", "openreg-runtime"),
        Removal("openreg-amp", "openreg-runtime"),
        *(Removal("openreg-meta", f"openreg-{name}") for name in ("runtime", "ops", "amp", "autoload")),
    }


@pytest.mark.parametrize(("dependency", "line"), [("openreg-runtime", 3), ("openreg-amp", 4)])
def test_a_wheel_loses_one_requirement_and_nothing_else(wheel, dependency, line):
    with zipfile.ZipFile(changed_wheel(wheel, dependency)) as archive:
        text = archive.read(f"{INFO}/METADATA").decode()
        assert archive.testzip() is None
        assert archive.read("openreg_ops/__init__.py") == b""
    lines = METADATA.splitlines()
    del lines[line]
    assert text.splitlines() == lines


def test_the_record_of_the_changed_wheel_is_right(wheel):
    changed = changed_wheel(wheel, "openreg-runtime")
    assert lane.wheel_record(changed) != lane.wheel_record(wheel)
    with zipfile.ZipFile(changed) as archive:
        rows = {row[0]: row[1:] for row in csv.reader(archive.read(f"{INFO}/RECORD").decode().splitlines())}
        content = archive.read(f"{INFO}/METADATA")
    assert rows[f"{INFO}/METADATA"][1] == str(len(content))
    renewed = dependency_proof.renew_record("a,,", "a", content)
    assert renewed == ",".join(["a", *rows[f"{INFO}/METADATA"]])


def test_a_dependency_that_the_wheel_does_not_have_is_refused(wheel):
    with pytest.raises(ValueError, match=r"openreg_ops-0\.1\.0-py3-none-any\.whl does not ask for numpy"):
        changed_wheel(wheel, "numpy")


def test_a_lane_that_passes_without_a_dependency_fails_the_session(wheel, tmp_path, monkeypatch):
    ops = packages.Package("openreg-ops", tmp_path, "0.1.0", ("openreg-runtime", "openreg_amp"), (), {}, {})
    needed = {"openreg-runtime": "pytest", "openreg-amp": ""}
    monkeypatch.setattr(dependency_proof, "lane_fails", lambda _e, _p, removal, _w: needed[removal.dependency])
    monkeypatch.setattr(dependency_proof, "Environments", lambda *_: Made(wheel))
    with pytest.raises(RuntimeError, match="openreg-ops declares openreg-amp and its lane passes without it"):
        dependency_proof.run_dependency_proof(Session(tmp_path), None, {"openreg-ops": ops}, None)
    needed["openreg-amp"] = "pytest"
    dependency_proof.run_dependency_proof(Session(tmp_path), None, {"openreg-ops": ops}, None)


class Made:
    """Environments in which everything passes."""

    def __init__(self, wheel):
        self.wheels = {"openreg-ops": wheel}

    def create(self, *_):
        return self

    def run(self, *_):
        pass


class Session:
    """As much of a nox session as the proof uses."""

    def __init__(self, folder):
        self.create_tmp = lambda: str(folder)

    def log(self, _):
        pass

    def error(self, message):
        raise RuntimeError(message)
