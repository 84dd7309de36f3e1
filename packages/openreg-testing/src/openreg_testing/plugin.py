# SPDX-License-Identifier: BSD-3-Clause
"""The pytest plug-in."""

pytest_plugins = ("openreg_testing.isolation",)
