# SPDX-License-Identifier: BSD-3-Clause
"""Calls of several threads, as autograd makes them for several devices, are all recorded, and a storage counts once."""

import threading

import torch

from openreg_predict.trace import GRANULE, Memory, Recorder


def is_held(lock):
    """Whether another thread would have to wait for the lock."""
    taken = []

    def try_it():
        taken.append(lock.acquire(blocking=False))
        if taken[0]:
            lock.release()

    thread = threading.Thread(target=try_it)
    thread.start()
    thread.join()
    return not taken[0]


def test_no_other_thread_can_take_the_index_of_a_call():
    held = []

    class Calls(list):
        def append(self, item):
            held.append(is_held(recorder._lock))
            super().append(item)

    recorder, indices = Recorder(), []
    recorder.calls = Calls()
    recorder.after_describe = indices.append
    x = torch.empty(4, device="meta")
    for _ in range(2):
        recorder.__torch_dispatch__(torch.ops.aten.neg.default, (), (x,))
    assert (indices, held) == ([0, 1], [True, True])
    assert [(call.name, call.work.kernels) for call in recorder.calls] == [("aten::neg", 1)] * 2


def test_no_other_thread_can_count_a_storage_meanwhile():
    held = []

    class Sizes(dict):
        def get(self, key):
            held.append(is_held(memory._lock))
            return super().get(key)

    memory = Memory("meta")
    memory._sizes = Sizes()
    x = torch.empty(4, device="meta")
    memory.track(x)
    memory.track(x)
    assert held == [True, True]
    assert (memory.now, memory.peak) == (GRANULE, GRANULE)
