# SPDX-License-Identifier: BSD-3-Clause
"""The doctor gives a report for any output of its child process, and wherever that process is killed.

The children here replay a recorded report without torch, so that one takes as long as Python needs to start.
"""

import json
from dataclasses import replace

import pytest

from openreg_doctor import answers, checks, children, command, document, explanation, installed, table, terminal
from openreg_doctor.checks import autoload
from openreg_doctor.children import START_STEP, ChildResults
from openreg_doctor.examination import Examination, Order
from openreg_doctor.probes.request import Request

ROWS = ("guard.getDevice", "guard.record", "allocator.allocate", "registration.a backward pass")
NAMES = ("is_available", "Stream")
# The table with a few rows; the other rows are reported in the same way.
GROUPS = [
    replace(group, rows=tuple(row for row in group.rows if row.key in ROWS or row.name in NAMES))
    for group in table.read()
]
REQUEST = Request("toaster", ("colorsys",), ROWS, NAMES)
OPERATOR = Request("toaster", ("colorsys",), operator="aten::mm")
CASE = {"given": ["torch.float32"], "called": "aten::mm", "types": ["torch.float16"], "dtypes": []}
BEGINNING = [
    {
        "name": "import torch",
        "value": {
            "version": "2.13.0",
            "file": "torch/__init__.py",
            "backend": "toaster",
            "present": True,
            "accelerator": "toaster",
        },
    },
    {"name": "import colorsys", "value": "colorsys.py"},
    {"name": "device", "value": {"backend": "toaster", "module": True, "present": True}},
    {"name": "probe attributes", "value": {"is_available": "", "Stream": "missing"}},
    {"name": "probe initialize", "value": True},
]
OF_DEVICE = [
    *BEGINNING,
    {"name": "probe properties", "value": {"available": True, "count": 2, "devices": [{"name": "t", "memory": 3}]}},
    {
        "name": "probe operators",
        "value": {
            "operators": {"PrivateUse1": 3, "AutogradPrivateUse1": 0, "AutocastPrivateUse1": 1},
            "libraries": {"toaster": 3},
            "fallbacks": {"PrivateUse1": True, "AutogradPrivateUse1": False, "AutocastPrivateUse1": True},
        },
    },
    {"name": "probe guard.", "value": True},
    {"name": "probe guard.getDevice", "value": True},
    {"name": "probe guard.record", "error": "NotImplementedError: record", "cause": "ValueError: no stream"},
    {"name": "probe allocator.", "value": True},
    {"name": "probe allocator.allocate", "value": True},
    {"name": "probe registration.a backward pass", "unseen": "needs operators that make tensors"},
]
OF_OPERATOR = [
    *BEGINNING,
    {
        "name": "probe operator",
        "value": {
            "name": "aten::mm",
            "schema": "aten::mm(Tensor a, Tensor b) -> Tensor",
            "registered": "",
            "registrations": {"PrivateUse1": "registered at toaster.py:3 :: () -> ()"},
            "table": {"PrivateUse1": "registered at toaster.py:3 [kernel]", "AutocastPrivateUse1": "registered at x"},
            "others": {"aten::mm.out": {}},
        },
    },
    {"name": "probe autocast", "value": {"float32": CASE, "float16": CASE, "mixed": CASE}},
    {"name": "probe trial", "value": {"calls": ["aten::mm"], "shape": [2, 2], "autocast": {"torch.float32": "x"}}},
]


def lines_of(entries):
    """What a child writes: each line with its line break."""
    lines = [part for entry in entries for part in ({"begin": entry["name"]}, entry)]
    return [json.dumps(line).encode() + b"\n" for line in (*lines, {"finished": True})]


SHOWN = set()


def examined(outcome, request=REQUEST):
    """All that the doctor says where its children came to this, in the three forms in which it says it.

    What takes time is the form for a terminal, which is made of each section by itself: each is shown once.
    """
    order = Order(request.device, request.imports, request.operator)
    examination = Examination(order, GROUPS, outcome, ChildResults())
    try:
        explained = explanation.explain(examination) if request.operator else None
    except LookupError:  # the operator is none, which is wrong use
        explained = None
    report = document.DoctorReport("toaster", checks.run(examination), explained, ())
    sections = [section for section in report.sections if section not in SHOWN]
    SHOWN.update(sections)
    terminal.show(replace(report, sections=sections), verbose=True)
    return json.loads(document.render(report))


def outcome_of(data, request=REQUEST, status=0):
    """What the doctor takes from a child that wrote this."""
    return ChildResults(children._steps(answers.read(data, request), "", status, "its last words"))


@pytest.fixture(autouse=True)
def no_torch(monkeypatch):
    """Two findings need torch, or a child that imports it, and nothing of what the children here answer."""
    monkeypatch.setattr(installed, "all_distributions", dict)
    monkeypatch.setattr(autoload, "_call_entry_points", lambda examination: [])
    monkeypatch.setenv("TORCH_DEVICE_BACKEND_AUTOLOAD", "0")


