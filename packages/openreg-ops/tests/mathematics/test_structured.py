# SPDX-License-Identifier: BSD-3-Clause
"""Every structured and unstructured operator of the table works in all overloads, with the rules for operands."""

import pytest
import torch
from layer_samples import layer_samples
from linalg_samples import LINALG_OPTIONS, fft_samples, linalg_samples
from parity import DEVICE, assert_same, check, is_busy, move_all, tensors_in
from structured_samples import OPTIONS, make_samples
from unstructured_samples import DESCRIBED_OPTIONS, unstructured_samples

pytestmark = [
    pytest.mark.no_fallback,
    pytest.mark.filterwarnings("ignore:.*deprecated"),
    pytest.mark.filterwarnings("ignore:index_reduce.. is in beta"),
]

SAMPLES = make_samples() | unstructured_samples() | layer_samples() | fft_samples() | linalg_samples()
REGISTERED = {
    name.removeprefix("aten::")
    for name in torch._C._dispatch_get_registrations_for_dispatch_key("PrivateUse1")
    if name.startswith("aten::") and not name.startswith("aten::_foreach_")
}
# These have an out= form alone for this device; PyTorch makes the functional form from it.
OUT_ONLY = {"abs", "logical_and", "logical_not", "logical_or", "logical_xor", "nan_to_num"}
# Tested in test_random_tensors.py.
RANDOM = {"multinomial", "normal.Tensor_Tensor", "normal.Tensor_float", "normal.float_Tensor", "rrelu_with_noise"}
# The CPU has none. Tested in test_sync_batch_norm.py.
OF_ACCELERATORS = {"batch_norm_elemt"}
# They take dtypes that no other operator does. Tested in test_quantized_weights.py, and called in registered_calls.py.
OF_QUANTIZED_WEIGHTS = {"_int_mm", "_scaled_mm", "_scaled_mm_v2"}
# The CPU's own kernel takes contiguous outputs only.
CONTIGUOUS_OUT = {"_convert_indices_from_csr_to_coo", "nll_loss2d_backward"}
# The CPU's own kernel gives its output other strides, after the host has settled ours.
OTHER_STRIDES = {
    "im2col",
    "log_sigmoid_forward",
    "max_pool3d_with_indices",
    "max_pool3d_with_indices_backward",
    "max_unpool2d",
    "reflection_pad2d",
    "reflection_pad2d_backward",
    "reflection_pad3d",
    "reflection_pad3d_backward",
    "replication_pad2d",
    "replication_pad2d_backward",
    "replication_pad3d",
    "replication_pad3d_backward",
}
# An out= tensor that is resized is laid out like the functional form's result, where the CPU makes it contiguous.
RESIZED_LIKE_A_RESULT = {"_fft_c2c", "_fft_c2r", "_fft_r2c", "fft_ihfft2", "fft_ihfftn"}
# The CPU's own out= kernel refuses outputs that are not contiguous, or gives wrong numbers where it reduces.
NO_OUT_ON_THE_CPU = {
    "binary_cross_entropy",
    "binary_cross_entropy_backward",
    "max_unpool3d",
    "multi_margin_loss_backward",
    "multilabel_margin_loss_backward",
    "multilabel_margin_loss_forward",
}


def overload(name):
    base, _, rest = name.partition(".")
    return getattr(getattr(torch.ops.aten, base), rest or "default")


def arguments(operation):
    """Types of the arguments that are no outputs."""
    return [str(a.type) for a in operation._schema.arguments if not (a.kwarg_only and a.alias_info is not None)]


def relatives(packet_name, operation, *, out):
    """Overloads of an operator that take the same arguments, and write into an output or into their first operand."""
    packet = getattr(torch.ops.aten, packet_name, None)
    for each in packet.overloads() if packet is not None else ():
        other = getattr(packet, each)
        writes = any(a.alias_info is not None and a.kwarg_only for a in other._schema.arguments)
        if writes == out and arguments(other) == arguments(operation):
            yield other


def out_form(name):
    base = name.partition(".")[0]
    (found,) = relatives(base, overload(name), out=True)
    return found


def inplace_form(name):
    base = name.partition(".")[0]
    return next(relatives(f"{base}_", overload(name), out=False), None)


def registered(operation):
    return operation._schema.name.removeprefix("aten::") + (
        f".{operation._schema.overload_name}" if operation._schema.overload_name else ""
    )


def cases():
    return [(name, i) for name, samples in sorted(SAMPLES.items()) for i in range(len(samples))]


