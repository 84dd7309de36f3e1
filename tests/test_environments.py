# SPDX-License-Identifier: BSD-3-Clause
"""How environments are asked for; that they hold what was asked is proved in each by its RECORD files."""

import contextlib
import sys
from pathlib import Path

import pytest

from tools import environments
from tools.packages import Package
from tools.stopwatch import Stopwatch


def package(name, *requirements, test=()):
    return Package(name, Path(name), "0.1.0", requirements, (), {}, {"test": test})


PACKAGES = {
    "openreg-runtime": package("openreg-runtime", "torch==2.13.*", test=("numpy>=1.26", "pytest>=8.3")),
    "openreg-ops": package("openreg-ops", "openreg-runtime==0.1.*", test=("pytest>=8.3", "rich>=13")),
}


class Session:
    """As much of a nox session as environments use; keeps the commands."""

    name = "subsets"

    def __init__(self, folder):
        self.folder = folder
        self.commands = []

    def create_tmp(self):
        return str(self.folder)

    def install(self, *names):
        self.commands.append(("install", *names))

    def run(self, *command, **options):
        self.commands.append((*command, options))

    @contextlib.contextmanager
    def chdir(self, _folder):
        yield


class House:
    """A wheelhouse whose wheels are there."""

    def __init__(self, folder):
        self.dist = folder / "dist"
        self.folder = folder
        self.downloaded = []
        self.provided = []

    def cache(self, _session):
        return self.folder

    def provide(self, _session, names):
        self.provided = names
        return {name: self.dist / f"{name}.whl" for name in names}

    def torch_version(self, _session):
        return "2.13.0"

    def run_python(self, _session, *arguments):
        (self.folder / f"downloads-{environments.PYTHON_TAG}").mkdir(exist_ok=True)
        self.downloaded.append(arguments)


@pytest.fixture
def house(tmp_path):
    return House(tmp_path)


@pytest.fixture
def session(tmp_path):
    return Session(tmp_path)


def make(session, house, needed=()):
    return environments.Environments(session, PACKAGES, house, Stopwatch(), needed)


def installation(session):
    (*command, options) = session.commands[-1]
    return command, options


def test_what_comes_from_elsewhere_is_what_no_package_here_is():
    assert environments.foreign_requirements(PACKAGES) == ["numpy>=1.26", "pytest>=8.3", "rich>=13", "torch==2.13.*"]


def test_it_is_downloaded_once_with_the_torch_of_the_build(session, house):
    make(session, house)
    make(session, house)
    (arguments,) = house.downloaded
    assert "torch==2.13.0" in arguments
    assert "rich>=13" in arguments


def test_only_the_wheels_that_are_needed_are_built(session, house):
    make(session, house, ["openreg-runtime"])
    assert house.provided == ["openreg-runtime"]
    make(session, house)
    assert house.provided == list(PACKAGES)


def test_packages_are_installed_with_their_test_extra_and_without_a_network(session, house):
    make(session, house).create("label", ["openreg-runtime", "openreg-ops"])
    command, options = installation(session)
    assert command[-2:] == ["openreg-runtime[test]", "openreg-ops[test]"]
    assert {"--offline", "--no-index"} <= set(command)
    assert options["include_outer_env"]


def test_a_changed_wheel_takes_the_place_of_the_one_in_dist(session, house, tmp_path):
    wheel = tmp_path / "changed.whl"
    make(session, house).create("label", ["openreg-ops"], changed={"openreg-ops": wheel}, extra="")
    assert installation(session)[0][-1] == f"openreg-ops @ {wheel.as_uri()}"


def test_a_plain_installation_sees_the_given_variables_only(session, house):
    make(session, house).create("label", ["openreg-ops"], extra="", variables={"PATH": "nothing"})
    options = installation(session)[1]
    assert not options["include_outer_env"]
    assert options["env"]["PATH"] == "nothing"


@pytest.mark.parametrize(("code", "passes"), [("pass", True), ("raise SystemExit(3)", False)])
def test_a_program_passes_if_it_ends_with_0(session, tmp_path, monkeypatch, code, passes):
    monkeypatch.setattr(environments, "python_of", lambda _: Path(sys.executable))
    environment = environments.Environment(session, Stopwatch(), tmp_path, "label", ["openreg-ops"])
    check = "import os; assert os.environ['OPENREG_TEST_LANE'] == 'openreg-ops'; "
    assert environment.passes("step", "-c", check + code) is passes
