# SPDX-License-Identifier: BSD-3-Clause
"""Rejects features of Inductor that a backend outside of PyTorch's repository cannot support.

The errors name the alternative.
"""

from __future__ import annotations

from typing import Any, NoReturn


class _UnsupportedFeature:
    """A placeholder for a wrapper generator. Inductor calls ``create()`` and reads ``supports_caching``."""

    supports_caching = True
    message: str

    @classmethod
    def create(cls, *_args: Any, **_kwargs: Any) -> NoReturn:
        """Raises NotImplementedError. Inductor calls it to create a wrapper generator."""
        raise NotImplementedError(cls.message)


class CppWrapper(_UnsupportedFeature):
    """The placeholder for ``config.cpp_wrapper`` and AOTInductor."""

    message = (
        "Inductor's C++ wrapper, and with it AOTInductor, cannot run on openreg devices: the code that it generates "
        "calls C functions that torch contains only for PyTorch's own devices. Compile with torch.compile(...), "
        "without cpp_wrapper=True; to take a program to another process use torch.export.save and torch.export.load"
    )


class FxWrapper(_UnsupportedFeature):
    """The placeholder for ``config.fx_wrapper``."""

    message = (
        "Inductor's FX wrapper cannot run on openreg devices: it calls kernels of Triton only. Compile without "
        "fx_wrapper=True"
    )
