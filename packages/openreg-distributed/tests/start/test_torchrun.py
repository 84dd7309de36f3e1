# SPDX-License-Identifier: BSD-3-Clause
"""A program under torchrun trains on one device, two devices and two machines, and restarts after a failed process."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from _platform import FORKED_RANKS
from machines import losses, two_machines
from ranks import kept_port

from openreg_testing.fresh import FreshPython

PROGRAM = Path(__file__).with_name("program.py")
LAUNCHERS = Path(__file__).with_name("launchers.py")
NEAR = 5e-6


@pytest.fixture(scope="module")
def python():
    """Launchers and ranks are forked from it."""
    modules = ("run", "checkpoint.state_dict", "fsdp")
    python = FreshPython(*(f"torch.distributed.{module}" for module in modules), "openreg_distributed")
    yield python
    python.close()


def launched(*options, namespace="", environment=None):
    """What a launcher of the program needs; the last option is the folder for what the program writes."""
    *options, folder = options
    return namespace, environment or {}, [*options, str(PROGRAM), str(folder)]


def run(python, *launchers, failure=""):
    """Waits for launchers, which have to end well."""
    env = {**os.environ, "FAILURE": failure, "PYTHONPATH": str(LAUNCHERS.parents[1])}  # launchers import _platform
    done = python.run(str(LAUNCHERS), json.dumps(launchers), env=env)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def alone(python, tmp_path_factory):
    """What the program leaves on one device, in a process that begins with nothing."""
    folder = tmp_path_factory.mktemp("alone")
    run(python, launched("--standalone", "--nproc-per-node", "1", folder))
    return folder


def check(folder, alone, size):
    assert (folder / "size").read_text() == str(size)
    assert losses(folder) == pytest.approx(losses(alone), rel=0, abs=NEAR)
    assert (folder / "step12" / ".metadata").is_file()


def test_two_machines(python, alone, tmp_path):
    """Two launchers that share nothing but a network."""
    with two_machines() as machines, kept_port() as port:
        check_apart(machines)
        launchers = [
            launched(
                *FORKED_RANKS,
                *("--nnodes", "2", "--node-rank", str(i), "--nproc-per-node", "1"),
                *("--master-addr", machines[0].address, "--master-port", str(port), tmp_path),
                namespace=machine.namespace,
                environment=machine.environment(),
            )
            for i, machine in enumerate(machines)
        ]
        run(python, *launchers)
    check(tmp_path, alone, 2)


def check_apart(machines):
    """Namespaces are machines of their own: neither reaches the other's loopback, nor this machine's interfaces."""
    for machine in machines:
        if machine.namespace:
            command = ["ip", "-netns", machine.namespace, "-brief", "link"]
            shown = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
            names = {line.split()[0].partition("@")[0] for line in shown.stdout.splitlines()}
            assert names == {"lo", machine.interface}


@pytest.mark.parametrize("failure", ["killed", pytest.param("raises", marks=pytest.mark.endurance), "aborts"])
def test_the_launcher_starts_again_what_failed(python, alone, tmp_path, failure):
    """The program goes on from what it saved last."""
    options = (*FORKED_RANKS, "--standalone", "--nproc-per-node", "2", "--max-restarts", "1")
    run(python, launched(*options, tmp_path), failure=failure)
    check(tmp_path, alone, 2)
    assert (tmp_path / "attempt1").exists()
    steps = [line.split()[0] for line in (tmp_path / "losses").read_text().splitlines()]
    assert steps.count("0") == 1  # it was saved, and so not made again


def test_a_machine_more(python, alone, tmp_path):
    """What one device has saved goes on with two."""
    shutil.copytree(alone / "step4", tmp_path / "step4")
    first = (alone / "losses").read_text().splitlines(keepends=True)[:4]
    (tmp_path / "losses").write_text("".join(first))
    run(python, launched(*FORKED_RANKS, "--standalone", "--nproc-per-node", "2", tmp_path))
    check(tmp_path, alone, 2)
    assert len((tmp_path / "losses").read_text().splitlines()) == 12
