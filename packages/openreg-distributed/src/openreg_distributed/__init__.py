# SPDX-License-Identifier: BSD-3-Clause
"""Provides ``torch.distributed`` on openreg devices by the process group ``occl``, whose transport is Gloo.

The import of this package registers the group as the default backend of the device, so that
``torch.distributed.init_process_group()`` finds it. If torch was built without Gloo, the import registers nothing.
"""

from __future__ import annotations

from types import ModuleType

import torch

# The runtime comes first, because it checks torch and registers the device.
import openreg_runtime

# This check comes before the native module, whose import would fail with an undefined symbol.
openreg_runtime.require_matching_build(__name__)

import openreg_ops  # noqa: E402, F401  (collectives copy, convert and divide on the device)

__all__ = ["is_available"]


def is_available() -> bool:
    """Returns True if torch was built with ``torch.distributed`` and Gloo, the transport."""
    return torch.distributed.is_available() and torch.distributed.is_gloo_available()


def _register_sharding(_module: ModuleType) -> None:
    from openreg_distributed import sharding as sharding


def _register_context_parallel(module: ModuleType) -> None:
    from openreg_distributed import context_parallel

    context_parallel.enter(module)


if is_available():
    from openreg_distributed import registration as registration

    openreg_runtime.after_import("torch.distributed.tensor", _register_sharding)
    openreg_runtime.after_import(
        "torch.distributed.tensor.experimental._context_parallel._attention", _register_context_parallel
    )
