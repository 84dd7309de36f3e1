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


class Machine:
    """As much of a nox session and of a wheelhouse as environments use; keeps what they are asked."""

    name = "subsets"
    packages = PACKAGES
    stopwatch = Stopwatch()

    def __init__(self, folder):
        self.folder, self.dist = folder, folder / "dist"
        self.commands, self.downloaded, self.provided = [], [], []

    def create_tmp(self):
        return str(self.folder)

    def install(self, *names):
        pass

    def run(self, *command, **options):
        self.commands.append((command, options))

    def chdir(self, _folder):
        return contextlib.nullcontext()

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
def machine(tmp_path):
    return Machine(tmp_path)


def make(machine, needed=()):
    return environments.Environments(machine, machine, needed)


def test_what_comes_from_elsewhere_is_downloaded_once_with_the_torch_of_the_build(machine):
    make(machine)
    make(machine)
    (arguments,) = machine.downloaded
    assert arguments[-5:] == ("torch==2.13.0", "numpy>=1.26", "pytest>=8.3", "rich>=13", "torch==2.13.*")


def test_only_the_wheels_that_are_needed_are_built(machine):
    make(machine, ["openreg-runtime"])
    assert machine.provided == ["openreg-runtime"]
    make(machine)
    assert machine.provided == list(PACKAGES)


def test_packages_are_installed_with_their_test_extra_and_without_a_network(machine):
    make(machine).create("label", ["openreg-runtime", "openreg-ops"])
    command, options = machine.commands[-1]
    assert command[-2:] == ("openreg-runtime[test]", "openreg-ops[test]")
    assert {"--offline", "--no-index"} <= set(command)
    assert options["include_outer_env"]


def test_a_plain_installation_sees_the_given_variables_only(machine):
    make(machine).create("label", ["openreg-ops"], extra="", variables={"PATH": "nothing"})
    options = machine.commands[-1][1]
    assert not options["include_outer_env"]
    assert options["env"]["PATH"] == "nothing"


@pytest.mark.parametrize(("code", "passes"), [("pass", True), ("raise SystemExit(3)", False)])
def test_a_program_passes_if_it_ends_with_0(machine, tmp_path, monkeypatch, code, passes):
    monkeypatch.setattr(environments, "python_of", lambda _: Path(sys.executable))
    environment = environments.Environment(machine, Stopwatch(), tmp_path, "label", ["openreg-ops"])
    check = "import os; assert os.environ['OPENREG_TEST_LANE'] == 'openreg-ops'; "
    assert environment.passes("step", "-c", check + code) is passes
