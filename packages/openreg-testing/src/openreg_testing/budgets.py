# SPDX-License-Identifier: BSD-3-Clause
"""Budgets of launches and copies for a part of a test or program; ``plugin.budgets`` explains them."""

from openreg_testing.plugin.budgets import LaunchCounts, count_launches, launch_budget

__all__ = ["LaunchCounts", "count_launches", "launch_budget"]
