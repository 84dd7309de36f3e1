# SPDX-License-Identifier: BSD-3-Clause
"""Findings: what is wrong between two accesses to memory, with stacks, tensors and streams.

All classes are immutable values without references to tensors. Addresses and sizes are in bytes.
"""

from __future__ import annotations

import contextlib
import functools
import linecache
import os
import sys
import sysconfig
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

# Kinds of findings with what each means, in the words of reports.
KINDS = {
    "race": "two accesses to the same memory have no order",
    "reuse": "memory was reused while another stream still used the tensor that had it before",
    "use-after-free": "memory is used after its tensor was freed",
    "uninitialized": "memory is read that nothing has written",
    "host-read": "the host reads pinned memory before the copy into it is complete",
    "host-write": "the host changes pinned memory before the copy that uses it is complete",
    "graph-input": "a graph is replayed after memory that it uses was freed",
    "out-of-bounds": "a kernel writes beyond the end of its operand's memory",
    "poison": "a value that was computed from undefined memory reaches the host",
    "freed-in-use": "memory is freed while another stream uses it",
}
# Kinds that are no errors by themselves: a wait that follows the release, and precedes the reuse, is in time.
WARNINGS = frozenset({"freed-in-use"})

# Names of dtypes in C++ that differ from Python's by more than their case.
_DTYPES = {
    "Byte": "uint8",
    "Char": "int8",
    "Short": "int16",
    "Int": "int32",
    "Long": "int64",
    "Half": "float16",
    "Float": "float32",
    "Double": "float64",
    "ComplexHalf": "complex32",
    "ComplexFloat": "complex64",
    "ComplexDouble": "complex128",
}

_STANDARD = os.path.realpath(sysconfig.get_path("stdlib")) + os.sep
_LIBRARIES = os.path.realpath(sysconfig.get_path("purelib")) + os.sep


_real_path = functools.cache(os.path.realpath)


@functools.cache
def _internal_folders() -> tuple[str, ...]:
    """Returns the folders whose frames are no lines of a program: torch and the packages of this project."""
    folders = [str(Path(torch.__file__).resolve().parent) + os.sep]
    site = Path(__file__).resolve().parents[1]
    with contextlib.suppress(OSError):
        folders += [
            str(item) + os.sep for item in site.iterdir() if item.name.startswith(("openreg_", "torch_openreg"))
        ]
    return tuple(folders)


def _generated_folders() -> tuple[str, ...]:
    """Returns the folders of code that torch.compile generates."""
    compiler = sys.modules.get("torch._inductor.runtime.cache_dir_utils")
    return () if compiler is None else (os.path.realpath(compiler.cache_dir()) + os.sep,)


def place_of(file: str) -> str:
    """Returns "torch", "standard", "library" or "program" for a file of a stack."""
    if file.startswith("<frozen"):
        return "standard"
    path = _real_path(file)
    if path.startswith((*_internal_folders(), *_generated_folders())):
        return "torch"
    if path.startswith(_LIBRARIES):
        return "library"
    return "standard" if path.startswith(_STANDARD) else "program"


def shown(file: str) -> str:
    """Returns the path of a file from the current folder, if it is in there."""
    path = Path(file)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else file


@dataclass(frozen=True)
class Frame:
    """A line of a stack."""

    file: str
    line: int
    function: str

    @property
    def source(self) -> str:
        """Returns the text of the line, empty if the file cannot be read."""
        return linecache.getline(self.file, self.line).strip()

    @property
    def place(self) -> str:
        """Returns "torch", "standard", "library" or "program"."""
        return place_of(self.file)

    def __str__(self) -> str:
        return f"{shown(self.file)}:{self.line}"


Stack = tuple[Frame, ...]


def user_frame(stack: Stack) -> Frame | None:
    """Returns the innermost line of the program, else of a library, else of anything; None for an empty stack."""
    for place in ("program", "library"):
        for frame in stack:
            if frame.place == place:
                return frame
    return stack[0] if stack else None


@dataclass(frozen=True)
class StreamId:
    """A stream by device index and ``stream_id``; 0 is the default stream. ``name`` is the program's variable."""

    device: int
    number: int
    name: str = ""

    @property
    def is_default(self) -> bool:
        """Returns True for the default stream of the device."""
        return self.number == 0

    def __str__(self) -> str:
        if self.is_default:
            return f"the default stream of openreg:{self.device}"
        return f"stream {self.name or hex(self.number)} of openreg:{self.device}"


