# SPDX-License-Identifier: BSD-3-Clause
"""Calls of several threads, as autograd makes them for several devices, are all recorded, and a storage counts once."""

import contextlib
import threading

import torch

from openreg_predict.trace import GRANULE, Memory, Recorder


class Meeting:
    """A place in the code where a thread waits for the other one, or for a moment if a lock keeps the other one out."""

    def __init__(self):
        self._barrier = threading.Barrier(2, timeout=0.5)

    def wait(self):
        with contextlib.suppress(threading.BrokenBarrierError):
            self._barrier.wait()


def in_two_threads(function):
    threads = [threading.Thread(target=function) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_calls_of_two_threads_have_an_index_each():
    meeting, x = Meeting(), torch.empty(4, device="meta")

    class Calls(list):
        def append(self, item):
            meeting.wait()
            super().append(item)

    recorder, indices = Recorder(), []
    recorder.calls = Calls()
    recorder.after_describe = indices.append
    in_two_threads(lambda: recorder.__torch_dispatch__(torch.ops.aten.neg.default, (), (x,)))
    assert sorted(indices) == [0, 1]
    assert [(call.name, call.work.kernels) for call in recorder.calls] == [("aten::neg", 1)] * 2


def test_a_storage_that_two_threads_use_counts_once():
    meeting, x = Meeting(), torch.empty(4, device="meta")

    class Sizes(dict):
        def get(self, key):
            found = super().get(key)
            meeting.wait()
            return found

    memory = Memory("meta")
    memory._sizes = Sizes()
    in_two_threads(lambda: memory.track(x))
    assert (memory.now, memory.peak) == (GRANULE, GRANULE)
