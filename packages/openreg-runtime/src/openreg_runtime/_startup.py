# SPDX-License-Identifier: BSD-3-Clause
"""Contains the steps of the package's start-up. Each check raises ImportError with the reason and the remedy."""

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

from openreg_runtime._platform import add_library_folders
from openreg_runtime._plugins import require_matching_build

DEVICE_TYPE = "openreg"

# Far longer than PyTorch's threads need after a backward pass has returned.
_EXIT_WAIT_SECONDS = 0.05

# The name of the device of PrivateUse1 until a backend renames it.
_DEFAULT_NAME = "privateuseone"


def refuse_unreadable_settings() -> None:
    """Raises ImportError if a setting is not UTF-8, because later messages about its value could not quote it."""
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
    """Raises ImportError unless the native parts were compiled for the installed Python and minor version of torch.

    PyTorch's C++ interfaces change with every minor version. Also raises for a debug build of torch or a
    build record that cannot be read.
    """
    require_matching_build("openreg_runtime")


def refuse_other_backend() -> None:
    """Raises ImportError if another backend uses PrivateUse1, ``torch.openreg`` exists, or this package was loaded.

    A backend that has not named PrivateUse1 is recognized by its kernel for allocations, which every backend has.
    """
    name = torch._C._get_privateuse1_backend_name()
    if getattr(getattr(torch, DEVICE_TYPE, None), "__name__", None) == "openreg_runtime.openreg":
        raise ImportError(
            "openreg_runtime is part of this process already and cannot be loaded a second time, because PyTorch keeps "
            "what it registered. Start a new process instead of reloading it."
        )
    other_name = name not in (_DEFAULT_NAME, DEVICE_TYPE)
    unnamed = torch._C._dispatch_has_kernel_for_dispatch_key("aten::empty.memory_format", "PrivateUse1")
    if other_name or unnamed or hasattr(torch, DEVICE_TYPE):
        if other_name:
            holder = f"the backend {name!r}"
        elif hasattr(torch, DEVICE_TYPE):
            holder = "another package named 'openreg'"
        else:
            holder = "a backend that has not named itself"
        raise ImportError(
            f"PyTorch has room for one PrivateUse1 backend per process, and {holder} already is registered. "
            "Use one of the two: import openreg_runtime in a process of its own, or keep the other one from loading "
            "(TORCH_DEVICE_BACKEND_AUTOLOAD=0 switches off backends that load by themselves)."
        )


def load_native_module() -> ModuleType:
    """Loads ``openreg_runtime._C``, whose shared libraries register the C++ interfaces."""
    add_library_folders((Path(torch.__file__).parent / "lib", Path(__file__).parent / "lib"))
    return importlib.import_module("openreg_runtime._C")


def register_device(module: ModuleType) -> None:
    """Renames the device of PrivateUse1 to ``openreg`` and registers ``module`` as ``torch.openreg``."""
    rename_privateuse1_backend(DEVICE_TYPE)
    torch._register_device_module(DEVICE_TYPE, module)  # type: ignore[no-untyped-call]
    generate_methods_for_privateuse1_backend(for_storage=True)


def share_between_processes() -> None:
    """Registers the function by which ``torch.multiprocessing`` sends memory of the device.

    PyTorch supports only its own devices. A tensor of another device fails with an error about the CPU.
    """
    from openreg_runtime.openreg import _sharing

    _sharing.register_reducer()


def complete_storages() -> None:
    """Makes ``UntypedStorage.byteswap()`` work on the device; PyTorch uses it to read files of other byte order.

    ``generate_methods_for_privateuse1_backend`` does not define it, and PyTorch's method would crash, because it
    dereferences the device address on the host.
    """
    from openreg_runtime.openreg import _serialization

    _serialization.patch_storage()


def export_through_dlpack() -> None:
    """Makes ``torch.from_dlpack`` and other consumers of DLPack accept tensors of the device.

    Without this patch, PyTorch compares the device type with "privateuseone", the name before the renaming, and rejects
    "openreg" as unknown.
    """
    from openreg_runtime.openreg import _dlpack

    _dlpack.patch_tensor()


def wait_at_exit_for_autograd() -> None:
    """Registers an exit handler that waits for PyTorch's backward threads before Python is finalized.

    A backward pass returns before the thread of its device has released the graph. That thread needs the GIL, and the
    process aborts if Python is already being finalized. PyTorch reports neither a backward pass nor when the thread is
    idle. So a process that has used the device waits for a fixed time at exit.
    """
    from openreg_runtime import _C

    atexit.register(lambda: time.sleep(_EXIT_WAIT_SECONDS) if _C._is_initialized() else None)