@dataclass(frozen=True)
class Life:
    """An allocation from its beginning to its release."""

    begin: int
    end: int
    device: int
    stream: StreamId
    allocated: Stack
    freed: Stack

    @property
    def is_pinned(self) -> bool:
        """Returns True for pinned memory of the host."""
        return self.device < 0


@dataclass(frozen=True)
class Access:
    """What a task, or an operator of the host, does with a range of memory."""

    begin: int
    end: int
    reads: bool
    writes: bool
    stream: StreamId | None  # None: the host
    kind: str  # kernel, copy, fill or host
    operation: str
    node: str  # of autograd, for a derivative
    stack: Stack
    captured: Stack  # of the capture, for a task of a graph
    forward: Stack  # of the operator of which this is a derivative
    dtype: str
    sizes: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def frame(self) -> Frame | None:
        """Returns the line of the program that made the access."""
        for stack in (self.captured, self.stack, self.forward):
            if stack:
                return user_frame(stack)
        return None

    @property
    def verb(self) -> str:
        """Returns "reads", "writes" or "updates"."""
        return ("updates" if self.reads else "writes") if self.writes else "reads"

    @property
    def tensor(self) -> str:
        """Returns dtype and sizes as PyTorch prints them, with strides if the tensor is not contiguous."""
        if not self.dtype:
            return f"{self.end - self.begin} bytes"
        text = f"{self.dtype}{list(self.sizes)}"
        expected = 1
        contiguous = True
        for size, stride in zip(reversed(self.sizes), reversed(self.strides), strict=True):
            contiguous = contiguous and (size == 1 or stride == expected)
            expected *= size
        return text if contiguous else f"{text} with strides {list(self.strides)}"


@dataclass(frozen=True)
class Finding:
    """One finding: a kind of :data:`KINDS`, two accesses, their allocations and the missing line."""

    kind: str
    first: Access | None  # None where one access is wrong by itself
    first_life: Life
    second: Access
    second_life: Life
    count: int
    # How to repair it: the line to write, and where it belongs.
    missing: str = ""
    where: str = ""
    hint: str = field(default="", compare=False)

    @property
    def frames(self) -> tuple[Frame | None, Frame | None]:
        """Returns the lines of the first and of the second access."""
        return self.first.frame if self.first else None, self.second.frame

    @property
    def places(self) -> tuple[str, str, str]:
        """Returns the kind and both lines as text: what findings are counted by."""
        first, second = self.frames
        return self.kind, str(first) if first else "", str(second) if second else ""

    @property
    def is_warning(self) -> bool:
        """Returns True if the finding is no error by itself."""
        return self.kind in WARNINGS

    def counted(self, count: int) -> Finding:
        """Returns the finding with another count."""
        return replace(self, count=count)


def _stack(frames: list[tuple[str, int, str]]) -> Stack:
    own = str(Path(__file__).resolve().parent) + os.sep
    return tuple(Frame(*frame) for frame in frames if not _real_path(frame[0]).startswith(own))


def _life(data: dict[str, Any]) -> Life:
    return Life(
        data["begin"],
        data["end"],
        data["device"],
        StreamId(*data["stream"]),
        _stack(data["allocated"]),
        _stack(data["freed"]),
    )


def _access(data: dict[str, Any] | None) -> Access | None:
    if data is None:
        return None
    return Access(
        data["begin"],
        data["end"],
        data["reads"],
        data["writes"],
        None if data["stream"] is None else StreamId(*data["stream"]),
        data["kind"],
        data["operation"] or data["kind"],
        data["node"] or "",
        _stack(data["stack"]),
        _stack(data["captured"]),
        _stack(data["forward"]),
        _DTYPES.get(data["dtype"] or "", (data["dtype"] or "").lower()),
        tuple(data["sizes"]),
        tuple(data["strides"]),
    )


def read(data: dict[str, Any]) -> Finding:
    """Returns the finding that ``_C.findings()`` describes."""
    second = _access(data["second"])
    assert second is not None
    return Finding(
        data["kind"],
        _access(data["first"]),
        _life(data["first_life"]),
        second,
        _life(data["second_life"]),
        data["count"],
    )
