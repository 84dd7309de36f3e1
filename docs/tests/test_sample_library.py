# SPDX-License-Identifier: BSD-3-Clause
"""The CI job of "Test your library on openreg" does what the page says: every step of it runs here, in order."""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from shell import ROOT, check_nox

SAMPLE = ROOT / "examples" / "testing-a-library"
WORKFLOW = SAMPLE / ".github" / "workflows" / "device-tests.yml"
JOB = yaml.safe_load(WORKFLOW.read_text("utf-8"))["jobs"]["openreg"]
COMMANDS = [step for step in JOB["steps"] if "run" in step]
# What builds and installs; the environment of these tests is the result, but for the library itself.
INSTALLS = {"build openreg", "install"}


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """The library as a runner has it after `pip install -e`, with a checkout of openreg, which has tests, in it."""
    folder = tmp_path_factory.mktemp("checkout")
    shutil.copytree(SAMPLE, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__", "build"))
    tests = folder / "openreg" / "tests"
    tests.mkdir(parents=True)
    (tests / "test_of_openreg.py").write_text("raise AssertionError('collected')\n", encoding="utf-8")
    return folder


def run(script, folder, settings):
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("OPENREG_", "TORCH_"))}
    path = os.pathsep.join([str(Path(sys.executable).parent), environment["PATH"]])
    environment |= {"PATH": path, "PYTHONPATH": str(folder / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],  # as GitHub's runners call it
        cwd=folder,
        env=environment | settings,
        capture_output=True,
        text=True,
        timeout=280,
    )


@pytest.mark.parametrize("step", COMMANDS, ids=lambda step: step["name"].replace(" ", "-"))
def test_a_step_of_the_job_does_its_work(step, checkout):
    if step["name"] in INSTALLS:
        for line in map(shlex.split, step["run"].splitlines()):
            assert line[0] in {"pip", "nox"}
            if line[0] == "nox":
                check_nox(line[1:])
        return
    done = run(step["run"], checkout, step.get("env", {}))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "failed" not in done.stdout


def test_the_library_without_its_waits_fails_the_job(checkout, tmp_path):
    broken = tmp_path / "broken"
    shutil.copytree(checkout, broken)
    library = broken / "src" / "chunkwise" / "__init__.py"
    text = library.read_text("utf-8")
    assert "current.wait_stream(copies)" in text
    library.write_text(text.replace("current.wait_stream(copies)", "pass"), encoding="utf-8")
    (step,) = [step for step in COMMANDS if step["name"].startswith("streams in")]
    assert run(step["run"], broken, {}).returncode != 0


def test_the_library_that_gives_up_when_memory_runs_out_fails_its_tests(checkout, tmp_path):
    broken = tmp_path / "broken"
    shutil.copytree(checkout, broken)
    library = broken / "src" / "chunkwise" / "__init__.py"
    library.write_text(library.read_text("utf-8").replace("if chunk == 1:", "if True:"), encoding="utf-8")
    done = run("python -m pytest -p no:cacheprovider tests/test_memory.py", broken, {})
    assert "OutOfMemoryError" in done.stdout
    assert done.returncode == 1
