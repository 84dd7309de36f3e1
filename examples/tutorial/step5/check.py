# SPDX-License-Identifier: BSD-3-Clause
"""Shows what step 5 can do. The exit status is 0 if all of it is right."""

import torch
import torch_pocket

ops = torch.ops.pocket


def soft_step(x):
    return x / (1 + x.abs())


def gate(x, y):
    return x * torch.sigmoid(y)


# Each operator against the same formula in PyTorch's operators on the CPU.
cases = {
    "cube (C++)": (ops.cube, lambda x: x**3, 1),
    "soft_step (C++, gradient in Python)": (ops.soft_step, soft_step, 1),
    "gate (Python)": (ops.gate, gate, 2),
}
torch.manual_seed(0)
for name, (ours, formula, count) in cases.items():
    values = [torch.randn(3, 4).t() for _ in range(count)]
    expected_inputs = [value.clone().requires_grad_() for value in values]
    inputs = [value.to("pocket").requires_grad_() for value in values]
    expected, result = formula(*expected_inputs), ours(*inputs)
    expected.square().sum().backward()
    result.square().sum().backward()
    torch.testing.assert_close(result.cpu(), expected)
    for ours_input, expected_input in zip(inputs, expected_inputs, strict=True):
        torch.testing.assert_close(ours_input.grad.cpu(), expected_input.grad)
    print(f"{name}: result and gradient are right")
    tests = ("test_schema", "test_faketensor")
    torch.library.opcheck(ours, [value.to("pocket").requires_grad_() for value in values], test_utils=tests)
mixed = [torch.randn(3, device="pocket"), torch.randn(4, 3, dtype=torch.double, device="pocket")]
torch.library.opcheck(ops.gate, mixed, test_utils="test_faketensor")
print("PyTorch's own check of custom operators passes")

x = torch.ones(3, device="pocket", requires_grad=True)
torch_pocket.operators.ReverseGradient.apply(x * 2).sum().backward()
torch.testing.assert_close(x.grad.cpu(), torch.full((3,), -2.0))
print("torch.autograd.Function works on the device")

try:
    ops.cube(torch.ones(3, dtype=torch.int, device="pocket"))
except RuntimeError as error:
    print("integers are refused:", str(error).splitlines()[0])
else:
    raise AssertionError("cube of integers was accepted")

compiled = torch.compile(lambda value: ops.cube(value) + 1, backend="aot_eager", fullgraph=True)
torch.testing.assert_close(compiled(x.detach()).cpu(), torch.full((3,), 2.0))
print("torch.compile takes them")
