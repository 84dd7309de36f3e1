# SPDX-License-Identifier: BSD-3-Clause
"""A plug-in whose record (_build.json) says that it was compiled for a runtime that no longer exists."""
