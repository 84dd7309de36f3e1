# SPDX-License-Identifier: BSD-3-Clause
"""The pytest plug-in."""
