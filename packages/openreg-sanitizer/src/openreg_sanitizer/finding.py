# SPDX-License-Identifier: BSD-3-Clause
"""Findings as Python objects: wrong accesses to memory, with their stacks, tensors and streams.

The native part finds them, and :func:`read` converts its dictionaries. All classes are immutable values without
references to tensors. Addresses and sizes are in bytes, strides in elements.
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

# The kinds of findings, each with its meaning in the words of reports.
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
# The kinds that are warnings, because the program may be correct. Memory may be freed while another stream uses it, if
# its own stream waits for that stream before the memory is reused.
WARNINGS = frozenset({"freed-in-use"})

_SCRIPTS = os.path.realpath(sysconfig.get_path("scripts")) + os.sep  # commands that packages install, such as pytest
_STANDARD = os.path.realpath(sysconfig.get_path("stdlib")) + os.sep
# Names of folders of installed packages. A program may see those of several environments: of the system, of the user,
# and of any environment that a .pth file names.
_LIBRARY_FOLDERS = frozenset({"site-packages", "dist-packages"})

real_path = functools.cache(os.path.realpath)


@functools.cache
def _internal_folders() -> tuple[str, ...]:
    """Returns the folders of torch and of the packages of this project, whose frames are no lines of the program."""
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


def owner_of(file: str) -> str:
    """Returns to whom the code in a file belongs: "torch", "standard", "library" or "program".

    Packages of this project and code that torch.compile generates belong to "torch"; "standard" is Python's library.
    """
    if file.startswith("<frozen"):
        return "standard"
    path = real_path(file)
    if path.startswith((*_internal_folders(), *_generated_folders())):
        return "torch"
    if not _LIBRARY_FOLDERS.isdisjoint(Path(path).parts) or path.startswith(_SCRIPTS):
        return "library"
    return "standard" if path.startswith(_STANDARD) else "program"


def package_of(file: str) -> str:
    """Returns the name of the package that has a file which is no file of the program."""
    path = Path(real_path(file))
    folders = [i for i, part in enumerate(path.parts[:-1]) if part in _LIBRARY_FOLDERS]
    if folders:
        return Path(path.parts[folders[-1] + 1]).stem
    owner = owner_of(file)
    return {"standard": "Python", "torch": "torch"}.get(owner, path.stem)


def shown(file: str) -> str:
    """Returns the path of a file as reports show it: relative to the current folder if the file is in there."""
    path = Path(file)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else file


@dataclass(frozen=True)
class Frame:
    """A frame of a Python stack: the line of the program that it executes."""

    file: str
    line: int
    function: str

    @property
    def source(self) -> str:
        """Returns the text of the line, empty if the file cannot be read."""
        return linecache.getline(self.file, self.line).strip()

    @property
    def owner(self) -> str:
        """Returns to whom the code of the line belongs, see :func:`owner_of`."""
        return owner_of(self.file)

    def __str__(self) -> str:
        return f"{shown(self.file)}:{self.line}"


Stack = tuple[Frame, ...]  # the innermost frame first


def user_frames(stack: Stack) -> list[Frame]:
    """Returns the frames of the program, the innermost first; if there are none those of libraries, else all."""
    for owner in ("program", "library"):
        found = [frame for frame in stack if frame.owner == owner]
        if found:
            return found
    return list(stack)


def user_frame(stack: Stack) -> Frame | None:
    """Returns the innermost frame of the program, else of a library, else of anything; None for an empty stack."""
    return next(iter(user_frames(stack)), None)


@dataclass(frozen=True)
class StreamId:
    """A stream by its device index and its ``stream_id``."""

    device: int
    number: int  # 0: the default stream
    name: str = ""  # of the program's variable, if it is known

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
    """An allocation: its addresses, its stream, and the stacks of its allocation and of its release."""

    begin: int  # the first address
    end: int  # the address behind the last byte; 0: the allocation is unknown
    device: int  # -1: pinned memory of the host
    stream: StreamId  # the stream that it was allocated for
    allocated: Stack  # of the allocation
    freed: Stack  # of the release; empty before it

    @property
    def is_pinned(self) -> bool:
        """Returns True for pinned memory of the host."""
        return self.device < 0


@dataclass(frozen=True)
class Access:
    """An access of a task, or of an operator on the CPU, to a range of memory."""

    begin: int
    end: int
    reads: bool
    writes: bool
    stream: StreamId | None  # None: the host
    kind: str  # kernel, copy, fill or host
    operation: str  # name of the kernel or operator, else the kind
    node: str  # name of the autograd node, for a task of a derivative
    stack: Stack  # of the launch
    captured: Stack  # of the capture, for a task of a graph
    forward: Stack  # of the forward operator, for a task of a derivative
    dtype: str  # as "float32"; empty for bytes without a tensor
    sizes: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def origin(self) -> Stack:
        """Returns the stack that led to the access: of the capture, of the launch, or of the forward operator.

        It is empty for a thread without Python.
        """
        return self.captured or self.stack or self.forward

    @property
    def frame(self) -> Frame | None:
        """Returns the frame of the program that made the access, or None for a thread without Python."""
        return user_frame(self.origin)

    @property
    def verb(self) -> str:
        """Returns "reads", "writes" or "updates"."""
        return ("updates" if self.reads else "writes") if self.writes else "reads"

    @property
    def tensor(self) -> str:
        """Returns a description of the tensor: dtype and sizes, with strides if it is not contiguous."""
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
    """One finding: a wrong access, alone or together with an earlier one, the allocations, and the repair.

    ``missing`` is the line to write, ``where`` says where it belongs: before or after the line ``place``; ``hint``
    explains it.
    """

    kind: str  # one of KINDS
    first: Access | None  # None if the second access is wrong by itself
    first_life: Life
    second: Access
    second_life: Life
    count: int  # how often it has happened
    missing: str = ""
    where: str = ""
    place: Frame | None = None
    hint: str = field(default="", compare=False)

    @property
    def frames(self) -> tuple[Frame | None, Frame | None]:
        """Returns the frames of the first and of the second access."""
        return self.first.frame if self.first else None, self.second.frame

    @property
    def places(self) -> tuple[str, str, str]:
        """Returns the kind and both lines as text. Findings with the same places are counted as one."""
        first, second = self.frames
        return self.kind, str(first) if first else "", str(second) if second else ""

    @property
    def is_warning(self) -> bool:
        """Returns True if a program with this finding may be correct."""
        return self.kind in WARNINGS

    def counted(self, count: int) -> Finding:
        """Returns the finding with another count."""
        return replace(self, count=count)


def _stack(frames: list[tuple[str, int, str]]) -> Stack:
    """Returns the frames without those of this package."""
    own = str(Path(__file__).resolve().parent) + os.sep
    return tuple(Frame(*frame) for frame in frames if not real_path(frame[0]).startswith(own))


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
        str(data["dtype"] or "").removeprefix("torch."),
        tuple(data["sizes"]),
        tuple(data["strides"]),
    )


def read(data: dict[str, Any]) -> Finding:
    """Returns a finding, without its repair, from an element of ``_C.findings()``."""
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
