# SPDX-License-Identifier: BSD-3-Clause
"""Sessions of the sanitizer, each of which observes the devices for a time and has the findings of that time.

A session is a ``with`` block of :class:`sanitizer`, or the whole program (``_program.py``).
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

import torch
from torch.overrides import TorchFunctionMode

from openreg_runtime import openreg
from openreg_sanitizer import _C, advice, finding, formats, names, suppressions, text, written_storages
from openreg_sanitizer._platform import after_fork_in_child
from openreg_sanitizer.finding import Finding

Action = Literal["report", "raise", "collect"]
_ACTIONS = ("report", "raise", "collect")


class SanitizerError(RuntimeError):
    """An error for a finding, raised where the second access is made; ``finding`` is the finding."""

    def __init__(self, found: Finding) -> None:
        super().__init__(text.render(found))
        self.finding = found


class _RaiseAtCall(TorchFunctionMode):
    """Raises SanitizerError in the call that made a finding.

    Without this mode, :func:`report_new` would raise it from a pending call of Python, one statement later for
    operators such as ``+``.
    """

    def __torch_function__(
        self, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        if not torch.compiler.is_compiling():  # Dynamo traces this method, and cannot trace the native part
            _sessions.report_new()
        return result


class sanitizer:
    """Observes all openreg devices in a ``with`` block, and finds races, missing waits and wrong uses of memory.

    ``action`` selects what happens with a finding: "report" writes it to stderr as soon as the main thread goes on,
    "raise" raises :class:`SanitizerError` there, "collect" does neither. ``suppress`` is a file of suppressions.
    ``findings`` are those of the block, one for each pair of lines; ``warnings`` may be correct uses of memory. Blocks
    may be nested; each has the findings of its time. The end of the block waits for all tasks of the devices; the
    sanitizer does not count this as a wait of the program.
    """

    def __init__(self, action: Action = "report", suppress: str | os.PathLike[str] | None = None) -> None:
        if action not in _ACTIONS:
            raise ValueError(f"torch.openreg.sanitizer: action {action!r} is unknown; use one of {', '.join(_ACTIONS)}")
        self.action = action
        self.suppressions = [] if suppress is None else suppressions.read(Path(suppress))
        self.suppressed = 0
        self._before: list[int] = []  # counts of the findings when the block began
        self._found: list[Finding] | None = None
        self._process = 0  # the process in which it has begun
        self._mode: Any = _RaiseAtCall() if action == "raise" else None

    def __enter__(self) -> sanitizer:
        self._begin()
        if self._mode is not None:
            self._mode.__enter__()
        return self

    def begin_at_first_use(self) -> None:
        """Begins when the process first uses the device, which must not happen before a fork of the process."""
        if self._mode is not None:
            self._mode.__enter__()
        torch.get_device_module("openreg")._lazy_call(self._begin)

    @property
    def has_begun(self) -> bool:
        """Returns True if this process observes the device; a child that was forked after that does not."""
        return self._process == os.getpid()

    def _begin(self) -> None:
        self._found = None
        self._before = _sessions.begin(self)
        self._process = os.getpid()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
    ) -> None:
        if self._mode is not None:
            self._mode.__exit__(kind, error, traceback)
        if not self.has_begun:  # a forked child has no device
            return
        try:
            names.learn(sys._getframe(1))
            _C.settle()
            self._found = self._collect()
            if self.action == "report":
                _sessions.write_rest(self)
                self.name_unused()
        finally:
            _sessions.end(self)
        if self.action == "raise" and kind is None and self.findings:
            raise SanitizerError(self.findings[0])

    @property
    def findings(self) -> list[Finding]:
        """The findings so far, or those of the block when it has ended, one for each pair of lines."""
        return [item for item in self._all() if not item.is_warning]

    @property
    def warnings(self) -> list[Finding]:
        """The warnings, without those whose first access a finding of reused memory names, too."""
        found = self._all()
        reused = {str(item.frames[0]) for item in found if item.kind == "reuse"}
        return [item for item in found if item.is_warning and str(item.frames[0]) not in reused]

    def _all(self) -> list[Finding]:
        return self._collect() if self._found is None else self._found

    def _collect(self) -> list[Finding]:
        """Returns the findings since the block began, one for each pair of lines, without suppressed ones."""
        counts = _C.counts()
        merged: dict[tuple[str, str, str], Finding] = {}
        self.suppressed = 0
        for item in self.suppressions:
            item.used = 0
        for number, count in enumerate(counts):
            before = self._before[number] if number < len(self._before) else 0
            if count == before:
                continue
            found = _sessions.finding(number)
            if self.is_suppressed(found):
                self.suppressed += 1
                continue
            earlier = merged.get(found.places)
            happened = count - before + (earlier.count if earlier else 0)
            merged[found.places] = (earlier or found).counted(happened)
        return list(merged.values())

    def is_suppressed(self, found: Finding) -> bool:
        """Returns True if a comment or a line of the file of suppressions accepts the finding."""
        matching = [item for item in self.suppressions if item.matches(found)]
        for item in matching:
            item.used += 1
        return bool(matching) or suppressions.is_commented(found)

    def name_unused(self) -> None:
        """Writes the suppressions that have suppressed nothing to stderr."""
        for item in self.suppressions:
            if not item.used:
                write_line(f"openreg-sanitizer: {item.origin}: this suppression suppresses nothing; remove it")


class _Sessions:
    """The open sessions of the process, and the findings of all sessions in Python's form. Thread-safe."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Forgets all sessions. A forked child needs new locks, because it may have inherited these locked."""
        self._control = threading.Lock()  # serializes start and stop of the native part, which may block on the device
        self._lock = threading.RLock()  # guards the members below
        self._open: list[sanitizer] = []  # the newest last
        self._known: list[Finding] = []  # the findings of the process by number, as far as Python has read them
        self._reported = 0  # number of findings that report_new() has taken
        self._written: set[tuple[str, str, str]] = set()  # places of the findings on stderr since the last begin()

    def begin(self, session: sanitizer) -> list[int]:
        """Opens a session, and starts the native part for the first. Returns the counts of the findings before."""
        with self._control:
            before = _C.counts()  # first, because another thread may cause a finding as soon as the native part runs
            if self._open:
                _C.renew()
            else:
                _start()
                written_storages.start()
            with self._lock:
                self._open.append(session)
                self._reported = _C.finding_count()
                self._written.clear()
        return before

    def end(self, session: sanitizer) -> None:
        """Closes a session, and stops the native part after the last."""
        with self._control:
            with self._lock:
                if session in self._open:
                    self._open.remove(session)
                is_last = not self._open
            if is_last:  # without the lock, because a task may wait for another thread, which may need the lock
                written_storages.stop()
                _C.stop()

    def finding(self, number: int) -> Finding:
        """Returns a finding by its number in the process, with names of streams and its repair."""
        with self._lock:
            while number >= len(self._known):
                begin = len(self._known)
                new = [advice.advise(names.name(finding.read(data))) for data in _C.findings(begin)]
                if begin == len(self._known):  # a pending call may have been here meanwhile
                    self._known += new
            return self._known[number]

    def report_new(self) -> None:
        """Writes or raises new findings, as the action of the newest session requests.

        The native part makes the main thread call it, as a pending call of Python.
        """
        if not self._open or self._reported == _C.finding_count():
            return
        names.learn_from_main()  # its frame has ended where the access is in the last statement of the program
        names.learn_from_threads()
        names.learn(sys._getframe(1))
        with self._lock:
            while self._open and self._reported < _C.finding_count():
                found = self.finding(self._reported)
                self._reported += 1
                self._take(found, self._open[-1])

    def note_written(self, found: Finding) -> None:
        """Notes that a finding was written, so that write_rest() omits it."""
        with self._lock:
            self._written.add(found.places)

    def write_rest(self, session: sanitizer) -> None:
        """Writes the findings of a session that were not written: of other threads, or of an error that was caught."""
        with self._lock:
            for found in session.findings:
                if found.places not in self._written:
                    self._write(found)

    def _write(self, found: Finding) -> None:
        self._written.add(found.places)
        write_finding(found)

    def _take(self, found: Finding, session: sanitizer) -> None:
        if found.is_warning or found.places in self._written or session.is_suppressed(found):
            return
        if session.action == "raise":
            raise SanitizerError(found)
        if session.action == "report":
            self._write(found)


