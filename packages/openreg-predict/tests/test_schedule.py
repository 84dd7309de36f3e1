# SPDX-License-Identifier: BSD-3-Clause
"""Predicted schedules of small programs equal schedules that were computed by hand. Seconds stand for any unit."""

import json

import pytest

from openreg_predict.schedule import Timeline, busy, write_trace

IN, OUT = "copy in", "copy out"


def overlap_without_order(t):
    t.launch("copy", 1, 4, IN)
    t.launch("kernel", 0, 3)
    return {"copy": (0, 4), "kernel": (0, 3)}, 4


def kernel_waits_for_a_copy(t):
    t.launch("copy", 1, 4, IN)
    t.wait(0, t.record(1))
    t.launch("kernel", 0, 3)
    return {"copy": (0, 4), "kernel": (4, 7)}, 7


def an_event_marks_only_what_was_before_it(t):
    t.launch("first", 1, 2, IN)
    place = t.record(1)
    t.launch("second", 1, 5, IN)
    t.wait(0, place)
    t.launch("kernel", 0, 3)
    return {"first": (0, 2), "second": (2, 7), "kernel": (2, 5)}, 7


def two_streams_share_the_compute_engine(t):
    t.launch("a", 0, 3)
    t.launch("b", 1, 3)
    t.launch("c", 0, 2)
    return {"a": (0, 3), "b": (3, 6), "c": (6, 8)}, 8


def double_buffering(t):
    for name in ("1", "2", "3"):
        t.launch(f"load {name}", 1, 2, IN)
        t.wait(0, t.record(1))
        t.launch(f"compute {name}", 0, 3)
    return {
        "load 1": (0, 2),
        "compute 1": (2, 5),
        "load 2": (2, 4),
        "compute 2": (5, 8),
        "load 3": (4, 6),
        "compute 3": (8, 11),
    }, 11


def double_buffering_with_one_buffer(t):
    done = None
    for name in ("1", "2"):
        t.wait(1, done)
        t.launch(f"load {name}", 1, 2, IN)
        t.wait(0, t.record(1))
        t.launch(f"compute {name}", 0, 3)
        done = t.record(0)
    return {"load 1": (0, 2), "compute 1": (2, 5), "load 2": (5, 7), "compute 2": (7, 10)}, 10


def both_directions_at_once(t):
    t.launch("in", 1, 4, IN)
    t.launch("out", 2, 4, OUT)
    t.launch("in again", 2, 1, IN)
    return {"in": (0, 4), "out": (0, 4), "in again": (4, 5)}, 5


def the_host_is_slower(t):
    for name in "abc":
        t.launch(name, 0, 1, host=2)
    return {"a": (2, 3), "b": (4, 5), "c": (6, 7)}, 7


def the_host_is_faster(t):
    for name in "abc":
        t.launch(name, 0, 3, host=1)
    return {"a": (1, 4), "b": (4, 7), "c": (7, 10)}, 10


def the_host_waits_for_an_event(t):
    t.launch("a", 0, 5, host=1)
    place = t.record(0)
    t.launch("b", 0, 5, host=1)
    t.synchronize(place)
    t.launch("copy", 1, 1, OUT, host=1)
    return {"a": (1, 6), "b": (6, 11), "copy": (7, 8)}, 11


def the_host_waits_for_the_device(t):
    t.launch("a", 0, 5, host=1)
    t.launch("copy", 1, 2, IN, host=1)
    t.synchronize_device()
    t.work_on_host(3)
    t.launch("b", 1, 1, host=1)
    return {"a": (1, 6), "copy": (2, 4), "b": (10, 11)}, 11


def backward_and_gradients_overlap(t):
    for layer in "321":
        t.launch(f"backward {layer}", 0, 3, host=1)
        t.wait(1, t.record(0))
        t.launch(f"reduce {layer}", 1, 5, OUT)
    t.wait(0, t.record(1))
    t.launch("optimizer", 0, 2, host=1)
    return {
        "backward 3": (1, 4),
        "reduce 3": (4, 9),
        "backward 2": (4, 7),
        "reduce 2": (9, 14),
        "backward 1": (7, 10),
        "reduce 1": (14, 19),
        "optimizer": (19, 21),
    }, 21


def work_launched_later_does_not_overtake(t):
    t.launch("long", 0, 10)
    t.launch("copy", 1, 4, IN)
    t.wait(2, t.record(1))
    t.launch("waits", 2, 1)
    t.synchronize(t.record(1))
    t.launch("late", 3, 1)
    return {"long": (0, 10), "copy": (0, 4), "waits": (10, 11), "late": (11, 12)}, 12


CASES = [value for value in list(globals().values()) if callable(value) and value.__module__ == __name__]


@pytest.mark.parametrize("program", CASES, ids=lambda case: case.__name__)
def test_a_schedule_is_as_by_hand(program):
    timeline = Timeline()
    expected, end = program(timeline)
    assert timeline.finish() == end
    assert {item.name: (item.begin, item.end) for item in timeline.slices} == expected


def test_a_trace_has_what_the_schedule_has(tmp_path):
    timeline = Timeline()
    expected, _ = double_buffering(timeline)
    timeline.finish()
    path = tmp_path / "trace.json"
    write_trace(timeline, path, "a chip")
    events = json.loads(path.read_text("utf-8"))["traceEvents"]
    found = {event["name"]: (event["ts"], event["ts"] + event["dur"]) for event in events if event["ph"] == "X"}
    assert found == {name: (begin * 1e6, end * 1e6) for name, (begin, end) in expected.items()}
    starts = {event["id"] for event in events if event["ph"] == "s"}
    assert starts == {event["id"] for event in events if event["ph"] == "f"}
    assert len(starts) == len(expected)


def test_the_engines_time_is_added_up():
    timeline = Timeline()
    double_buffering(timeline)
    timeline.finish()
    assert busy(timeline) == {"compute": 9, IN: 6}
