# SPDX-License-Identifier: BSD-3-Clause
"""Published measurements: which of them calibrate and which validate, and the models that were measured.

The measurements themselves are no part of this package: it reads a user's copy.
"""
