# SPDX-License-Identifier: BSD-3-Clause
"""The pytest plug-in: what pytest loads, and nothing else.

Each module named here is a plug-in with hooks of its own. Without an option or a mark of theirs none of them does
anything, and torch is not imported.
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
)
