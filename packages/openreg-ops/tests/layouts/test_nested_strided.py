# SPDX-License-Identifier: BSD-3-Clause
"""Operators on nested tensors of strided layout give the CPU's results, and wait only if a size depends on data."""

import pytest
import torch
from nested_samples import MASK, REFUSED, RESULTS, WAITING, nested, numbers, rows
from parity import DEVICE, launches_of
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

pytestmark = [
    pytest.mark.no_fallback,
    pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors is in prototype stage"),
]

CLOSE = {"rtol": 1e-4, "atol": 1e-5}
KEYS = ("NestedTensorPrivateUse1", "NestedTensorCPU")


def assert_same(ours, theirs):
    """Numbers, dtypes, and of nested tensors sizes, strides and offsets; ours are on the device."""
    mine, others = pytree.tree_leaves(ours), pytree.tree_leaves(theirs)
    for one, other in zip(mine, others, strict=True):
        if not isinstance(other, torch.Tensor):
            assert one == other
            continue
        assert one.device.type == DEVICE
        assert (one.is_nested, one.dtype, one.requires_grad) == (other.is_nested, other.dtype, other.requires_grad)
        if other.is_nested:
            for of_shape in ("_nested_tensor_size", "_nested_tensor_strides", "_nested_tensor_storage_offsets"):
                assert torch.equal(getattr(one, of_shape)(), getattr(other, of_shape)())
        parts = (one.unbind(), other.unbind()) if other.is_nested else ([one], [other])
        for part, other_part in zip(*parts, strict=True):
            torch.testing.assert_close(part.detach().cpu(), other_part.detach(), equal_nan=True, **CLOSE)


@pytest.mark.covers("registration.kernels of NestedTensorPrivateUse1")
@pytest.mark.no_sync(strict=True)
@pytest.mark.parametrize("name", RESULTS)
def test_a_call_gives_what_the_cpu_gives_without_waiting(name, allow_sync):
    theirs, ours = RESULTS[name]("cpu"), RESULTS[name](DEVICE)
    with allow_sync():
        assert_same(ours, theirs)


@pytest.mark.parametrize("name", WAITING)
def test_a_call_that_has_to_wait_gives_what_the_cpu_gives(name):
    assert_same(WAITING[name](DEVICE), WAITING[name]("cpu"))


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_cpu_refuses_is_refused_on_the_calling_line(name):
    errors = []
    for device in ("cpu", DEVICE):
        with pytest.raises((RuntimeError, IndexError, ValueError, AssertionError), match=r".") as caught:
            REFUSED[name](device)
        errors.append(caught.type)
    assert errors[1] is errors[0]
    assert (torch.ones(2, device=DEVICE) + 1).sum().item() == 4


class Names(TorchDispatchMode):
    """Operators that PyTorch dispatches to a kernel, by the name that it registers kernels under."""

    def __init__(self):
        super().__init__()
        self.seen = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name, overload = func._schema.name, func._schema.overload_name
        self.seen.add(f"{name}.{overload}" if overload else name)
        return func(*args, **(kwargs or {}))


def registered(key):
    return set(torch._C._dispatch_get_registrations_for_dispatch_key(key))


@pytest.mark.covers("registration.kernels of NestedTensorPrivateUse1")
def test_every_function_of_the_cpu_is_there():
    ours, theirs = (registered(key) for key in KEYS)
    assert sorted(theirs - ours) == []


def test_every_function_of_the_cpu_is_called_by_a_sample():
    # PyTorch's function raises for a tensor of any device: the jagged layout has it, in Python.
    unreachable = {"aten::value_selecting_reduction_backward"}
    with Names() as names:
        for call in (RESULTS | WAITING).values():
            call(DEVICE)
        for property_of in ("_nested_tensor_size", "_nested_tensor_strides", "_nested_tensor_storage_offsets"):
            getattr(rows(DEVICE), property_of)()
        rows("cpu").pin_memory()
        torch.ops.aten.threshold_backward(rows(DEVICE), rows(DEVICE), 0)
        with pytest.raises(RuntimeError, match="squeeze"):
            rows(DEVICE).squeeze()
    assert sorted(registered("NestedTensorPrivateUse1") - names.seen - unreachable - {"aten::record_stream"}) == []


def test_an_operator_that_the_cpu_lacks_names_the_way_out():
    with pytest.raises(NotImplementedError, match=r"exp.*openreg.*torch\.jagged"):
        rows(DEVICE).exp()


