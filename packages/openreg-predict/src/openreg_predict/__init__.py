# SPDX-License-Identifier: BSD-3-Clause
"""How long a PyTorch program would take on a described chip, and how much memory, with the error."""

from openreg_predict.description import Description, DescriptionError, built_in, load

__all__ = ["Description", "DescriptionError", "built_in", "load"]
