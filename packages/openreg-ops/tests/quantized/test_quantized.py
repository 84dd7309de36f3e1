# SPDX-License-Identifier: BSD-3-Clause
"""Quantized tensors can be created, moved, copied, printed and saved as on the CPU."""

import copy
import io
import re

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from parity import DEVICE
from quantized_cases import CASES
from quantized_samples import (
    assert_equal,
    by_floats,
    convolution_weights,
    embedding,
    linear_weights,
    numbers,
    parameters_of,
    per_channel,
    quantized,
    signed,
)

pytestmark = [
    pytest.mark.no_fallback,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]

TENSORS = {
    "quint8": lambda: quantized(3, 5),
    "qint8": lambda: signed(3, 5),
    "qint32": lambda: quantized(3, 5, dtype=torch.qint32),
    "quint4x2": lambda: quantized(3, 5, dtype=torch.quint4x2, zero_point=3),
    "quint2x4": lambda: quantized(3, 5, dtype=torch.quint2x4, zero_point=1),
    "per row": lambda: per_channel(3, 5),
    "per column": lambda: per_channel(3, 5, axis=1),
    "by floats": lambda: by_floats(3, 5),
    "by floats, quint4x2": lambda: by_floats(3, 5, dtype=torch.quint4x2),
    "by floats, quint2x4": lambda: by_floats(3, 5, dtype=torch.quint2x4),
    "without dimensions": lambda: quantized(),
    "without elements": lambda: quantized(0, 5),
}
of_every_kind = pytest.mark.parametrize("tensor", [pytest.param(make(), id=name) for name, make in TENSORS.items()])


def saved(tensor, location=None):
    file = io.BytesIO()
    torch.save(tensor, file)
    file.seek(0)
    return torch.load(file, map_location=location)


def assert_on_the_cpu(ours, theirs):
    assert ours.device.type == "cpu"
    assert (ours.dtype, parameters_of(ours)) == (theirs.dtype, parameters_of(theirs))
    assert ours.int_repr().equal(theirs.int_repr())


# What they are


@pytest.mark.covers("registration.kernels of QuantizedPrivateUse1")
@of_every_kind
def test_integers_and_parameters(tensor):
    there = tensor.to(DEVICE)
    assert_equal(there, tensor)
    assert_equal(there.dequantize(), tensor.dequantize())
    assert there.is_quantized
    assert (there.element_size(), there.untyped_storage().nbytes()) == (
        tensor.element_size(),
        tensor.untyped_storage().nbytes(),
    )


@pytest.mark.parametrize("name", ["per row", "by floats"])
def test_scales_are_where_the_integers_are(name):
    here = TENSORS[name]()
    there = here.to(DEVICE)
    for one, other in (
        (there, there.device),
        (there.cpu(), here.device),
        (there.to("openreg:1"), torch.device(DEVICE, 1)),
    ):
        assert one.q_per_channel_scales().device == one.q_per_channel_zero_points().device == other
    assert saved(there, "cpu").q_per_channel_scales().device.type == "cpu"
    assert saved(here, DEVICE).q_per_channel_scales().device.type == DEVICE


@of_every_kind
def test_what_is_printed(tensor):
    printed = re.sub(rf",\s*device='{DEVICE}:0'", "", repr(tensor.to(DEVICE)))
    assert printed.split() == repr(tensor).split()


# Moving and keeping them


@of_every_kind
def test_there_and_back(tensor):
    there = tensor.to(DEVICE)
    assert_on_the_cpu(there.cpu(), tensor)
    assert_on_the_cpu(there.to("openreg:1").cpu(), tensor)
    assert there.to(DEVICE) is there


@pytest.mark.covers("registration.kernels of QuantizedPrivateUse1")
@of_every_kind
def test_copies_and_files(tensor):
    there = tensor.to(DEVICE)
    for another in (copy.deepcopy(there), saved(there), saved(tensor, DEVICE)):
        assert_equal(another, tensor)
    assert_on_the_cpu(saved(there, "cpu"), tensor)


@pytest.mark.parametrize("name", ["quint8", "qint32", "per row", "per column"])
def test_copies_into_others_and_what_is_like_them(name):
    here = TENSORS[name]()
    there = here.to(DEVICE)
    assert_equal(there.clone(), here)
    assert_equal(torch.empty_like(there).copy_(there), here)
    assert_equal(torch.empty_like(there).copy_(here), here)
    assert_on_the_cpu(torch.empty_like(here).copy_(there), here)
    assert parameters_of(torch.empty_like(there)) == parameters_of(here)
    assert parameters_of(torch.empty_like(there, device="cpu")) == parameters_of(here)


