# SPDX-License-Identifier: BSD-3-Clause
"""What starts sessions on other machines: .ci/run, the workflows and the action for other repositories."""

import os
import shutil
import subprocess
from fnmatch import fnmatchcase

import pytest
import yaml
from helpers import run, write_files

from tools.packages import ROOT
from tools.sessions.wheelhouse import included_folders

GITHUB = ROOT / ".github"


def read(path):
    # YAML 1.1 takes the key `on` for True.
    return {str(key): value for key, value in yaml.safe_load(path.read_text("utf-8")).items()}


def test_a_push_does_not_end_a_run_of_the_night():
    workflows = [read(path) for path in sorted((GITHUB / "workflows").glob("*.yml"))]
    both = [item for item in workflows if {"push", "schedule"} <= set(item["True"])]
    assert both
    for workflow in both:
        assert "${{ github.event_name }}" in workflow["concurrency"]["group"]


def test_every_file_that_names_actions_gets_their_updates():
    (update,) = read(GITHUB / "dependabot.yml")["updates"]
    # "/" stands for .github/workflows and for an action.yml at the top.
    places = ["/.github/workflows" if item == "/" else item for item in update["directories"]]
    naming = [path for path in GITHUB.rglob("*.yml") if "uses: actions/" in path.read_text("utf-8")]
    folders = {f"/{path.parent.relative_to(ROOT).as_posix()}" for path in naming}
    assert len(folders) > 1
    assert [name for name in folders if not any(fnmatchcase(name, place) for place in places)] == []


USED = ["bash", "chmod", "dirname", "env", "find", "flock", "mkdir", "rm", "sh", "sha256sum", "sort", "true", "xargs"]


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """A folder that is the whole path, with the programs of this machine that these scripts use."""
    folder = tmp_path / "programs"
    folder.mkdir()
    for name in USED:
        if path := shutil.which(name):
            (folder / name).symlink_to(path)
    monkeypatch.setenv("PATH", str(folder))
    return folder


def write_program(path, text):
    write_files(path.parent, {path.name: f"#!/usr/bin/env bash\n{text}\n"})
    path.chmod(0o755)


@pytest.mark.skipif(shutil.which("sha256sum") is None, reason="no sha256sum, which GitHub's machines have")
def test_the_action_builds_wheels_again_after_a_change_of_anything_in_them(checkout, programs, tmp_path):
    action = GITHUB / "actions" / "device-tests"
    script = next(step["run"] for step in read(action / "action.yml")["runs"]["steps"] if step.get("id") == "sources")
    write_program(programs / "python", "echo cpython-311")
    place = checkout / action.relative_to(ROOT)

    def key():
        output = tmp_path / "output"
        output.unlink(missing_ok=True)
        result = run("bash", "-c", script, GITHUB_ACTION_PATH=str(place), GITHUB_OUTPUT=str(output))
        assert result.returncode == 0, result.stderr
        (found,) = (line for line in output.read_text().splitlines() if line.startswith("key="))
        return found

    before = key()
    packages = [path.parent for path in checkout.glob("packages/*/pyproject.toml")]
    outside = {folder.resolve() for package in packages for folder in included_folders(package)}
    for folder in (packages[0], *outside, checkout / "tools"):
        changed = folder / "added.txt"
        changed.write_text("new")
        assert key() != before, folder
        changed.unlink()
    (checkout / "tools" / "__pycache__").mkdir()
    (checkout / "tools" / "__pycache__" / "packages.cpython-311.pyc").touch()
    assert key() == before


# A Python that makes an environment, whose programs, like itself, record what they see.
PYTHON = """
flock --nonblock .nox/venv.lock true && echo "environment: not locked" >> log
mkdir -p .venv/bin
printf '#!/usr/bin/env bash\\necho pip >> log\\n' > .venv/bin/python
printf '#!/usr/bin/env bash\\nflock --nonblock .nox/venv.lock true && echo "nox $*" >> log\\n' > .venv/bin/nox
chmod +x .venv/bin/python .venv/bin/nox
"""


@pytest.fixture
def ci_run(programs, tmp_path):
    """Runs .ci/run in a folder without anything else, and returns the lines that the programs recorded."""
    root = tmp_path / "empty"
    (root / ".ci").mkdir(parents=True)
    shutil.copy2(ROOT / ".ci" / "run", root / ".ci" / "run")
    write_program(programs / "python3", PYTHON)

    def ci_run(*arguments):
        result = subprocess.run(
            [root / ".ci" / "run", *arguments], env=os.environ, capture_output=True, text=True, check=False
        )
        assert result.returncode == 0, result.stderr
        return (root / "log").read_text().splitlines()

    return ci_run


@pytest.mark.skipif(shutil.which("flock") is None, reason="no flock, without which .ci/run locks nothing")
def test_only_one_run_at_a_time_makes_the_environment_and_the_lock_is_gone_when_nox_starts(ci_run):
    assert ci_run("-s", "lint") == ["pip", "nox --non-interactive -s lint"]


@pytest.mark.skipif(shutil.which("flock") is None, reason="no flock, by which the programs here look at the lock")
def test_all_that_fetches_a_browser_has_a_limit(ci_run, programs):
    write_program(programs / "id", "echo 0")
    write_program(programs / "apt-get", 'echo "apt-get $*" >> log')
    write_program(programs / "timeout", 'echo "limited to $1" >> log')
    assert ci_run() == ["pip", "limited to 300", "nox --non-interactive"]
