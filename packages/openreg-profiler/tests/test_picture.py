# SPDX-License-Identifier: BSD-3-Clause
"""Pictures of short parts of a trace show its tasks, waits, arrows and memory, as read from the SVG."""

import re

import pytest
import torch
from profiles import profiled
from torch.profiler import record_function

from openreg_profiler import __main__ as command
from openreg_profiler import picture
from openreg_testing.plugin.gate import Gate

pytest.importorskip("matplotlib", reason="matplotlib, which draws the pictures, is not installed")


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    x, side = torch.ones(256, 256, device="openreg"), torch.openreg.Stream()
    torch.openreg.profiler.name_stream(side, "loader")
    torch.openreg.synchronize()
    gate = Gate()
    gate.close(side)  # until the host has enqueued everything, slow as it may be; before the profile, which lacks it
    try:
        with profiled(tmp_path_factory.mktemp("trace"), profile_memory=True) as found:
            with record_function("first"), torch.openreg.stream(side):
                torch.openreg._sleep(100_000_000)  # wide enough for the names of the pause and of the wait
                x.mul(2)
            torch.openreg.current_stream().wait_stream(side)
            with record_function("second"):
                x.exp()
            gate.open()
            torch.openreg.synchronize()
    finally:
        gate.end()
    torch.openreg.profiler.name_stream(side, "")
    return found[0].trace


def texts(path):
    """What matplotlib writes beside the outlines of each text."""
    return re.findall(r"<!-- (.*?) -->", path.read_text())


def test_streams_waits_arrows_and_memory_are_drawn(trace, tmp_path):
    path = tmp_path / "step.svg"
    assert command.main(["picture", str(trace.path), str(path)]) == 0
    shown = texts(path)
    for text in ("host", "default stream", "loader", "pause", "wait for loader", "KiB", "openreg:0"):
        assert text in shown, shown


def test_a_range_is_drawn_with_its_kernels_alone(trace, tmp_path):
    picture.draw(trace, tmp_path / "first.svg", within="first")
    begin, end = picture.stretch(trace, None, None, "first")
    (pause,) = [item for item in trace.work if item.name == "pause"]
    (last,) = [item for item in trace.work if item.name == "aten::exp"]
    assert begin < pause.begin < pause.end < end <= last.begin
    assert "loader" in texts(tmp_path / "first.svg")


def test_a_range_is_drawn_up_to_its_last_kernel_on_any_stream(tmp_path):
    x, streams = torch.ones(64, device="openreg"), (torch.openreg.Stream(), torch.openreg.Stream())
    torch.openreg.synchronize()
    with profiled(tmp_path) as found:
        for _ in range(2):
            with record_function("step"):
                with torch.openreg.stream(streams[0]):
                    x.exp()
                streams[1].wait_stream(streams[0])
                with torch.openreg.stream(streams[1]):
                    x.mul(2)
        torch.openreg.synchronize()
    _, end = picture.stretch(found[0].trace, None, None, "step")
    products = [item for item in found[0].trace.work if item.name == "aten::mul"]
    assert products[0].end <= end + 0.003
    assert end < products[1].begin


@pytest.mark.parametrize("suffix", ["png", "pdf"])
def test_other_formats(trace, tmp_path, suffix):
    path = tmp_path / f"step.{suffix}"
    picture.draw(trace, path)
    assert path.stat().st_size > 1000


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--range", "third"], "has no range 'third'"),
        (["--from", "2", "--to", "1"], "the stretch is empty"),
        (["--from", "100000", "--to", "100001"], "nothing of a device lies between"),
    ],
)
def test_stretches_that_cannot_be_drawn(trace, tmp_path, capsys, options, text):
    assert command.main(["picture", str(trace.path), str(tmp_path / "x.svg"), *options]) == 1
    assert text in capsys.readouterr().err


def test_an_unknown_format(trace, tmp_path, capsys):
    assert command.main(["picture", str(trace.path), str(tmp_path / "x.word")]) == 1
    assert "word" in capsys.readouterr().err


def test_too_much_for_one_picture_is_refused(trace, tmp_path, monkeypatch):
    monkeypatch.setattr(picture, "MOST", 2)
    with pytest.raises(picture.PictureError, match=r"has \d+ boxes, and a picture can show 2.*--range NAME"):
        picture.draw(trace, tmp_path / "x.svg")


def test_without_matplotlib_the_message_says_what_to_install(trace, tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
    with pytest.raises(picture.PictureError, match=r'pip install "openreg-profiler\[picture\]"'):
        picture.draw(trace, tmp_path / "x.svg")


def test_the_launch_of_a_graph_has_a_box_on_the_host(tmp_path):
    x = torch.ones(16, device="openreg")
    graph = torch.accelerator.Graph()
    with torch.Stream("openreg"), graph:
        x.exp().sqrt()
    with profiled(tmp_path) as found:
        graph.replay()
        torch.openreg.synchronize()
    path = tmp_path / "graph.svg"
    picture.draw(found[0].trace, path)
    assert "host" in texts(path)
    assert path.read_text().count(picture.COLORS["privateuse1_runtime"]) == 1


@pytest.mark.parametrize(("span", "unit"), [(500, "microseconds"), (50_000, "milliseconds")])
def test_times_have_a_unit_that_can_be_read(tmp_path, trace, span, unit):
    path = tmp_path / "step.svg"
    begin = (trace.work[0].begin - trace.begin) / 1000
    picture.draw(trace, path, begin=begin, end=begin + span / 1000)
    assert unit in texts(path)
