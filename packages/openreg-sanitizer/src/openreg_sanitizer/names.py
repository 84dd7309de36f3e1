# SPDX-License-Identifier: BSD-3-Clause
"""Finds the variables of the program that hold streams, so that a finding can name streams as the program does.

It also knows in which functions such a name exists, so that a missing line is placed where the program can execute it.
"""

from __future__ import annotations

import functools
import inspect
import sys
import threading
import types
from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import CodeType, FrameType
from typing import Any, NamedTuple, TypeGuard

import torch

from openreg_sanitizer.finding import Access, Finding, Frame, StreamId, owner_of, real_path

# Before Python 3.13, `frame.f_locals` of a function is a dictionary with a copy of its variables. The frame keeps it.
_IS_COPY = sys.version_info < (3, 13)
# References to that copy in learn(): of the frame, of `variables`, and of the argument of getrefcount().
_OWN_REFERENCES = 3
_Names = dict[tuple[int, int], str]  # by device and number of the stream


class _Code(NamedTuple):
    """The code of a function or of a module, as a frame of a stack names it."""

    file: str
    function: str
    first: int  # its first and its last line
    last: int

    def has(self, frame: Frame) -> bool:
        """Returns True if the frame executes a line of this code."""
        is_within = self.function == frame.function and self.first <= frame.line <= self.last
        return is_within and self.file == real_path(frame.file)


_names: _Names = {}  # what reports call a stream
_running: dict[_Code, _Names] = {}  # names in the scope of code, when learn() last saw it run
_ended: dict[_Code, _Names] = {}  # names in the scope of code that has run, or of a method whose object has the stream


def learn(frame: FrameType | None) -> None:
    """Notes the streams in the local and global variables of a frame and of its callers. Runs no code of the program.

    Only frames of the program and of libraries count (``owner_of``), not those of torch and of Python's library.
    """
    scopes: dict[_Code, _Names] = {}
    held: _Names = {}
    while frame is not None:
        if owner_of(frame.f_code.co_filename) in ("program", "library"):
            found = scopes.setdefault(_code(frame.f_code), {})
            variables = frame.f_locals
            _note_all(found, held, variables)
            _note_all(found, held, {name: frame.f_globals[name] for name in frame.f_globals.keys() - variables.keys()})
            # The copy would keep tensors alive until the function returns. It is not cleared if the program holds it
            # too, as after a call of locals().
            is_copy = _IS_COPY and frame.f_code.co_flags & inspect.CO_OPTIMIZED
            if is_copy and sys.getrefcount(variables) <= _OWN_REFERENCES:
                variables.clear()
        frame = frame.f_back
    _update(scopes, held)


def _update(scopes: dict[_Code, _Names], held: _Names) -> None:
    """Replaces old names by new ones, because a new stream may have the number of an old one."""
    _names.update(held)
    for code, found in reversed(scopes.items()):  # the names of the innermost frame last
        _names.update(found)
        _running.pop(code, None)
        if found:
            _running[code] = found
            _ended.setdefault(code, {}).update(found)


@functools.lru_cache(maxsize=4096)
def _code(code: CodeType) -> _Code:
    lines = [line for _, _, line in code.co_lines() if line is not None]
    return _Code(real_path(code.co_filename), code.co_name, code.co_firstlineno, max([code.co_firstlineno, *lines]))


def _note_all(found: _Names, held: _Names, variables: Mapping[str, object]) -> None:
    for name, value in list(variables.items()):
        _note(found, held, name, value)


def _note(found: _Names, held: _Names, name: str, value: object) -> None:
    """Notes in ``found`` the stream that a variable is, or that is an attribute of ``self``.

    A stream that is an attribute of any other object is noted in ``held``, and as a name in the methods of the object.
    """
    if _is_stream(value):
        found.setdefault((value.device_index, value.stream_id), name)
    elif not issubclass(type(value), types.ModuleType | type | types.FunctionType):
        for attribute, item in _attributes(value):
            if not _is_stream(item):
                continue
            stream = item.device_index, item.stream_id
            if name in ("self", "cls"):
                found.setdefault(stream, f"{name}.{attribute}")
            held.setdefault(stream, f"{type(value).__name__}.{attribute}")
            for code in _methods(type(value)):
                _ended.setdefault(_code(code), {})[stream] = f"{code.co_varnames[0]}.{attribute}"


def _methods(holder: type) -> Iterator[CodeType]:
    """Yields the code of the methods of a class of the program, also of those with a decorator."""
    for item in (item for base in type.mro(holder) for item in list(vars(base).values())):
        function = item.fget if isinstance(item, property) else item
        while isinstance(function, types.FunctionType) and "__wrapped__" in vars(function):
            function = vars(function)["__wrapped__"]
        code = function.__code__ if isinstance(function, types.FunctionType) else None
        if code is not None and code.co_argcount and owner_of(code.co_filename) in ("program", "library"):
            yield code


def in_scope(stream: StreamId, frame: Frame, *, is_running: bool) -> str:
    """Returns the name of a stream in the function of a frame, or an empty text if it has none there.

    ``is_running`` is True for the frames of the second access of a finding, which ran when their names were learned.
    Those of the first access may have ended long ago.
    """
    for scopes in (_running,) if is_running else (_running, _ended):
        for code, found in scopes.items():
            if (stream.device, stream.number) in found and code.has(frame):
                return found[stream.device, stream.number]
    return ""


def _is_stream(value: object) -> TypeGuard[torch.Stream]:
    """Returns True for a stream. isinstance() would run code of the program: the property ``__class__`` of a proxy."""
    return issubclass(type(value), torch.Stream)


def _attributes(value: object) -> Iterator[tuple[str, Any]]:
    """Yields the attributes in the dictionary of an object; none of a proxy, whose class computes the dictionary."""
    found = next((vars(base)["__dict__"] for base in type(value).__mro__ if "__dict__" in vars(base)), None)
    if isinstance(found, types.GetSetDescriptorType):
        yield from list(found.__get__(value).items())


def learn_from_threads() -> None:
    """Notes the streams in the variables of all other threads that run Python."""
    own = threading.get_ident()
    for thread, frame in list(sys._current_frames().items()):
        if thread != own:
            learn(frame)


def learn_from_main() -> None:
    """Notes the streams in the variables of the main module, whose frame may have ended."""
    found: _Names = {}
    held: _Names = {}
    variables = vars(sys.modules["__main__"])
    _note_all(found, held, variables)
    # When the program has ended, Python has deleted `__file__`.
    file = variables.get("__file__") or getattr(variables.get("__loader__"), "path", "")
    _update({_Code(real_path(file), "<module>", 0, sys.maxsize): found}, held)


def _named(stream: StreamId) -> StreamId:
    name = _names.get((stream.device, stream.number), "")
    return replace(stream, name=name) if name and not stream.is_default else stream


def _access(access: Access | None) -> Access | None:
    return access if access is None or access.stream is None else replace(access, stream=_named(access.stream))


def name(finding: Finding) -> Finding:
    """Returns the finding with its streams named after the variables that hold them, where these are known.

    ``first_life`` and ``second_life`` are the allocations to which the two accesses belong.
    """
    second = _access(finding.second)
    assert second is not None
    return replace(
        finding,
        first=_access(finding.first),
        second=second,
        first_life=replace(finding.first_life, stream=_named(finding.first_life.stream)),
        second_life=replace(finding.second_life, stream=_named(finding.second_life.stream)),
    )
