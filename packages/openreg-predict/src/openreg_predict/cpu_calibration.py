# SPDX-License-Identifier: BSD-3-Clause
"""Describes the CPU of this machine, on one thread, by measurements of single operators.

Operands rotate through buffers, so that they come from memory and not from caches. A sample is the median over rounds.
Each round runs all benchmarks, so that a disturbance of the machine does not affect one of them alone. The overhead of
PyTorch per call is measured with a tiny model.
"""

from __future__ import annotations

import itertools
import math
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.nn import functional

from openreg_predict import fit
from openreg_predict.description import Description, Quantity, load
from openreg_predict.trace import Recorder, trace
from openreg_predict.work import OperatorWork

# The bytes of the buffers through which an operator's operands rotate.
COLD = 64 * 2**20
ROUNDS = 5

# Processor time: on one thread it is the elapsed time without the time of other processes.
_now = time.process_time


@dataclass
class Benchmark:
    """An operator call with operands of one size. ``call`` takes the index of a copy of the operands."""

    name: str
    call: Callable[[int], object]
    copies: int
    is_arithmetic: bool = False


def measured(benchmarks: list[Benchmark], rounds: int = ROUNDS) -> list[fit.Sample]:
    """Measures the benchmarks and returns a sample for each.

    The work is that of the operator call with the most bytes, and the seconds are the median over the rounds.
    """
    works = [_work(item) for item in benchmarks]
    times: list[list[float]] = [[] for _ in benchmarks]
    for number in range(rounds + 1):
        for index, item in enumerate(benchmarks):
            calls = 1 if number == 0 or not times[index] else max(1, min(200, int(2e-3 / times[index][-1])))
            begin = _now()
            for call in range(calls):
                item.call((number * calls + call) % item.copies)
            seconds = (_now() - begin) / calls
            if number or not times[index]:
                times[index].append(seconds)
    return [
        fit.Sample(work, statistics.median(own[1:]), item.is_arithmetic)
        for work, own, item in zip(works, times, benchmarks, strict=True)
    ]


def _work(item: Benchmark) -> OperatorWork:
    """Returns the work of the operator call with the most bytes."""
    with Recorder() as recorder:
        item.call(0)
    return max((call.work for call in recorder.calls if call.work.kernels), key=lambda work: work.size)