@pytest.mark.parametrize("name", ["quint8", "per row"])
def test_numbers_copied_into_one_are_quantized(name):
    fresh = numbers(3, 5, seed=9)
    expected = TENSORS[name]().copy_(fresh)
    assert_equal(TENSORS[name]().to(DEVICE).copy_(fresh), expected)
    assert_equal(TENSORS[name]().to(DEVICE).copy_(fresh.to(DEVICE)), expected)
    assert_on_the_cpu(TENSORS[name]().copy_(fresh.to(DEVICE)), expected)


def test_a_tensor_that_is_not_dense_moves():
    there = quantized(4, 6).to(DEVICE)
    for view in (lambda t: t[::2, 1:], lambda t: t.t(), lambda t: t[:1].expand(3, 6), lambda t: t.unfold(1, 3, 1)):
        assert_on_the_cpu(view(there).cpu(), view(quantized(4, 6)))


def test_channels_last():
    here = quantized(2, 3, 4, 5).contiguous(memory_format=torch.channels_last)
    there = quantized(2, 3, 4, 5).to(DEVICE).contiguous(memory_format=torch.channels_last)
    assert_equal(there, here)
    assert_equal(there.dequantize(), here.dequantize())
    assert_equal(there.relu(), here.relu())


VIEWS = {
    "select": lambda t: t[1],
    "slice": lambda t: t[:, 1::2],
    "transpose": lambda t: t.t(),
    "reshape": lambda t: t.t().reshape(-1),
    "flatten": lambda t: t.flatten(),
    "unsqueeze": lambda t: t.unsqueeze(1),
    "squeeze": lambda t: t[None, :, None].squeeze(),
    "squeeze one": lambda t: t[None].squeeze(0),
    "squeeze some": lambda t: t[None, None].squeeze((0, 1)),
    "expand": lambda t: t[0].expand(2, 6),
    "unfold": lambda t: t.unfold(1, 2, 2),
    "split": lambda t: t.split(2)[1],
    "as_strided": lambda t: t.as_strided((2, 2), (1, 6), 3),
}


@pytest.mark.parametrize("name", VIEWS)
def test_views_share_their_memory(name):
    here, there = quantized(4, 6), quantized(4, 6).to(DEVICE)
    one, other = VIEWS[name](there), VIEWS[name](here)
    assert (one.stride(), one.storage_offset()) == (other.stride(), other.storage_offset())
    assert_equal(one, other)
    if name != "reshape":
        for view in (one, other):
            view[0].copy_(view[-1].clone())
        assert_equal(there, here)


def test_operators_take_views():
    here, there = quantized(4, 6), quantized(4, 6).to(DEVICE)
    for view in VIEWS.values():
        assert_equal(torch.relu(view(there)), torch.relu(view(here)))
        assert_equal(view(there).sigmoid(), view(here).sigmoid())


# Whatever the CPU does


def environment(device):
    x = numbers(3, 4)
    scales, zeros = torch.tensor([0.1, 0.2, 0.3], dtype=torch.double), torch.tensor([0, 0, 0])
    values = {
        "x": x,
        "q": torch.quantize_per_tensor(x, 0.1, 64, torch.quint8),
        "q8": torch.quantize_per_tensor(x, 0.1, 0, torch.qint8),
        "c": torch.quantize_per_channel(x, scales, zeros, 0, torch.qint8),
        "wide": signed(3, 8),
        "scales": scales,
        "zeros": zeros,
    }
    weights = {"linear": linear_weights(), "conv": convolution_weights(2), "table": embedding(8)}
    return {name: value.to(device) for name, value in values.items()} | weights | {"torch": torch, "d": device}


def described(value):
    """What can be compared of a result. PyTorch makes some tensors that cannot be printed."""
    if isinstance(value, torch.Tensor):
        try:
            text = str(value.detach().cpu())
        except RuntimeError as error:
            text = type(error).__name__
        return value.shape, value.stride(), value.dtype, text
    if isinstance(value, (list, tuple)):
        return [described(each) for each in value]
    return type(value) if isinstance(value, torch.ScriptObject) else str(value)


@pytest.mark.parametrize("case", CASES)
def test_a_call_ends_as_on_the_cpu(case):
    try:
        expected = described(eval(case, environment("cpu")))
    except Exception as failure:
        refusals = (type(failure), NotImplementedError) if isinstance(failure, RuntimeError) else type(failure)
        with pytest.raises(refusals, match=r"."):
            eval(case, environment(DEVICE))
        assert (torch.ones(2, device=DEVICE) + 1).sum().item() == 4
        return
    assert described(eval(case, environment(DEVICE))) == expected


