# SPDX-License-Identifier: BSD-3-Clause
"""The record of what `x + y` passes: read from callgrind, and shown by a page."""

import pytest

from tools import trace
from tools.packages import ROOT, discover
from tools.passed_files import Part, RecordError, read, summary, table

PACKAGES = discover(ROOT)
LICENCE = "SPDX-License-Identifier: BSD-3-Clause"
LAUNCH = "packages/openreg-runtime/include/openreg/runtime/launch.h"
ADD = "packages/openreg-ops/csrc/module.cpp"
ENGINE = "packages/openreg-runtime/csrc/driver/engine.cpp"


def dump(event, *lines):
    return "\n".join(["# callgrind format", f"desc: Trigger: {event}", "positions: line", *lines, ""])


# A function of ops that has launch.h's code inlined, calls one of torch's, and goes on.
HOST = (
    "fl=(1) openreg-ops/csrc/module.cpp",
    "fn=(1) add",
    "10 5",
    "+1 3",
    "fi=(2) /venv/site-packages/openreg_runtime/include/openreg/runtime/launch.h",
    "47 2",
    "fe=(1)",
    "cfi=(3) aten/native.cpp",
    "cfn=(2) native",
    "calls=1 4",
    "* 1000",
    "-1 1",
    "fl=(3)",
    "fn=(2)",
    "4 1000",
)
DEVICE = ("fl=(1) openreg-runtime/csrc/driver/engine.cpp", "fn=(1) run", "7 9")


def test_instructions_are_those_of_the_file_itself_and_files_of_others_are_left_out(capsys):
    found = trace.instructions_by_file(dump("x", *HOST))
    header = "/venv/site-packages/openreg_runtime/include/openreg/runtime/launch.h"
    assert found == {"openreg-ops/csrc/module.cpp": 9, header: 2, "aten/native.cpp": 1000}
    assert trace.repository_files(found, PACKAGES) == {ADD: 9, LAUNCH: 2}
    with pytest.raises(SystemExit):
        trace.instructions_by_file("fl=without a number")
    assert "fl=without a number" in capsys.readouterr().err


def test_the_host_counts_until_it_has_returned_and_the_device_until_it_is_idle(tmp_path):
    for name, event, lines in [
        (".1-01", "Client Request: submitted", HOST),
        (".2-03", "Client Request: complete", DEVICE),
        (".10-01", "Client Request: returned", HOST[:3]),
        ("-01", "Program termination", HOST),
        ("-02", "Program termination", ()),
        ("-03", "Program termination", DEVICE),
    ]:
        (tmp_path / f"{trace.RECORDS}{name}").write_text(dump(event, *lines), "utf-8")
    (tmp_path / trace.RECORDS).touch()  # callgrind makes sure that it may write
    assert trace.parts(tmp_path, PACKAGES) == [
        Part("host", "submitted", {ADD: 9, LAUNCH: 2}),
        Part("device", "complete", {ENGINE: 9}),
        Part("host", "returned", {ADD: 5}),
        Part("device", "idle", {ENGINE: 9}),
    ]


def test_what_only_observers_pass_is_left_out():
    observed = [Part("host", "submitted", {ADD: 9, LAUNCH: 2}), Part("device", "complete", {LAUNCH: 1})]
    plain = [Part("host", "returned", {LAUNCH: 2}), Part("device", "idle", {ENGINE: 1})]
    assert [part.files for part in trace.without_observers(observed, plain)] == [{LAUNCH: 2}, {}]


def test_a_file_says_what_it_is_itself_or_its_header_does(tmp_path):
    folder = tmp_path / "packages" / "a" / "csrc"
    folder.mkdir(parents=True)
    for name, text in {
        "x.h": f"// {LICENCE}\n// What waits\n// here. And more.\n",
        "x.cpp": f'// {LICENCE}\n#include "x.h"\n',
        "y.h": f"/* {LICENCE} */\n/*\n * In C | or not.\n *\n * More.\n */\n",
        "z.h": "int z;\n\n// The first class.\ntemplate <class T>\nclass Z {};\n",
        "z.cpp": f"// {LICENCE}\n// REAL HW: a register.\nint z;\n",
        "w.cpp": "int w;\n",
    }.items():
        (folder / name).write_text(text, "utf-8")
    files = ("w.cpp", "x.cpp", "x.h", "y.h", "z.cpp")
    part = Part("host", "returned", {f"packages/a/csrc/{name}": 1 for name in files})
    rows = table(part, tmp_path, lambda name: name.rpartition("/")[2]).splitlines()
    assert rows[2:] == [
        "| w.cpp |  | 1 |",
        "| x.cpp | What waits here. | 1 |",
        "| x.h | What waits here. | 1 |",
        r"| y.h | In C \| or not. | 1 |",
        "| z.cpp | The first class. | 1 |",
    ]
    (folder / "w.cpp").unlink()
    with pytest.raises(RecordError, match=r"packages/a/csrc/w\.cpp is gone.*nox -s trace"):
        table(part, tmp_path, str)


def test_a_file_counts_once_however_many_parts_pass_it():
    header = ENGINE.replace(".cpp", ".h")
    parts = [Part("host", "returned", {ADD: 1, LAUNCH: 1, header: 1}), Part("device", "idle", {LAUNCH: 1, ENGINE: 1})]
    assert summary(parts).splitlines()[2:] == [
        "| packages/openreg-ops/csrc | 1 | 0 | 1 |",
        "| packages/openreg-runtime/csrc/driver | 1 | 1 | 1 |",
        "| packages/openreg-runtime/include/openreg/runtime | 0 | 1 | 1 |",
        "| together | 2 | 2 | 3 |",
    ]


def test_the_record_names_files_of_the_repository():
    parts = read(ROOT)
    assert parts
    assert not [name for part in parts for name in part.files if not (ROOT / name).is_file()]
