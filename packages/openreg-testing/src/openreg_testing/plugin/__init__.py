# SPDX-License-Identifier: BSD-3-Clause
"""The pytest plug-in, which only lists the modules that pytest loads.

Each listed module is a plug-in with its hooks. Without one of their options or marks they have no effect, and torch is
not imported.
"""

pytest_plugins = (
    "openreg_testing.plugin.options",
    "openreg_testing.plugin.usage",
    "openreg_testing.plugin.marks",
    "openreg_testing.plugin.budgets",
    "openreg_testing.plugin.fixtures",
    "openreg_testing.plugin.gate",
    "openreg_testing.plugin.summary",
    "openreg_testing.plugin.report",
    "openreg_testing.plugin.isolation",
    "openreg_testing.plugin.sanitize",
)
