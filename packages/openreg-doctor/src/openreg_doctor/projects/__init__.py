# SPDX-License-Identifier: BSD-3-Clause
"""Writes the project of a backend of one's own, and updates it: `python -m openreg_doctor new`, `update`, `operators`.

A project is a step of the tutorial, with tests, a CI workflow and a README, under other names. The files are those of
examples/tutorial, which the wheel of this package contains.
"""

COMMANDS = ("new", "update", "operators")