@pytest.mark.parametrize("entries", [OF_DEVICE, OF_OPERATOR], ids=["device", "operator"])
def test_the_recorded_answers_have_the_form_that_is_expected(entries):
    """Otherwise the tests below would replace parts of answers that count for nothing anyway."""
    outcome = outcome_of(b"".join(lines_of(entries)), REQUEST if entries is OF_DEVICE else OPERATOR)
    expected = {entry["name"]: entry["value"] for entry in entries if "value" in entry}
    assert {name: outcome.value(name) for name in expected} == expected


# Killed


@pytest.mark.parametrize("entries", [OF_DEVICE, OF_OPERATOR], ids=["device", "operator"])
def test_whatever_byte_is_the_last_one_the_steps_before_it_count_and_the_end_is_reported(entries):
    request = REQUEST if entries is OF_DEVICE else OPERATOR
    whole = b"".join(lines_of(entries))
    for size in range(len(whole)):
        steps = outcome_of(whole[:size], request, status=-9).steps
        complete = whole[:size].count(b"\n")
        done = [entry["name"] for entry in entries[: complete // 2]]
        begun = entries[complete // 2]["name"] if complete % 2 and complete // 2 < len(entries) else ""
        ended = begun or (answers.END if done else START_STEP)
        assert list(steps) == [*done, ended]
        assert "signal SIGKILL: its last words" in steps[ended].ended.replace("signal 9", "signal SIGKILL")


REPLAY = """
import json, os, signal, sys
folder, report, request, known = sys.argv[1:]
lines = json.loads(os.environ["REPLAYED"])
place, stop = int(os.environ["KILLED_IN_LINE"]), float(os.environ["KILLED_AT"])
first = not os.path.exists(os.environ["KILLED"])
with open(report, "ab", buffering=0) as stream:
    for number, line in enumerate(lines):
        told = json.loads(line)
        if told.get("begin", told.get("name")) in json.loads(known):
            continue
        if first and number == place:
            open(os.environ["KILLED"], "w").close()
            stream.write(line[: int(len(line) * stop)].encode())
            os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))
        stream.write(line.encode())
os._exit(0)
"""
LINES = lines_of(OF_DEVICE)


# Behind one line is before the next.
KILLED = [(line, written) for line in range(len(LINES)) for written in (0, 0.5)] + [(len(LINES) - 1, 1)]


@pytest.mark.parametrize(("line", "written"), KILLED)
def test_a_child_that_is_killed_is_reported_with_all_else(monkeypatch, tmp_path, capsys, line, written):
    monkeypatch.setattr(children, "_START", REPLAY)
    monkeypatch.setenv("REPLAYED", json.dumps([each.decode() for each in LINES]))
    monkeypatch.setenv("KILLED_IN_LINE", str(line))
    monkeypatch.setenv("KILLED_AT", str(written))
    monkeypatch.setenv("KILLED", str(tmp_path / "killed"))
    arguments = ["--device", "toaster", "--import", "colorsys", "--json", "--timeout", "600"]
    code = command.main(arguments, "doctor")
    captured = capsys.readouterr()
    assert captured.err == ""
    told = json.loads(captured.out)
    assert code == (not told["healthy"])
    assert (tmp_path / "killed").exists()
    lost = [item for item in told["findings"] if "the process ended with s" in item["what"]]
    assert len(lost) == 1, told
    checks_of_probes = {"guard.getDevice", "allocator.allocate", "operators.fallback", "device.0"}
    seen = {item["check"] for item in told["findings"] if item["status"] == "ok"} & checks_of_probes
    if line > LINES.index(b'{"begin": "probe attributes"}\n'):  # another child went on behind the one that was lost
        assert len(checks_of_probes - seen) <= 1
    if line == len(LINES) - 1:
        assert seen == checks_of_probes


# Hostile answers


def mutated(value):
    """The same value with one part of it replaced, each part by everything that it should not be."""
    for other in (None, -1, 1e400, True, "", "\ud800\x1b[31m", "x" * 10**5, [], [[]], {}, {"": None}, {"name": {}}):
        yield other
    if isinstance(value, dict):
        for key, item in value.items():
            yield {name: part for name, part in value.items() if name != key}
            for other in mutated(item):
                yield {**value, key: other}
        yield {**value, "more": "\ud800"}
    if isinstance(value, list):
        for index, item in enumerate(value):
            for other in mutated(item):
                yield [*value[:index], other, *value[index + 1 :]]
        yield [*value, None]


@pytest.mark.parametrize("entries", [OF_DEVICE, OF_OPERATOR], ids=["device", "operator"])
def test_an_answer_of_another_form_is_reported(entries):
    request = REQUEST if entries is OF_DEVICE else OPERATOR
    tried = 0
    for place, entry in enumerate(entries):
        for hostile in mutated(entry):
            lines = lines_of(entries)
            lines[2 * place + 1] = json.dumps(hostile).encode() + b"\n"
            examined(outcome_of(b"".join(lines), request), request)
            tried += 1
    assert tried > 500


STRAY_LINES = {
    "no UTF-8": b"\xff\xfe\x00{",
    "no JSON": b'{"name": "probe guard."',
    "too deep": b"[" * 10**5,
    "a number of too many digits": b"1" * 10**5,
    "no object": b'["begin"]',
    "a step that was not requested": b'{"begin": "probe toast"}',
    "a name that is none": b'{"begin": {"begin": []}}',
    "a step that did not begin": b'{"name": "probe trial", "value": {"error": ""}}',
    "nothing": b"",
}


@pytest.mark.parametrize("kind", STRAY_LINES)
@pytest.mark.parametrize("place", [0, 5, len(LINES)])
def test_a_stray_line_is_reported_and_changes_no_answer(kind, place):
    line = STRAY_LINES[kind]
    outcome = outcome_of(b"".join([*LINES[:place], line + b"\n", *LINES[place:]]))
    right = outcome_of(b"".join(LINES))
    assert outcome.steps.keys() - right.steps.keys() == {answers.REPORT}
    assert {name: step for name, step in outcome.steps.items() if name != answers.REPORT} == right.steps
    problems = [item["check"] for item in examined(outcome)["findings"] if item["status"] == "problem"]
    assert "startup.report" in problems


def test_a_report_that_two_processes_write_counts_once():
    doubled = b"".join(line * 2 for line in LINES)
    assert outcome_of(doubled) == outcome_of(b"".join(LINES))


def test_a_text_is_cut_and_steers_no_terminal():
    entry = {"name": "import colorsys", "error": "\x1b[2J" + "x" * 10**6, "cause": "\ud800"}
    steps = outcome_of(b"".join(lines_of([BEGINNING[0], entry]))).steps
    assert len(steps["import colorsys"].error) < 5000
    assert "\x1b" not in steps["import colorsys"].error
    steps["import colorsys"].text.encode()


def test_a_child_that_ends_well_before_it_has_finished_is_reported():
    lines = LINES[:3]
    steps = outcome_of(b"".join(lines)).steps
    assert steps["import colorsys"].ended == "the process ended with status 0 before it had finished: its last words"


ENDLESS = """
import os, sys
name = {"report": sys.argv[2], "errors": "/dev/stderr"}[os.environ["ENDLESS"]]
with open(name if name != "/dev/stderr" else 2, "ab", buffering=0, closefd=name != "/dev/stderr") as stream:
    while True:
        stream.write(b"x" * 65536)
"""


@pytest.mark.parametrize("file", ["report", "errors"])
def test_a_child_that_writes_without_end_is_ended(monkeypatch, file):
    monkeypatch.setattr(children, "_START", ENDLESS)
    monkeypatch.setattr(answers, "MOST_BYTES", 1 << 20)
    monkeypatch.setattr(children, "_MOST_STANDARD_ERROR", 1 << 20)
    monkeypatch.setenv("ENDLESS", file)
    outcome = children.run(REQUEST, children.os.environ, 600)
    assert "wrote " in outcome.steps[START_STEP].ended


def test_a_child_that_takes_its_report_away_is_read_all_the_same(monkeypatch):
    gone = "import os, sys\nstream = open(sys.argv[2], 'ab')\n"
    gone += f"stream.write({b''.join(LINES)!r})\nstream.close()\nos.remove(sys.argv[2])\nos._exit(0)\n"
    monkeypatch.setattr(children, "_START", gone)
    outcome = children.run(REQUEST, children.os.environ, 600)
    assert outcome.value("probe guard.getDevice") is True


RENAMES = """
import contextlib, os
def rename():
    with contextlib.suppress(OSError):  # Windows refuses it, so that nothing is lost there
        os.rename(sys.argv[2], sys.argv[2] + ".moved")
child._StepRunner._import_torch = staticmethod(rename)
child._describe_backend = lambda device: {"backend": device, "module": True, "present": True}
child.main(*sys.argv[2:])
"""


def test_a_child_whose_report_is_renamed_goes_on_in_it(monkeypatch):
    monkeypatch.setattr(children, "_START", children._START.replace("child.main(*sys.argv[2:])", RENAMES))
    outcome = children.run(replace(REQUEST, probe=False), children.os.environ, 600)
    assert outcome.value("import colorsys").endswith("colorsys.py")
    assert outcome.value("device")["backend"] == "toaster"
    assert answers.END not in outcome.steps
