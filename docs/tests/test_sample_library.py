# SPDX-License-Identifier: BSD-3-Clause
"""Every step of the CI job on the page "Test your library on openreg" runs, in order, with the documented result."""

import os
import re
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
ACTION = ROOT / ".github" / "actions" / "device-tests"
JOB = yaml.safe_load(WORKFLOW.read_text("utf-8"))["jobs"]["openreg"]
COMMANDS = [step for step in JOB["steps"] if "run" in step]
(USE,) = [step for step in JOB["steps"] if "/device-tests@" in step.get("uses", "")]
STEPS = {step["name"]: step for step in yaml.safe_load((ACTION / "action.yml").read_text("utf-8"))["runs"]["steps"][:-1]
         if "run" in step}  # fmt: skip
INPUTS = yaml.safe_load((ACTION / "action.yml").read_text("utf-8"))["inputs"]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """The library as a runner has it after `pip install -e`."""
    folder = tmp_path_factory.mktemp("checkout")
    shutil.copytree(SAMPLE, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__", "build"))
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


def test_the_action_says_where_openreg_is_and_what_it_was_built_from(checkout, tmp_path):
    output = tmp_path / "output"
    done = run(
        STEPS["where openreg is"]["run"], checkout, {"GITHUB_ACTION_PATH": str(ACTION), "GITHUB_OUTPUT": str(output)}
    )
    assert done.returncode == 0, done.stderr
    said = dict(line.split("=", 1) for line in output.read_text("utf-8").splitlines())
    assert Path(said["root"]) == ROOT
    assert said["key"].startswith(f"openreg-{sys.implementation.cache_tag}-")


@pytest.mark.parametrize("name", ["build openreg", "install"])
def test_what_the_action_builds_and_installs_is_there(name):
    for line in map(shlex.split, STEPS[name]["run"].splitlines()):
        assert line[:3] in (["python", "-m", "pip"], ["python", "-m", "nox"])
        if line[2] == "nox":
            check_nox([word for word in line[3:] if word != "--noxfile" and "$ROOT" not in word])


def test_the_action_runs_the_tests_and_writes_the_report(checkout):
    given = {name: str(item["default"]) for name, item in INPUTS.items()} | USE["with"]
    assert given.keys() == INPUTS.keys()
    done = run(STEPS["test"]["run"], checkout, {"ARGUMENTS": given["arguments"], "REPORT": given["report"]})
    assert done.returncode == 0, done.stdout + done.stderr
    assert "= device openreg =" in done.stdout
    assert "test_prefetch.py" in (checkout / f"{given['report']}.html").read_text("utf-8")


def test_the_report_is_what_the_page_shows(checkout):
    """But for numbers of copies and waits, which are not the promise."""
    block = (SAMPLE / "README.md").read_text("utf-8").split("```text\n")[1].split("```")[0]
    command, _, *shown = block.splitlines()
    done = run(f"python -m {command.removeprefix('$ ')}", checkout, {})
    without_numbers = [re.sub(r"\d[\d.]*", "0", line.strip("= ")) for line in done.stdout.splitlines()]
    for line in shown:
        assert re.sub(r"\d[\d.]*", "0", line.strip("= ")) in without_numbers, done.stdout


@pytest.mark.parametrize("step", COMMANDS, ids=lambda step: step["name"].replace(" ", "-"))
def test_a_step_of_the_job_does_its_work(step, checkout):
    done = run(step["run"], checkout, step.get("env", {}))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "failed" not in done.stdout


def break_library(checkout, folder, right, wrong):
    """A copy of the project in which the library is wrong."""
    shutil.copytree(checkout, folder)
    library = folder / "src" / "chunkwise" / "__init__.py"
    text = library.read_text("utf-8")
    assert right in text
    library.write_text(text.replace(right, wrong), encoding="utf-8")
    return folder


BROKEN = {
    "no wait": ("current.wait_stream(copies)", "pass", "test_prefetch.py", "--schedule-seed="),
    "no retry": ("if chunk == 1:", "if True:", "test_memory.py", "OutOfMemoryError"),
    "a leak": ("    start = 0", "    start, predict.kept = 0, data.to(device)", "test_memory.py", "leak: "),
}


@pytest.mark.parametrize("mistake", BROKEN)
def test_a_mistake_in_the_library_fails_the_job_and_is_named(mistake, checkout, tmp_path):
    right, wrong, file, said = BROKEN[mistake]
    broken = break_library(checkout, tmp_path / "broken", right, wrong)
    done = run(f"python -m pytest -p no:cacheprovider --device openreg tests/{file}", broken, {})
    assert done.returncode == 1, done.stdout + done.stderr
    assert said in done.stdout


def test_the_report_on_the_page_is_that_of_a_missing_wait(checkout, tmp_path):
    right, wrong, file, _ = BROKEN["no wait"]
    broken = break_library(checkout, tmp_path / "broken", right, wrong)
    test = broken / "tests" / file
    marked = test.read_text("utf-8")
    test.write_text(marked.replace("@pytest.mark.schedules(seeds=20)\n", ""), encoding="utf-8")
    page = (ROOT / "docs" / "testing" / "your_library.md").read_text("utf-8")
    command, *shown = page.split("the report is:\n\n```text\n")[1].split("```")[0].splitlines()
    done = run(f"python -m {command.removeprefix('$ ')}", broken, {})
    assert done.returncode == 1, done.stdout + done.stderr
    printed = iter(done.stdout.splitlines())
    assert [line for line in shown if line not in printed] == []  # in this order


def test_the_sanitizer_names_the_missing_wait_of_a_test_that_asserts_a_shape(checkout, tmp_path):
    right, wrong, file, _ = BROKEN["no wait"]
    broken = break_library(checkout, tmp_path / "broken", right, wrong)
    test = broken / "tests" / file
    text = test.read_text("utf-8").replace("@pytest.mark.schedules(seeds=20)\n", "")
    compared = "torch.testing.assert_close(result, data * 2)"
    assert text.count(compared) == 1
    test.write_text(text.replace(compared, "assert result.shape == data.shape"), encoding="utf-8")
    done = run(f"python -m pytest -p no:cacheprovider --device openreg --sanitize tests/{file}", broken, {})
    assert done.returncode == 1, done.stdout + done.stderr
    assert "openreg-sanitizer: race: two accesses to the same memory have no order" in done.stdout
    assert re.search(r"missing: torch\.accelerator\.current_stream\(\)\.wait_stream\(", done.stdout)
