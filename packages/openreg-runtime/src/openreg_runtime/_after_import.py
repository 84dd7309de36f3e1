# SPDX-License-Identifier: BSD-3-Clause
"""Calls functions when a module has been imported, and imports nothing itself.

PyTorch's compiler and other parts of torch have registries that a package can reach only by importing them. That takes
longer than the rest of torch together. So a finder, first on ``sys.meta_path``, lets the other finders find a module
with pending callbacks. It then observes the only sign of the end of an import: Python sets ``_initializing`` of the
module's specification to False.
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
    """One call of after_import(). It is compared by identity, because one callback may be registered twice."""

    def __init__(self, callback: Callback) -> None:
        self.callback = callback


# The pending registrations by the name of their module. Appending and removing are atomic, so that no lock is held
# across a fork.
_waiting: dict[str, deque[_Registration]] = {}


def after_import(module: str, callback: Callable[[ModuleType], object]) -> None:
    """Calls ``callback(module object)`` once: now if the module is imported, else at the end of its next import.

    Imports nothing. ``module`` is a full name, such as ``"torch._dynamo"``; the module need not be installed.

    - *Already imported*: the callback runs on the calling thread before this function returns. The caller gets its
      exceptions.
    - *Imported later*: the callback runs on the importing thread, at the end of the import. Other threads that import
      the module continue afterwards. A submodule is not an attribute of its package yet; the argument is the submodule.
    - *Being imported*, by this or another thread: the callback runs at the end of that import. If another thread has
      begun to load the module, this function may block until the module is loaded.
    - *An import that fails* calls no callback; the callbacks stay pending. A search by ``importlib.util.find_spec`` is
      no import. A module that code puts into ``sys.modules`` itself calls no callback.
    - *Order*: callbacks of one module run in the order of their registration, including those that a callback
      registers.
    - *Errors*: if a callback raises at the end of an import, the import succeeds and the other callbacks run. A
      ``RuntimeWarning`` names the callback, the module and the package. An exception that is no ``Exception``, such as
      ``KeyboardInterrupt``, ends the import statement.

    Thread-safe. Raises ``ValueError`` if ``module`` is not the name of a module, and ``TypeError`` if ``callback``
    cannot be called.
    """
    if not isinstance(module, str) or not is_module_name(module):
        raise ValueError(f'after_import: {module!r} is no name of a module; write it in full, as "torch._dynamo"')
    if not callable(callback):
        raise TypeError(f"after_import: {callback!r} cannot be called; pass a function that takes the module")
    registration = _Registration(callback)
    _waiting.setdefault(module, deque()).append(registration)
    # The finder is never removed, because a removal would make a thread that iterates over the list skip a finder.
    if _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)
    if _is_imported(module):
        try:
            _waiting[module].remove(registration)
        except ValueError:  # another thread has ended an import of the module meanwhile and calls the callback
            return
        callback(sys.modules[module])


class _AfterImportFinder(MetaPathFinder):
    """A finder that finds modules with pending callbacks by the other finders, and observes the end of their import."""

    def __init__(self) -> None:
        self._looking: set[tuple[int, str]] = set()  # stops recursion, because another finder may also call all others

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Returns the observed specification of another finder, or None for a module without pending callbacks."""
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
            _observe_end(spec)
        return spec


_FINDER = _AfterImportFinder()


def _is_imported(module: str) -> bool:
    """Returns True if the module is imported. If an import is in progress, makes its end call the callbacks."""
    if sys.modules.get(module) is None:
        # Another thread may have found the module before the first registration for it, and may load it now.
        _bootstrap._lock_unlock_module(module)  # type: ignore[attr-defined]
    if _is_initializing(module):
        _observe_end(sys.modules[module].__spec__)
    return sys.modules.get(module) is not None and not _is_initializing(module)


def _is_initializing(module: str) -> bool:
    return getattr(getattr(sys.modules.get(module), "__spec__", None), "_initializing", False)


def _observe_end(spec: Any) -> None:
    """Makes the end of an import, when Python sets ``spec._initializing`` to False, call the module's callbacks."""
    before = type(spec)
    if getattr(before, "_end_is_observed", False):
        return

    def end(self: Any, value: bool) -> None:
        self.__dict__["_initializing"] = True
        if not value:
            try:
                _call_all(self.name)
            finally:
                self.__dict__["_initializing"] = False
                self.__class__ = before
                _call_all(self.name)  # callbacks that were registered while the last one ran

    def state(self: Any) -> bool:
        return bool(self.__dict__.get("_initializing", False))

    spec.__class__ = type(before.__name__, (before,), {"_initializing": property(state, end), "_end_is_observed": True})


def _call_all(module: str) -> None:
    """Calls the pending callbacks of a module, on the thread that has imported it. Calls none if the import failed."""
    registrations = _waiting[module]
    failed = []
    try:
        while registrations and sys.modules.get(module) is not None:
            callback = registrations.popleft().callback
            try:
                callback(sys.modules[module])
            except Exception as error:
                failed.append(_explain(error, callback, module))
    except IndexError:  # another thread has removed the last one
        pass
    finally:
        if registrations and sys.modules.get(module) is not None:
            _call_all(module)  # a callback raised KeyboardInterrupt or similar; the others run nevertheless
        for text in failed:
            # The level skips two functions of this file. Python skips those of importlib, so this is the import line.
            warnings.warn(text, RuntimeWarning, stacklevel=3)


def _explain(error: Exception, callback: Callback, module: str) -> str:
    """Returns the text of the warning about a callback that raised."""
    owner = getattr(callback, "__module__", None) or type(callback).__module__
    name = getattr(callback, "__qualname__", None) or repr(callback)
    distribution = distribution_of(owner.partition(".")[0])
    return (
        f"{owner}.{name}, which was to be called after the import of {module!r}, failed: {in_one_line(error)}. The "
        f"module is imported, without what {distribution} adds to it. Mend that, or go on without it: "
        f"pip uninstall {distribution}"
    )