def sample(name, i):
    return SAMPLES[name][i], (OPTIONS | DESCRIBED_OPTIONS | LINALG_OPTIONS).get(name, {})


def test_the_table_and_these_samples_agree():
    """Whatever has an out= form here is tested below, and nothing else claims to be."""
    pure = [name for name in REGISTERED if not any(a.alias_info for a in overload(name)._schema.arguments)]
    outs = {name: list(relatives(name.partition(".")[0], overload(name), out=True)) for name in pure}
    with_out = {name for name, forms in outs.items() if any(registered(form) in REGISTERED for form in forms)}
    assert with_out - RANDOM - OF_ACCELERATORS - OF_QUANTIZED_WEIGHTS | OUT_ONLY == set(SAMPLES)
    assert len(with_out) > 200


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_all_forms_have_kernels(name):
    assert name in OUT_ONLY or name in REGISTERED
    assert registered(out_form(name)) in REGISTERED


@pytest.mark.parametrize(("name", "i"), cases())
def test_functional(name, i):
    args, options = sample(name, i)
    check(overload(name), *args, **options)


def empty_outs(expected, device):
    """To be resized."""
    return [torch.empty(0, dtype=tensor.dtype, device=device) for tensor in expected]


def transposed_outs(expected, device):
    """Of the right size, but with other strides than the operator would choose."""
    return [
        torch.zeros(tensor.shape[::-1], dtype=tensor.dtype, device=device).permute(tuple(reversed(range(tensor.dim()))))
        for tensor in expected
    ]


# Since torch 2.15 the CPU's reducing losses and isin resize an output of the right size, and say so.
@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
@pytest.mark.parametrize("make_outs", [empty_outs, transposed_outs])
@pytest.mark.parametrize(("name", "i"), cases())
def test_out(name, i, make_outs):
    if make_outs is transposed_outs and name in CONTIGUOUS_OUT:
        make_outs = empty_outs
    args, options = sample(name, i)
    into = out_form(name)
    expected = tensors_in(overload(name)(*args, **options))
    # Some of the CPU's kernels write one element after another, whatever the strides of the output.
    is_wrong_on_the_cpu = make_outs is transposed_outs
    names = [a.name for a in into._schema.arguments if a.kwarg_only and a.alias_info is not None]
    results = [expected] if name in NO_OUT_ON_THE_CPU else []
    for device in (DEVICE,) if results else ("cpu", DEVICE):
        outs = make_outs(expected, device)
        there = move_all((args, options), device)
        returned = tensors_in(into(*there[0], **there[1], **dict(zip(names, outs, strict=True))))
        assert all(one is other for one, other in zip(returned, outs, strict=True))
        results.append(outs)
    if is_wrong_on_the_cpu and name not in NO_OUT_ON_THE_CPU:
        results[0] = [out.copy_(right) for out, right in zip(results[0], expected, strict=True)]
    assert_same(results[1], results[0], strides=name not in OTHER_STRIDES | NO_OUT_ON_THE_CPU | RESIZED_LIKE_A_RESULT)


@pytest.mark.parametrize("name", [name for name in sorted(SAMPLES) if inplace_form(name) is not None])
def test_inplace(name):
    for i in range(len(SAMPLES[name])):
        args, options = sample(name, i)
        operation = inplace_form(name)
        theirs, mine = move_all(args, "cpu"), move_all(args, DEVICE)
        operation(*theirs, **options)
        result = operation(*mine, **options)
        assert result is mine[0]
        assert_same(mine[0], theirs[0])


@pytest.mark.parametrize(
    "name", ["add.Tensor", "mul.Tensor", "exp", "sum.dim_IntList", "mm", "cat", "index.Tensor", "where.self"]
)
def test_operands_with_strides(name):
    def strided(tensor):
        wide = tensor.new_empty([2 * size for size in tensor.shape])
        part = wide[tuple(slice(1, None, 2) for _ in tensor.shape)]
        return part.copy_(tensor)

    for i in range(len(SAMPLES[name])):
        args, options = sample(name, i)
        check(overload(name), *torch.utils._pytree.tree_map_only(torch.Tensor, strided, args), **options)


DTYPES = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.bool]
DTYPES += [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128]


def check_promoting(operation, *operands):
    """As on the CPU, which refuses torch.bcomplex32: since 2.14 the type of a bfloat16 with a complex number."""
    if torch.result_type(*operands) != getattr(torch, "bcomplex32", None):
        check(operation, *operands)
        return
    for device in ("cpu", DEVICE):
        with pytest.raises(NotImplementedError, match="not implemented for 'BComplex32'"):
            operation(*move_all(operands, device))


