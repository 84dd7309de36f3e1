# SPDX-License-Identifier: BSD-3-Clause
"""What the tests have to know of the system."""

import os

HAS_FORK = hasattr(os, "fork")
