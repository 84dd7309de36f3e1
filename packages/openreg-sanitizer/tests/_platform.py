# SPDX-License-Identifier: BSD-3-Clause
"""Differences between operating systems, for all tests of this package."""

import os

HAS_FORK = hasattr(os, "fork")
