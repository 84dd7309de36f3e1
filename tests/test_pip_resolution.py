# SPDX-License-Identifier: BSD-3-Clause
"""What pip takes, replaces and refuses: our packages for every release of torch, and extras, with their metadata."""

import json
import re
import shutil
import subprocess
import sys
from importlib import metadata

import pytest
from tiny_wheels import chosen, copy_declarations, run_pip, write_all, write_declared, write_foreign, write_wheel

from tools import new_package, packages, providers, subsets, torch_release
from tools._platform import PYTHON_PROGRAM, SCRIPTS_FOLDER, SITE_PACKAGES
from tools.packages import ROOT, closure, discover

OURS = tuple(closure("openreg-meta", discover()))
OLDEST, MIDDLE, NEWEST = torch_release.SUPPORTED[0], torch_release.SUPPORTED[1], torch_release.SUPPORTED[-1]


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    place = tmp_path_factory.mktemp("index")
    return write_all(place / "wheels", place / "checkouts")


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


def as_options(environment):
    """The options with which pip works on an environment."""
    return ("--python", str(environment / SCRIPTS_FOLDER / PYTHON_PROGRAM))


@pytest.fixture(scope="module")
def oldest(index, tmp_path_factory):
    """An environment that holds everything for the oldest release; nothing changes it."""
    folder = tmp_path_factory.mktemp("oldest") / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    result = run_pip(index, "openreg-meta", f"torch=={OLDEST}.*", into=as_options(folder))
    assert result.returncode == 0, result.stderr
    assert {minor(version) for version in installed(folder).values()} == {OLDEST}
    return folder


def installed(environment):
    (folder,) = environment.glob(SITE_PACKAGES)
    found = {item.name: item.version for item in metadata.distributions(path=[str(folder)])}
    assert set(found) >= {*OURS, "torch"}
    return {name: found[name] for name in (*OURS, "torch")}


@pytest.mark.parametrize(
    ("release", "wanted"),
    [
        (MIDDLE, (f"openreg-meta=={MIDDLE}.*",)),
        (MIDDLE, ("--upgrade", "openreg-meta", f"torch=={MIDDLE}.*")),
        (NEWEST, ("--upgrade", "openreg-meta")),
    ],
)
def test_another_release_replaces_torch_and_all_packages_together(index, oldest, tmp_path, release, wanted):
    found = chosen(index, tmp_path, *wanted, into=as_options(oldest))
    assert {name: minor(version) for name, version in found.items()} == dict.fromkeys((*OURS, "torch"), release)


def test_what_is_installed_satisfies_who_asks_for_no_other(index, oldest, tmp_path):
    assert chosen(index, tmp_path, "openreg-meta", into=as_options(oldest)) == {}


def test_under_a_constraint_pip_refuses_with_both(index, oldest, tmp_path):
    constraints = tmp_path / "constraints.txt"
    constraints.write_text(f"torch=={OLDEST}.*\n", encoding="utf-8")
    wanted = ("--dry-run", "--constraint", str(constraints), f"openreg-meta=={NEWEST}.*")
    result = run_pip(index, *wanted, into=as_options(oldest))
    assert result.returncode != 0
    said = result.stdout + result.stderr
    assert f"depends on torch=={NEWEST}.*" in said
    assert f"The user requested (constraint) torch=={OLDEST}.*" in said


@pytest.mark.parametrize(
    ("wanted", "stays"), [(f"torch=={NEWEST}.*", "openreg-runtime"), (f"openreg-ops=={NEWEST}.*", "openreg-amp")]
)
def test_who_replaces_a_part_alone_is_told_what_no_longer_fits(index, oldest, tmp_path, wanted, stays):
    # pip warns and goes on; then each package that stayed behind refuses to be imported.
    copy = tmp_path / "copy"
    shutil.copytree(oldest, copy, symlinks=True)
    result = run_pip(index, wanted, into=as_options(copy))
    assert result.returncode == 0
    assert re.search(rf"{stays} {OLDEST}\.0 requires \S+=={OLDEST}\.\*, but you have \S+ {NEWEST}\.", result.stderr)
    found = installed(copy)
    assert (minor(found["torch"]), minor(found[stays])) == (NEWEST, OLDEST)


