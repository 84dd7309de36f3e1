# SPDX-License-Identifier: BSD-3-Clause
"""Programs in processes of their own, forked from an interpreter that has torch; ``workers.fresh`` explains them."""

from openreg_testing.workers.fresh import FreshPython

__all__ = ["FreshPython"]
