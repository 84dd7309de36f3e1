# SPDX-License-Identifier: BSD-3-Clause
"""Which lines of a library mean CUDA while the tests run on another device.

``device = "cuda" if torch.cuda.is_available() else "cpu"`` computes on the CPU here, and every test of it passes. So
this names each line that

- asks CUDA, by one of the functions of ``torch.cuda`` that answer without it, as ``is_available()`` does;
- uses it, by a name such as ``"cuda"`` that PyTorch would make a tensor for, whatever becomes of the error;
- compares with it, as ``x.is_cuda`` and ``device.type == "cuda"`` do. Nothing is called by that, so it is read in the
  sources of the modules that tests import from the project, whether or not the line ran.

The first two are replaced functions of ``torch.cuda``, from the moment at which torch is imported until the end of the
run; they answer as before. Lines of tests are no library's.
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

from openreg_testing.waits import TEST_FOLDERS, carries

__tracebackhide__ = True  # pytest's name for frames that no report shows

# What answers where there is no CUDA. What raises calls _LAZY first, and so does all that makes a tensor.
_ASKED = (
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
# PyTorch itself asks on many ways; here it does because somebody named cuda.
_NAMED_BY_CALLERS = ("torch.cuda.amp.", "torch.amp.")
_CUDA = "torch.cuda"
_NAMES = ("cuda", "cuda:*")


class CudaAsked:
    """The lines since the last ``take()``, of all threads of this process."""

    def __init__(self, root: Path, test_files: list[str]) -> None:
        self._root = root
        self._test_files = test_files
        self._found: dict[str, str] = {}  # place -> what it does
        self._read: set[str] = set()  # modules whose sources were looked at
        self._undo: list[tuple[str, Any]] = []
        self._finder = _Finder(self._watch)

    def begin(self) -> None:
        """Watches from now on, or from the import of torch."""
        module = sys.modules.get(_CUDA)
        if module is None:
            sys.meta_path.insert(0, self._finder)
        else:
            self._watch(module)

    def end(self) -> None:
        """Leaves everything as it was."""
        if self._finder in sys.meta_path:
            sys.meta_path.remove(self._finder)
        module = sys.modules.get(_CUDA)
        while self._undo:
            name, function = self._undo.pop()
            setattr(module, name, function)

    def take(self) -> dict[str, str]:
        """The lines that came since the last call, each with what it does: by file and line, below the project."""
        self._read_sources()
        found, self._found = self._found, {}
        return found

    def _watch(self, module: ModuleType) -> None:
        for name in (*_ASKED, _LAZY):
            function = getattr(module, name, None)
            if function is not None:
                self._undo.append((name, function))
                setattr(module, name, self._noting(name, function))

    def _noting(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        what = "uses cuda" if name == _LAZY else f"asks {_CUDA}.{name}()"

        @functools.wraps(function)
        def asked(*args: Any, **kwargs: Any) -> Any:
            caller = sys._getframe(1)
            owner = str(caller.f_globals.get("__name__", ""))
            if name == _LAZY or owner.partition(".")[0] != "torch" or f"{owner}.".startswith(_NAMED_BY_CALLERS):
                self._note(caller, what)
            return function(*args, **kwargs)

        return asked

    def _note(self, frame: FrameType | None, what: str) -> None:
        while frame is not None and carries(frame):
            frame = frame.f_back
        if frame is not None and not self._is_of_tests(Path(frame.f_code.co_filename)):
            self._found.setdefault(f"{self._relative(Path(frame.f_code.co_filename))}:{frame.f_lineno}", what)

    def _read_sources(self) -> None:
        """Of the modules of the project that were imported since."""
        if len(sys.modules) == len(self._read):
            return
        for name in [name for name in list(sys.modules) if name not in self._read]:
            self._read.add(name)
            file = getattr(sys.modules.get(name), "__file__", None)
            if isinstance(file, str) and file.endswith(".py") and self._is_of_project(Path(file)):
                for line in compared(Path(file)):
                    self._found.setdefault(f"{self._relative(Path(file))}:{line}", "compares with cuda")

    def _is_of_project(self, path: Path) -> bool:
        below = self._relative(path)
        parts = Path(below).parts
        return not Path(below).is_absolute() and "site-packages" not in parts and not self._is_of_tests(path)

    def _is_of_tests(self, path: Path) -> bool:
        if path.name == "conftest.py" or any(fnmatch(path.name, pattern) for pattern in self._test_files):
            return True
        return any(part in TEST_FOLDERS for part in Path(self._relative(path)).parts[:-1])

    def _relative(self, path: Path) -> str:
        try:
            return path.relative_to(self._root).as_posix()
        except ValueError:
            return str(path)


def compared(file: Path) -> list[int]:
    """The lines of a source file that compare with cuda; none of a file that cannot be read."""
    try:
        source = file.read_bytes()
        return sorted(set(_lines(ast.parse(source)))) if b"cuda" in source else []
    except (OSError, SyntaxError, ValueError, RecursionError):
        return []


def _lines(tree: ast.AST) -> Iterator[int]:
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
    """Whether it is the name, a device of that name, or a collection with one of them."""
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        return any(map(_names_cuda, node.elts))
    if isinstance(node, ast.Call):  # torch.device("cuda")
        return any(map(_names_cuda, node.args[:1]))
    return isinstance(node, ast.Constant) and any(fnmatch(str(node.value), name) for name in _NAMES)


class _Finder:
    """Calls a function when torch.cuda was imported, which a library may do long after pytest has begun."""

    def __init__(self, call: Callable[[ModuleType], None]) -> None:
        self._call = call

    def find_spec(
        self, name: str, path: Any, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """What the next finder gives, with a loader that calls the function."""
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


def begun(config: pytest.Config) -> CudaAsked:
    """Watches the lines of this run."""
    asked = CudaAsked(config.rootpath, list(config.getini("python_files")))
    asked.begin()
    return asked
