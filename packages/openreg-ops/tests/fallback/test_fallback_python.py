# SPDX-License-Identifier: BSD-3-Clause
"""Operators whose CPU kernel is written in Python can use the fallback."""

import threading

import pytest
import torch
from parity import DEVICE


def test_a_kernel_in_python_runs_on_the_calling_thread(custom, gate):
    threads = []

    def double(x):
        threads.append(threading.get_ident())
        assert x.device.type == "cpu"
        return x * 2

    operation = custom("double(Tensor x) -> Tensor", double)
    x = torch.zeros(3, device=DEVICE)
    gate.close()
    x.fill_(4)
    gate.open_soon()
    y = operation(x)
    assert gate.is_open
    assert (y.device.type, y.cpu().tolist(), threads) == (DEVICE, [8] * 3, [threading.get_ident()])


def test_a_kernel_in_python_may_write_into_its_operand_or_return_it(custom):
    operation = custom("grow_(Tensor(a!) x) -> Tensor(a!)", lambda x: x.add_(1))
    x = torch.zeros(3, device=DEVICE)
    assert operation(x) is x
    assert x.cpu().tolist() == [1] * 3


def test_a_kernel_in_python_that_raises(custom):
    def fail(x):
        raise KeyError("no such thing")

    operation = custom("fail(Tensor x) -> Tensor", fail)
    with pytest.raises(KeyError, match="no such thing"):
        operation(torch.zeros(3, device=DEVICE))
    assert torch.ones(2, device=DEVICE).sum().item() == 2


def test_kernels_in_python_from_threads(custom):
    operation = custom("triple(Tensor x) -> Tensor", lambda x: x * 3)
    results = []

    def work():
        for _ in range(20):
            results.append(operation(torch.ones(3, device=DEVICE)).sum().item())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [9.0] * 80
