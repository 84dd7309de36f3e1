# SPDX-License-Identifier: BSD-3-Clause
"""What PyTorch expects of a backend, by what it is about: one test per promise, the same for every backend."""
