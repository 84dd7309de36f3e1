# SPDX-License-Identifier: BSD-3-Clause
"""Observes the functions by which ``torch.save()`` and ``pickle`` write the bytes of a storage.

They read memory of the host without an operator. While a session is open, each of them calls an operator of this
package first, which does nothing, and which the native part observes as it observes any operator on pinned memory.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

# The classes and methods of PyTorch that write a storage: into an archive, and into a stream of bytes.
_WRITERS: tuple[tuple[type, str], ...] = (
    (torch._C.PyTorchFileWriter, "write_record"),
    (torch.UntypedStorage, "_write_file"),
)

_library: Any = torch.library.Library("openreg_sanitizer", "DEF")  # type: ignore[no-untyped-call]
_library.define("write_storage(Tensor content) -> ()")
_library.impl("write_storage", lambda _: None, "CPU")

_observed: dict[tuple[type, str], tuple[Callable[..., Any], Callable[..., Any] | None]] = {}  # new and old method


def start() -> None:
    """Replaces the methods by ones that report the storages among their arguments."""
    for owner, name in _WRITERS:
        if (owner, name) not in _observed:
            method = _reporting(getattr(owner, name))
            _observed[owner, name] = method, vars(owner).get(name)
            setattr(owner, name, method)


def stop() -> None:
    """Restores the methods, except one that the program has replaced meanwhile."""
    for (owner, name), (method, before) in _observed.items():
        if vars(owner).get(name) is not method:
            continue
        if before is None:  # inherited
            delattr(owner, name)
        else:
            setattr(owner, name, before)
    _observed.clear()


def _reporting(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def report(*args: Any, **kwargs: Any) -> Any:
        for value in (*args, *kwargs.values()):
            if isinstance(value, torch.UntypedStorage) and value.device.type == "cpu" and value.nbytes():
                _report(value)
        return method(*args, **kwargs)

    return report


def _report(storage: torch.UntypedStorage) -> None:
    with torch._C._DisableTorchDispatch():  # modes of the program see no operator of this package
        content = torch.empty(0, dtype=torch.uint8, device="cpu").set_(storage)
        torch.ops.openreg_sanitizer.write_storage(content)
