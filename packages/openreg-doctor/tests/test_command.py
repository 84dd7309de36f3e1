# SPDX-License-Identifier: BSD-3-Clause
"""The doctor's command line, output and exit status are as documented, and its parts fit the table of hooks."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from openreg_doctor import (
    checks,
    children,
    command,
    document,
    examination,
    explanation,
    table,
    terminal,
)
from openreg_doctor.examination import Examination, Order
from openreg_doctor.finding import Finding, Section
from openreg_doctor.probes import compiler, interfaces, operators, registrations
from openreg_doctor.probes.request import Request
from openreg_doctor.probes.unreachable import UNREACHABLE, needs_compiler

GROUPS = table.read()
KEYS = {row.key for group in GROUPS for row in group.rows if not row.status}


WRONG = [
    (("diagnose",), "unrecognized arguments: diagnose"),
    (("--color",), "unrecognized arguments: --color"),
    (("--color",), "usage: python -m openreg_doctor [-h] [--device NAME]"),
    (("--op", ""), "--op names no operator; give one, such as aten::add.Tensor"),
    (("--op", " "), "--op names no operator; give one, such as aten::add.Tensor"),
    (("--timeout", "soon"), "expected seconds up to 86400, got 'soon'"),
    (("--timeout", "-1"), "expected seconds up to 86400, got '-1'"),
    (("--device", "cuda"), "'cuda' is one of PyTorch's own devices"),
    (("--device", "cpu"), "'cpu' is one of PyTorch's own devices"),
    (("--device", "openreg:0"), "'openreg:0' is not the name of a device; give a name such as npu"),
    (("--device", ""), "'' is not the name of a device"),
    (("--import", "no_such_module"), "there is no module 'no_such_module' to import"),
    (("--import", "__main__"), "there is no module '__main__' to import"),
    (("--import", ".."), "there is no module '..' to import"),
]


@pytest.mark.parametrize(("arguments", "text"), WRONG)
def test_wrong_use_has_status_2_and_says_what_is_right(arguments, text, capsys):
    try:
        code = command.main(arguments, "python -m openreg_doctor")
    except SystemExit as exit_:
        code = exit_.code
    assert code == 2
    captured = capsys.readouterr()
    assert text in captured.err
    assert captured.out == ""


def test_the_command_does_not_import_torch():
    code = """
import runpy, sys
sys.argv = ["openreg_doctor", "--device", "cuda"]
try:
    runpy.run_module("openreg_doctor", run_name="__main__", alter_sys=False)
finally:
    assert "torch" not in sys.modules
