# SPDX-License-Identifier: BSD-3-Clause
"""Correct programs are silent: training, captured steps, interleaved columns, pinned loaders, threads."""

import random
import threading

import pytest
import torch

from openreg_sanitizer import _C


@pytest.fixture(autouse=True)
def silent():
    with torch.openreg.sanitizer("collect") as session:
        yield session
        torch.openreg.synchronize()
    assert [(finding.kind, finding.places) for finding in session.findings] == []


def network():
    return torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4)).to("openreg")


@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW, torch.optim.RMSprop])
def test_training(optimizer):
    model = network()
    steps = optimizer(model.parameters(), lr=0.01)
    for _ in range(3):
        steps.zero_grad()
        torch.nn.functional.cross_entropy(
            model(torch.randn(4, 8).to("openreg")), torch.randint(0, 4, (4,)).to("openreg")
        ).backward()
        steps.step()


def test_a_transformer_layer():
    layer = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True).to("openreg")
    layer(torch.randn(2, 5, 16).to("openreg")).sum().backward()


def test_a_convolutional_network():
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU()).to("openreg")
    for _ in range(2):
        model(torch.randn(2, 3, 8, 8).to("openreg")).mean().backward()


def test_interleaved_columns():
    side = torch.openreg.Stream()
    x = torch.zeros(64, 64, device="openreg")
    side.wait_stream(torch.openreg.current_stream())
    for column in range(0, 8, 2):
        with torch.openreg.stream(side):
            x[:, column].add_(1)
        x[:, column + 1].add_(2)
    torch.openreg.current_stream().wait_stream(side)
    assert x.sum().item() == 64 * 12


def test_a_prefetching_loader():
    side = torch.openreg.Stream()
    batches = [torch.full((256,), float(i)).pin_memory() for i in range(6)]
    total = torch.zeros((), device="openreg")
    following = None
    for batch in [*batches, None]:
        torch.openreg.current_stream().wait_stream(side)
        now = following
        if now is not None:
            now.record_stream(torch.openreg.current_stream())
        if batch is not None:
            with torch.openreg.stream(side):
                following = batch.to("openreg", non_blocking=True)
        if now is not None:
            total += now.sum()
    assert total.item() == 256 * 15


def test_a_captured_step():
    graph = torch.openreg.Graph()
    x = torch.zeros(256, device="openreg")
    with torch.openreg.graph(graph):
        y = (x * 2).exp() + x
    for i in range(3):
        x.fill_(i)
        graph.replay()
        z = y + 1
    torch.openreg.synchronize()
    assert z.isfinite().all()


def test_a_stream_that_was_polled():
    side = torch.openreg.Stream()
    x = torch.ones(256, device="openreg")
    side.wait_stream(torch.openreg.current_stream())
    with torch.openreg.stream(side):
        x.mul_(2)
    event = side.record_event()
    while not event.query():
        pass
    assert x.sum().item() == 512


def test_a_replay_follows_the_stream_that_it_is_launched_on():
    """A side stream that joins at the beginning of a capture waits for the launching stream in each replay, too."""
    x = torch.ones(4, device="openreg")
    side = torch.openreg.Stream()
    graph = torch.accelerator.Graph()
    with torch.openreg.stream(torch.openreg.Stream()), graph:
        side.wait_stream(torch.openreg.current_stream())
        with torch.openreg.stream(side):
            y = x * 3
        torch.openreg.current_stream().wait_stream(side)
        result = y + 1
    x.fill_(2)
    graph.replay()
    assert result.tolist() == [7] * 4


def test_threads_with_streams_of_their_own():
    def work():
        with torch.openreg.stream(torch.openreg.Stream()):
            x = torch.ones(256, device="openreg")
            for _ in range(5):
                x = x * 2
            torch.openreg.current_stream().synchronize()

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_pinned_memory_is_used_again():
    x = torch.ones(256, device="openreg")
    for i in range(4):
        host = torch.full((256,), float(i)).pin_memory()
        x.copy_(host, non_blocking=True)
        del host


def test_the_shadow_does_not_grow_with_the_steps():
    model = network()
    steps = torch.optim.Adam(model.parameters())

    def train(count):
        for size in range(count):
            model(torch.randn(1 + size % 7, 8).to("openreg")).sum().backward()
            steps.step()
        return _C.statistics()

    first, last = train(30), train(300)
    assert 0 < last["stacks"] <= 2 * first["stacks"]  # the garbage collector frees tensors at any line
    assert 0 < last["accesses"] <= 2 * first["accesses"]


def test_the_shadow_holds_no_more_accesses_than_the_program_made():
    side = torch.openreg.Stream()
    sizes = random.Random(2026)
    kept = []
    steps = 1600
    for _ in range(steps):
        with torch.openreg.stream(side):
            x = torch.ones(sizes.randint(1, 4096), device="openreg")
        torch.openreg.current_stream().wait_stream(side)
        kept.append(x + 1)
        x.record_stream(torch.openreg.current_stream())
        if len(kept) > 50:
            del kept[sizes.randrange(50)]  # so that blocks of memory are split and merged
    assert 0 < _C.statistics()["accesses"] <= 3 * steps  # a fill, a read and a write


INDEX = torch.tensor([0, 2, 1, 3])


@pytest.mark.parametrize(
    "select",
    [
        lambda c, i: c[i],
        lambda c, i: c.index_select(0, i),
        lambda c, i: c.gather(0, i[:, None].expand(4, 16)),
        lambda c, i: torch.nn.functional.embedding(i, c),
        lambda c, i: c.take(i),
        lambda c, _: c.flip(0),
        lambda c, _: c.roll(1, 0),
        lambda c, _: c.tril(),
        lambda c, _: c.repeat(2, 1),
        lambda c, _: torch.where(torch.zeros(8, 1, dtype=torch.bool, device=c.device), c, 0),
    ],
)
def test_a_cache_that_is_written_in_part_may_be_selected_from(select):
    cache = torch.empty(8, 16, device="openreg")
    cache[:4].fill_(1)
    select(cache, INDEX.to("openreg"))


def test_copies_between_devices():
    x = torch.ones(256, device="openreg")
    y = x.to("openreg:1", non_blocking=True) + 1
    z = y.to("openreg:0") + x
    x.zero_()
    assert z.sum().item() == 256 * 3


def test_data_dependent_operators():
    x = torch.arange(16.0).to("openreg")
    assert x[x > 7].nonzero().numel() == 8
    assert x.unique().sort().values.topk(3).values.sum().item() == 42
