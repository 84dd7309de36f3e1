# SPDX-License-Identifier: BSD-3-Clause
"""Tests of a library that knows no device but cuda. test_cuda_names.py runs them on openreg."""

import copy
import io
import pickle
import threading

import pytest
import torch
from torch.utils.checkpoint import checkpoint

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs cuda")

NAMES = ["cuda", "cuda:1", torch.device("cuda"), torch.device("cuda", 1)]
FACTORIES = {
    "tensor": lambda d: torch.tensor([1.0], device=d),
    "as_tensor": lambda d: torch.as_tensor([1.0], device=d),
    "asarray": lambda d: torch.asarray([1.0], device=d),
    "empty_strided": lambda d: torch.empty_strided((2,), (1,), device=d),
    "arange": lambda d: torch.arange(3, device=d),
    "full": lambda d: torch.full((2,), 1.0, device=d),
    "eye": lambda d: torch.eye(2, device=d),
    "randn": lambda d: torch.randn(3, device=d),
    "randperm with a generator": lambda d: torch.randperm(3, device=d, generator=torch.Generator(device=d)),
    "window": lambda d: torch.hann_window(4, device=d),
    "ones_like": lambda d: torch.ones_like(torch.ones(2), device=d),
    "new_zeros": lambda d: torch.ones(2).new_zeros(2, device=d),
    "to": lambda d: torch.ones(2).to(d),
    "to with dtype": lambda d: torch.ones(2).to(device=d, dtype=torch.float64),
    "cuda": lambda d: torch.ones(2).cuda(d),
    "module": lambda d: torch.nn.Linear(2, 2, device=d).weight,
    "module.to": lambda d: torch.nn.Linear(2, 2).to(d).weight,
    "module.cuda": lambda d: torch.nn.Linear(2, 2).cuda(d).weight,
    "module.to_empty": lambda d: torch.nn.Linear(2, 2).to_empty(device=d).weight,
}


@pytest.mark.parametrize("name", NAMES, ids=str)
@pytest.mark.parametrize("factory", FACTORIES)
def test_factories(factory, name):
    made = FACTORIES[factory](name)
    assert made.is_cuda
    assert made.device.type == "cuda"
    assert made.device.index == made.get_device() == (torch.device(name).index or 0)
    assert made.device == torch.device("cuda", made.get_device())


def test_tensors_say_where_they_are():
    x = torch.ones(3).cuda()
    assert "cuda" in str(x.device)
    assert not x.cpu().is_cuda
    assert torch.zeros_like(x).is_cuda
    assert (x + 1).device == x.device
    assert x.type() == "torch.cuda.FloatTensor"
    assert isinstance(x, torch.cuda.FloatTensor)
    assert not isinstance(x.cpu(), torch.cuda.FloatTensor)
    for kind in ("torch.cuda.DoubleTensor", torch.cuda.DoubleTensor):
        assert torch.ones(2).type(kind).is_cuda
        assert torch.ones(2).type(kind).dtype == torch.float64
    torch.testing.assert_close(x, torch.ones(3, device="cuda"))
    assert copy.deepcopy(x).is_cuda
    assert pickle.loads(pickle.dumps(x)).is_cuda
    assert torch.from_dlpack(x).is_cuda
    with pytest.raises(RuntimeError, match="same device"):
        x @ torch.ones(3, 3)


def test_devices():
    assert torch.cuda.device_count() == 2
    assert torch.cuda.current_device() == 0
    for index in (1, "cuda:1", torch.device("cuda", 1)):
        torch.cuda.synchronize(index)
        with torch.cuda.device(index):
            assert torch.cuda.current_device() == 1
            assert torch.ones(2, device="cuda").get_device() == 1
            assert torch.ones(2).cuda().get_device() == 1
    with torch.cuda.device_of(torch.ones(2, device="cuda:1")):
        assert torch.cuda.current_device() == 1
    major, minor = torch.cuda.get_device_capability()
    assert isinstance(major, int)
    assert isinstance(minor, int)
    assert torch.cuda.get_device_properties("cuda").total_memory > 0
    assert torch.device(1) == torch.ones(2, device=1).device == torch.device("cuda", 1)
    assert torch.device("openreg", 1).type == "openreg"
    assert isinstance(torch.cuda.get_device_name(0), str)
    assert torch.cuda.is_bf16_supported(including_emulation=False)
    assert torch.cuda.is_initialized()
    assert torch.cuda.get_arch_list() == []
    with torch.cuda.nvtx.range("step"):
        torch.cuda.nvtx.mark("inside")


def test_streams_and_events():
    stream = torch.cuda.Stream(device="cuda:0")
    assert isinstance(stream, torch.cuda.Stream)
    assert isinstance(stream, torch.Stream)
    assert isinstance(torch.Stream("cuda"), torch.Stream)
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    with torch.cuda.stream(stream):
        assert torch.cuda.current_stream() == stream
        begin.record()
        x = torch.ones(2, device="cuda")
        end.record()
    torch.cuda.current_stream().wait_stream(stream)
    x.record_stream(torch.cuda.current_stream())
    end.synchronize()
    assert begin.elapsed_time(end) >= 0
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = x + 1
    graph.replay()
    assert y.sum() == 4