@pytest.mark.filterwarnings("ignore:B?Complex.* support is experimental")
@pytest.mark.parametrize("right", DTYPES, ids=str)
@pytest.mark.parametrize("left", DTYPES, ids=str)
def test_type_promotion(left, right):
    a, b = torch.tensor([1, 0, 3]).to(left), torch.tensor([[1], [2]]).to(right)
    check(torch.mul, a, b)
    check(torch.eq, a, b)
    check_promoting(torch.mul, a, b[0, 0])  # a 0-dim tensor weighs less


@pytest.mark.filterwarnings("ignore:B?Complex.* support is experimental")
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("scalar", [2, 2.5, True, 1j])
def test_numbers_as_operands(dtype, scalar):
    a = torch.tensor([1, 0, 3]).to(dtype)
    check_promoting(lambda x, y: x * y, a, scalar)
    check_promoting(lambda x, y: x * y, scalar, a)
    check_promoting(torch.add, a, scalar)


def test_a_0_dim_cpu_tensor_is_a_number():
    x = torch.arange(6.0, device=DEVICE)
    two = torch.tensor(2.0, dtype=torch.float64)
    for result in (x * two, two * x, torch.where(x >= 0, x * 2, two), torch.lerp(x, x * 3, 0.5)):
        assert (result.device.type, result.dtype) == (DEVICE, torch.float32)
        torch.testing.assert_close(result.cpu(), torch.arange(6.0) * 2)


@pytest.mark.parametrize("other", ["cpu", "openreg:1"])
@pytest.mark.parametrize(
    "operation",
    [
        torch.add,
        torch.mm,
        lambda ours, theirs: torch.mm(theirs, ours),
        lambda ours, theirs: torch.cat([ours, theirs]),
        lambda ours, theirs: torch.add(ours, ours, out=theirs),
        lambda ours, theirs: torch.addmm(theirs, ours, ours),
        lambda ours, theirs: torch.where(ours > 0, ours, theirs),
        lambda ours, theirs: torch.logical_and(ours, theirs),
        lambda ours, theirs: torch.gather(ours, 0, theirs.long()),
        lambda ours, theirs: torch.nn.functional.mse_loss(ours, theirs),
        lambda ours, theirs: ours.masked_fill_(theirs > 0, 1),
    ],
)
def test_operands_on_several_devices_are_refused(operation, other):
    ours, theirs = torch.ones(2, 2, device="openreg:0"), torch.ones(2, 2, device=other)
    with pytest.raises(RuntimeError, match=r"device.*openreg:0|openreg:0.*device") as error:
        operation(ours, theirs)
    assert other in str(error.value)


def test_work_goes_to_the_device_of_the_operands():
    x = torch.arange(3.0, device="openreg:1")
    assert torch.openreg.current_device() == 0
    result = ((x + 1) * x).sum()
    assert result.device.index == 1
    assert torch.openreg.current_device() == 0
    assert result.item() == 8


def test_overlapping_memory_is_refused_on_the_calling_line():
    x = torch.arange(5.0, device=DEVICE)
    operations = [
        lambda: x[1:].add_(x[:-1]),
        lambda: torch.exp(x[:-1], out=x[1:]),
        lambda: torch.logical_not(x[:-1], out=x[1:]),
        lambda: x[:1].expand(4).mul_(2),
        lambda: x[:1].expand(4).fill_(x[1]),
        lambda: x[:1].expand(4).copy_(x[:4]),
        lambda: x[:1].expand(4).uniform_(),
    ]
    for operation in operations:
        with pytest.raises(RuntimeError, match="single memory location"):
            operation()
    torch.openreg.synchronize()
    assert x.cpu().tolist() == [0, 1, 2, 3, 4]


def test_an_operand_may_be_its_own_output():
    x = torch.arange(4.0, device=DEVICE)
    torch.add(x, x, out=x)
    x.mul_(x)
    assert x.cpu().tolist() == [0, 4, 16, 36]


def test_out_of_another_size_is_resized_with_pytorchs_warning():
    x, out = torch.ones(2, 3, device=DEVICE), torch.empty(5, device=DEVICE)
    with pytest.warns(UserWarning, match="resized"):
        torch.add(x, x, out=out)
    assert out.cpu().tolist() == [[2.0] * 3] * 2


