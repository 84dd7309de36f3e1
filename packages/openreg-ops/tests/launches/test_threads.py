# SPDX-License-Identifier: BSD-3-Clause
"""Host threads that launch at the same time get right results."""

import threading

import pytest
import torch
from parity import DEVICE

COUNT = 8


def run_threads(work):
    failures = []
    barrier = threading.Barrier(COUNT)

    def guarded(number):
        try:
            barrier.wait()
            work(number)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(COUNT)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures


@pytest.mark.no_fallback
def test_everybody_gets_their_own_results():
    def work(number):
        device = f"{DEVICE}:{number % 2}"
        x = torch.full((500,), float(number), device=device)
        for i in range(40):
            y = (x * 2 + i).view(20, 25) @ torch.ones(25, 4, device=device)
            if i % 10 == 0:
                assert y.cpu().unique().tolist() == [25 * (2.0 * number + i)]

    run_threads(work)


def test_streams_of_their_own():
    def work(number):
        with torch.openreg.stream(torch.openreg.Stream()):
            x = torch.zeros(100, device=DEVICE)
            for _ in range(100):
                x.add_(number)
            assert x.cpu().tolist() == [100.0 * number] * 100

    run_threads(work)


def test_training_in_threads():
    def work(number):
        device = f"{DEVICE}:{number % 2}"
        weight = torch.full((4, 4), 0.1, device=device, requires_grad=True)
        for _ in range(10):
            loss = torch.tanh(torch.ones(2, 4, device=device) @ weight).pow(2).sum()
            (gradient,) = torch.autograd.grad(loss, weight)
            weight.data.sub_(gradient, alpha=0.1)
        assert 0 < weight.mean().item() < 0.1

    run_threads(work)


def test_fallbacks_from_threads_are_all_counted():
    def work(number):
        for _ in range(20):
            x = torch.histc(torch.arange(5.0, device=DEVICE), 5)
            assert x.cpu().tolist() == [1.0] * 5

    with torch.openreg.fallback_operators("aten::histc"):
        run_threads(work)
    assert torch.openreg.fallback_stats()["aten::histc"].calls == COUNT * 20


def test_random_numbers_are_drawn_once():
    drawn = []

    def work(number):
        drawn.append([torch.randint(2**40, (50,), device=DEVICE).cpu() for _ in range(20)])

    run_threads(work)
    assert torch.cat([torch.cat(each) for each in drawn]).unique().numel() == COUNT * 20 * 50
