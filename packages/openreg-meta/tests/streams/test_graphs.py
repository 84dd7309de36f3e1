# SPDX-License-Identifier: BSD-3-Clause
"""A captured training step computes what the eager one does. An error names the reason why a call is not captured."""

from __future__ import annotations

import gc

import pytest
import torch
from torch import nn

DEVICE = "openreg"


@pytest.fixture
def stream():
    return torch.Stream(DEVICE)


def capture(function, stream, **options):
    graph = torch.accelerator.Graph(**options)
    with stream, graph:
        result = function()
    return graph, result


@pytest.mark.covers("graph.capture_begin")
def test_a_graph_computes_with_what_its_inputs_hold_at_the_replay(stream):
    x = torch.zeros(8, device=DEVICE)
    graph, y = capture(lambda: (x * 2 + 1).relu(), stream)
    for value in (1.0, -5.0, 3.0):
        x.fill_(value)
        graph.replay()
        assert torch.equal(y.cpu(), torch.full((8,), max(value * 2 + 1, 0)))


def make_step(seed: int):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Dropout(0.5), nn.Linear(32, 4)).to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    x = torch.randn(64, 16, device=DEVICE)
    target = torch.randint(0, 4, (64,), device=DEVICE)

    def step():
        optimizer.zero_grad(set_to_none=False)
        loss = nn.functional.cross_entropy(model(x), target)
        loss.backward()
        optimizer.step()
        return loss

    return model, step


@pytest.mark.covers("module.Graph", "graph.replay")
def test_a_training_step_is_captured_and_replayed_like_the_eager_one(stream):
    """With dropout: the replays draw the same numbers as the eager steps."""
    eager_model, eager_step = make_step(3)
    eager = [eager_step().item() for _ in range(8)]
    model, step = make_step(3)
    stream.wait_stream(torch.accelerator.current_stream())
    with stream:
        warm = [step().item() for _ in range(3)]
    stream.synchronize()
    graph, loss = capture(step, stream)
    replayed = []
    for _ in range(5):
        graph.replay()
        replayed.append(loss.item())
    assert warm + replayed == eager
    for a, b in zip(model.parameters(), eager_model.parameters(), strict=True):
        assert torch.equal(a.cpu(), b.cpu())


@pytest.mark.covers("graph.replay")
def test_each_replay_draws_new_numbers_and_a_seed_repeats_them(stream):
    graph, noise = capture(lambda: torch.rand(1000, device=DEVICE), stream)

    def draw():
        graph.replay()
        return noise.cpu()

    torch.manual_seed(1)
    first, second = draw(), draw()
    assert not torch.equal(first, second)
    torch.manual_seed(1)
    assert torch.equal(draw(), first)
    torch.manual_seed(1)
    assert torch.equal(torch.rand(1000, device=DEVICE).cpu(), first)


def test_a_users_generator_is_captured_too(stream):
    generator = torch.Generator(DEVICE).manual_seed(5)
    graph, noise = capture(lambda: torch.randn(10, device=DEVICE, generator=generator), stream)
    graph.replay()
    expected = torch.randn(10, device=DEVICE, generator=torch.Generator(DEVICE).manual_seed(5))
    assert torch.equal(noise.cpu(), expected.cpu())
    before = generator.get_offset()
    graph.replay()
    assert generator.get_offset() > before


@pytest.mark.covers("generator.philox_state")
@pytest.mark.skipif(not hasattr(torch.Generator, "philox_state"), reason="came with PyTorch 2.14")
def test_a_reserved_place_in_the_sequence_moves_with_each_replay(stream):
    generator = torch.openreg.default_generators[0]
    graph, (seed, offset, within) = capture(lambda: generator.philox_state(8), stream)
    assert (seed.device, offset.device, within.device) == (generator.device, generator.device, torch.device("cpu"))
    torch.manual_seed(3)
    places = []
    for _ in range(3):
        graph.replay()
        places.append((seed.item(), offset.item() + within.item()))
    assert places == [(3, 0), (3, 8), (3, 16)]


def test_replays_on_two_streams_follow_one_another(stream):
    counter = torch.zeros(1, device=DEVICE)
    graph, noise = capture(lambda: (counter.add_(1), torch.rand(4, device=DEVICE))[1], stream)
    other = torch.Stream(DEVICE)
    for _ in range(20):
        with stream:
            graph.replay()
        with other:
            graph.replay()
    torch.accelerator.synchronize()
    assert counter.item() == 40
    assert noise.cpu().unique().numel() > 1


