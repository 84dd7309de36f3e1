# SPDX-License-Identifier: BSD-3-Clause
"""A plug-in that fails to load, as one whose library is missing would."""

raise FileNotFoundError("libvendor.so is gone")
