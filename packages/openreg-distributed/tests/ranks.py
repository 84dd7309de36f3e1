# SPDX-License-Identifier: BSD-3-Clause
"""Starts processes that are the ranks of a group and run a function that a test names.

The ranks of a module's tests stay. After a failure they are ended, and the next test gets new ones.
"""

from __future__ import annotations

import contextlib
import os
import socket
import tempfile
import traceback
from collections.abc import Callable, Iterator
from datetime import timedelta
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from _platform import process_context

LONGEST = 240  # seconds, a guard against hangs

Connections = list[Connection]


class RankFailedError(AssertionError):
    """A rank raised, with its traceback, or gave no answer."""


def serve(rank: int, size: int, store: str, settings: dict[str, str], connection: Connection) -> None:
    """The life of one rank."""
    os.environ.update(settings, LOCAL_RANK=str(rank))
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"  # no further processes for a few kernels
    import warnings

    import torch
    from torch import distributed

    import openreg_distributed  # noqa: F401

    warnings.simplefilter("ignore")  # PyTorch's own, of what is experimental
    distributed.set_debug_level_from_env()  # which is read when torch is imported
    torch.set_num_threads(1)
    torch.openreg.set_device(rank % torch.openreg.device_count())
    if store:
        backend = settings.get("TEST_BACKEND", "occl") or None
        device = torch.device("openreg", torch.openreg.current_device()) if "TEST_DEVICE_ID" in settings else None
        distributed.init_process_group(
            backend,
            init_method=f"file://{store}",
            rank=rank,
            world_size=size,
            timeout=timedelta(seconds=120),
            device_id=device,
        )
    connection.send((True, None))
    while True:
        try:
            function, arguments = connection.recv()
        except (EOFError, ConnectionResetError):
            break
        try:
            connection.send((True, function(rank, size, *arguments)))
        except BaseException:
            connection.send((False, traceback.format_exc()))
    if store:
        distributed.destroy_process_group()


def limit_calls(seconds: float, meet: bool = True) -> None:
    """Gives the calls that this rank makes from now on a timeout.

    A test sets it before the call that is to fail. The calls before have time enough on a busy machine: first all ranks
    meet through the store, once for each number of seconds, so that none fails the group while another one is still in
    a call before.
    """
    from torch import distributed

    if meet:
        store = distributed.distributed_c10d._get_default_store()
        store.set(f"limits {seconds} {distributed.get_rank()}", "")
        store.wait([f"limits {seconds} {rank}" for rank in range(distributed.get_world_size())])
    assert distributed.group.WORLD is not None
    distributed.group.WORLD.set_timeout(timedelta(seconds=seconds))


@contextlib.contextmanager
def kept_port() -> Iterator[int]:
    """A port on which a rank may listen. A socket that never listens keeps it from other programs until then."""
    with socket.socket() as keeper:
        keeper.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the sockets of PyTorch's stores have it
        keeper.bind(("127.0.0.1", 0))
        yield int(keeper.getsockname()[1])


class Ranks:
    """``size`` ranks of one group."""

    def __init__(self, size: int, with_group: bool = True, **settings: str) -> None:
        """Settings are environment variables; without a group each rank makes its own."""
        self.size = size
        self._with_group = with_group
        self._settings = settings
        self._processes: list[Any] = []
        self._connections: Connections = []
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def start(self) -> None:
        """Starts the processes, if they are not there."""
        if self._processes:
            return
        context = process_context()
        self._folder = tempfile.TemporaryDirectory()
        store = str(Path(self._folder.name, "store"))  # ranks that are killed leave it
        for rank in range(self.size):
            ours, theirs = context.Pipe()
            arguments = (rank, self.size, store if self._with_group else "", self._settings, theirs)
            process = context.Process(target=serve, args=arguments, daemon=True)
            process.start()
            theirs.close()
            self._processes.append(process)
            self._connections.append(ours)
        self._answers()  # when all have met: none begins before the others could answer it

    @property
    def pids(self) -> list[int]:
        """Of the processes."""
        return [process.pid for process in self._processes]

    def begin(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Lets all ranks call ``function(rank, size, *arguments)``, which is in a module."""
        self.start()
        for connection in self._connections:
            connection.send((function, arguments))

    def answer(self, rank: int) -> Any:
        """What the rank's call returned; raises RankFailedError."""
        connection = self._connections[rank]
        if not connection.poll(LONGEST):
            raise RankFailedError(f"rank {rank} gave no answer in {LONGEST} s")
        try:
            good, value = connection.recv()
        except EOFError:
            process = self._processes[rank]
            process.join()
            raise RankFailedError(f"rank {rank} has ended with {process.exitcode}") from None
        if not good:
            raise RankFailedError(f"rank {rank}:\n{value}")
        return value

    def run(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """What each rank's call returned. Raises RankFailedError, and ends the ranks, when one raises."""
        self.begin(function, *arguments)
        return self._answers()

    def _answers(self) -> list[Any]:
        try:
            return [self.answer(rank) for rank in range(self.size)]
        except RankFailedError:
            self.kill()
            raise

    def end(self, but: int | None = None) -> list[int]:
        """Lets the ranks end by themselves, but for one of which no more is expected; gives their exit codes."""
        for connection in self._connections:
            connection.close()
        waited = [process for rank, process in enumerate(self._processes) if rank != but]
        for process in waited:
            process.join(LONGEST)
        codes = [process.exitcode for process in waited]
        self.kill()
        return codes

    def kill(self) -> None:
        """Ends what is left of them."""
        for connection in self._connections:
            connection.close()
        for process in self._processes:
            process.kill()
            process.join()
        self._processes.clear()
        self._connections.clear()
        if self._folder is not None:
            self._folder.cleanup()


@contextlib.contextmanager
def ranks_of(size: int, **options: Any) -> Iterator[Ranks]:
    """Ranks that are ended with the block, and have to end well."""
    ranks = Ranks(size, **options)
    try:
        yield ranks
        codes = ranks.end()
    finally:
        ranks.kill()
    assert all(code == 0 for code in codes), codes