def fall_back(x):
    with torch.openreg.fallback_operators("aten::flip"):
        x.flip(0)


REFUSED = {
    "item": (lambda x: x.sum().item(), r"Tensor.item\(\) .*captured"),
    "to the host": (lambda x: x.cpu(), r"\.cpu\(\).*captured"),
    "from pageable memory": (lambda x: x.copy_(torch.ones(8)), "pageable memory"),
    "fallback": (fall_back, "aten::flip .*captured"),
    "stream synchronize": (lambda x: torch.accelerator.current_stream().synchronize(), "capturing"),
    "device synchronize": (lambda x: torch.accelerator.synchronize(), "device"),
    "seed": (lambda x: torch.openreg.manual_seed(3), "capturing"),
    "random state": (lambda x: torch.openreg.get_rng_state(), "capturing"),
}


@pytest.mark.covers("graph.capture_begin")
@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_captured_is_refused_with_the_reason(name, stream):
    function, message = REFUSED[name]
    x = torch.ones(8, device=DEVICE)
    with pytest.raises(RuntimeError, match=message), torch.openreg.graph(torch.openreg.Graph(), stream=stream):
        function(x)
    assert not stream.is_capturing()
    assert (x + 1).sum().item() == 16  # the device and the stream work on


@pytest.mark.covers("graph.instantiate")
def test_a_graph_is_used_in_the_right_order(stream):
    graph = torch.accelerator.Graph()
    for call in (graph.replay, graph.pool, graph.instantiate):
        with pytest.raises(RuntimeError, match="holds no capture"):
            call()
    with pytest.raises(RuntimeError, match="not capturing"):
        graph.capture_end()
    with stream, graph:
        torch.ones(4, device=DEVICE)
    with pytest.raises(RuntimeError, match="captured already"):
        graph.capture_begin()
    graph.reset()
    with stream, graph:
        y = torch.ones(4, device=DEVICE)
    graph.replay()
    assert y.sum().item() == 4


@pytest.mark.covers("module.is_current_stream_capturing", "guard.isStreamCapturing")
def test_streams_report_that_they_capture(stream):
    graph = torch.accelerator.Graph()
    assert not stream.is_capturing()
    with stream:
        with graph:
            assert stream.is_capturing()
            assert torch.openreg.is_current_stream_capturing()
        assert not torch.openreg.is_current_stream_capturing()


@pytest.mark.covers("graph.capture_end")
def test_side_streams_join_a_capture(stream):
    side = torch.Stream(DEVICE)
    x = torch.ones(4, device=DEVICE)

    def work():
        side.wait_stream(torch.accelerator.current_stream())
        with side:
            y = x * 3
        torch.accelerator.current_stream().wait_stream(side)
        return y + 1

    graph, result = capture(work, stream)
    x.fill_(2)
    graph.replay()
    assert result.cpu().tolist() == [7] * 4


def test_the_memory_of_a_graph_is_its_own(stream):
    x = torch.ones(1 << 16, device=DEVICE)
    graph, y = capture(lambda: (x + 1) * 2, stream)  # x + 1 is freed inside the pool
    graph.replay()
    others = [torch.full((1 << 16,), -1.0, device=DEVICE) for _ in range(20)]
    graph.replay()
    assert y.cpu().unique().tolist() == [4]
    assert all(other.cpu().unique().tolist() == [-1] for other in others)


@pytest.mark.covers("host_allocator.release_pool", "graph.reset")
def test_resetting_gives_the_memory_back(stream):
    def reserved():
        gc.collect()
        torch.accelerator.empty_cache()
        return torch.accelerator.memory_reserved()

    before = reserved()
    graph, y = capture(lambda: torch.ones(1 << 20, device=DEVICE) * 2, stream)
    assert reserved() >= before + (8 << 20)
    graph.reset()
    del y
    assert reserved() == before


@pytest.mark.covers("module.graph_pool_handle", "graph.pool")
def test_graphs_share_a_pool(stream):
    x = torch.ones(1 << 20, device=DEVICE)
    first, y = capture(lambda: x + 1, stream)
    second, z = capture(lambda: y * 2, stream, pool=first.pool())
    assert first.pool() == second.pool()
    first.replay()
    second.replay()
    assert z.cpu().unique().tolist() == [4]
    handle = torch.openreg.graph_pool_handle()
    third, _ = capture(lambda: x + 2, stream, pool=handle)
    assert tuple(third.pool()) == tuple(handle)


