# SPDX-License-Identifier: BSD-3-Clause
"""Which types autocast chooses, with openreg-amp and openreg-runtime alone.

There is no package with operators here, so the tensors are fake ones: they have a device, a type
and a shape, but no memory. What autocast does is decided before an operator's kernel would run.
"""

import torch

import openreg_amp

print(torch.openreg.get_amp_supported_dtype())
with torch.autocast("openreg", dtype=torch.bfloat16):
    print(torch.is_autocast_enabled("openreg"), torch.get_autocast_dtype("openreg"))


def show(what, dtype, expected):
    """Prints an operator's result type; ends the program if it is another than the rules say."""
    if dtype is not expected:
        raise SystemExit(f"WRONG: {what} ran in {dtype}, not {expected}")
    print(f"  {what:<24}{dtype}")


with torch._subclasses.FakeTensorMode():
    x = torch.empty(4, 4, device="openreg")
    half = x.half()
    print("\noutside autocast")
    show("mm(float32)", (x @ x).dtype, torch.float32)
    for dtype in torch.openreg.get_amp_supported_dtype():
        print(f"\nautocast to {dtype}")
        with torch.autocast("openreg", dtype=dtype):
            show("mm(float32)", (x @ x).dtype, dtype)
            show("linear(float32)", torch.nn.functional.linear(x, x).dtype, dtype)
            show("asin(float16)", torch.asin(half).dtype, torch.float32)
            show("softmax(float16)", torch.nn.functional.softmax(half, dim=0).dtype, torch.float32)
            show("add(float16)", (half + half).dtype, torch.float16)
            show("addcmul(32, 16, 16)", torch.addcmul(x, half, half).dtype, torch.float32)
            try:
                torch.nn.functional.binary_cross_entropy(x, x)
            except RuntimeError as error:
                print(f"  {str(error).splitlines()[0][:90]}...")
            else:
                raise SystemExit("WRONG: binary_cross_entropy was not refused")

assert torch.openreg.amp is openreg_amp.amp
