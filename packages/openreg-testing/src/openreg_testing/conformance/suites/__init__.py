# SPDX-License-Identifier: BSD-3-Clause
"""Tests of what PyTorch expects of every backend, one module per topic. Docstrings of tests state the expectation."""
