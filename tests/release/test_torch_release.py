# SPDX-License-Identifier: BSD-3-Clause
"""One command makes the checkout for another release of PyTorch, and combinations that do not fit are refused."""

import re
import shlex
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from unittest.mock import Mock

import pytest
import yaml
from helpers import run

from tools import torch_release
from tools.markers import EXCERPT
from tools.packages import ROOT, discover
from tools.releases import torch_mismatch, torch_sessions
from tools.releases.torch_mismatch import Attempt


@pytest.mark.parametrize("release", torch_release.SUPPORTED)
def test_every_version_and_pin_follows(checkout, release):
    torch_release.retarget(checkout, release)
    assert torch_release.pins_are_of_one_release(checkout) == []
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


def test_pages_show_the_files_of_the_other_release_and_say_what_they_said(checkout):
    page = checkout / "docs" / "releasing" / "packaging.md"
    before = page.read_text("utf-8")
    release = torch_release.others(checkout)[0]
    changed = torch_release.retarget(checkout, release)
    assert checkout / "docs" / "tutorial" / "step1.md" in changed
    fresh = run(sys.executable, "-m", "tools.pages.excerpts", "--check", cwd=checkout)
    assert fresh.returncode == 0, fresh.stdout + fresh.stderr
    after = page.read_text("utf-8")
    assert before != after
    kept = [torch_release.COMMAND.sub("", EXCERPT.sub("", text)) for text in (before, after)]
    assert kept[0] == kept[1]


def test_commands_that_install_torch_and_the_hook_that_reads_it_follow(checkout):
    pages = ("docs/tutorial/index.md", "docs/testing/your_library.md", "tools/README.md")
    release = torch_release.others(checkout)[0]
    torch_release.retarget(checkout, release)
    for name in (*pages, ".pre-commit-config.yaml"):
        texts = [(root / name).read_text("utf-8") for root in (ROOT, checkout)]
        here, there = (re.findall(r"(?m)^(?:pip install| +additional_dep).*\btorch==(.*?)\.\*", text) for text in texts)
        assert set(here) == {torch_release.current()}
        assert there == [release] * len(here)


def test_the_workflow_runs_pytorchs_tests_of_that_release_and_its_example_of_a_backend(capsys):
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "torch.yml").read_text("utf-8"))
    steps = workflow["jobs"]["pytorch-tests"]["steps"]
    (tag,) = (step["run"] for step in steps if step.get("id") == "torch")
    (checkout,) = (step["with"] for step in steps if "repository" in step.get("with", {}))
    assert tag == 'echo "tag=v$(python -m tools.torch_release).0" >> "$GITHUB_OUTPUT"'
    assert checkout["ref"] == "${{ steps.torch.outputs.tag }}"
    assert torch_release.main() == 0
    assert capsys.readouterr().out.strip() == torch_release.current()
    (command,) = (shlex.split(step["run"]) for step in steps if "--pytorch-tests" in step.get("run", ""))
    options = list(pairwise(command))
    assert ("--pytorch-tests", f"$GITHUB_WORKSPACE/{checkout['path']}/{checkout['sparse-checkout']}") in options
    kit = ROOT / "packages" / "openreg-testing" / "src" / "openreg_testing" / "conformance" / "upstream.py"
    (example,) = re.findall(r'(?m)^OF_OPENREG = "(.+)"$', kit.read_text("utf-8"))
    assert ("--file", example) in options


@pytest.mark.parametrize("release", ["2.12", "2.16", "2.13.0", "nightly", ""])
def test_a_release_that_is_not_served_is_refused_with_those_that_are(capsys, release):
    assert torch_release.main() == 0
    assert capsys.readouterr().out.strip() in torch_release.SUPPORTED
    with pytest.raises(SystemExit, match="2"):
        torch_release.main(release)
    assert repr(release) in capsys.readouterr().err


def test_the_release_of_a_nightly_build_is_read_from_pips_report():
    report = 'a notice\n{"version": "1", "install": [{"metadata": {"version": "2.16.0.dev20261101+cpu"}}]}'
    version = torch_sessions.nightly_version(Mock(run=lambda *_, **__: report))
    assert version == "2.16.0.dev20261101+cpu"
    assert torch_release.release_of(version) == "2.16"


def test_a_failure_opens_with_the_changed_interfaces():
    said = torch_sessions.failure_summary(
        "nightly", "Guard.deviceAges is new\n", ["test-openreg-ops", "test-openreg-amp"]
    )
    assert said.index("Guard.deviceAges is new") < said.index("test-openreg-ops, test-openreg-amp")
    assert "interfaces.json" not in torch_sessions.failure_summary("nightly", "", ["test-openreg-ops"])


REFUSED = "openreg-ops works with torch 2.13.*, but torch 2.15.0+cpu is installed. Run pip install 'torch==2.13.*'"


@pytest.mark.parametrize(
    ("code", "output", "torch", "said"),
    [
        (1, REFUSED, "2.15.0+cpu", ""),
        (0, "4.0", "2.13.1", ""),
        (0, "4.0", "2.15.0+cpu", "ended with 0"),
        (-11, REFUSED, "2.15.0+cpu", "ended with -11"),
        (1, REFUSED.replace("2.13.*, but", "2.14.*, but"), "2.15.0+cpu", "does not say 'works with torch 2.13.*'"),
        (1, REFUSED.replace("2.15.0+cpu", "x"), "2.15.0+cpu", "does not say 'torch 2.15.0+cpu is installed'"),
        (1, REFUSED.replace("pip install", "pip"), "2.15.0+cpu", "does not say 'pip install'"),
        (1, "", "2.13.0", "ended with 1"),
        (-6, "", "2.13.0", "ended with -6"),
    ],
)
def test_a_pair_works_or_is_refused_with_a_message_and_anything_else_is_a_problem(code, output, torch, said):
    found = torch_mismatch.problems([Attempt("import openreg_ops", code, output)], "2.13", torch)
    assert len(found) == bool(said)
    assert said in "".join(found)


def test_a_process_that_a_signal_ends_is_distinguished_from_a_refusal(tmp_path):
    script = "import os, signal; signal.raise_signal(signal.SIGTERM)"
    attempt = torch_mismatch.run(Path(sys.executable), tmp_path, "a crash", script, autoload=False)
    assert attempt.code not in (0, 1)


def test_a_process_that_does_not_end_is_a_problem(tmp_path, monkeypatch):
    def never(*_, timeout, **__):
        raise subprocess.TimeoutExpired("python", timeout)

    monkeypatch.setattr(torch_mismatch.subprocess, "run", never)
    attempt = torch_mismatch.run(Path(sys.executable), tmp_path, "a deadlock", "", autoload=False)
    assert attempt.code not in (0, 1)
    assert "did not end" in attempt.output


def test_the_native_parts_of_every_package_are_tried():
    native = {path.parent.name for path in ROOT.glob("packages/*/src/*/_C.pyi")}
    assert native == {*torch_mismatch.NATIVE}
    assert {f"{name}._C" for name in native} < {*torch_mismatch.MODULES}


def test_a_mixture_takes_only_native_packages_above_the_runtime_from_the_other_release():
    names = ("openreg_sanitizer", "openreg_meta", "openreg_ops", "openreg_runtime")
    own, other = ([Path(f"{name}-{release}.0-x.whl") for name in names] for release in ("2.13", "2.15"))
    assert torch_mismatch.release_of(other) == "2.15"
    mixed = [path.name.split("-")[1] for path in torch_mismatch.mixture(own, other)]
    assert mixed == ["2.15.0", "2.13.0", "2.15.0", "2.13.0"]
