# SPDX-License-Identifier: BSD-3-Clause
"""Registering operators for the device with torch.library alone: no C++, no compiler.

A Library keeps its registrations while it lives, so every one here is a global variable.
"""

import torch
from torch import Tensor
from torch.library import Library, custom_op, fallthrough_kernel
from torch.utils._pytree import tree_leaves, tree_map_only

import openreg_ops
from openreg_ops.functional import rotary_embedding

DEVICE = "openreg"
x = torch.randn(6, 8, device=DEVICE)


def check(condition, claim):
    """Prints what was shown; ends the program if it was not."""
    if not condition:
        raise SystemExit(f"WRONG: {claim}")
    print(f"  {claim}")


def launches(function):
    """Kernels that a function enqueues."""
    torch.openreg.synchronize()
    before = torch.openreg.device_stats().launches
    function()
    torch.openreg.synchronize()
    return torch.openreg.device_stats().launches - before


print("custom_op: a function becomes an operator")


@custom_op("openreg_demo::soft_sign", mutates_args=(), device_types=DEVICE)
def soft_sign(x: Tensor, width: float) -> Tensor:
    """tanh(x / width), a sign that can be differentiated."""
    return torch.tanh(x / width)


@soft_sign.register_kernel("cpu")
def _(x, width):
    return torch.tanh(x / width)


@soft_sign.register_fake
def _(x, _width):
    return torch.empty_like(x)


def save_output(ctx, inputs, output):
    """What the backward needs; PyTorch calls it after the forward."""
    ctx.save_for_backward(output)
    ctx.width = inputs[1]


def soft_sign_backward(ctx, grad):
    """One gradient per operand; None for those that have none."""
    (output,) = ctx.saved_tensors
    return grad * (1 - output * output) / ctx.width, None


soft_sign.register_autograd(soft_sign_backward, setup_context=save_output)


@soft_sign.register_vmap
def _(_info, in_dims, x, width):
    return soft_sign(x, width), in_dims[0]


y = x.double().requires_grad_()
check(torch.allclose(soft_sign(x, 0.5).cpu(), soft_sign(x.cpu(), 0.5)), "one kernel per device, the same numbers")
check(torch.autograd.gradcheck(lambda t: soft_sign(t, 0.5), y), "register_autograd: the gradient is right")
check(torch.equal(torch.vmap(lambda t: soft_sign(t, 0.5))(x).cpu(), soft_sign(x, 0.5).cpu()), "register_vmap: batches")
check(soft_sign(torch.empty(3, device="meta"), 1.0).shape == (3,), "register_fake: shapes without values")
check(rotary_embedding(x, x[:, :4]).is_openreg, "openreg_ops.functional.rotary_embedding is made like this")

print("\nimpl: a schema first, then a kernel per dispatch key")
demo = Library("openreg_demo", "FRAGMENT")
demo.define("is_sorted(Tensor x) -> Tensor", tags=torch.Tag.pt2_compliant_tag)
demo.impl("is_sorted", lambda x: (x.diff() >= 0).all(), "PrivateUse1")
demo.impl("is_sorted", lambda x: x.new_empty((), dtype=torch.bool), "Meta")
# The answer has no gradient: autograd, which comes first, lets the call pass. Without this line it would warn.
demo.impl("is_sorted", fallthrough_kernel, "AutogradPrivateUse1")
is_sorted = torch.ops.openreg_demo.is_sorted
check(is_sorted(torch.arange(4.0, device=DEVICE)).item(), "0 1 2 3 is sorted")
check(not is_sorted(torch.ones(2, device=DEVICE, requires_grad=True)).requires_grad, "fallthrough: no gradient asked")

print("\nOverriding a composite operator of PyTorch")
cosine_similarity = torch.nn.functional.cosine_similarity
composite = launches(lambda: cosine_similarity(x, x.flip(0)))
others = (x.flip(0), x * 1e-9, x[0].expand(2, 1, 8))  # also norms below eps, and a shape that is broadcast
expected = [cosine_similarity(x, other) for other in others]


