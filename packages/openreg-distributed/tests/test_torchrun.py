# SPDX-License-Identifier: BSD-3-Clause
"""One program under torchrun: on one device, on two, on two machines, and after a process of it has failed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from machines import free_port, losses, two_machines

PROGRAM = Path(__file__).with_name("program.py")
TORCHRUN = [sys.executable, "-m", "torch.distributed.run"]
SECONDS = 240
NEAR = 5e-6


def begin(folder, *options, before=(), environment=None, failure=""):
    """Launches the program; what it writes is in the folder."""
    folder.mkdir(exist_ok=True)
    command = [*before, *TORCHRUN, *options, str(PROGRAM), str(folder)]
    environment = {**(environment or os.environ), "FAILURE": failure}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def end(*launchers):
    """Waits for launchers, which have to end well."""
    printed = []
    try:
        for launcher in launchers:
            printed.append(launcher.communicate(timeout=SECONDS)[0])
    finally:
        for launcher in launchers:
            launcher.kill()
    assert [launcher.returncode for launcher in launchers] == [0] * len(launchers), "\n".join(printed)


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The losses on one device."""
    folder = tmp_path_factory.mktemp("alone")
    end(begin(folder, "--standalone", "--nproc-per-node", "1"))
    return losses(folder)


def check(folder, alone, size):
    assert (folder / "size").read_text() == str(size)
    assert losses(folder) == pytest.approx(alone, rel=0, abs=NEAR)
    assert (folder / "step12" / ".metadata").is_file()


def test_two_machines(alone, tmp_path):
    """Two launchers that share nothing but a network."""
    with two_machines() as machines:
        host, port = machines[0].address, free_port()
        check_apart(machines)
        launchers = [
            begin(
                tmp_path,
                *("--nnodes", "2", "--node-rank", str(i), "--nproc-per-node", "1"),
                *("--master-addr", host, "--master-port", str(port)),
                before=machine.command,
                environment=machine.environment(),
            )
            for i, machine in enumerate(machines)
        ]
        end(*launchers)
    check(tmp_path, alone, 2)


def check_apart(machines):
    """Namespaces are machines of their own: neither reaches the other's loopback, nor this machine's interfaces."""
    for machine in machines:
        if machine.command:
            shown = subprocess.run(
                [*machine.command, "ip", "-brief", "link"], capture_output=True, text=True, check=True, timeout=120
            )
            names = {line.split()[0].partition("@")[0] for line in shown.stdout.splitlines()}
            assert names == {"lo", machine.interface}


@pytest.mark.parametrize("failure", ["killed", pytest.param("raises", marks=pytest.mark.endurance), "aborts"])
def test_the_launcher_starts_again_what_failed(alone, tmp_path, failure):
    """The program goes on from what it saved last."""
    options = ("--standalone", "--nproc-per-node", "2", "--max-restarts", "1")
    end(begin(tmp_path, *options, failure=failure))
    check(tmp_path, alone, 2)
    assert (tmp_path / "attempt1").exists()
    steps = [line.split()[0] for line in (tmp_path / "losses").read_text().splitlines()]
    assert steps.count("0") == 1  # it was saved, and so not made again


def test_a_machine_more(alone, tmp_path):
    """What one device has saved goes on with two."""
    end(begin(tmp_path, "--standalone", "--nproc-per-node", "1"))
    for later in ("step8", "step12"):
        (tmp_path / later).rename(tmp_path / f"not-{later}")
    end(begin(tmp_path, "--standalone", "--nproc-per-node", "2"))
    check(tmp_path, alone, 2)
