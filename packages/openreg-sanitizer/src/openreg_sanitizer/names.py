# SPDX-License-Identifier: BSD-3-Clause
"""Finds the variables of the program that hold streams, so that a finding can name streams as the program does."""

from __future__ import annotations

import inspect
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from types import FrameType
from typing import Any, TypeGuard

import torch

from openreg_sanitizer.finding import Access, Finding, StreamId, owner_of

# Before Python 3.13, `frame.f_locals` of a function is a dictionary with a copy of its variables. The frame keeps it.
_IS_COPY = sys.version_info < (3, 13)
# References to that copy in learn(): of the frame, of `variables`, and of the argument of getrefcount().
_OWN_REFERENCES = 3
_names: dict[tuple[int, int], str] = {}  # by device and number of the stream


def learn(frame: FrameType | None) -> None:
    """Notes the streams in the local and global variables of a frame and of its callers. Runs no code of the program.

    Only frames of the program and of libraries count (``owner_of``), not those of torch and of Python's library.
    """
    found: dict[tuple[int, int], str] = {}
    while frame is not None:
        if owner_of(frame.f_code.co_filename) in ("program", "library"):
            variables = frame.f_locals
            for scope in (variables, frame.f_globals):
                for name, value in list(scope.items()):
                    _note(found, name, value)
            del scope
            # The copy would keep tensors alive until the function returns. It is not cleared if the program holds it
            # too, as after a call of locals().
            is_copy = _IS_COPY and frame.f_code.co_flags & inspect.CO_OPTIMIZED
            if is_copy and sys.getrefcount(variables) <= _OWN_REFERENCES:
                variables.clear()
        frame = frame.f_back
    _names.update(found)  # replaces old names, because a new stream may have the number of an old one


def _note(found: dict[tuple[int, int], str], name: str, value: object) -> None:
    if _is_stream(value):
        found.setdefault((value.device_index, value.stream_id), name)
    elif name in ("self", "cls"):
        for attribute, item in _attributes(value):
            if _is_stream(item):
                found.setdefault((item.device_index, item.stream_id), f"{name}.{attribute}")


def _is_stream(value: object) -> TypeGuard[torch.Stream]:
    """Returns True for a stream. isinstance() would run code of the program: the property ``__class__`` of a proxy."""
    return issubclass(type(value), torch.Stream)


def _attributes(value: object) -> Iterator[tuple[str, Any]]:
    try:
        variables = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return
    if isinstance(variables, dict):
        yield from list(variables.items())


def learn_from_threads() -> None:
    """Notes the streams in the variables of all other threads that run Python."""
    own = threading.get_ident()
    for thread, frame in list(sys._current_frames().items()):
        if thread != own:
            learn(frame)


def learn_from_main() -> None:
    """Notes the streams in the variables of the main module, whose frame may have ended."""
    found: dict[tuple[int, int], str] = {}
    for name, value in list(vars(sys.modules["__main__"]).items()):
        _note(found, name, value)
    _names.update(found)


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