def _copies(size: int) -> int:
    """Returns the number of copies of operands with ``size`` bytes that fill the buffers."""
    return max(1, min(64, COLD // size))


def _products() -> Iterator[Benchmark]:
    sizes = (32, 64, 128, 256, 512, 768)
    for rows, columns, depth in itertools.product(sizes, repeat=3):
        if max(rows, columns, depth) <= 8 * min(rows, columns, depth) and rows * columns * depth <= 2**27:
            copies = _copies(4 * (rows * depth + depth * columns))
            pairs = [(torch.randn(rows, depth), torch.randn(depth, columns)) for _ in range(min(copies, 8))]
            yield Benchmark("mm", lambda i, pairs=pairs: torch.mm(*pairs[i % len(pairs)]), len(pairs))  # type: ignore[misc]
    for batch, length, width in itertools.product((4, 16, 64), (32, 64, 128, 256), (16, 32, 64)):
        keys = [(torch.randn(batch, length, width), torch.randn(batch, width, length)) for _ in range(2)]
        scores = [(torch.randn(batch, length, length), torch.randn(batch, length, width)) for _ in range(2)]
        for own in (keys, scores):
            yield Benchmark("bmm", lambda i, own=own: torch.bmm(*own[i]), 2)  # type: ignore[misc]


def _convolutions() -> Iterator[Benchmark]:
    for batch, channels, out, side in itertools.product((4, 16), (8, 32, 64), (16, 64), (8, 16, 32)):
        images, layer = torch.randn(batch, channels, side, side), nn.Conv2d(channels, out, 3, padding=1)
        weight = layer.weight.detach()
        yield Benchmark("conv", lambda _, x=images, w=weight: functional.conv2d(x, w, padding=1), 1)  # type: ignore[misc]


def _movers() -> Iterator[Benchmark]:
    functions: dict[str, Callable[[Tensor, Tensor], object]] = {
        "add": torch.add,
        "mul": torch.mul,
        "relu": lambda x, _: torch.relu(x),
        "scale": lambda x, _: x * 0.5,
        "clone": lambda x, _: x.clone(),
        "transpose": lambda x, _: x.t().contiguous(),
        "sum": lambda x, _: x.sum(),
        "sum of columns": lambda x, _: x.sum(0),
        "mean of rows": lambda x, _: x.mean(1),
        "softmax": lambda x, _: torch.softmax(x, -1),
        "layer norm": lambda x, _: functional.layer_norm(x, (x.shape[1],)),
        "dropout": lambda x, _: torch.native_dropout(x, 0.1, True),
        "gelu": lambda x, _: functional.gelu(x),
        "tanh": lambda x, _: torch.tanh(x),
        "exp": lambda x, _: torch.exp(x),
        "sigmoid": lambda x, _: torch.sigmoid(x),
    }
    for rows, columns in ((16, 64), (64, 64), (64, 256), (256, 256), (256, 1024), (1024, 1024), (4096, 1024)):
        copies = _copies(8 * rows * columns)
        pairs = [(torch.randn(rows, columns), torch.randn(rows, columns)) for _ in range(copies)]
        for name, function in functions.items():
            yield Benchmark(
                name,
                lambda i, function=function, pairs=pairs: function(*pairs[i]),  # type: ignore[misc]
                copies,
                is_arithmetic=name in ("gelu", "tanh", "exp", "sigmoid"),
            )
        if columns >= 256:
            images = [left.view(rows // 16, 16, -1, 16) for left, _ in pairs]
            yield Benchmark(
                "batch norm",
                lambda i, x=images: functional.batch_norm(x[i], None, None, training=True),  # type: ignore[misc]
                copies,
            )
            yield Benchmark("max pool", lambda i, x=images: functional.max_pool2d(x[i], 2), copies)  # type: ignore[misc]
    for words, width, count in itertools.product((1000, 20000), (64, 256), (64, 512, 4096)):
        table, index = torch.randn(words, width), torch.randint(words, (count,))
        yield Benchmark("embedding", lambda _, t=table, i=index: functional.embedding(i, t), 1)  # type: ignore[misc]
    for size in (2**12, 2**16, 2**20):
        yield Benchmark("adam", _adam(size), 1)


def _adam(size: int) -> Callable[[int], object]:
    parameters = [nn.Parameter(torch.randn(size)) for _ in range(4)]
    for parameter in parameters:
        parameter.grad = torch.randn(size)
    optimizer = torch.optim.AdamW(parameters, fused=True)
    return lambda _: optimizer.step()


@contextmanager
def one_thread() -> Iterator[None]:
    """Runs PyTorch on one thread, and restores the previous number of threads on exit."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _peaks() -> tuple[float, float]:
    """Returns the highest FLOP/s of a matrix product, and the median bytes/s of a copy from memory to memory."""
    a, b = torch.randn(768, 768), torch.randn(768, 768)
    source = torch.randn(COLD // 4)
    target = torch.empty_like(source)
    products, copies = [], []
    torch.mm(a, b)
    for _ in range(3 * ROUNDS):
        begin = _now()
        torch.mm(a, b)
        middle = _now()
        target.copy_(source)
        products.append(2 * 768**3 / (middle - begin))
        copies.append(2 * COLD / (_now() - middle))
    return max(products), statistics.median(copies)


def tiny_step(device: str = "cpu") -> Callable[[], object]:
    """Returns a training step whose time is almost only the overhead of calls."""
    layers: list[nn.Module] = []
    for _ in range(8):
        layers += [nn.Linear(8, 8), nn.LayerNorm(8), nn.GELU()]
    model = nn.Sequential(*layers).to(device)
    batch = torch.ones(4, 8, device=device)

    def step() -> None:
        model.zero_grad()
        model(batch).sum().backward()

    return step


def seconds_of(step: Callable[[], object], rounds: int = 15, least: float = 5e-3) -> float:
    """Returns the median seconds of a step over rounds, each of which takes about ``least`` seconds or more."""
    step()
    begin = _now()
    step()
    calls = max(1, math.ceil(least / (_now() - begin)))
    found = []
    for _ in range(rounds):
        begin = _now()
        for _ in range(calls):
            step()
        found.append((_now() - begin) / calls)
    return statistics.median(found)


def _seconds_per_call() -> float:
    with torch.device("meta"):
        program = trace(tiny_step("meta"))
    calls = sum(call.work.kernels > 0 for call in program.calls)
    return seconds_of(tiny_step(), rounds=30) / calls


def describe(name: str) -> Description:
    """Measures and describes one thread of this machine's CPU. Takes about a minute on an idle machine."""
    with one_thread(), torch.no_grad():
        rate, bandwidth = _peaks()
        with torch.enable_grad():
            overhead = _seconds_per_call()
        base = load("cpu")
        chip = replace(
            base,
            name=name,
            title="One thread of this machine's processor",
            rates={
                ("vector", "float32"): Quantity(rate, "measured", "the best of a matrix product"),
                ("vector", "float64"): Quantity(rate / 2, "assumed", "half of float32"),
            },
            memory_bandwidth=Quantity(bandwidth, "measured", "a copy of 64 MiB"),
            launch_device=Quantity(overhead, "measured", "a tiny model, per operator"),
        )
        benchmarks = [*_products(), *_convolutions(), *_movers()]
        # The benchmarks run without autograd, so the overhead of their calls is measured separately.
        bare = replace(chip, launch_device=Quantity(_seconds_of_an_empty_call(), "measured"))
        found = fit.fit(bare, measured(benchmarks), "measured", "this machine")
    return replace(chip, efficiencies={**base.efficiencies, **found}, validations=())


def _seconds_of_an_empty_call() -> float:
    x = torch.ones(4)
    return seconds_of(lambda: x + x, least=1e-3)
