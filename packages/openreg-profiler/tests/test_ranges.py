# SPDX-License-Identifier: BSD-3-Clause
"""The ranges, marks and stream names of torch.openreg.profiler appear in the trace."""

import threading

import pytest
import torch
from profiles import check, profiled

from openreg_profiler import profiler

pytestmark = pytest.mark.every_subset


@pytest.fixture
def x():
    x = torch.ones(4, device="openreg")
    torch.openreg.synchronize()
    return x


@pytest.mark.covers("module.profiler")
def test_ranges_are_on_the_host_and_on_the_device(x, tmp_path):
    with profiled(tmp_path) as found:
        assert profiler.push("outer") == 0
        x.add(1)
        assert profiler.push("inner") == 1
        x.mul(2)
        assert profiler.pop() == 1
        assert profiler.pop() == 0
        with torch.openreg.profiler.range("block"):
            x.exp()
        profiler.mark("here")
    (found,) = found
    check(found)
    host = {item.name for item in found.trace.host if item.category == "user_annotation"}
    assert host == {"outer", "inner", "block", "here"}
    assert {item.name for item in found.trace.ranges} == {"outer", "inner", "block"}


def test_an_exception_ends_a_range(x, tmp_path):
    with profiled(tmp_path) as found:
        with pytest.raises(ValueError, match="mine"), profiler.range("broken"):
            raise ValueError("mine")
        with pytest.raises(RuntimeError):
            profiler.pop()
        x.add(1)
    assert [item.name for item in found[0].trace.host if item.category == "user_annotation"] == ["broken"]
    assert found[0].trace.ranges == []


def test_each_thread_has_its_own(x):
    depths = []
    profiler.push("main")
    thread = threading.Thread(target=lambda: depths.append((profiler.push("other"), profiler.pop())))
    thread.start()
    thread.join()
    assert depths == [(0, 0)]
    assert profiler.pop() == 0


def test_a_pop_without_a_push_is_refused():
    with pytest.raises(RuntimeError, match="no open range; call push"):
        profiler.pop()


def test_a_name_that_is_none_is_refused():
    with pytest.raises(TypeError, match="the name is a str, but got int"):
        profiler.push(7)


def test_a_stream_has_the_name_that_it_was_given_until_it_is_taken_back(x, tmp_path):
    stream = torch.openreg.Stream()
    names = []
    for name in ("copies of día", ""):
        torch.openreg.profiler.name_stream(stream, name)
        with profiled(tmp_path) as found:
            with torch.openreg.stream(stream):
                x.add(1)
            stream.synchronize()
        names += [item.name for item in found[0].trace.streams.values()]
    assert names[0] == "copies of día"
    assert names[1].startswith("stream ")


def test_what_is_no_stream_of_the_device_is_refused():
    with pytest.raises(TypeError, match="expected a stream of openreg, but got int"):
        torch.openreg.profiler.name_stream(7, "x")
    with pytest.raises(ValueError, match="quotation marks"):
        torch.openreg.profiler.name_stream(torch.openreg.current_stream(), 'a"b')
    with pytest.raises(ValueError, match="but got one of cpu"):
        torch.openreg.profiler.name_stream(torch.Stream(device="cpu"), "x")
