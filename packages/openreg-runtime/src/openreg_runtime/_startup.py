# SPDX-License-Identifier: BSD-3-Clause
"""The steps of importing the package, each a function that says what it refuses and why."""

from __future__ import annotations

import atexit
import importlib
import os
import time
from pathlib import Path
from types import ModuleType

import torch
from torch.utils.backend_registration import (
    generate_methods_for_privateuse1_backend,
    rename_privateuse1_backend,
)

from openreg_runtime._platform import let_loader_search
from openreg_runtime._plugins import require_matching_build

DEVICE_TYPE = "openreg"

# Many times what PyTorch's threads need after a backward pass returned, and little in the life of a process.
_EXIT_WAIT_SECONDS = 0.05

# What torch calls the dispatch key's device before any backend has renamed it.
_UNCLAIMED_NAME = "privateuseone"


def refuse_unreadable_settings() -> None:
    """Raises ImportError if a setting is not UTF-8: the message that refuses its value later could not quote it."""
    for name, value in os.environ.items():
        if name.startswith("OPENREG_") or name == "PYTORCH_ALLOC_CONF":
            try:
                os.fsencode(value).decode("utf-8")
            except UnicodeDecodeError:
                raise ImportError(
                    f"environment variable {name}={value!r} is not accepted: its bytes are not UTF-8; "
                    "correct it or unset it, and start the process again"
                ) from None


def refuse_other_torch() -> None:
    """Raises ImportError unless the installed torch has the minor version that the native parts were compiled for.

    PyTorch's C++ interfaces change with every minor version.
    """
    require_matching_build("openreg_runtime")


def refuse_other_backend() -> None:
    """Raises ImportError if another backend already lives under the dispatch key PrivateUse1."""
    name = torch._C._get_privateuse1_backend_name()
    if getattr(getattr(torch, DEVICE_TYPE, None), "__name__", None) == "openreg_runtime.openreg":
        raise ImportError(
            "openreg_runtime is part of this process already and cannot be loaded a second time, because PyTorch keeps "
            "what it registered. Start a new process instead of reloading it."
        )
    other_name = name not in (_UNCLAIMED_NAME, DEVICE_TYPE)
    if other_name or hasattr(torch, DEVICE_TYPE):
        holder = f"the backend {name!r}" if other_name else "another package named 'openreg'"
        raise ImportError(
            f"PyTorch has room for one PrivateUse1 backend per process, and {holder} already is registered. "
            "Use one of the two: import openreg_runtime in a process of its own, or keep the other one from loading "
            "(TORCH_DEVICE_BACKEND_AUTOLOAD=0 switches off backends that load by themselves)."
        )


def load_native_module() -> ModuleType:
    """Loads ``openreg_runtime._C``; its shared libraries register the C++ interfaces."""
    let_loader_search((Path(torch.__file__).parent / "lib", Path(__file__).parent / "lib"))
    return importlib.import_module("openreg_runtime._C")


def register_device(module: ModuleType) -> None:
    """Names the device and makes ``module`` known as ``torch.openreg``."""
    rename_privateuse1_backend(DEVICE_TYPE)
    torch._register_device_module(DEVICE_TYPE, module)  # type: ignore[no-untyped-call]
    generate_methods_for_privateuse1_backend(for_storage=True)


def share_between_processes() -> None:
    """Teaches ``torch.multiprocessing`` to send memory of the device.

    Only PyTorch's own devices are known there; for others, sending a tensor fails with an error about the CPU.
    """
    from openreg_runtime.openreg import _sharing

    _sharing.register_reducer()


def complete_storages() -> None:
    """Gives storages what ``generate_methods_for_privateuse1_backend`` leaves out: swapping bytes, as for old files.

    PyTorch's method reads the address on the host, which ends the process.
    """
    from openreg_runtime.openreg import _serialization

    _serialization.patch_storage()


def export_through_dlpack() -> None:
    """Makes ``torch.from_dlpack`` and other consumers of DLPack take tensors of the device.

    PyTorch compares their device type with the name it had before it was renamed, and refuses them as unknown.
    """
    from openreg_runtime.openreg import _dlpack

    _dlpack.patch_tensor()


def wait_at_exit_for_autograd() -> None:
    """Lets PyTorch's backward threads come to rest before Python finalizes.

    A backward pass returns a moment before the thread of its device drops the graph, for which that thread needs the
    GIL; if Python has begun to finalize by then, the process aborts. PyTorch does not report the end of the thread, so
    processes that ran a backward pass wait a moment on their way out.
    """
    from openreg_runtime import _C

    atexit.register(lambda: time.sleep(_EXIT_WAIT_SECONDS) if _C._backward_has_run() else None)