def test_memory():
    before = torch.cuda.memory_allocated()
    x = torch.ones(1000, device="cuda")
    assert torch.cuda.memory_allocated("cuda:0") >= before + x.nbytes
    torch.cuda.reset_peak_memory_stats()
    assert torch.cuda.max_memory_allocated(torch.device("cuda")) >= x.nbytes
    assert torch.cuda.memory.memory_stats()
    torch.cuda.empty_cache()
    free, total = torch.cuda.mem_get_info()
    assert free <= total


def test_pinned_memory():
    batches = torch.utils.data.DataLoader(torch.ones(8, 2), batch_size=4, pin_memory=True, num_workers=1)
    for batch in batches:
        assert batch.is_pinned()
        assert batch.cuda(non_blocking=True).is_cuda


def test_random():
    torch.cuda.manual_seed(3)
    torch.rand(2, device="cuda")
    state = torch.cuda.get_rng_state()
    drawn = torch.rand(2, device="cuda")
    torch.cuda.set_rng_state(state)
    assert torch.equal(drawn, torch.rand(2, device="cuda"))
    torch.cuda.random.set_rng_state(state, device="cuda:0")
    with torch.random.fork_rng(devices=[0]):
        assert torch.equal(drawn, torch.rand(2, device="cuda"))
    assert torch.equal(drawn, torch.rand(2, device="cuda"))
    generator = torch.Generator("cuda").manual_seed(0)
    assert isinstance(generator, torch.Generator)
    assert isinstance(torch.Generator(), torch.Generator)


def test_autocast():
    x = torch.ones(2, 2, device="cuda")
    for dtype in (torch.bfloat16, torch.float16):
        with torch.autocast("cuda", dtype=dtype):
            assert torch.is_autocast_enabled()
            assert torch.is_autocast_enabled("cuda")
            assert torch.get_autocast_dtype("cuda") == dtype
            assert (x @ x).dtype == dtype
    assert not torch.is_autocast_enabled()
    assert torch.amp.is_autocast_available("cuda")
    with pytest.warns(FutureWarning), torch.cuda.amp.autocast(dtype=torch.bfloat16):
        assert (x @ x).dtype == torch.bfloat16
    model, scaler = torch.nn.Linear(2, 2).cuda(), torch.amp.GradScaler("cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with torch.amp.autocast(device_type="cuda"):
        loss = model(x).sum()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    assert scaler.is_enabled()


PLACES = {
    "as it was": (None, 0),
    "cuda": ("cuda", 0),
    "cuda:1": ("cuda:1", 1),
    "device": (torch.device("cuda", 1), 1),
    "dict": ({"cuda:0": "cuda:1"}, 1),
    "function": (lambda storage, _: storage.cuda(1), 1),
    "cpu": ("cpu", -1),
    "dict to the cpu": ({"cuda:0": "cpu"}, -1),
}


@pytest.mark.parametrize("place", PLACES)
def test_load(place):
    map_location, index = PLACES[place]
    file = io.BytesIO()
    torch.save({"x": torch.ones(2, device="cuda:0")}, file)
    file.seek(0)
    assert torch.load(file, map_location=map_location)["x"].get_device() == index


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * torch.full((2,), 2.0, device="cuda")

    @staticmethod
    def backward(ctx, gradient):
        assert gradient.is_cuda
        return gradient * torch.full((2,), 2.0, device="cuda")


def test_backward():
    x = torch.ones(2, device="cuda", requires_grad=True)
    Double.apply(x).sum().backward()
    assert x.grad.is_cuda
    torch.autograd.grad(Double.apply(x).sum(), x)
    x.register_hook(lambda gradient: gradient + torch.ones(2, device="cuda"))
    (x * 2).sum().backward()
    assert x.grad.tolist() == [5, 5]


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoint(reentrant):
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Dropout()).cuda()
    x = torch.ones(2, 2, device="cuda", requires_grad=True)
    checkpoint(model, x, use_reentrant=reentrant).sum().backward()
    assert x.grad.is_cuda


@pytest.mark.parametrize("how", [{}, {"foreach": True}, {"fused": True}], ids=str)
def test_training(how):
    model = torch.nn.LSTM(2, 2).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), **how)
    model(torch.ones(2, 2, device="cuda"))[0].sum().backward()
    optimizer.step()
    optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    model.load_state_dict(model.state_dict())


def test_threads():
    made = []
    thread = threading.Thread(target=lambda: made.append(torch.ones(2, device="cuda").is_cuda))
    thread.start()
    thread.join()
    assert made == [True]


def test_defaults():
    with torch.device("cuda"):
        assert torch.ones(2).is_cuda
        assert torch.get_default_device().type == "cuda"
    torch.set_default_device("cuda")
    assert torch.ones(2).is_cuda
    torch.set_default_device(None)
    assert not torch.ones(2).is_cuda


def test_accelerator():
    assert torch.accelerator.current_accelerator().type == "cuda"
    torch.accelerator.synchronize("cuda:0")
    torch.accelerator.set_device_index(torch.device("cuda", 0))
    assert torch.get_device_module("cuda") is torch.cuda


def test_the_plug_in_says_cuda(device, two_devices):
    assert device == two_devices[0] == torch.device("cuda", 0)
    assert torch.ones(2, device=two_devices[1]).get_device() == 1
