# SPDX-License-Identifier: BSD-3-Clause
"""pip resolves, replaces and refuses versions of these packages as documented, for every supported release of torch."""

import json
import re
import shutil
import subprocess
import sys

import pytest
from helpers import replace
from tiny_wheels import chosen, run_pip, write_all

from tools import new_package, providers, torch_release
from tools._platform import PYTHON_PROGRAM, SCRIPTS_FOLDER
from tools.packages import closure, discover

OURS = tuple(closure("openreg-meta", discover()))
OLDEST, MIDDLE, NEWEST = torch_release.SUPPORTED[0], torch_release.SUPPORTED[1], torch_release.SUPPORTED[-1]


@pytest.fixture
def index(checkout, tmp_path):
    """The wheels of every release."""
    return write_all(tmp_path / "wheels", checkout)


def minor(version):
    return version.rpartition(".")[0]


@pytest.mark.parametrize(
    ("release", "wanted"),
    [
        *((release, ("openreg-meta", f"torch=={release}.*")) for release in torch_release.SUPPORTED),
        (MIDDLE, (f"openreg-meta=={MIDDLE}.*",)),
        (MIDDLE, ("openreg-meta", f"openreg-amp=={MIDDLE}.*")),
    ],
)
def test_one_pin_decides_everything(index, tmp_path, release, wanted):
    found = chosen(index, tmp_path, *wanted)
    assert set(OURS) < set(found)
    assert {minor(found[name]) for name in (*OURS, "torch")} == {release}
    assert found["torch"] == f"{release}.1"


def test_without_a_constraint_pip_takes_the_newest_pair_that_there_is(index, tmp_path):
    # On a Python that the newest release of PyTorch gave up, there is no wheel of it.
    smaller = tmp_path / "smaller"
    shutil.copytree(index, smaller, ignore=shutil.ignore_patterns(f"torch-{NEWEST}.*.whl"))
    for wheels, release in ((index, NEWEST), (smaller, MIDDLE)):
        for name in ("openreg-meta", "openreg-autoload"):
            found = chosen(wheels, tmp_path, name)
            assert {minor(found[item]) for item in (*OURS, "torch") if item in found} == {release}
            assert name in found


@pytest.mark.parametrize("version", ["2.12.*", "2.99.*"])
def test_a_torch_that_is_not_served_is_refused_with_what_is_needed(index, tmp_path, version):
    result = run_pip(index, "--dry-run", "--target", str(tmp_path), "openreg-meta", f"torch=={version}")
    said = result.stdout + result.stderr
    assert f"The user requested torch=={version}" in said
    needed = re.findall(r"depends on torch==([\d.]+)\.\*", said)
    assert result.returncode != 0
    assert set() < set(needed) <= set(torch_release.SUPPORTED)


def test_another_release_replaces_all_together_and_of_a_part_alone_pip_warns(index, tmp_path):
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    settings = {"PIP_PYTHON": str(environment / SCRIPTS_FOLDER / PYTHON_PROGRAM)}
    for release in (OLDEST, NEWEST):
        result = run_pip(index, f"openreg-meta=={release}.*", **settings)
        assert result.returncode == 0, result.stderr
        said = result.stdout.splitlines()[-1]
        assert set(re.findall(r"(\S+)-(\d+\.\d+)\.\d+(?= |$)", said)) >= {(name, release) for name in (*OURS, "torch")}
    # pip warns and goes on; then each package that stayed behind refuses to be imported.
    result = run_pip(index, f"torch=={OLDEST}.*", **settings)
    assert result.returncode == 0
    assert f"openreg-runtime {NEWEST}.0 requires torch=={NEWEST}.*, but you have torch {OLDEST}." in result.stderr


def test_the_extras_and_the_table_follow_from_what_the_packages_say(checkout):
    release = torch_release.current(checkout)
    here = discover(checkout)["openreg-meta"].extras
    before = json.loads((checkout / providers.TABLE).read_text("utf-8"))["names"]
    for name in ("tally", "event-log", "apart"):
        new_package.create(checkout, f"openreg-{name}", "One more extra")
        is_extra = "false" if name == "apart" else "true"
        project = checkout / "packages" / f"openreg-{name}" / "pyproject.toml"
        replace(project, "", f"\n[tool.openreg]\nextra = {is_extra}\n")
    assert providers.declarations_are_written(checkout) != []
    assert set(providers.write(checkout)) >= {providers.TABLE, providers.EXTRAS}
    assert providers.declarations_are_written(checkout) == []
    assert providers.write(checkout) == []
    found = discover(checkout)["openreg-meta"].extras
    assert found["tally"] == (f"openreg-tally=={release}.*",)
    assert found["event-log"] == (f"openreg-event-log=={release}.*",)
    assert set(found["all"]) == {*found["tally"], *found["event-log"], *here["all"]}
    assert "apart" not in found
    names = json.loads((checkout / providers.TABLE).read_text("utf-8"))["names"]
    assert names == {**before, "tally_scale": "openreg-tally", "event_log_scale": "openreg-event-log"}