"""
    outcome = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=240, check=False)
    assert outcome.returncode == 2, outcome.stderr
    assert "'cuda' is one of PyTorch's own devices" in outcome.stderr


@pytest.mark.parametrize(("device", "default"), [("", "the one that is installed"), ("kettle", "kettle")])
def test_the_help_shows_the_command_that_was_typed_and_the_default(device, default):
    shown = command.parser("python -m kettle doctor", device).format_help()
    assert shown.startswith("usage: python -m kettle doctor [-h]")
    assert f"(default: {default})" in " ".join(shown.split())
    assert "python -m kettle doctor --op aten::add.Tensor" in shown


@pytest.mark.parametrize("pattern", ["settings.OPENREG_POISN", "settings.OPENREG_POISON.*"])
def test_a_pattern_that_matches_no_check_is_mentioned_with_suggestions(pattern, capsys):
    sections = [Section("Settings", (Finding("settings.OPENREG_POISON", "ok", "0"), PROBLEM))]
    command._report_unmatched_patterns(("settings.*", "module.sync*", pattern), sections)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"doctor: --ignore {pattern!r} matches no check of this report; similar checks: ")
    assert "settings.OPENREG_POISON" in line


NAMES = [
    ("aten::add.Tensor", "aten::add.Tensor"),
    ("aten.add.Tensor", "aten::add.Tensor"),
    ("torch.ops.aten.add.Tensor", "aten::add.Tensor"),
    ("add.Tensor", "aten::add.Tensor"),
    ("torch.add", "aten::add.Tensor"),
    ("aten::add", "aten::add.Tensor"),
    ("torch.nn.functional.linear", "aten::linear"),
    ("aten::relu.default", "aten::relu"),
    (" relu ", "aten::relu"),
    ("vendor::spin", "vendor::spin.fast"),
    ("aten::all", ""),
    ("nonsense", ""),
    ("", ""),
    ("::", ""),
]
KNOWN = ["aten::add.Scalar", "aten::add.Tensor", "aten::add.out", "aten::linear", "aten::relu", "aten::relu.out"]
KNOWN += ["aten::all.dim", "aten::all.out", "vendor::spin.fast"]


@pytest.mark.parametrize(("asked", "meant"), NAMES)
def test_operators_are_found_in_any_usual_spelling(asked, meant):
    assert operators.choose(asked, KNOWN)[0] == meant


def test_several_overloads_of_equal_right_are_listed():
    text = explanation._suggest("aten::all", *[operators.choose("aten::all", KNOWN)[1], []])
    assert text == "--op: 'aten::all' has several overloads; give one of them: aten::all.dim, aten::all.out"


RULES = [
    ({"torch.float32": "torch.float16", "torch.float16": "torch.float16"}, "lower precision"),
    ({"torch.float32": "torch.float32", "torch.float16": "torch.float32"}, "float32"),
    ({"torch.float32": "torch.float32", "torch.float16": "torch.float16"}, "promote"),
    ({"torch.float32": "RuntimeError: unsafe", "torch.float16": "RuntimeError: unsafe"}, "refused"),
    ({}, "a rule that a call"),
]


@pytest.mark.parametrize(("results", "rule"), RULES)
def test_autocast_rules_are_known_by_the_types_of_results(results, rule):
    assert explanation._rule(results).startswith(rule)


def report(*findings, ignore=()):
    return document.DoctorReport("openreg", [Section("Section", findings)], None, ignore)


PROBLEM = Finding("module.synchronize", "problem", "torch.openreg.synchronize: missing", "users", "define it")


def test_the_json_document_has_its_schema():
    told = json.loads(document.render(report(PROBLEM, Finding("device.count", "ok", "2 available"))))
    assert list(told) == ["schema", "device", "healthy", "counts", "findings", "operator"]
    assert (told["schema"], told["device"], told["healthy"], told["operator"]) == (1, "openreg", False, None)
    assert told["counts"] == {"ok": 1, "note": 0, "unseen": 0, "warning": 0, "problem": 1, "ignored": 0}
    assert told["findings"][0] == {
        "check": "module.synchronize",
        "status": "problem",
        "what": "torch.openreg.synchronize: missing",
        "costs": "users",
        "fix": "define it",
        "chapter": "",
        "section": "Section",
        "ignored": False,
    }


def test_ignored_problems_do_not_count():
    told = json.loads(document.render(report(PROBLEM, ignore=("module.*",))))
    assert told["healthy"]
    assert told["counts"]["ignored"] == 1
    assert told["findings"][0]["ignored"]


@pytest.mark.parametrize("width", [20, 40, 200])
def test_narrow_terminals_cut_no_word_and_pad_no_line(width, monkeypatch, capsys):
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.setattr(terminal, "PIPED_WIDTH", width)
    terminal.show(report(PROBLEM), verbose=False)
    output = capsys.readouterr().out
    assert "\x1b" not in output
    words = [word for text in (PROBLEM.what, PROBLEM.fix, PROBLEM.check) for word in text.split()]
    assert all(word in "".join(output.split()) for word in words)
    assert all(line == line.rstrip() for line in output.splitlines())
    assert max(map(len, output.splitlines())) <= width


def test_a_terminal_gets_colors_and_its_own_width(monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "30")
    monkeypatch.delenv("NO_COLOR", raising=False)
    terminal.show(report(PROBLEM), verbose=False)
    assert "\x1b[1;31mPROBLEM" in capsys.readouterr().out
    monkeypatch.setenv("NO_COLOR", "1")
    terminal.show(report(PROBLEM), verbose=False)
    output = capsys.readouterr().out
    assert "\x1b[1;31m" not in output
    assert max(len(re.sub(r"\x1b\[[\d;]*m", "", line)) for line in output.splitlines()) <= 30


def test_what_is_as_it_should_be_is_counted_and_listed_on_request(capsys):
    healthy = report(Finding("module.synchronize", "ok", "torch.openreg.synchronize exists"))
    terminal.show(healthy, verbose=False)
    assert "1 as they should be" in capsys.readouterr().out
    terminal.show(healthy, verbose=True)
    output = capsys.readouterr().out
    assert "torch.openreg.synchronize exists" in output
    assert "openreg: no problem found" in output


MISSING = Finding("module.Stream", "warning", "no Stream", "fully_shard", "define it", "docs/runtime/streams.md")


def test_problems_come_first_and_missing_parts_when_they_are_asked_for(capsys):
    young = report(MISSING, Finding("settings.X", "warning", "X is unknown", "nothing", "unset it"), PROBLEM)
    terminal.show(young, verbose=False)
    output = capsys.readouterr().out
    assert output.index(PROBLEM.what) < output.index("X is unknown")
    assert output.count(PROBLEM.what) == 1
    assert MISSING.what not in output
    assert "1 missing that not every backend has (see --missing)" in output
    assert output.splitlines()[-1] == "openreg: 1 problem found; 1 warning; 1 missing part (see --missing)"
    for asked in ({"verbose": False, "missing": True}, {"verbose": True}):
        terminal.show(young, **asked)
        output = capsys.readouterr().out
        assert f"guide: {MISSING.chapter}" in output
        assert "--missing" not in output


def test_every_row_has_a_chapter_of_the_guide():
    guide = Path(__file__).resolve().parents[3]
    assert not [row.key for group in GROUPS for row in group.rows if not (guide / row.chapter).is_file()]
    assert all(row.chapter.startswith("docs/") for group in GROUPS for row in group.rows)


def test_every_row_of_the_table_has_an_exercise_or_a_reason_why_none():
    exercised = {*interfaces.EXERCISES, *registrations.EXERCISES, *compiler.EXERCISES}
    assert not exercised & set(UNREACHABLE)
    assert {*exercised, *UNREACHABLE} == {key for key in KEYS if not key.startswith("module.")}
    assert {key for key in KEYS if needs_compiler(key)} == set(compiler.EXERCISES)
    assert {key.partition(".")[0] for key in interfaces.EXERCISES} == set(interfaces.REGISTRATION_CALLS)


def test_a_reader_that_is_the_same_is_that_of_the_row_before():
    rows = {row.name: row for group in GROUPS for row in group.rows}
    assert not [name for name, row in rows.items() if row.reader.startswith("the same")]
    assert rows["caching_allocator_delete"].reader == rows["caching_allocator_alloc"].reader
    assert rows["memory._snapshot"].reader == rows["memory_snapshot"].reader


def test_names_that_only_users_ask_for_are_counted(capsys):
    note = Finding(
        "module.reset_device", "note", "torch.toaster.reset_device: missing", "asked for by: users", "define it"
    )
    terminal.show(report(note, Finding("settings.OPENREG_OPS", "note", "OPENREG_OPS=minimal")), verbose=False)
    output = capsys.readouterr().out
    assert "1 missing that only users call" in output
    assert "reset_device" not in output
    assert "OPENREG_OPS=minimal" in output


def test_each_name_of_the_module_that_pytorch_reads_is_looked_up():
    from openreg_doctor.examination import _request

    names = _request(Order(), GROUPS, None).attributes
    assert {"manual_seed_all", "memory._snapshot", "Stream", "amp"} <= set(names)
    assert not {"make_graphed_callables", "Scheduling", "the module itself"} & set(names)


def test_every_check_says_where_it_stands():
    modules = checks.own_checks()
    assert [module.POSITION for module in modules] == sorted({module.POSITION for module in modules})
    assert all(module.TITLE for module in modules)
    assert {module.__name__.rpartition(".")[2] for module in modules} >= {"attributes", "interfaces", "settings"}


REFUSALS = [
    ("environment variable OPENREG_POISON='x' is not accepted; give 0 or 1", "OPENREG_POISON"),
    ("environment variable OPENREG_POISON: 'x' is unknown", "OPENREG_POISON"),
    ("environment variable OPENREG_POISON is not for this device", "OPENREG_POISON"),
    ("PYTORCH_ALLOC_CONF: per_process_memory_fraction:2 is not accepted", "PYTORCH_ALLOC_CONF"),
    ("environment variable OPENREG_POISONED='x' is not accepted", ""),  # not set
    ("no compiler: the environment variable PATH names no folder that has one", ""),
]


@pytest.mark.parametrize(("said", "variable"), REFUSALS)
def test_a_refused_setting_is_known_by_what_was_said(said, variable):
    outcome = children.ChildResults({"import openreg_ops": children.StepResult("import openreg_ops", error=said)})
    environment = {"OPENREG_POISON": "x", "PYTORCH_ALLOC_CONF": "x", "PATH": "/"}
    assert examination._refused_setting(outcome, environment, "OPENREG_") == (variable, said if variable else "")


def test_nothing_of_packages_is_said_of_a_backend_that_declares_none():
    seen = Examination(Order("toaster"), GROUPS, children.ChildResults(), children.ChildResults())
    told = [item.check for section in checks.run(seen) for item in section.findings]
    assert not [name for name in told if name.startswith(("settings.", "packages.", "abi."))]


@pytest.mark.parametrize("arguments", [(), ("--help",)])
def test_a_reader_who_has_seen_enough_gets_no_traceback(tmp_path, arguments):
    (tmp_path / "torch.py").write_text("raise ImportError('as quickly as can be')\n", "utf-8")
    command_line = [sys.executable, "-m", "openreg_doctor", *arguments]
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    env.pop("PYTHONUNBUFFERED", None)  # which may be set here, and would let argparse pass over the closed pipe
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command_line, **pipes, text=True, env=env) as process:
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 1


def test_a_child_that_cannot_start_is_a_finding(monkeypatch):
    monkeypatch.setattr(children.sys, "executable", str(Path(__file__).with_name("no_python")))
    outcome = children.run(Request("openreg"), {}, 5)
    assert "no_python" in outcome.steps[children.START_STEP].error


@pytest.mark.parametrize(("code", "words"), [(3, "status 3"), (-9, "signal 9"), (-200, "signal 200")])
def test_exit_statuses_are_reported_in_words(code, words):
    assert children.describe_exit(code).replace("SIGKILL", "9") == words
