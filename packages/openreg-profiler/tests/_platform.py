# SPDX-License-Identifier: BSD-3-Clause
"""What the tests have to know of the system."""

import os

HAS_FORK = hasattr(os, "fork")
# Of processes of torch.multiprocessing: where there is fork, the ranks need not import everything again.
START_METHOD = "fork" if HAS_FORK else "spawn"
