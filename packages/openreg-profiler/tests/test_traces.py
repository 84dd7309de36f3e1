# SPDX-License-Identifier: BSD-3-Clause
"""Every command reads valid traces, and refuses other files with their name and the fix."""

import gzip
import json

import pytest
import torch
from profiles import profiled
from torch.profiler import ProfilerActivity, profile

from openreg_profiler import __main__ as command
from openreg_profiler import trace


@pytest.fixture
def good(tmp_path):
    x = torch.ones(4, device="openreg")
    torch.openreg.synchronize()
    with profiled(tmp_path) as found:
        x.add(1)
    return found[0].trace.path


@pytest.fixture
def bad(tmp_path):
    """Writes the file to refuse."""

    def write(content):
        path = tmp_path / "bad.json"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def refused(path, text):
    with pytest.raises(trace.TraceFileError, match=text) as error:
        trace.read(path)
    assert str(path) in str(error.value)


def test_a_compressed_trace_is_read(good, tmp_path):
    path = tmp_path / "trace.json.gz"
    path.write_bytes(gzip.compress(good.read_bytes()))
    assert [item.name for item in trace.read(path).work] == ["aten::add"]


@pytest.mark.parametrize("part", [0.1, 0.5, 0.9, 0.999])
def test_a_trace_that_was_cut_off(good, bad, part):
    content = good.read_bytes()
    refused(bad(content[: int(len(content) * part)]), "was cut off|is not JSON")


def test_every_trace_that_was_cut_off_is_refused(good, bad):
    content = good.read_bytes().rstrip()
    for size in range(0, len(content) - 1, max(1, len(content) // 200)):
        with pytest.raises(trace.TraceFileError):
            trace.read(bad(content[:size]))


def test_a_compressed_trace_that_was_cut_off(good, bad):
    refused(bad(gzip.compress(good.read_bytes())[:-20]), "compressed and was cut off")


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("", "was cut off|is not JSON"),
        ("import torch\n", "is not JSON"),
        ("[1, 2]", "no list `traceEvents`"),
        ('{"traceEvents": 7}', "no list `traceEvents`"),
        ('{"traceEvents": []}', "has no work of an openreg device"),
        ('{"traceEvents": [7]}', "has an entry that no trace"),
        ('{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "x"}]}', "has an entry that no trace"),
        (b"\x80\x04pickle", "is not text"),
    ],
)
def test_a_foreign_file(bad, content, text):
    refused(bad(content), text)


def test_a_file_that_is_not_there(tmp_path):
    refused(tmp_path / "missing.json", "cannot be read: No such file")
    refused(tmp_path, "cannot be read")


def test_a_trace_of_the_host_alone(tmp_path):
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        torch.ones(3).add(1)
    profiler.export_chrome_trace(str(tmp_path / "host.json"))
    refused(tmp_path / "host.json", "has no work of an openreg device.*PrivateUse1")


def test_a_trace_of_another_device(good, bad):
    document = json.loads(good.read_text())
    for event in document["traceEvents"]:
        if event["name"] == "process_name" and event["args"]["name"].startswith("openreg"):
            event["args"]["name"] = "GPU 0"
    refused(bad(json.dumps(document)), "has no work of an openreg device")


@pytest.mark.parametrize(
    "arguments",
    [("view",), ("picture", "out.svg"), ("resources",), ("counters", "out.json")],
    ids=lambda arguments: arguments[0],
)
def test_every_command_says_what_is_wrong_and_ends(bad, arguments, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name, *rest = arguments
    assert command.main([name, str(bad('{"traceEvents": [')), *rest]) == 1
    assert capsys.readouterr().err.startswith(f"python -m openreg_profiler {name}: {tmp_path}/bad.json was cut off")
    assert not list(tmp_path.glob("out.*"))


WAY_OUT = "; name a file in a folder in which this process may write"


@pytest.mark.parametrize("arguments", [("picture", "missing/out.svg"), ("counters", "missing/out.json")])
def test_output_that_cannot_be_written_is_refused(good, arguments, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name, output = arguments
    assert command.main([name, str(good), output]) == 1
    reason = f"there is no folder {tmp_path / 'missing'}"
    assert f"{name}: {output} cannot be written: {reason}{WAY_OUT}\n" in capsys.readouterr().err
    assert command.main([name, str(good), str(tmp_path)]) == 1
    assert f"{name}: {tmp_path} cannot be written: it is a folder{WAY_OUT}\n" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [("picture", "out.svg"), ("counters", "out.json")])
def test_output_that_must_not_be_written_is_refused(good, arguments, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("os.access", lambda path, mode: False)  # a mode of the folder does not bind every user
    name, output = arguments
    assert command.main([name, str(good), output]) == 1
    message = f"{output} cannot be written: this process must not write there{WAY_OUT}"
    assert message in capsys.readouterr().err
