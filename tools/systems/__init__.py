# SPDX-License-Identifier: BSD-3-Clause
"""Compiles and tests for other systems and under sanitizers, on this machine."""
