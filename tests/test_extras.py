# SPDX-License-Identifier: BSD-3-Clause
"""A package becomes an extra of openreg-meta by what it says itself, and pip brings it by that name."""

import json
import shutil

import pytest
from tiny_wheels import chosen, copy_declarations, write_declared, write_foreign

from tools import new_package, packages, providers, subsets, torch_release
from tools.packages import ROOT

EXTRAS = {"openreg-tally": "tally", "openreg-event-log": "event-log"}
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
    assert set(found["all"]) == {*found["tally"], *found["event-log"]}
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
        *(frozenset({f"meta[{extra}]"}) for extra in ("tally", "event-log", "all")),
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
def index(checkout, tmp_path_factory):
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
        ("openreg-meta[all]", set(EXTRAS)),
    ],
)
def test_pip_brings_what_an_extra_names(checkout, index, tmp_path, asked, extras):
    found = set(chosen(index, tmp_path, asked))
    parts = set(packages.closure("openreg-meta", packages.discover(checkout)))
    assert found & set(packages.discover(checkout)) == parts | extras
    assert "torch" in found
