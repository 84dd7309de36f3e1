# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures that load the device without importing the package, so that torch is not needed."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from ._platform import DRIVER_LIBRARY
from .device_api import Api
from .peer import PREAMBLE, Peer

MIB = 1 << 20
CAPACITY = 64 * MIB
PATIENCE = 120  # seconds; only what hangs takes longer, on however busy a machine
SETTINGS = {"OPENREG_DEVICE_COUNT": "2", "OPENREG_DEVICE_MEMORY": "64MiB"}


def find_library() -> Path:
    """OPENREG_TEST_LIBRARY, or the library of the installed package."""
    chosen = os.environ.get("OPENREG_TEST_LIBRARY")
    if chosen:
        return Path(chosen)
    spec = importlib.util.find_spec("openreg_runtime")
    assert spec is not None, "install openreg-runtime, or set OPENREG_TEST_LIBRARY"
    folders = [Path(folder) / "lib" for folder in spec.submodule_search_locations or []]
    found = [folder / DRIVER_LIBRARY for folder in folders if (folder / DRIVER_LIBRARY).exists()]
    assert found, f"{DRIVER_LIBRARY} is in none of {folders}; set OPENREG_TEST_LIBRARY"
    return found[0]


@pytest.fixture(scope="session")
def library() -> Path:
    return find_library()


@pytest.fixture(scope="session")
def loaded(library: Path, tmp_path_factory: pytest.TempPathFactory) -> Api:
    """A private copy of the device with small memories.

    A copy is a second device: other tests of this process may use the installed one through torch.
    """
    copy = tmp_path_factory.mktemp("device") / f"driver_test_{library.name}"
    shutil.copy(library, copy)
    api = Api(copy)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**SETTINGS, "OPENREG_LAUNCH_BLOCKING": "0"}.items():
            patch.setenv(name, value)
        api.kernel_view(0)  # reads the settings
    return api


def reset_all(api: Api) -> None:
    for device in range(2):
        api.set_device(device)
        api.reset()
    api.set_device(0)


@pytest.fixture
def api(loaded: Api) -> Iterator[Api]:
    """The device, healthy and empty, with device 0 current. A test that leaks memory fails here."""
    reset_all(loaded)
    loaded.c.orGetLastError()
    yield loaded
    reset_all(loaded)
    leaked = loaded.allocated - {0}
    for address in leaked:
        loaded.c.orFree(address)  # so that the next test does not pay for it
    loaded.allocated.clear()
    assert leaked == set()
    assert [loaded.stats(device).allocated_bytes for device in range(2)] == [0, 0]


@dataclass
class Gate:
    """A kernel that runs until it is opened: work behind it certainly has not run."""

    api: Api
    reason: str | None = None
    started: threading.Event = field(default_factory=threading.Event)
    opened: threading.Event = field(default_factory=threading.Event)

    def _run(self) -> str | None:
        self.started.set()
        return self.reason if self.opened.wait(PATIENCE) else "the gate was never opened"

    def enqueue(self, stream: int | None) -> None:
        """Enqueue the kernel."""
        self.api.launch(stream, self._run, name=b"gate")

    def close(self, stream: int | None) -> None:
        """Enqueue the kernel and wait until it runs."""
        self.enqueue(stream)
        assert self.started.wait(PATIENCE)

    def open(self) -> None:
        self.opened.set()


@pytest.fixture
def gate(api: Api) -> Iterator[Gate]:
    gate = Gate(api)
    yield gate
    gate.open()


@dataclass
class Outcome:
    """How a script ended."""

    code: int
    output: str
    errors: str


RunScript = Callable[..., Outcome]


@pytest.fixture(scope="session")
def run_script(library: Path) -> RunScript:
    """Run a script with `api` at hand in a process of its own, without site packages."""

    def run(body: str, *, env: Mapping[str, str] | None = None, timeout: float = PATIENCE) -> Outcome:
        folder = str(Path(__file__).resolve().parents[1])
        script = PREAMBLE.format(folder=folder, library=str(library)) + textwrap.dedent(body)
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("OPENREG_")}
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-B", "-c", script],
            env={**inherited, **SETTINGS, **(env or {})},
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        return Outcome(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def peer(library: Path) -> Iterator[Peer]:
    peer = Peer(library, SETTINGS)
    yield peer
    assert peer.end() == 0


@pytest.fixture
def shared(api: Api, peer: Peer) -> Iterator[tuple[int, int]]:
    """16 KiB of this process, and their address in the other one."""
    address = api.malloc(16384)
    imported = peer(f"api.open({api.export(address)!r})")
    yield address, imported
    peer(f"api.close({imported})")
    api.free(address)
