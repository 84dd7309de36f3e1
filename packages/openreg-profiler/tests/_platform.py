# SPDX-License-Identifier: BSD-3-Clause
"""Differences between operating systems, for all tests of this package."""

import os

HAS_FORK = hasattr(os, "fork")
# Ranks of torch.multiprocessing are forked where that is possible, and then need not import everything again.
START_METHOD = "fork" if HAS_FORK else "spawn"
