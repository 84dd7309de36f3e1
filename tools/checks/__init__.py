# SPDX-License-Identifier: BSD-3-Clause
"""Checks the rules that every package keeps."""