def our_cosine_similarity(x1, x2, dim=1, eps=1e-8):
    """The dot product over the product of the norms, each of which is at least eps."""
    x1, x2 = torch.broadcast_tensors(x1, x2)  # dim is one of the result's
    norm1, norm2 = (torch.linalg.vector_norm(one, dim=dim).clamp_min(eps) for one in (x1, x2))
    return (x1 * x2).sum(dim) / (norm1 * norm2)


aten = Library("aten", "IMPL")
aten.impl("cosine_similarity", our_cosine_similarity, "PrivateUse1")
# For operands that need a gradient too: the parts have derivatives, so the function may stand above autograd.
aten.impl("cosine_similarity", our_cosine_similarity, "AutogradPrivateUse1")
ours = launches(lambda: cosine_similarity(x, x.flip(0)))
pairs = zip(others, expected, strict=True)
check(all(torch.allclose(cosine_similarity(x, other), wanted) for other, wanted in pairs), "the same numbers")
check(ours < composite, f"in {ours} launches instead of {composite}")

print("\nAdding to a namespace that exists, here PyTorch's own")
more = Library("aten", "FRAGMENT")
more.define("_openreg_demo_range(Tensor x) -> Tensor")  # the prefix keeps clear of names that PyTorch may take
more.impl("_openreg_demo_range", lambda x: x.amax() - x.amin(), "PrivateUse1")
check(torch.ops.aten._openreg_demo_range(torch.arange(4.0, device=DEVICE)).item() == 3, "torch.ops.aten has it")

print("\nA fallback in Python, for the operators of one namespace")
print("  (the fallback of the whole device exists once: that is openreg_ops's own, in C++)")


def fall_back(namespace, function):
    """Calls `function(operator, *args, **kwargs)` for all operators of a namespace that have no kernel here."""
    library = Library(namespace, "IMPL")
    keys = ("PrivateUse1", "CompositeExplicitAutograd", "CompositeImplicitAutograd")  # composites are for any device
    for name in torch._C._dispatch_get_registrations_for_dispatch_key("CPU"):
        if name.startswith(f"{namespace}::") and not any(
            torch._C._dispatch_has_kernel_for_dispatch_key(name, key) for key in keys
        ):
            base, _, overload = name.split("::")[1].partition(".")
            operator = getattr(getattr(getattr(torch.ops, namespace), base), overload or "default")
            library.impl(
                operator._name.split("::")[1],
                lambda *args, operator=operator, **kwargs: function(operator, *args, **kwargs),
                "PrivateUse1",
            )
    return library


def on_the_cpu(operator, *args, **kwargs):
    """Copies the operands to the CPU, and the results back to the device of the first operand that was not there."""
    if any(item.alias_info is not None for item in operator._schema.arguments):
        raise NotImplementedError(f"{operator} changes an operand or gives a view of one, and would do so to a copy")
    print(f"  {operator} is not for {DEVICE}: run on the CPU")
    operands = tree_leaves((args, kwargs))
    device = next(one.device for one in operands if isinstance(one, Tensor) and one.device.type == DEVICE)
    args, kwargs = tree_map_only(Tensor, Tensor.cpu, (args, kwargs))
    return tree_map_only(Tensor, lambda tensor: tensor.to(device), operator(*args, **kwargs))


legacy = Library("openreg_demo_legacy", "DEF")  # stands for a library that knows the CPU alone
legacy.define("middle(Tensor x) -> Tensor")
legacy.define("zero_(Tensor(a!) x) -> Tensor(a!)")
legacy.impl("middle", lambda x: x[len(x) // 2].clone(), "CPU")
legacy.impl("zero_", lambda x: x.zero_(), "CPU")
fallbacks = fall_back("openreg_demo_legacy", on_the_cpu)
torch.openreg.reset_fallback_stats()
middle = torch.ops.openreg_demo_legacy.middle(torch.arange(5.0, device=f"{DEVICE}:1"))
check((middle.item(), str(middle.device)) == (2, f"{DEVICE}:1"), "its result is on the operand's device")
try:
    torch.ops.openreg_demo_legacy.zero_(x)
except NotImplementedError as error:
    print(f"  {error}")
else:
    raise SystemExit("WRONG: an operator that changes its operand ran on a copy")
check(openreg_ops.fallback_stats() == {}, "and the device's own fallback was not asked")
