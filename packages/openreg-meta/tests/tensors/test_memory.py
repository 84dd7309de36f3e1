# SPDX-License-Identifier: BSD-3-Clause
"""Tensors use the caching allocator correctly with several streams, captures, poison and the profiler."""

from __future__ import annotations

import gc

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch.profiler import ProfilerActivity, profile

DEVICE = "openreg"
openreg = torch.openreg


@pytest.fixture(autouse=True)
def empty():
    gc.collect()
    openreg.empty_cache()
    yield
    openreg.synchronize()
    openreg.empty_cache()


def test_memory_that_another_stream_uses_is_awaited_and_then_reused(gate):
    side = openreg.Stream()
    tensor = torch.empty(3000, device=DEVICE)
    address = tensor.data_ptr()
    with openreg.stream(side):
        gate.close()
    tensor.record_stream(side)
    del tensor
    assert torch.empty(3000, device=DEVICE).data_ptr() != address
    (segment,) = [s for s in openreg.memory_snapshot() if s["address"] <= address < s["address"] + s["total_size"]]
    states = {block["address"]: block["state"] for block in segment["blocks"]}
    assert states[address] == "active_awaiting_free"
    gate.open()
    side.synchronize()
    assert torch.empty(3000, device=DEVICE).data_ptr() == address


STEPS = st.lists(
    st.tuples(st.sampled_from(["allocate", "release", "use", "empty"]), st.integers(1, 3 << 20), st.integers(0, 2)),
    max_size=40,
)


