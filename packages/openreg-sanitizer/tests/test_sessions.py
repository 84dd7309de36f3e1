# SPDX-License-Identifier: BSD-3-Clause
"""Sessions beside a program: what was there before them, nested ones, and that they change nothing of the program."""

import io
import threading

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from openreg_sanitizer import SanitizerError, _session


def race():
    side = torch.openreg.Stream()
    x = torch.ones(1024, device="openreg")
    side.wait_stream(torch.openreg.current_stream())
    with torch.openreg.stream(side):
        x.mul_(2)
    y = x + 1
    torch.openreg.synchronize()
    return y


def kinds(session):
    return [finding.kind for finding in session.findings]


def test_a_second_block_finds_the_same_line_again(capfd):
    for _ in range(2):
        with torch.openreg.sanitizer() as session:
            race()
        assert kinds(session) == ["race"]
    assert capfd.readouterr().err.count("openreg-sanitizer: race:") == 2
    for _ in range(2):
        with pytest.raises(SanitizerError) as caught, torch.openreg.sanitizer("raise"):
            race()
        assert any(entry.name == "race" for entry in caught.traceback)


def test_a_block_has_what_happens_as_soon_as_the_native_part_runs(monkeypatch):
    """As by another thread. The first block starts the native part, and the inner one renews it."""

    def and_race(function):
        def both():
            function()
            race()

        return both

    monkeypatch.setattr(_session, "_start", and_race(_session._start))
    monkeypatch.setattr(_session._C, "renew", and_race(_session._C.renew))
    with torch.openreg.sanitizer("collect") as outer:
        assert kinds(outer) == ["race"]
        with torch.openreg.sanitizer("collect") as inner:
            assert kinds(inner) == ["race"]


def test_an_outer_block_writes_what_an_inner_one_has_collected(capfd):
    with torch.openreg.sanitizer() as outer, torch.openreg.sanitizer("collect"):
        race()
    assert kinds(outer) == ["race"]
    assert capfd.readouterr().err.count("openreg-sanitizer: race:") == 1


def test_a_suppressed_finding_of_a_thread_is_not_written(capfd):
    def work():
        with torch.openreg.sanitizer():
            side = torch.openreg.Stream()
            x = torch.ones(1024, device="openreg")
            side.wait_stream(torch.openreg.current_stream())
            with torch.openreg.stream(side):
                x.mul_(2)  # openreg-sanitizer: ignore
            _ = x + 1
            torch.openreg.synchronize()

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert "race" not in capfd.readouterr().err


def writers():
    return torch._C.PyTorchFileWriter.write_record, torch.UntypedStorage._write_file


def test_the_writers_of_storages_are_as_before_when_the_last_block_ends():
    before = writers()
    with torch.openreg.sanitizer("collect"):
        with torch.openreg.sanitizer("collect"):
            pass
        assert [now == old for now, old in zip(writers(), before, strict=True)] == [False, False]
    assert writers() == before
    assert "_write_file" not in vars(torch.UntypedStorage)


class Operators(TorchDispatchMode):
    """Notes the operators that the program calls."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(func.name())
        return func(*args, **(kwargs or {}))


def test_a_mode_of_the_program_sees_no_operator_of_the_sanitizer():
    host = torch.zeros(4).pin_memory()
    with torch.openreg.sanitizer("collect"), Operators() as mode:
        torch.save(host, io.BytesIO())
    assert mode.names == []


def test_a_file_that_was_saved_in_a_block_is_loaded():
    file = io.BytesIO()
    host = torch.arange(4.0).pin_memory()
    with torch.openreg.sanitizer("raise"), torch.device("openreg"):
        torch.save([host, torch.arange(3.0, device="openreg"), torch.zeros(0)], file)
    file.seek(0)
    loaded = torch.load(file, map_location="cpu")
    assert [item.tolist() for item in loaded] == [[0, 1, 2, 3], [0, 1, 2], []]


def test_variables_of_the_program_stay_as_they_are():
    def function():
        number = 1
        variables = locals()
        with torch.openreg.sanitizer("collect"):
            pass
        return number, variables

    number, variables = function()
    assert variables["number"] == number


class Proxy:
    """An object that must not be looked at."""

    @property
    def __class__(self):
        raise RuntimeError("looked at")


def test_no_code_of_the_program_runs():
    proxy = Proxy()
    with torch.openreg.sanitizer("collect") as session:
        race()
    assert kinds(session) == ["race"]
    del proxy


def test_a_graph_from_before_the_block_is_silent():
    graphs = [torch.openreg.Graph(), torch.openreg.Graph()]
    streams = [torch.openreg.Stream(), torch.openreg.Stream()]
    matrix = torch.zeros(64, 2, device="openreg")
    for column, graph in enumerate(graphs):
        with torch.openreg.graph(graph):
            matrix[:, column].fill_(column)
            result = matrix[:, column] * 2
    torch.openreg.synchronize()
    with torch.openreg.sanitizer("collect") as session:
        for graph, stream in zip(graphs, streams, strict=True):
            with torch.openreg.stream(stream):
                graph.replay()
        torch.openreg.synchronize()
        del result
        graphs[1].replay()
    assert session.findings == []


def test_memory_that_another_stream_still_uses_keeps_its_values():
    """A wait after the release, and before the first use of the new tensor, is in time."""
    side = torch.openreg.Stream()
    with torch.openreg.sanitizer("collect") as session:
        x = torch.ones(4096, device="openreg")
        side.wait_stream(torch.openreg.current_stream())
        gate = torch.openreg.Event()
        with torch.openreg.stream(side):
            torch.openreg._sleep(20_000_000)
            y = x * 2
            gate.record()
        del x
        z = torch.empty(4000, device="openreg")
        torch.openreg.current_stream().wait_stream(side)
        z.fill_(1)
        torch.openreg.synchronize()
    assert session.findings == []
    assert y.sum().item() == 2 * 4096


def test_an_allocation_that_waits_for_memory_orders_nothing():
    """The caching allocator synchronizes the device before it gives up; no program may rely on that."""
    side = torch.openreg.Stream()
    fraction = torch.openreg.get_per_process_memory_fraction()
    total = torch.openreg.mem_get_info()[1]
    torch.openreg.set_per_process_memory_fraction((64 << 20) / total)
    try:
        with torch.openreg.sanitizer("collect") as session:
            x = torch.ones(1024, device="openreg")
            cached = torch.empty(10 << 20, device="openreg")
            torch.openreg.synchronize()
            with torch.openreg.stream(side):
                x.mul_(2)
            del cached
            large = torch.empty(13 << 20, device="openreg")
            _ = x + 1
            del large
        assert kinds(session) == ["race"]
    finally:
        torch.openreg.set_per_process_memory_fraction(fraction)


def test_a_compiled_function_runs_in_a_block_that_raises():
    with torch.openreg.sanitizer("raise"):
        result = torch.compile(lambda x: x + 1, backend="eager", fullgraph=True)(torch.ones(3, device="openreg"))
    assert result.cpu().tolist() == [2.0, 2.0, 2.0]
