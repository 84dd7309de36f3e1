# SPDX-License-Identifier: BSD-3-Clause
"""Published measurements: which files calibrate, which files validate, and the models that were measured.

The package contains no measurements: it reads a copy that the user has downloaded.
"""
