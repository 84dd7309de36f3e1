# SPDX-License-Identifier: BSD-3-Clause
"""The pytest plug-in, which only lists the modules that pytest loads.

Each listed module is a plug-in with its hooks. Without one of their options or marks they have no effect, and torch is
not imported.
"""

pytest_plugins = (
    "openreg_testing.options",
    "openreg_testing.usage",
    "openreg_testing.marks",
    "openreg_testing.budgets",
    "openreg_testing.fixtures",
    "openreg_testing.gate",
    "openreg_testing.summary",
    "openreg_testing.report",
    "openreg_testing.isolation",
    "openreg_testing.sanitize",
)
