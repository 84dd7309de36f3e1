# SPDX-License-Identifier: BSD-3-Clause
"""How long a PyTorch program would take on a described chip, and how much memory, with the error.

:func:`trace` records a step on ``meta``, :func:`predict` says what a chip takes for it, and :func:`simulate` runs a
program on the openreg device in a chip's time.
"""

from openreg_predict.description import Description, DescriptionError, built_in, load
from openreg_predict.predict import Prediction, predict
from openreg_predict.script import OnMeta
from openreg_predict.simulate import Run, simulate
from openreg_predict.trace import Program, TraceError, trace

__all__ = [
    "Description",
    "DescriptionError",
    "OnMeta",
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