@settings(deadline=None, max_examples=40, derandomize=True, print_blob=True)
@given(
    sizes=st.lists(st.integers(0, 5), min_size=0, max_size=4),
    dtype=st.sampled_from([torch.quint8, torch.qint8, torch.qint32]),
    scale=st.floats(1e-3, 10),
    zero_point=st.integers(-128, 255),
    order=st.randoms(use_true_random=False),
)
def test_any_tensor_is_quantized_as_on_the_cpu(sizes, dtype, scale, zero_point, order):
    dims = list(range(len(sizes)))
    order.shuffle(dims)
    here, outcomes = numbers(*sizes), []
    for device in ("cpu", DEVICE):
        try:
            outcomes.append(torch.quantize_per_tensor(here.to(device).permute(dims), scale, zero_point, dtype))
        except RuntimeError as error:
            outcomes.append(str(error).splitlines()[0])
    if isinstance(outcomes[0], str):
        assert outcomes[1] == outcomes[0]
        return
    assert_equal(outcomes[1], outcomes[0])
    assert_equal(outcomes[1].dequantize(), outcomes[0].dequantize())


def test_operands_of_two_devices_are_refused():
    there, elsewhere, here = (quantized(3, 4).to(device) for device in (DEVICE, "openreg:1", "cpu"))
    for other in (elsewhere, here):
        with pytest.raises(RuntimeError, match=r"same device.*quantized::add"):
            torch.ops.quantized.add(there, other, 0.1, 0)
        with pytest.raises(RuntimeError, match="same device"):
            torch.equal(there, other)
    with pytest.raises(RuntimeError, match=r"same device.*quantize_per_channel"):
        torch.quantize_per_channel(numbers(3, 4).to(DEVICE), torch.ones(3), torch.zeros(3).long(), 0, torch.qint8)


def test_integers_are_no_view_of_a_quantized_tensor():
    with pytest.raises(NotImplementedError, match=r"int_repr"):
        quantized(3, 4).to(DEVICE).view(torch.uint8)


def test_what_has_no_kernel_anywhere_is_refused():
    with pytest.raises(NotImplementedError, match=r"aten::add.out.*dequantize"):
        quantized(3, 4).to(DEVICE) + quantized(3, 4).to(DEVICE)


# Operators of others


def test_an_operator_of_another_library_falls_back():
    library = torch.library.Library("openreg_test_quantized", "DEF")
    try:
        library.define("twice(Tensor q) -> Tensor")
        library.impl("twice", lambda q: torch.ops.quantized.add(q, q, 0.1, 10), "QuantizedCPU")
        operator = torch.ops.openreg_test_quantized.twice
        expected = operator(quantized(3, 4))
        with torch.openreg.fallback_mode("allow"):
            assert_equal(operator(quantized(3, 4).to(DEVICE)), expected)
        assert list(torch.openreg.fallback_stats()) == ["openreg_test_quantized::twice"]
        with pytest.raises(NotImplementedError, match="openreg_test_quantized::twice"):
            operator(quantized(3, 4).to(DEVICE))
    finally:
        library._destroy()


MINIMAL = """
import torch, warnings
import openreg_ops
warnings.simplefilter("ignore")
x = torch.arange(6.0).view(2, 3)
there = torch.quantize_per_tensor(x.to("openreg"), 0.5, 1, torch.quint8)
here = torch.quantize_per_tensor(x, 0.5, 1, torch.quint8)
assert there.int_repr().cpu().equal(here.int_repr()), there.int_repr()
assert there.relu().dequantize().cpu().equal(here.relu().dequantize())
print(sorted(torch.openreg.fallback_stats()))
"""


def test_the_fallback_alone_serves_them(run_python):
    result = run_python(MINIMAL, OPENREG_OPS="minimal")
    assert result.returncode == 0, result.stderr
    assert "'aten::quantize_per_tensor', 'aten::relu'" in result.stdout


DEPRECATED = """
import torch, warnings
import openreg_ops
x = torch.ones(4, device="openreg")
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    torch.quantize_per_tensor(x, 0.1, 0, torch.qint8).relu()
    torch.openreg.synchronize()
print([str(each.message).split()[0] for each in caught])
"""


def test_pytorchs_deprecation_is_shown_on_the_calling_line(run_python):
    result = run_python(DEPRECATED)
    assert (result.returncode, result.stdout) == (0, "['torch.quantize_per_tensor,']\n"), result.stderr
    assert result.stderr == ""


def test_a_recorded_stream_keeps_the_integers_from_being_reused(gate):
    stream = torch.openreg.Stream()
    on_cpu = torch.quantize_per_tensor(torch.ones(1 << 16), 0.5, 0, torch.quint8)
    for record in (True, False):
        x = on_cpu.to(DEVICE)
        address = x.data_ptr()
        torch.openreg.synchronize()
        gate.close(stream)
        if record:
            x.record_stream(stream)
        del x
        again = torch.empty(1 << 16, dtype=torch.uint8, device=DEVICE)
        assert (again.data_ptr() != address) == record
        gate.open()
        torch.openreg.synchronize()
        del again
        torch.openreg.empty_cache()
