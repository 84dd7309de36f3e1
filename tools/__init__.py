# SPDX-License-Identifier: BSD-3-Clause
"""The implementation of the commands in noxfile.py. No package contains it."""
