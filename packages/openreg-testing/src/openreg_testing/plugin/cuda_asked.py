# SPDX-License-Identifier: BSD-3-Clause
"""Finds the lines of a library that refer to CUDA while its tests run on another device.

A library with the line ``device = "cuda" if torch.cuda.is_available() else "cpu"`` then computes on the CPU, and every
test passes, although none has used the device. So this module lists each line that

- queries CUDA with a function of ``torch.cuda`` that returns without CUDA, such as ``is_available()``;
- uses CUDA, for example by creating a tensor on ``"cuda"``, even if the library handles the error;
- compares with cuda, as ``x.is_cuda`` and ``device.type == "cuda"`` do. A comparison calls no function. So these lines
  are found in the source files of the project's imported modules, even if they did not run.

The first two kinds are recorded by wrappers of functions of ``torch.cuda``. The wrappers return what the functions
return, and exist from the import of torch until the end of the run. Lines of tests are not listed.
"""

from __future__ import annotations

import ast
import functools
import importlib.machinery
import sys
from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

import pytest

from openreg_testing.plugin.project_files import ProjectFiles
from openreg_testing.plugin.waits import is_internal

__tracebackhide__ = True  # pytest omits frames of this module from tracebacks

# Functions that return a value without CUDA. Functions that raise without CUDA call _LAZY first, and so does every
# function that creates a tensor.
_QUERIES = (
    "is_available",
    "device_count",
    "is_bf16_supported",
    "manual_seed",
    "manual_seed_all",
    "seed",
    "seed_all",
    "empty_cache",
    "memory_allocated",
    "max_memory_allocated",
    "memory_reserved",
    "max_memory_reserved",
)
_LAZY = "_lazy_init"
# PyTorch's modules query CUDA for many reasons, but these do so because a caller named cuda.
_NAMED_BY_CALLERS = ("torch.cuda.amp.", "torch.amp.")
_CUDA = "torch.cuda"
_NAMES = ("cuda", "cuda:*")


class CudaUses:
    """A collector of the lines described above, from all threads of this process."""

    def __init__(self, files: ProjectFiles) -> None:
        self._files = files
        self._found: dict[str, str] = {}  # place -> what the line does
        self._read: set[str] = set()  # modules whose sources were read
        self._undo: list[tuple[str, Any]] = []
        self._finder = _CudaImportFinder(self._watch)

    def begin(self) -> None:
        """Starts recording, or arranges it for the import of torch."""
        module = sys.modules.get(_CUDA)
        if module is None:
            sys.meta_path.insert(0, self._finder)
        else:
            self._watch(module)

    def end(self) -> None:
        """Stops recording and restores the functions of ``torch.cuda``."""
        if self._finder in sys.meta_path:
            sys.meta_path.remove(self._finder)
        module = sys.modules.get(_CUDA)
        while self._undo:
            name, function = self._undo.pop()
            setattr(module, name, function)

    def take(self) -> dict[str, str]:
        """Returns the lines found since the last call: "file:line", relative to the project, and what each does."""
        self._read_sources()
        found, self._found = self._found, {}
        return found

    def _watch(self, module: ModuleType) -> None:
        for name in (*_QUERIES, _LAZY):
            function = getattr(module, name, None)
            if function is not None:
                self._undo.append((name, function))
                setattr(module, name, self._recorded(name, function))

    def _recorded(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        what = "uses cuda" if name == _LAZY else f"calls {_CUDA}.{name}()"

        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            caller = sys._getframe(1)
            owner = str(caller.f_globals.get("__name__", ""))
            if name == _LAZY or owner.partition(".")[0] != "torch" or f"{owner}.".startswith(_NAMED_BY_CALLERS):
                self._record(caller, what)
            return function(*args, **kwargs)

        return wrapper

    def _record(self, frame: FrameType | None, what: str) -> None:
        while frame is not None and is_internal(frame):
            frame = frame.f_back
        if frame is not None and not self._files.is_of_tests(file := frame.f_code.co_filename):
            self._found.setdefault(f"{self._files.relative(file)}:{frame.f_lineno}", what)

    def _read_sources(self) -> None:
        """Finds comparisons in the modules of the project that were imported since the last call."""
        if len(sys.modules) == len(self._read):
            return
        for name in [name for name in list(sys.modules) if name not in self._read]:
            self._read.add(name)
            file = getattr(sys.modules.get(name), "__file__", None)
            if isinstance(file, str) and file.endswith(".py") and self._files.is_of_library(file):
                for line in compared(Path(file)):
                    self._found.setdefault(f"{self._files.relative(file)}:{line}", "compares with cuda")


def compared(file: Path) -> list[int]:
    """Returns the numbers of the lines of a source file that compare with cuda; empty for an unreadable file."""
    try:
        source = file.read_bytes()
        return sorted(set(_lines(ast.parse(source)))) if b"cuda" in source else []
    except (OSError, SyntaxError, ValueError, RecursionError):
        return []


def _lines(tree: ast.AST) -> Iterator[int]:
    """Yields the line numbers of comparisons with cuda."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr == "is_cuda":
            yield node.lineno
        if isinstance(node, ast.Compare) and any(map(_names_cuda, (node.left, *node.comparators))):
            yield node.lineno
        method = node.func if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else None
        if isinstance(node, ast.Call) and method and method.attr == "startswith" and any(map(_names_cuda, node.args)):
            yield node.lineno
        if isinstance(node, ast.MatchValue) and _names_cuda(node.value):
            yield node.value.lineno


def _names_cuda(node: ast.AST) -> bool:
    """Returns True if the node is a name of cuda, a device of that name, or a collection with one of them."""
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        return any(map(_names_cuda, node.elts))
    if isinstance(node, ast.Call):  # torch.device("cuda")
        return any(map(_names_cuda, node.args[:1]))
    return isinstance(node, ast.Constant) and any(fnmatch(str(node.value), name) for name in _NAMES)


class _CudaImportFinder:
    """An import hook that calls a function after the import of torch.cuda, which may be long after pytest started."""

    def __init__(self, call: Callable[[ModuleType], None]) -> None:
        self._call = call

    def find_spec(
        self, name: str, path: Any, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Returns the specification of torch.cuda with a loader that calls the function; None for other modules."""
        if name != _CUDA:
            return None
        sys.meta_path.remove(self)
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            loader: Any = spec.loader
            execute = loader.exec_module

            def execute_and_call(module: ModuleType) -> None:
                execute(module)
                self._call(module)

            loader.exec_module = execute_and_call
        return spec


def begin_recording(config: pytest.Config) -> CudaUses:
    """Starts recording for this run."""
    uses = CudaUses(ProjectFiles.of(config))
    uses.begin()
    return uses