def write_line(line: str) -> None:
    """Writes a line to stderr."""
    print(line, file=sys.stderr, flush=True)


def write_finding(found: Finding) -> None:
    """Writes the text of a finding to stderr, followed by an empty line."""
    write_line(text.render(found) + "\n")


def _start() -> None:
    """Starts the native part, and adds the memory that was allocated before, whose content counts as written."""
    _C.start(
        launches_block=os.environ.get("OPENREG_LAUNCH_BLOCKING") == "1",
        is_poisoned=os.environ.get("OPENREG_POISON") == "1",
    )
    try:
        _add_existing()
    except BaseException:
        _C.stop()
        raise


def _add_existing() -> None:
    for segment in openreg.memory_snapshot():
        address = segment["address"]
        is_private = tuple(segment["segment_pool_id"]) != (0, 0)
        for block in segment["blocks"]:
            if block["state"] == "active_allocated":
                _C.add_existing(
                    block.get("address", address), block["size"], segment["device"], segment["stream"], is_private
                )
            address += block["size"]


_sessions = _Sessions()


def _forget_in_child() -> None:
    _C.abandon()
    written_storages.stop()
    _sessions.forget()


after_fork_in_child(_forget_in_child)
report_new = _sessions.report_new


def write_report(found: list[Finding], path: Path) -> None:
    """Writes a report file. If that fails, writes the reason and the findings to stderr."""
    try:
        formats.write(found, path)
    except formats.ReportError as error:
        write_line(f"openreg-sanitizer: {error}")
        for item in found:
            write_finding(item)
