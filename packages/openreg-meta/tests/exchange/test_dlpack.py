# SPDX-License-Identifier: BSD-3-Clause
"""DLPack imports and exports share memory without a copy, order streams, and refuse what DLPack cannot express."""

import re

import numpy as np
import pytest
import torch
from torch.utils.dlpack import DLDeviceType, from_dlpack, to_dlpack

DEVICE = "openreg:1"
CPU = (DLDeviceType.kDLCPU, 0)
OPENREG = {index: (DLDeviceType.kDLExtDev, index) for index in range(2)}
SLEEP = 50_000_000  # nanoseconds


@pytest.fixture
def tensor():
    return torch.arange(6.0, device=DEVICE)


class Producer:
    """Another library's array: all that a consumer may know of it."""

    def __init__(self, tensor):
        self.tensor = tensor
        self.calls = []

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()

    def __dlpack__(self, **options):
        self.calls.append(options)
        return self.tensor.__dlpack__(**options)


@pytest.mark.parametrize("index", [0, 1])
def test_the_device_is_an_extension_device_with_its_index(index):
    assert torch.ones(1, device=f"openreg:{index}").__dlpack_device__() == OPENREG[index]


def test_other_devices_answer_as_ever():
    assert torch.ones(1).__dlpack_device__() == CPU
    with pytest.raises(ValueError, match="meta"):
        torch.ones(1, device="meta").__dlpack_device__()


@pytest.mark.covers("registration.DLPack")
def test_from_dlpack_shares_the_memory(tensor):
    for other in (torch.from_dlpack(tensor), torch.from_dlpack(Producer(tensor)), from_dlpack(to_dlpack(tensor))):
        assert other.device == tensor.device
        assert other.data_ptr() == tensor.data_ptr()
        other.add_(1)
    assert tensor.tolist() == [3, 4, 5, 6, 7, 8]


def test_the_memory_lives_as_long_as_the_other_tensor():
    tensor = torch.arange(6.0, device=DEVICE)
    before = torch.openreg.memory_allocated(1)
    other = torch.from_dlpack(tensor)
    del tensor
    assert torch.openreg.memory_allocated(1) == before
    assert other.tolist() == [0, 1, 2, 3, 4, 5]
    del other
    assert torch.openreg.memory_allocated(1) < before


def test_an_unused_capsule_frees_the_memory():
    tensor = torch.arange(6.0, device=DEVICE)
    before = torch.openreg.memory_allocated(1)
    capsule = tensor.__dlpack__()
    del tensor, capsule
    assert torch.openreg.memory_allocated(1) < before


def test_a_capsule_is_taken_once(tensor):
    capsule = tensor.__dlpack__()
    from_dlpack(capsule)
    with pytest.raises(RuntimeError, match="once"):
        from_dlpack(capsule)


def test_views_keep_strides_and_place():
    base = torch.arange(24.0, device=DEVICE).reshape(4, 6)
    view = base[1:, 1::2].t()
    other = torch.from_dlpack(view)
    assert (other.shape, other.stride()) == (view.shape, view.stride())
    assert other.tolist() == view.tolist()


def kinds_of(pattern):
    """The types of PyTorch whose whole name the pattern matches."""
    named = {str(value): value for value in vars(torch).values() if isinstance(value, torch.dtype)}
    return [dtype for name, dtype in sorted(named.items()) if re.fullmatch(rf"torch\.({pattern})", name)]


ROUND_TRIP = kinds_of(r"bool|u?int(8|16|32|64)|float(16|32|64)|bfloat16|complex(32|64|128)|float8_\w+|float4_\w+")
NARROW = kinds_of(r"u?int[1-7]")
UNKNOWN = kinds_of(r"bits\w+|bcomplex32")  # the last since PyTorch 2.14
QUANTIZED = kinds_of(r"qu?int\w+")


def patterns(dtype):
    """Sixteen different bytes, as values of this type; each a value that a bool may have."""
    values = torch.arange(16, dtype=torch.uint8)
    return (values % 2 if dtype is torch.bool else values).view(dtype)


def test_every_type_of_pytorch_is_tested_here():
    assert len(ROUND_TRIP) >= 21
    assert {*ROUND_TRIP, *NARROW, *UNKNOWN, *QUANTIZED} == set(kinds_of(".*"))


@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
@pytest.mark.parametrize("dtype", ROUND_TRIP, ids=str)
def test_types(dtype):
    values = patterns(dtype)
    on_device = values.to(DEVICE)
    other = torch.from_dlpack(on_device)
    assert (other.dtype, other.device, other.data_ptr()) == (dtype, on_device.device, on_device.data_ptr())
    assert torch.equal(other.cpu().view(torch.uint8), values.view(torch.uint8))


@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_integers_below_eight_bits_arrive_as_bytes_as_on_the_cpu(dtype):
    values = patterns(dtype)
    other = torch.from_dlpack(values.to(DEVICE))
    assert other.dtype == torch.from_dlpack(values).dtype == (torch.int8 if "uint" not in str(dtype) else torch.uint8)
    assert torch.equal(other.cpu().view(torch.uint8), values.view(torch.uint8))


@pytest.mark.filterwarnings("ignore:BComplex32 support is experimental")
@pytest.mark.parametrize("dtype", UNKNOWN, ids=str)
def test_types_that_the_standard_does_not_know_are_refused_by_pytorch(dtype):
    with pytest.raises(BufferError, match="dlpack"):
        torch.from_dlpack(patterns(dtype).to(DEVICE))


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor")
@pytest.mark.parametrize("dtype", QUANTIZED, ids=str)
def test_quantized_types_are_refused_by_pytorch(dtype):
    with pytest.raises(BufferError, match="dlpack"):
        torch.from_dlpack(torch.empty(16, dtype=dtype, device=DEVICE))


