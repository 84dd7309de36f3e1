# SPDX-License-Identifier: BSD-3-Clause
"""Makes ``torch_openreg.openreg`` another name of the module ``torch.openreg``.

The state of the device must not exist twice. So this module replaces itself in ``sys.modules`` by ``torch.openreg``,
which ``openreg_runtime.openreg`` defines.
"""

import sys

from openreg_runtime import openreg

sys.modules[__name__] = openreg