@pytest.mark.parametrize("operation", [torch.mm, torch.add], ids=["mm", "add"])
def test_out_of_a_dtype_that_cannot_hold_the_result_is_refused(operation):
    x = torch.ones(2, 2, device=DEVICE)
    with pytest.raises(RuntimeError, match=r"dtype|can't be cast"):
        operation(x, x, out=torch.empty(2, 2, dtype=torch.int32, device=DEVICE))


def test_shapes_that_do_not_broadcast_are_refused_on_the_calling_line():
    x = torch.ones(2, 3, device=DEVICE)
    operations = [
        lambda: x + torch.ones(4, device=DEVICE),
        lambda: torch.ones(3, device=DEVICE).add_(x),
        lambda: torch.ones(3, device=DEVICE).logical_or_(x),
        lambda: x.masked_fill_(torch.ones(4, device=DEVICE) > 0, 1),
        lambda: x @ x,
    ]
    for operation in operations:
        with pytest.raises(RuntimeError, match=r"shape|size|broadcast"):
            operation()


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (2, 0, 4)])
def test_empty_operands(shape):
    x = torch.empty(shape)
    check(torch.add, x, x)
    check(lambda t: t.sum(), x)
    check(lambda t: torch.cat([t, t]), x)
    check(lambda t: t.exp().mean(dim=0), x)
    check(torch.mm, torch.empty(0, 3), torch.empty(3, 2))
    check(torch.mm, torch.empty(2, 0), torch.empty(0, 2))


def test_strides_follow_pytorchs_rules():
    x = torch.randn(2, 3, 4, 5)
    for layout in (x, x.contiguous(memory_format=torch.channels_last), x.permute(3, 1, 0, 2), x[:, ::2]):
        check(torch.abs, layout)
        check(torch.add, layout, layout)
        check(torch.where, layout > 0, layout, layout)
        check(torch.logical_and, layout, layout)


# The CPU's own kernel takes an input that is contiguous only.
CONTIGUOUS_INPUT = {"nll_loss2d_backward"}
WINDOWS = {name for name, samples in SAMPLES.items() if any(t.dim() in (4, 5) for t in tensors_in(samples[0]))}


@pytest.mark.parametrize("name", sorted(WINDOWS - CONTIGUOUS_INPUT))
def test_channels_last(name):
    def channels_last(tensor):
        formats = {4: torch.channels_last, 5: torch.channels_last_3d}
        if tensor.dim() == 4 and name.startswith("max_pool3d"):
            return tensor  # a volume without a batch
        return tensor.contiguous(memory_format=formats.get(tensor.dim(), torch.contiguous_format))

    for i in range(len(SAMPLES[name])):
        args, options = sample(name, i)
        args = torch.utils._pytree.tree_map_only(torch.Tensor, channels_last, args)
        check(overload(name), *args, strides=name not in OTHER_STRIDES, **options)


def test_indices_may_be_on_the_host():
    x = torch.randn(5, 4)
    check(lambda t: t[torch.tensor([3, 0])], x)
    check(lambda t: t[:, torch.tensor([[1, 1], [2, 0]])], x)


def test_conjugate_and_negative_bits():
    z = torch.randn(3, 4, dtype=torch.complex64)
    for view in (torch.conj, lambda t: t.conj().imag, lambda t: t.mH):
        check(lambda t, view=view: view(t) + 1, z)
        check(lambda t, view=view: view(t).clone(), z)
        check(lambda t, view=view: torch.cat([view(t), view(t)]), z)
        torch.testing.assert_close(view(z.to(DEVICE)).cpu(), view(z))


def test_gradients():
    x, y = torch.randn(3, 4, requires_grad=True), torch.randn(4, 2, requires_grad=True)
    check(lambda a, b: (a @ b).tanh().sum(), x, y)
    check(lambda a: torch.softmax(a, 1).log().mean(), x)
    check(lambda a: a.view(2, 6)[:, 1:].exp().amax(1), x)
    check(lambda a: torch.fmax(a, a[:1]).sum(), x)


def test_a_launch_returns_before_its_kernel_ran(gate):
    x = torch.ones(4, device=DEVICE)
    gate.close()
    y = x + 1
    assert is_busy()
    gate.open()
    assert y.cpu().tolist() == [2.0] * 4


def test_inference_mode_and_no_grad():
    x = torch.ones(3, device=DEVICE)
    for context in (torch.inference_mode(), torch.no_grad()):
        with context:
            assert (x * 2).sum().item() == 6
