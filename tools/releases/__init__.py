# SPDX-License-Identifier: BSD-3-Clause
"""Makes a release of the packages, and tests them with other releases of PyTorch."""
