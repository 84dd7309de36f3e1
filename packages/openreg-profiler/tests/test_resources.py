# SPDX-License-Identifier: BSD-3-Clause
"""The use of engines, streams and memory in a part of a trace is right, with numbers that can be counted by hand."""

import io
import json

import pytest
import torch
from profiles import profiled
from rich.console import Console

from openreg_profiler import __main__ as command
from openreg_profiler import resources, trace


def entry(name, begin, duration, **changes):
    return {
        "ph": "X",
        "cat": "kernel",
        "name": name,
        "pid": 0,
        "tid": 0,
        "ts": begin,
        "dur": duration,
        "args": {"place": begin, "engine": "compute 0"},
        **changes,
    }


def allocation(time, size, total, thread=7):
    args = {"Device Type": 20, "Device Id": 0, "Total Allocated": total, "Total Reserved": 4096, "Bytes": size}
    return {"ph": "i", "name": "[memory]", "pid": 9, "tid": thread, "ts": time, "args": args}


@pytest.fixture
def made(tmp_path):
    """Two streams for 100 microseconds: one busy for 40 of them and waiting for 20, the other busy for 50."""
    operator = {"pid": 9, "tid": 7, "cat": "cpu_op", "args": {}}
    events = [
        {"ph": "M", "name": "process_name", "pid": 0, "tid": 0, "args": {"name": "openreg:0"}},
        {"ph": "M", "name": "thread_name", "pid": 0, "tid": 3, "args": {"name": "loader"}},
        entry("a", 0, 40),
        entry("wait for loader", 50, 20, cat="gpu_user_annotation", args={"place": 2}),
        entry("b", 20, 40, tid=3),
        entry(
            "Memcpy HtoD (Pageable -> Device)",
            90,
            10,
            tid=3,
            cat="gpu_memcpy",
            args={"place": 9, "bytes": 512, "engine": "copy 1"},
        ),
        entry("aten::outer", 0, 80, **operator),
        entry("aten::inner", 10, 20, **operator),
        entry("aten::later", 40, 20, **operator),
        allocation(15, 100, 1100),
        allocation(20, 50, 1150),
        allocation(22, 500, 1650, thread=8),
        allocation(25, -150, 1500),
        allocation(50, 300, 1800),
    ]
    path = tmp_path / "made.json"
    path.write_text(json.dumps({"traceEvents": events}))
    return trace.read(path)


def test_engines_are_busy_while_any_stream_uses_them(made):
    found = resources.measure(made, bins=10)
    assert found.span == 100
    compute, copy = found.engines
    assert (compute.name, compute.tasks, compute.busy, compute.utilization) == ("compute 0", 2, 60, 0.6)
    assert compute.over_time == [1, 1, 1, 1, 1, 1, 0, 0, 0, 0]
    assert (copy.name, copy.busy, copy.over_time[-1]) == ("copy 1", 10, 1)


def test_a_stream_is_busy_waits_or_is_idle(made):
    times = {item.name: (item.busy, item.waiting, item.idle) for item in resources.measure(made).streams}
    assert times == {"stream 0": (40, 20, 40), "loader": (50, 0, 50)}


def test_copies_are_summed(made):
    (copies,) = resources.measure(made).copies
    assert (copies.count, copies.size, copies.time) == (1, 512, 10)


def test_memory_grows_in_the_operators_that_allocate_it(made):
    found = resources.measure(made)
    assert found.peak_memory == {0: 1800}
    # What another thread allocates meanwhile moves the level, and is no growth of the operator by itself.
    assert {peak.name: peak.growth for peak in found.peaks} == {
        "aten::outer": 800,
        "aten::inner": 500,
        "aten::later": 300,
    }


def test_tables_and_json_have_the_same(made, capsys):
    output = io.StringIO()
    resources.show(resources.measure(made), Console(width=120, file=output))
    text = output.getvalue()
    for part in ("compute 0", "60.0%", "loader", "512", "aten::outer", "at most 1,800 bytes"):
        assert part in text
    assert command.main(["resources", str(made.path), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["engines"][0]["utilization"] == 0.6
    assert document["peak_memory"] == {"0": 1800}


def test_counters_are_in_the_trace_that_is_written(made, tmp_path):
    assert command.main(["counters", str(made.path), str(tmp_path / "out.json")]) == 0
    document = json.loads((tmp_path / "out.json").read_text())
    counters = [event for event in document["traceEvents"] if event["ph"] == "C"]
    assert {(event["name"], *event["args"]) for event in counters} == {
        ("busy %", "compute 0"),
        ("busy %", "copy 1"),
        ("memory", "allocated bytes"),
        ("memory", "reserved bytes"),
    }
    assert [event["args"]["allocated bytes"] for event in counters if "allocated bytes" in event["args"]] == [
        1100,
        1150,
        1650,
        1500,
        1800,
    ]
    assert trace.read(tmp_path / "out.json").work == made.work


def test_of_a_real_program(tmp_path):
    model = torch.nn.Linear(32, 32).to("openreg")
    data = torch.ones(8, 32)
    torch.openreg.synchronize()
    with profiled(tmp_path, profile_memory=True, with_stack=True) as found:
        model(data.to("openreg"))
        torch.openreg._sleep(5_000_000)
    (found,) = found
    measured = resources.measure(found.trace)
    (copies,) = measured.copies
    assert copies.size == 8 * 32 * 4
    (stream,) = measured.streams
    assert stream.busy >= 5_000
    assert stream.busy + stream.waiting + stream.idle == pytest.approx(measured.span)
    growth = {(peak.kind, peak.name): peak.growth for peak in measured.peaks}
    assert growth["operator", "aten::linear"] == growth["module", "Linear_0"] == 8 * 32 * 4
