# SPDX-License-Identifier: BSD-3-Clause
"""Explains why a plug-in, a module by which another package extends this device, does not load.

A message contains the name of the plug-in, the root cause in one line, and the remedy.
"""

from __future__ import annotations

import traceback


def explain(error: BaseException, module: str, distribution: str) -> str:
    """Returns the message about a plug-in whose import raised `error`."""
    root = _root_cause(error)
    advice = _advice(root, module, distribution)
    return f"the openreg plug-in {module!r} of the package {distribution} failed to load: {in_one_line(root)}{advice}"


def _root_cause(error: BaseException) -> BaseException:
    """Returns the exception that a traceback of `error` shows first."""
    seen: set[int] = set()
    while id(error) not in seen:
        seen.add(id(error))
        hidden = error.__suppress_context__ or error.__cause__ is not None
        earlier = error.__cause__ if hidden else error.__context__
        error = earlier if earlier is not None else error
    return error


def in_one_line(error: BaseException) -> str:
    """Returns the type and the first line of the text of an exception."""
    # str(error) may raise; TracebackException then has a substitute text.
    described = traceback.TracebackException(type(error), error, None)
    lines = str(described).strip().splitlines() or ["no message"]
    return f"{type(error).__name__}: {lines[0].rstrip('.')}"


def _advice(root: BaseException, module: str, distribution: str) -> str:
    """Returns the end of the message: what to do about the root cause. Empty if its text says that itself."""
    without = f"go on without it: pip uninstall {distribution}"
    if isinstance(root, ModuleNotFoundError) and root.name is not None and not _is_part_of(root.name, module):
        return f". Install what it needs: pip install {distribution}; or {without}"
    # Python sets `name`. An ImportError without it was raised by a package, whose message contains the remedy.
    if isinstance(root, ImportError) and root.name is None:
        return ""
    if isinstance(root, (ImportError, SyntaxError, FileNotFoundError)):
        return f". Reinstall it: pip install --force-reinstall --no-deps {distribution}; or {without}"
    return f". Mend that, or {without}"


def _is_part_of(name: str, module: str) -> bool:
    return name.partition(".")[0] == module.partition(".")[0]