def test_operands_of_two_devices_are_refused():
    for call in (
        lambda: rows(DEVICE) + rows("cpu"),
        lambda: torch.matmul(rows(DEVICE), nested("cpu", (4, 2), (4, 3), (4, 5))),
        lambda: torch.nested.as_nested_tensor([numbers(DEVICE, 2, 3), numbers("cpu", 3, 3)]),
        lambda: torch.nn.functional.linear(rows(DEVICE), numbers("cpu", 5, 4)),
    ):
        with pytest.raises(RuntimeError, match="same device"):
            call()


def test_moves_between_devices():
    theirs = rows("cpu")
    there = theirs.to(DEVICE)
    assert_same(there, theirs)
    second = there.to(f"{DEVICE}:1")
    assert {part.device.index for part in second.unbind()} == {1}
    assert_same(second + second, theirs + theirs)
    back = torch.empty_like(theirs).copy_(second)
    assert all(torch.equal(one, other) for one, other in zip(back.unbind(), theirs.unbind(), strict=True))


def test_pinned_memory():
    pinned = rows("cpu").pin_memory()
    assert pinned.is_pinned()
    assert_same(pinned.to(DEVICE, non_blocking=True), rows("cpu"))


def test_saved_and_loaded(tmp_path):
    torch.save(rows(DEVICE), tmp_path / "nested.pt")
    # torch 2.15 has removed the function that makes this layout from those that weights_only allows.
    assert_same(torch.load(tmp_path / "nested.pt", weights_only=False), rows("cpu"))
    on_cpu = torch.load(tmp_path / "nested.pt", map_location="cpu", weights_only=False)
    assert on_cpu.device.type == "cpu"


def test_half_precision_sums_in_a_wider_type():
    """The CPU rounds after every addition."""
    x = rows("cpu").half()
    for one, other in zip(x.to(DEVICE).sum(-1, keepdim=True).unbind(), x.unbind(), strict=True):
        torch.testing.assert_close(one.cpu(), other.float().sum(-1, keepdim=True).half())


def test_a_recorded_stream_keeps_the_buffer_from_being_reused(gate):
    stream = torch.openreg.Stream()
    for record in (True, False):
        x = rows(DEVICE)
        address = x.values().data_ptr()
        torch.openreg.synchronize()
        gate.close(stream)
        if record:
            x.record_stream(stream)
        count = x.numel()
        del x
        again = torch.empty(count, device=DEVICE)
        assert (again.data_ptr() != address) == record
        gate.open()
        torch.openreg.synchronize()
        del again
        torch.openreg.empty_cache()


@pytest.mark.parametrize(
    "name",
    [
        *("matmul", "sum", "to_padded_tensor", "_nested_from_padded", "_nested_tensor_softmax_with_shape"),
        *("layer_norm", "linear", "gelu"),
    ],
)
def test_the_number_of_components_costs_no_launches(name):
    """As many for one component as for all."""
    operands = {
        "matmul": lambda x: torch.matmul(x, x.transpose(1, 2)),
        "sum": lambda x: x.sum(-1, keepdim=True),
        "to_padded_tensor": lambda x: x.to_padded_tensor(0.0),
        "_nested_from_padded": lambda x: torch._nested_from_padded(dense[: x.size(0)], x._nested_tensor_size().clone()),
        "_nested_tensor_softmax_with_shape": lambda x: torch.ops.aten._nested_tensor_softmax_with_shape(
            scores[: x.size(0)], x
        ),
        "layer_norm": lambda x: torch.nn.functional.layer_norm(x, (4,), four, four),
        "linear": lambda x: torch.nn.functional.linear(x, dense[0]),
        "gelu": torch.nn.functional.gelu,
    }
    dense, scores, four = numbers(DEVICE, 9, 4, 4), numbers(DEVICE, 9, 2, 4, 4), numbers(DEVICE, 4)
    one, many = nested(DEVICE, (3, 4)), nested(DEVICE, *[(1 + i % 4, 4) for i in range(9)])
    counts = [launches_of(lambda x=x: operands[name](x)) for x in (one, many)]
    assert counts[0] == counts[1]


# nn.TransformerEncoder


@pytest.mark.parametrize("options", [{}, {"activation": "gelu"}, {"norm_first": True}], ids=str)
def test_an_encoder_computes_a_padded_batch_as_a_nested_tensor(options):
    """In evaluation, as on the CPU: what is padding in the input is zero in the output."""
    results = []
    for device in ("cpu", DEVICE):
        torch.manual_seed(0)
        layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, **options)
        module = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=not options.get("norm_first")).to(device)
        with torch.no_grad():
            results.append(module.eval()(numbers(device, 2, 3, 8), src_key_padding_mask=~MASK.to(device)).cpu())
    torch.testing.assert_close(*reversed(results), **CLOSE)
    assert options.get("norm_first") or results[1][1, 1:].abs().max() == 0
