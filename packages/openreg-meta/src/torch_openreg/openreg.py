# SPDX-License-Identifier: BSD-3-Clause
"""``torch_openreg.openreg``, another name of the one module ``torch.openreg``.

The device's state must not exist twice, so this file puts that module in its own place.
"""

import sys

from openreg_runtime import openreg

sys.modules[__name__] = openreg