def follow(steps):
    """Each tensor is filled with its number by its stream, read by others, and holds it until it is gone."""
    streams = [openreg.default_stream(), openreg.Stream(), openreg.Stream()]
    live: list[tuple[torch.Tensor, int, torch.Stream]] = []
    sums = []
    for step, (action, size, choice) in enumerate(steps):
        stream = streams[choice]
        if action == "allocate":
            with openreg.stream(stream):
                live.append((torch.full((size // 8 + 1,), step, device=DEVICE, dtype=torch.int64), step, stream))
        elif action == "release" and live:
            live.pop(size % len(live))
        elif action == "use" and live:
            tensor, number, owner = live[size % len(live)]
            stream.wait_stream(owner)
            with openreg.stream(stream):
                openreg._sleep(200_000)
                sums.append((tensor.sum(), number * tensor.numel()))
            tensor.record_stream(stream)
        elif action == "empty":
            openreg.empty_cache()
    openreg.synchronize()
    assert all(total.item() == expected for total, expected in sums)
    for tensor, number, _ in live:
        assert tensor.eq(number).all()


def check_steps(count, **options):
    checks = [HealthCheck.too_slow]
    run = settings(max_examples=count, deadline=None, database=None, suppress_health_check=checks, **options)
    run(given(STEPS)(follow))()


def test_no_tensor_is_overwritten_whatever_streams_do_with_others():
    check_steps(30, derandomize=True)


@pytest.mark.endurance
def test_no_tensor_is_overwritten_in_400_random_orders():
    check_steps(400, print_blob=True)


def capture(function):
    graph = torch.accelerator.Graph()
    stream = torch.Stream(DEVICE)
    with stream, graph:
        result = function()
    return graph, result


@pytest.mark.covers("module.memory_snapshot")
def test_a_capture_has_a_pool_that_lives_as_long_as_the_graph():
    x = torch.ones(1 << 20, device=DEVICE)
    free = openreg.mem_get_info()[0]
    graph, y = capture(lambda: (x + 1) * 2)
    first, second = graph.pool()
    name = f"reserved_bytes_by_private_pools.{first}_{second}.all.current"
    assert openreg.memory_stats()[name] >= 4 << 20
    assert all(s["segment_pool_id"] == (first, second) for s in openreg.memory_snapshot((first, second)))
    openreg.empty_cache()
    assert openreg.memory_stats()[name] >= 8 << 20  # also the free intermediate: a replay writes there
    graph.replay()
    assert torch.equal(y.cpu(), torch.full((1 << 20,), 4.0))
    del graph, y
    openreg.empty_cache()
    assert openreg.memory_stats()[name] == 0
    assert openreg.mem_get_info()[0] == free


def test_memory_used_by_other_streams_of_a_capture_is_kept_back_until_it_ends():
    x = torch.ones(3000, device=DEVICE)
    addresses = []

    def fork_and_join():
        main, side = openreg.current_stream(), openreg.Stream()
        y = x + 1
        addresses.append(y.data_ptr())
        side.wait_stream(main)
        with openreg.stream(side):
            z = y * 2
        y.record_stream(side)
        del y
        addresses.append(torch.empty(3000, device=DEVICE).data_ptr())
        main.wait_stream(side)
        return z

    graph, z = capture(fork_and_join)
    assert addresses[0] != addresses[1]
    graph.replay()
    assert torch.equal(z.cpu(), torch.full((3000,), 4.0))
    torch.empty(8, device=DEVICE)  # the allocator looks at what it kept back
    blocks = [block for segment in openreg.memory_snapshot(graph.pool()) for block in segment["blocks"]]
    assert {block["state"] for block in blocks if block["address"] == addresses[0]} <= {"inactive"}


def test_the_cache_is_not_emptied_during_a_capture():
    graph = torch.accelerator.Graph()
    stream = torch.Stream(DEVICE)
    x = torch.ones(8, device=DEVICE)
    with stream, graph:
        y = x + 1
        with pytest.raises(RuntimeError, match=r"openreg:0 .*capture"):
            openreg.empty_cache()
    graph.replay()
    assert torch.equal(y.cpu(), torch.full((8,), 2.0))


def test_an_allocation_without_room_fails_in_a_capture_without_spoiling_it():
    graph = torch.accelerator.Graph()
    stream = torch.Stream(DEVICE)
    x = torch.ones(8, device=DEVICE)
    with stream, graph:
        with pytest.raises(torch.OutOfMemoryError, match="capture"):
            torch.empty(1 << 50, dtype=torch.uint8, device=DEVICE)
        y = x + 1
    graph.replay()
    assert torch.equal(y.cpu(), torch.full((8,), 2.0))


POISONED = """
import torch, torch_openreg
def content(tensor):
    return set(tensor.view(torch.uint8).cpu().tolist())
"""


def test_each_replay_starts_from_poisoned_memory(python):
    outcome = python(
        POISONED
        + """
x = torch.ones(1000, device="openreg")
graph, stream = torch.accelerator.Graph(), torch.Stream("openreg")
with stream, graph:
    untouched = torch.empty(1000, device="openreg")
    y = (x + 1) * 2
for _ in range(2):
    untouched.zero_()
    torch.openreg.synchronize()
    graph.replay()
    assert content(untouched) == {0xFF}
    assert y.eq(4).all()
address = y.data_ptr()
del y, untouched
graph.replay()
torch.openreg.synchronize()
""",
        OPENREG_POISON="1",
    )
    assert (outcome.returncode, outcome.stderr) == (0, "")


def test_a_graph_trains_the_same_with_poison(python_with_dynamo):
    script = (
        POISONED
        + """
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Dropout(0.5), torch.nn.Linear(16, 1)).to("openreg")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.randn(32, 8).to("openreg")
def step():
    optimizer.zero_grad(set_to_none=False)
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    return loss
graph, stream = torch.accelerator.Graph(), torch.Stream("openreg")
stream.wait_stream(torch.accelerator.current_stream())
with stream:
    step()
stream.synchronize()
with stream, graph:
    loss = step()
for _ in range(5):
    graph.replay()
print(repr(loss.item()))
"""
    )
    plain, poisoned = python_with_dynamo(script), python_with_dynamo(script, OPENREG_POISON="1")
    assert (plain.returncode, plain.stderr) == (0, "")
    assert (poisoned.returncode, poisoned.stderr) == (0, "")
    assert plain.stdout == poisoned.stdout


def test_new_tensors_hold_poison_and_not_old_contents(python):
    outcome = python(
        POISONED
        + """
torch.full((1000,), 7.0, device="openreg")
assert content(torch.empty(1000, device="openreg")) == {0xFF}
""",
        OPENREG_POISON="1",
    )
    assert (outcome.returncode, outcome.stderr) == (0, "")


@pytest.mark.covers("registration.c10::reportMemoryUsageToProfiler")
@pytest.mark.filterwarnings("ignore:torch.profiler does not record")
def test_the_profiler_shows_memory_of_the_device():
    x = torch.ones(1 << 18, device=DEVICE)
    activities = [ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]
    with profile(activities=activities, profile_memory=True) as profiler:
        y = x + 1
    (row,) = [event for event in profiler.key_averages() if event.key == "aten::add"]
    assert row.device_memory_usage == 1 << 20
    table = profiler.key_averages().table(sort_by="self_device_memory_usage")
    assert "Self OPENREG Mem" in table
    assert "1.00 MB" in table
    assert y.device.type == DEVICE


@pytest.mark.filterwarnings("ignore:torch.profiler does not record")
def test_the_viewer_draws_a_profile():
    from torch.cuda import _memory_viz

    with profile(
        activities=[ProfilerActivity.CPU], profile_memory=True, record_shapes=True, with_stack=True
    ) as profiler:
        x = torch.ones(1 << 18, device=DEVICE)
        x = x + 1
    assert "<html" in _memory_viz.profile_plot(profiler).lower()
    assert x.numel() == 1 << 18


def test_stacks_of_a_backward_pass_are_recorded_on_its_thread():
    openreg.memory._record_memory_history(stacks="python")
    try:
        x = torch.ones(1000, device=DEVICE, requires_grad=True)
        (x * x).sum().backward()
        entries = openreg.memory._snapshot()["device_traces"][0]
    finally:
        openreg.memory._record_memory_history(None)
    assert sum(entry["action"] == "alloc" for entry in entries) >= 4
    assert x.grad.eq(2).all()


# What poison reads as, in every dtype of torch. The fnuz dtypes have one NaN, with other bits, and float4 has none.

CONTENT_OF_EVERY_DTYPE = """
import math, torch, torch_openreg, warnings
warnings.filterwarnings("ignore", "B?Complex.* support is experimental")
warnings.filterwarnings("ignore", ".*quantized tensor creation functions.* are deprecated")

DTYPES = sorted({value for value in vars(torch).values() if isinstance(value, torch.dtype)}, key=str)
INTEGERS = {torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.uint16, torch.uint32, torch.uint64}
unreadable = set()  # dtypes without numbers: containers of bits, and those of quantized tensors

def bytes_at(address, size):
    # A stale address, as a program has that reads memory after its release.
    storage = torch._C._construct_storage_from_data_pointer(address, torch.device("openreg:0"), size)
    return torch.empty(0, dtype=torch.uint8, device="openreg").set_(storage).cpu()

def is_seen(values):
    dtype = values.dtype
    if dtype.is_complex:
        return all(math.isnan(value.real) and math.isnan(value.imag) for value in values.to(torch.complex128).tolist())
    if "fnuz" in str(dtype):
        return values.double().eq(torch.finfo(dtype).min).all().item()
    if dtype in INTEGERS:
        return values.tolist() == [-1 if dtype.is_signed else torch.iinfo(dtype).max] * len(values)
    if dtype == torch.bool:
        return all(values.tolist())
    try:
        return values.double().isnan().all().item()
    except (RuntimeError, NotImplementedError):
        unreadable.add(str(dtype))
        return True

for dtype in DTYPES:
    try:
        tensor = torch.empty(64, dtype=dtype, device="openreg")
        on_host = tensor.cpu()
    except (RuntimeError, NotImplementedError):
        unreadable.add(str(dtype))
        continue
    assert is_seen(on_host), dtype
    address, size = tensor.data_ptr(), tensor.nbytes
    assert bytes_at(address, size).eq(0xFF).all(), dtype
    tensor.untyped_storage().fill_(1)
    assert bytes_at(address, size).eq(1).all(), dtype
    del tensor
    released = bytes_at(address, size)
    assert released.eq(0xFF).all(), dtype
    assert is_seen(released.view(dtype)), dtype
print(*sorted({name.removeprefix("torch.").rstrip("0123456789") for name in unreadable}))
assert not torch.allclose(torch.empty(9, device="openreg"), torch.zeros(9, device="openreg"))
"""


def test_poison_is_seen_in_every_dtype(python):
    outcome = python(CONTENT_OF_EVERY_DTYPE, OPENREG_POISON="1")
    assert (outcome.returncode, outcome.stderr) == (0, "")
    assert outcome.stdout == "bits bits1x bits2x bits4x float4_e2m1fn_x int qint quint quint2x quint4x uint\n"
