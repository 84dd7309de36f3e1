# SPDX-License-Identifier: BSD-3-Clause
"""A test suite that knows no device, run on one."""

import openreg_testing

print(openreg_testing.__doc__)
