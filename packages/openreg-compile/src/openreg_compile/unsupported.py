# SPDX-License-Identifier: BSD-3-Clause
"""Ways of Inductor that cannot be had for a device outside of PyTorch: their error, and what to do instead."""

from __future__ import annotations

from typing import Any, NoReturn


class _UnsupportedFeature:
    """In place of a generator of wrappers; Inductor makes one with ``create()``, or reads ``supports_caching``."""

    supports_caching = True
    message: str

    @classmethod
    def create(cls, *_args: Any, **_kwargs: Any) -> NoReturn:
        """How Inductor makes a generator of wrappers."""
        raise NotImplementedError(cls.message)


class CppWrapper(_UnsupportedFeature):
    """Of ``config.cpp_wrapper`` and of AOTInductor."""

    message = (
        "Inductor's C++ wrapper, and with it AOTInductor, cannot run on openreg devices: the C functions that its code "
        "calls are compiled into torch for its own devices only. Compile with torch.compile(...), without "
        "cpp_wrapper=True; to take a program to another process use torch.export.save and torch.export.load"
    )


class FxWrapper(_UnsupportedFeature):
    """Of ``config.fx_wrapper``."""

    message = (
        "Inductor's FX wrapper cannot run on openreg devices: it calls kernels of Triton only. Compile without "
        "fx_wrapper=True"
    )