@pytest.mark.covers(
    "host_allocator.begin_allocate_to_pool",
    "host_allocator.end_allocate_to_pool",
    "caching_host_allocator.get_current_stream",
)
def test_pinned_memory_is_copied_by_each_replay(stream):
    source = torch.ones(16).pin_memory()
    target = torch.empty(16, device=DEVICE)
    graph, _ = capture(lambda: target.copy_(source, non_blocking=True), stream)
    source.fill_(7)
    graph.replay()
    torch.accelerator.synchronize()
    assert target.cpu().unique().tolist() == [7]


def test_graphs_work_on_every_device():
    with torch.openreg.device(1):
        x = torch.ones(4, device=DEVICE)
        graph, y = capture(lambda: x + 1, torch.Stream("openreg:1"))
    graph.replay()  # from device 0
    torch.openreg.synchronize(1)
    assert (y.device.index, y.cpu().tolist()) == (1, [2] * 4)
    assert torch.openreg.current_device() == 0


def test_a_graph_can_be_dropped_while_it_runs(stream, gate):
    x = torch.zeros(1, device=DEVICE)
    graph, _ = capture(lambda: x.add_(1), stream)
    gate.close(stream)
    with stream:
        graph.replay()
    del graph
    gc.collect()
    gate.open()
    stream.synchronize()
    assert x.item() == 1


@pytest.mark.covers("graph.enable_debug_mode", "graph.debug_dump")
def test_a_dump_draws_the_operators(stream, tmp_path):
    graph = torch.accelerator.Graph()
    graph.enable_debug_mode()
    with stream, graph:
        torch.ones(4, device=DEVICE).exp()
    graph.debug_dump(str(tmp_path / "graph.dot"))
    assert "exp" in (tmp_path / "graph.dot").read_text()
    with pytest.raises(ValueError, match="cannot be written"):
        graph.debug_dump(str(tmp_path / "missing" / "graph.dot"))


@pytest.mark.covers("module.graph")
def test_the_context_captures_on_a_side_stream():
    x = torch.ones(4, device=DEVICE)
    graph = torch.openreg.Graph()
    with torch.openreg.graph(graph):
        y = x + 1
    assert torch.accelerator.current_stream() == torch.openreg.default_stream()
    graph.replay()
    assert y.cpu().tolist() == [2] * 4


@pytest.mark.covers("module.Graph", "module.graph")
def test_an_exception_inside_ends_the_capture():
    graph = torch.openreg.Graph()
    with pytest.raises(KeyError), torch.openreg.graph(graph):
        raise KeyError("inside")
    assert not torch.openreg.is_current_stream_capturing()
    graph.reset()
    with torch.openreg.graph(graph):
        y = torch.ones(2, device=DEVICE)
    graph.replay()
    assert y.sum().item() == 2


@pytest.mark.covers("caching_host_allocator.stream_is_capturing")
def test_pinned_memory_may_come_and_go_in_a_capture(stream):
    targets = [torch.empty(16, device=DEVICE) for _ in range(3)]

    def work():
        for value, target in enumerate(targets):
            source = torch.full((16,), float(value), pin_memory=True)
            target.copy_(source, non_blocking=True)
            del source  # the graph reads it at each replay, so nothing may reuse it

    graph, _ = capture(work, stream)
    for _ in range(2):
        graph.replay()
        torch.accelerator.synchronize()
        assert [target.cpu().unique().tolist() for target in targets] == [[0], [1], [2]]


def test_pinned_memory_of_before_may_go_in_a_capture(stream):
    held = [torch.full((16,), 5.0, pin_memory=True)]
    target = torch.empty(16, device=DEVICE)

    def work():
        target.copy_(held[0], non_blocking=True)
        held.clear()

    graph, _ = capture(work, stream)
    other = torch.full((16,), 7.0, pin_memory=True)
    graph.replay()
    torch.accelerator.synchronize()
    assert target.cpu().unique().tolist() == [5]
    assert other.unique().tolist() == [7]


def test_a_graph_whose_replay_was_skipped_serves_after_the_reset(stream):
    graph, noise = capture(lambda: torch.rand(4, device=DEVICE), stream)
    graph.replay()
    drawn = noise.cpu()
    try:
        # The replay itself raises where its first kernel has failed by then.
        with torch.openreg.inject_faults("launch:1"), pytest.raises(torch.AcceleratorError):  # noqa: PT012
            graph.replay()
            torch.accelerator.synchronize()
    finally:
        torch.openreg.reset_device()
    graph.replay()
    assert not torch.equal(noise.cpu(), drawn)
