# SPDX-License-Identifier: BSD-3-Clause
"""Calls functions when a module has been imported, and imports nothing itself.

PyTorch's compiler and others keep registries that a package could only reach by importing them, which takes longer than
the rest of torch together. So a finder, first on ``sys.meta_path``, lets the others find a module that is waited for,
and watches the one sign that Python gives of the end of an import: ``_initializing`` of the module's specification.
"""

from __future__ import annotations

import sys
import threading
import warnings
from collections import deque
from collections.abc import Callable, Sequence
from importlib import _bootstrap
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from openreg_runtime._failure import in_one_line
from openreg_runtime._plugins import distribution_of, is_module_name

Callback = Callable[[ModuleType], object]


class _Registration:
    """One call of after_import(); compared by identity, for the same callback may be registered twice."""

    def __init__(self, callback: Callback) -> None:
        self.callback = callback


# The pending registrations by the name of their module. Appending and taking are atomic, so that no lock is held across
# a fork.
_waiting: dict[str, deque[_Registration]] = {}


def after_import(module: str, callback: Callable[[ModuleType], object]) -> None:
    """Calls ``callback(module object)`` once: now if the module is imported, else as soon as an import of it is done.

    Nothing is imported for it. The module is named in full, as ``"torch._dynamo"``, and need not be installed.

    - *Already imported*: the callback runs before this function returns, on the calling thread, and its exceptions are
      the caller's.
    - *Imported later*: it runs on the thread that imports, at the end of the import, before other threads that import
      the module go on. The name of a submodule is not yet an attribute of its package then; the argument is the module.
    - *Being imported*: at the end of that import, as before, also where it is this thread's and led here. For a module
      that another thread has begun to load, this function may wait until it is loaded.
    - *An import that fails* calls no callback; they wait for the next import. Looking for a module with
      ``importlib.util.find_spec`` is no import. What is put into ``sys.modules`` by hand is not noticed.
    - *Order*: callbacks of one module run in the order of their registration, which includes those that a callback
      registers.
    - *Errors*: an exception of a callback that runs at the end of an import spoils neither the import nor the other
      callbacks; it becomes a ``RuntimeWarning`` that names the callback, the module and the package. What is no
      ``Exception``, such as ``KeyboardInterrupt``, ends the import statement.

    May be called from any thread. Raises ``ValueError`` for what is no name of a module, and ``TypeError`` for a
    callback that cannot be called.
    """
    if not isinstance(module, str) or not is_module_name(module):
        raise ValueError(f'after_import: {module!r} is no name of a module; write it in full, as "torch._dynamo"')
    if not callable(callback):
        raise TypeError(f"after_import: {callback!r} cannot be called; pass a function that takes the module")
    registration = _Registration(callback)
    _waiting.setdefault(module, deque()).append(registration)
    # The finder stays for ever: to take one away would make other threads that just go through the list skip one.
    if _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)
    if _is_imported(module):
        try:
            _waiting[module].remove(registration)
        except ValueError:  # a thread that just ended an import of the module took it
            return
        callback(sys.modules[module])


class _Finder(MetaPathFinder):
    """Finds the modules that are waited for through the other finders, and has the end of their import noticed."""

    def __init__(self) -> None:
        self._looking: set[tuple[int, str]] = set()  # another finder may also call all others

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Returns the specification of another finder, watched; None for a module without pending registrations."""
        key = (threading.get_ident(), fullname)
        if not _waiting.get(fullname) or key in self._looking:
            return None
        self._looking.add(key)
        try:
            others = [getattr(finder, "find_spec", None) for finder in tuple(sys.meta_path) if finder is not self]
            found = (find(fullname, path, target) for find in others if find is not None)
            spec = next((spec for spec in found if spec is not None), None)
        finally:
            self._looking.discard(key)
        if spec is not None:
            _watch(spec)
        return spec


_FINDER = _Finder()


def _is_imported(module: str) -> bool:
    """Whether an import of the module is done; if one is under way, its end will be noticed."""
    if sys.modules.get(module) is None:
        # Another thread may have found the module before a registration for it, and be about to load it.
        _bootstrap._lock_unlock_module(module)  # type: ignore[attr-defined]
    if _is_initializing(module):
        _watch(sys.modules[module].__spec__)
    return sys.modules.get(module) is not None and not _is_initializing(module)


def _is_initializing(module: str) -> bool:
    return getattr(getattr(sys.modules.get(module), "__spec__", None), "_initializing", False)


def _watch(spec: Any) -> None:
    """Has the callbacks of a module called when Python sets ``spec._initializing`` to False."""
    before = type(spec)
    if getattr(before, "_ends_are_noticed", False):
        return

    def end(self: Any, value: bool) -> None:
        self.__dict__["_initializing"] = True
        if not value:
            try:
                _call_all(self.name)
            finally:
                self.__dict__["_initializing"] = False
                self.__class__ = before
                _call_all(self.name)  # those that were registered while the last one ran, before the import was done

    def state(self: Any) -> bool:
        return bool(self.__dict__.get("_initializing", False))

    spec.__class__ = type(
        before.__name__, (before,), {"_initializing": property(state, end), "_ends_are_noticed": True}
    )


def _call_all(module: str) -> None:
    """Calls the callbacks of a module on the thread that has imported it, and none after an import that failed."""
    registrations = _waiting[module]
    failed = []
    try:
        while registrations and sys.modules.get(module) is not None:
            callback = registrations.popleft().callback
            try:
                callback(sys.modules[module])
            except Exception as error:
                failed.append(_explain(error, callback, module))
    except IndexError:  # another thread took the last
        pass
    finally:
        if registrations and sys.modules.get(module) is not None:
            _call_all(module)  # one raised what is no Exception; the others would never be called
        for text in failed:
            # Past two functions of this file, and those of importlib, which are not counted: the line of the import.
            warnings.warn(text, RuntimeWarning, stacklevel=3)


def _explain(error: Exception, callback: Callback, module: str) -> str:
    owner = getattr(callback, "__module__", None) or type(callback).__module__
    name = getattr(callback, "__qualname__", None) or repr(callback)
    distribution = distribution_of(owner.partition(".")[0])
    return (
        f"{owner}.{name}, which was to be called after the import of {module!r}, failed: {in_one_line(error)}. The "
        f"module is imported, without what {distribution} adds to it. Mend that, or go on without it: "
        f"pip uninstall {distribution}"
    )