def test_a_wheel_for_another_python_is_refused(index, tmp_path):
    wheel = write_wheel(tmp_path, "openreg-runtime", f"{OLDEST}.0", tag="cp39-cp39-manylinux_2_28_x86_64")
    result = run_pip(index, "--dry-run", "--target", str(tmp_path / "target"), str(wheel))
    assert result.returncode != 0
    assert f"{wheel.name} is not a supported wheel on this platform" in result.stderr


EXTRAS = {"openreg-tally": "tally", "openreg-event-log": "event-log"}
# And the packages of this repository that are extras.
THE_EXTRAS = {
    packages.requirement_name(line) for line in packages.discover(ROOT)["openreg-meta"].extras["all"]
}  # fmt: skip
NO_EXTRA = "openreg-apart"


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """A repository with three packages of the template, two of which are extras."""
    root = tmp_path_factory.mktemp("extras") / "checkout"
    copy_declarations(root)
    shutil.copytree(ROOT / "templates", root / "templates", dirs_exist_ok=True)
    (root / providers.TABLE).parent.mkdir(parents=True)
    for name in (*EXTRAS, NO_EXTRA):
        new_package.create(root, name, "One more axis")
        if name in EXTRAS:
            path = root / "packages" / name / "pyproject.toml"
            path.write_text(path.read_text("utf-8") + "\n[tool.openreg]\nextra = true\n", "utf-8")
    assert providers.declarations_are_written(root) != []
    assert {path.name for path in providers.write(root)} == {"_providers.json", "pyproject.toml"}
    assert providers.declarations_are_written(root) == []
    assert providers.write(root) == []
    return root


def test_the_extras_and_the_table_follow_from_what_the_packages_say(checkout):
    release = torch_release.current(checkout)
    found = packages.discover(checkout)["openreg-meta"].extras
    assert found["tally"] == (f"openreg-tally=={release}.*",)
    assert found["event-log"] == (f"openreg-event-log=={release}.*",)
    here = packages.discover(ROOT)["openreg-meta"].extras
    assert set(found["all"]) == {*found["tally"], *found["event-log"], *here["all"]}
    assert "apart" not in found
    names = json.loads((checkout / providers.TABLE).read_text("utf-8"))["names"]
    before = json.loads((ROOT / providers.TABLE).read_text("utf-8"))["names"]
    assert names == {**before, "tally_scale": "openreg-tally", "event_log_scale": "openreg-event-log"}


def test_the_subsets_follow_too(checkout):
    found = subsets.subsets(packages.discover(checkout))
    added = set(found) - set(subsets.subsets(packages.discover(ROOT)))
    assert {frozenset(name.split("+")) for name in added} == {
        *(frozenset({"runtime", "ops", short}) for short in ("tally", "event-log", "apart")),
        *(frozenset({"runtime", "ops", short, "autoload"}) for short in ("tally", "event-log", "apart")),
        *(frozenset({f"meta[{extra}]"}) for extra in ("tally", "event-log")),
        frozenset({"meta", "apart"}),
    }


def test_another_release_of_torch_takes_the_extras_along(checkout, tmp_path):
    copy = tmp_path / "checkout"
    shutil.copytree(checkout, copy)
    release = torch_release.others(copy)[-1]
    torch_release.retarget(copy, release)
    assert packages.discover(copy)["openreg-meta"].extras["tally"] == (f"openreg-tally=={release}.*",)
    assert providers.declarations_are_written(copy) == []


@pytest.fixture(scope="module")
def offered(checkout, tmp_path_factory):
    folder = tmp_path_factory.mktemp("index")
    write_declared(folder, checkout)
    write_foreign(folder)
    return folder


@pytest.mark.parametrize(
    ("asked", "extras"),
    [
        ("openreg-meta", set()),
        ("openreg-meta[tally]", {"openreg-tally"}),
        ("openreg-meta[event-log]", {"openreg-event-log"}),
        ("openreg-meta[all]", {*EXTRAS, *THE_EXTRAS}),
    ],
)
def test_pip_brings_what_an_extra_names(checkout, offered, tmp_path, asked, extras):
    found = set(chosen(offered, tmp_path, asked))
    parts = set(packages.closure("openreg-meta", packages.discover(checkout)))
    assert found & set(packages.discover(checkout)) == parts | extras
    assert "torch" in found
