# SPDX-License-Identifier: BSD-3-Clause
"""Differences between operating systems, for all tests of this package."""

import sys

# The name of a folder, of characters that mean something to a shell. Windows allows no quotation marks in names.
NAME_WITH_QUOTES = "o'ne sp ace & $HOME" + ("" if sys.platform == "win32" else ' "two"')
