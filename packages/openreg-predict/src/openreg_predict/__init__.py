# SPDX-License-Identifier: BSD-3-Clause
"""Predicts the time and memory of a PyTorch program on a chip that a file describes, and states the expected error.

:func:`trace` records a step on ``meta``, :func:`predict` predicts its time on a chip, and :func:`simulate` runs a
program on the openreg device in the chip's time.
"""

import warnings

import openreg_runtime

# This check precedes the native module, because that of another build could fail with an undefined symbol.
openreg_runtime.require_matching_build(__name__)

from openreg_predict.description import Description, DescriptionError, built_in, load  # noqa: E402
from openreg_predict.predict import Prediction, predict  # noqa: E402
from openreg_predict.script import MetaDeviceMode  # noqa: E402
from openreg_predict.simulate import Run, simulate  # noqa: E402
from openreg_predict.trace import Program, TraceError, trace  # noqa: E402

__all__ = [
    "Description",
    "DescriptionError",
    "MetaDeviceMode",
    "Prediction",
    "Program",
    "Run",
    "TraceError",
    "built_in",
    "load",
    "predict",
    "simulate",
    "trace",
]


def __getattr__(name: str) -> type:
    if name == "OnMeta":
        warnings.warn(
            f"{__name__}.OnMeta is deprecated; use MetaDeviceMode, its new name", DeprecationWarning, stacklevel=2
        )
        return MetaDeviceMode
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
