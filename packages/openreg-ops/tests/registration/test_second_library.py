# SPDX-License-Identifier: BSD-3-Clause
"""The package coexists with, or refuses by name, a library that registers for the dispatch key of in-place results."""

import re

import pytest

# The operators whose kernels get the memory of their results, compared with the CPU. A fresh process runs it: what is
# registered for a key stays in its process.
OPERATORS = """
import copy, torch
from torch import nn
from torch.nn import functional

def compare():
    torch.manual_seed(0)
    x = torch.randn(4, 8, 6, 6)
    lstm = nn.LSTM(6, 5)
    on_device = copy.deepcopy(lstm).to("openreg")
    for work in (
        lambda x, lstm: functional.layer_norm(x, (6, 6)),
        lambda x, lstm: functional.group_norm(x, 2),
        lambda x, lstm: functional.batch_norm(x, None, None, training=True),
        lambda x, lstm: functional.scaled_dot_product_attention(x, x, x),
        lambda x, lstm: functional.conv2d(x, x[:, :, :3, :3]),
        lambda x, lstm: lstm(x[0])[0],
    ):
        torch.testing.assert_close(work(x.to("openreg"), on_device).cpu(), work(x, lstm), rtol=1e-4, atol=1e-5)
    torch.openreg.synchronize()
"""

# The other library counts what it sees where it has switched its key on, and passes it on below that.
LIBRARY = """
import torch
from torch.library import Library

KEY = torch._C._dispatch_key_parse("DeferredInit")
seen = []

def below(operator, *args, **kwargs):
    seen.append(operator)
    with torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(KEY)):
        return operator(*args, **kwargs)

def sees_an_addition(device):
    x = torch.ones(2, device=device)
    seen.clear()
    with torch._C._IncludeDispatchKeyGuard(KEY):
        y = x + 1
    assert y.tolist() == [2, 2]
    return torch.ops.aten.add.Tensor in seen

every, aten = Library("_", "IMPL", "DeferredInit"), Library("aten", "IMPL", "DeferredInit")

def register_all():
    every.fallback(below)

def register_kernels():
    for name in ("add.Tensor", "empty.memory_format"):
        packet, overload = name.split(".")
        operator = getattr(getattr(torch.ops.aten, packet), overload)
        aten.impl(name, lambda *args, operator=operator, **kwargs: below(operator, *args, **kwargs))
"""


@pytest.mark.parametrize("registers", ["register_all", "register_kernels"])
def test_a_library_that_comes_first_keeps_its_key(run_python, registers):
    done = run_python(
        f"{LIBRARY}\n{registers}()\nimport openreg_ops\n{OPERATORS}\n"
        "seen.clear()\n"
        "compare()\n"
        "assert not seen, seen  # ours never switch the key on\n"
        "assert sees_an_addition('cpu')\n"
        "assert sees_an_addition('openreg')\n"
    )
    assert done.returncode == 0, done.stderr


def test_a_library_that_comes_later_is_refused_by_name(run_python):
    done = run_python(
        f"import openreg_ops\n{LIBRARY}\n{OPERATORS}\n"
        "try:\n"
        "    register_all()\n"
        "except RuntimeError as error:\n"
        "    print(error)\n"
        "compare()\n"
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"DeferredInit.* openreg_ops/.*import that library before openreg_ops", done.stdout)


def test_kernels_that_come_later_and_pass_on_do_no_harm(run_python):
    done = run_python(
        f"import warnings\nimport openreg_ops\n{LIBRARY}\n{OPERATORS}\n"
        "warnings.simplefilter('ignore')  # PyTorch's, about the kernel of ours that is replaced\n"
        "register_kernels()\n"
        "compare()\n"
        "assert sees_an_addition('cpu')\n"
        "assert sees_an_addition('openreg')\n"
    )
    assert done.returncode == 0, done.stderr
