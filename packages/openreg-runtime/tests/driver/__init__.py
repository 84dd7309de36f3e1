# SPDX-License-Identifier: BSD-3-Clause
"""Tests of the simulated device alone: the C API through ctypes, without torch."""
