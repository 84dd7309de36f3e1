# SPDX-License-Identifier: BSD-3-Clause
"""The checkout is for one release of PyTorch, and is made for another by one command."""

import shutil
import subprocess
import sys

import pytest
from tiny_wheels import chosen, write_wheel

from tools import torch_lanes, torch_release
from tools.excerpts import pages, stale
from tools.markers import EXCERPT
from tools.packages import ROOT, discover


@pytest.fixture
def checkout(tmp_path):
    """The files of this repository that name the release."""
    for path in torch_release.pinned_files(ROOT):
        copy = tmp_path / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True)
        shutil.copy2(path, copy)
    return tmp_path


@pytest.mark.parametrize("release", torch_release.SUPPORTED)
def test_every_version_and_pin_follows(checkout, release):
    torch_release.retarget(checkout, release)
    assert torch_release.problems(checkout) == []
    packages = discover(checkout)
    for package in packages.values():
        assert package.torch == release
        for requirement in (*package.requirements, *package.build_requirements, *package.extras.get("all", ())):
            if requirement.startswith(("torch", "openreg")):
                assert requirement.endswith(f"=={release}.*")


def test_there_and_back_again_changes_nothing(checkout):
    before = {path: path.read_bytes() for path in torch_release.pinned_files(checkout)}
    here = torch_release.current(checkout)
    other = torch_release.others(checkout)[0]
    assert torch_release.retarget(checkout, other)
    assert torch_release.retarget(checkout, here)
    assert torch_release.retarget(checkout, here) == []
    assert {path: path.read_bytes() for path in before} == before


def test_the_version_of_a_tutorial_step_is_its_own(checkout):
    torch_release.retarget(checkout, torch_release.SUPPORTED[-1])
    text = (checkout / "examples" / "tutorial" / "step1" / "pyproject.toml").read_text("utf-8")
    assert 'version = "0.1.0"' in text
    assert f"torch=={torch_release.SUPPORTED[-1]}.*" in text


def test_pages_show_the_files_of_the_other_release_and_say_what_they_said(tmp_path):
    for folder in ("docs", "examples", "packages"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("build", "__pycache__"))
    before = (tmp_path / "docs" / "packaging.md").read_text("utf-8")
    release = torch_release.others(tmp_path)[0]
    changed = torch_release.retarget(tmp_path, release)
    assert tmp_path / "docs" / "tutorial" / "step1.md" in changed
    assert [problem for page in pages(tmp_path) for problem in stale(page, tmp_path)] == []
    after = (tmp_path / "docs" / "packaging.md").read_text("utf-8")
    assert before != after
    assert EXCERPT.sub("", before) == EXCERPT.sub("", after)


@pytest.mark.parametrize("release", ["2.12", "2.16", "2.13.0", "nightly", ""])
def test_a_release_that_is_not_served_is_refused_with_those_that_are(capsys, release):
    with pytest.raises(SystemExit) as end:
        torch_release.main(release)
    assert end.value.code == 2
    assert repr(release) in capsys.readouterr().err


def test_without_a_release_it_tells_which_one_the_checkout_is_for(capsys):
    assert torch_release.main() == 0
    assert capsys.readouterr().out.strip() in torch_release.SUPPORTED


def test_the_session_refuses_a_release_that_is_not_served():
    command = [sys.executable, "-m", "nox", "-f", str(ROOT / "noxfile.py"), "--no-venv", "-s", "torch", "--", "2.12"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert "choose one of 2.13" in result.stderr


def test_the_release_of_a_nightly_build_is_read_from_pips_report():
    report = 'a notice\n{"version": "1", "install": [{"metadata": {"version": "2.16.0.dev20261101+cpu"}}]}'
    version = torch_lanes.newest(report)
    assert version == "2.16.0.dev20261101+cpu"
    assert torch_release.release_of(version) == "2.16"


def test_pip_takes_a_nightly_build_of_torch_and_no_pre_release_of_another_project(tmp_path):
    version = "2.16.0.dev20261101+cpu"
    write_wheel(tmp_path, "torch", version)
    write_wheel(tmp_path, "numpy", "2.3.0")
    write_wheel(tmp_path, "numpy", "3.0.0rc1")
    constraint = torch_lanes.allowing(version, tmp_path / "place")["PIP_CONSTRAINT"]
    assert chosen(tmp_path, tmp_path, "--constraint", constraint, "torch==2.16.*", "numpy") == {
        "numpy": "2.3.0",
        "torch": version,
    }


def test_a_failure_opens_with_the_changed_interfaces():
    said = torch_lanes.verdict("nightly", "Guard.deviceAges is new\n", ["test-openreg-ops", "test-openreg-amp"])
    assert said.index("Guard.deviceAges is new") < said.index("test-openreg-ops, test-openreg-amp")
    assert "asks for" not in torch_lanes.verdict("nightly", "", ["test-openreg-ops"])
