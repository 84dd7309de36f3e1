# SPDX-License-Identifier: BSD-3-Clause
"""Tests of the simulated device through its C API by ctypes, without torch."""