def test_empty_and_scalar():
    assert torch.from_dlpack(torch.empty(0, 3, device=DEVICE)).shape == (0, 3)
    assert torch.from_dlpack(torch.tensor(2.5, device=DEVICE)).item() == 2.5


def test_copy_is_another_memory(tensor):
    other = torch.from_dlpack(tensor, copy=True)
    assert other.data_ptr() != tensor.data_ptr()
    assert other.device == tensor.device
    assert torch.from_dlpack(tensor, copy=False).data_ptr() == tensor.data_ptr()


@pytest.mark.covers("registration.DLPack")
@pytest.mark.parametrize("target", ["cpu", "openreg:0", "openreg:1"])
@pytest.mark.parametrize("source", ["cpu", "openreg:0", "openreg:1"])
def test_across_devices(source, target):
    values = torch.arange(6.0, device=source)
    other = torch.from_dlpack(values, device=target)
    assert str(other.device) == target
    assert other.tolist() == [0, 1, 2, 3, 4, 5]
    if source != target:
        with pytest.raises(ValueError, match="copy"):
            torch.from_dlpack(values, device=target, copy=False)


def test_a_producer_may_be_asked_for_another_device(tensor):
    assert from_dlpack(tensor.__dlpack__(dl_device=CPU)).device.type == "cpu"
    assert from_dlpack(tensor.__dlpack__(dl_device=OPENREG[0])).device == torch.device("openreg:0")
    assert from_dlpack(tensor.__dlpack__(dl_device=OPENREG[1])).data_ptr() == tensor.data_ptr()
    with pytest.raises(ValueError, match="copy"):
        tensor.__dlpack__(dl_device=CPU, copy=False)


def test_a_copy_to_the_host_has_waited(tensor):
    with torch.openreg.device(1):
        torch.openreg._sleep(SLEEP)  # PyTorch holds the GIL meanwhile, so that no thread could open a gate
    tensor.add_(1)
    assert from_dlpack(tensor.__dlpack__(dl_device=CPU)).tolist() == [1, 2, 3, 4, 5, 6]


def test_numpy_cannot_read_device_memory_but_gets_a_copy(tensor):
    with pytest.raises((RuntimeError, BufferError), match=r"[Uu]nsupported device"):
        np.from_dlpack(tensor)
    with pytest.raises(TypeError, match=r"Use Tensor\.cpu\(\)"):
        np.asarray(tensor)
    assert np.from_dlpack(tensor, device="cpu").tolist() == [0, 1, 2, 3, 4, 5]


def test_numpy_arrays_go_to_the_device():
    other = torch.from_dlpack(np.arange(4), device=DEVICE)
    assert str(other.device) == DEVICE
    assert other.tolist() == [0, 1, 2, 3]


def test_pinned_memory_is_shared_with_the_host():
    pinned = torch.ones(3).pin_memory()
    torch.from_dlpack(pinned).add_(1)
    assert pinned.tolist() == [2, 2, 2]


def test_the_consumers_stream_waits(tensor, gate):
    """With a stream's handle, what it does next comes after what the current stream holds."""
    consumer = torch.openreg.Stream(1)
    producer = torch.openreg.Stream(1)
    with torch.openreg.stream(producer):
        gate.close()
        tensor.__dlpack__(stream=consumer.native_handle)
    assert not producer.query()
    assert not consumer.query()
    gate.open()
    torch.openreg.synchronize(1)


@pytest.mark.parametrize("default", [None, 0])
def test_without_a_handle_the_default_stream_waits(tensor, default, gate):
    with torch.openreg.stream(torch.openreg.Stream(1)):
        gate.close()
        tensor.__dlpack__(stream=default)
    assert not torch.openreg.default_stream(1).query()
    gate.open()
    torch.openreg.synchronize(1)


def test_minus_one_orders_nothing(tensor, gate):
    consumer = torch.openreg.Stream(1)
    torch.openreg.synchronize(1)
    with torch.openreg.stream(torch.openreg.Stream(1)):
        gate.close()
        tensor.__dlpack__()
        tensor.__dlpack__(stream=-1)
    assert consumer.query()
    assert torch.openreg.default_stream(1).query()
    gate.open()
    torch.openreg.synchronize(1)


def test_a_stream_that_does_not_exist_is_refused(tensor):
    with pytest.raises(RuntimeError, match="does not exist"):
        tensor.__dlpack__(stream=12345)
    with pytest.raises(TypeError, match="stream must be"):
        tensor.__dlpack__(stream="default")


def test_what_dlpack_cannot_say_is_refused():
    with pytest.raises(BufferError, match="require gradient"):
        torch.ones(2, device=DEVICE, requires_grad=True).__dlpack__()
    with pytest.raises(BufferError, match="conjugate"):
        torch.ones(2, dtype=torch.complex64, device=DEVICE).conj().__dlpack__()


def test_subclasses_keep_their_say(tensor):
    class Answers(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, arguments=(), options=None):
            if function.__name__ == "__dlpack__":
                return "my capsule"
            return super().__torch_function__(function, types, arguments, options or {})

    special = tensor.as_subclass(Answers)
    assert special.__dlpack_device__() == OPENREG[1]
    assert special.__dlpack__() == "my capsule"
