# SPDX-License-Identifier: BSD-3-Clause
"""Calls functions when a module has been imported, and imports nothing itself.

PyTorch's compiler and other parts of torch have registries that a package can reach only by importing those parts.
This takes longer than the import of the rest of torch. So a finder, added at the front of ``sys.meta_path``, handles
modules with pending callbacks. It finds the module by the other finders, and wraps its loader in one that calls the
callbacks after the module has been executed.
"""

from __future__ import annotations

import sys
import threading
import warnings
from collections import deque
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
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


# The pending registrations by the name of their module, and the names of the modules that are being imported and whose
# loader will call callbacks. Appending, adding and removing are atomic. There is no lock, because a fork could copy it
# while it is locked.
_waiting: dict[str, deque[_Registration]] = {}
_importing: set[str] = set()


def after_import(module: str, callback: Callable[[ModuleType], object]) -> None:
    """Calls ``callback(module object)`` once: now if the module is imported, else at the end of its next import.

    Imports nothing. ``module`` is a full name, such as ``"torch._dynamo"``; the module need not be installed.

    - *Already imported*: the callback runs on the calling thread before this function returns. The caller gets its
      exceptions.
    - *Imported later*: the callback runs on the importing thread, at the end of the import. Other threads that import
      the module continue afterwards. A submodule is not an attribute of its package yet; the argument is the submodule.
    - *Being imported*, by this or another thread: the callback runs at the end of that import, if a callback for the
      module was pending when the import began. Otherwise that import is not observed: if ``sys.modules`` has
      the module at the time of this call, it counts as imported, and the callback gets it although its code has not
      finished. If ``sys.modules`` does not have it yet, the callback waits for the next import.
    - *An import that fails* leaves the callbacks pending. A search by ``importlib.util.find_spec`` is no import.
      No pending callback runs when a program puts a module object into ``sys.modules`` itself, or when a namespace
      package is imported, because neither is executed.
    - *Order*: callbacks of one module run in the order of their registration, including those that a callback
      registers.
    - *Errors*: if a callback raises at the end of an import, the import succeeds and the other callbacks run. A
      ``RuntimeWarning`` names the callback, the module and the package. The import fails if the warning is an error,
      or if a callback raises an exception that is no ``Exception``, such as ``KeyboardInterrupt``. The next import then
      calls all callbacks again, because it makes another module object.

    Thread-safe. Raises ``ValueError`` if ``module`` is not the name of a module, and ``TypeError`` if ``callback``
    cannot be called.
    """
    if not isinstance(module, str) or not is_module_name(module):
        raise ValueError(f'after_import: {module!r} is no name of a module; write it in full, as "torch._dynamo"')
    if not callable(callback):
        raise TypeError(f"after_import: {callback!r} cannot be called; pass a function that takes the module")
    registration = _Registration(callback)
    pending = _waiting.setdefault(module, deque())
    pending.append(registration)
    # The finder is never removed, because a removal would make a thread that iterates over the list skip a finder.
    if _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)
    imported = sys.modules.get(module)
    if imported is not None and module not in _importing:
        try:
            pending.remove(registration)
        except ValueError:  # another thread has ended an import of the module meanwhile and calls the callback
            return
        callback(imported)


class _AfterImportFinder(MetaPathFinder):
    """A finder that finds modules with pending callbacks by the other finders, and wraps their loaders."""

    def __init__(self) -> None:
        self._looking: set[tuple[int, str]] = set()  # stops recursion, because another finder may also call all others

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Returns another finder's specification with a wrapped loader, or None if no callback is pending."""
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
        if spec is not None and hasattr(spec.loader, "exec_module"):  # a namespace package has no loader
            spec.loader = _CallingLoader(spec.loader)
        return spec


_FINDER = _AfterImportFinder()


class _CallingLoader(Loader):
    """A loader that loads a module by the module's own loader, and calls the pending callbacks at the end.

    The import system holds the lock of the module meanwhile, so that other threads that import it wait.
    """

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def __getattr__(self, name: str) -> Any:
        """Returns an attribute of the module's own loader, such as the ``get_code`` of ``python -m``."""
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Creates the module object, which the import system puts into ``sys.modules`` next."""
        created: ModuleType | None = self._loader.create_module(spec)
        _importing.add(spec.name)
        return created

    def exec_module(self, module: ModuleType) -> None:
        """Puts the module's own loader back into the module, executes the module, and calls the callbacks."""
        spec: Any = module.__spec__
        spec.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        _call_all(spec.name)
        # The name stays after a failure, because sys.modules may still contain the failed module for a moment, and
        # after_import() must not call a callback with it. The next import adds the name again anyway.
        _importing.discard(spec.name)
        _call_all(spec.name)  # callbacks that other threads have registered since the last one ran


def _call_all(module: str) -> None:
    """Calls the pending callbacks of a module, on the thread that imports it. They stay pending if the import fails."""
    pending = _waiting[module]
    called: list[_Registration] = []
    failed = []
    try:
        while sys.modules.get(module) is not None:  # it is not there if a program executes a module without an import
            try:
                registration = pending.popleft()
            except IndexError:
                break
            called.append(registration)
            try:
                registration.callback(sys.modules[module])
            except Exception as error:
                failed.append(_explain(error, registration.callback, module))
        for text in failed:
            # The level skips two functions of this file. Python skips those of importlib, so this is the import line.
            warnings.warn(text, RuntimeWarning, stacklevel=3)
    except BaseException:
        pending.extendleft(reversed(called))
        raise


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
