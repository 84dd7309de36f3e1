# SPDX-License-Identifier: BSD-3-Clause
"""A block, a whole program, reports, suppressions, and what is refused."""

import json

import pytest
import torch

from openreg_sanitizer import SanitizerError, SuppressionError

RACE = """
side = torch.openreg.Stream()
x = torch.ones(1024, device="openreg")
side.wait_stream(torch.openreg.current_stream())
with torch.openreg.stream(side):
    x.mul_(2)
y = x + 1
torch.openreg.synchronize()
print("done", flush=True)
"""
FIRST, SECOND = "program.py:9", "program.py:10"
CORRECT = RACE.replace("y = x", "torch.openreg.current_stream().wait_stream(side)\ny = x")


def race():
    side = torch.openreg.Stream()
    x = torch.ones(1024, device="openreg")
    side.wait_stream(torch.openreg.current_stream())
    with torch.openreg.stream(side):
        x.mul_(2)
    y = x + 1
    torch.openreg.synchronize()
    return y


def test_a_program_is_checked_without_a_changed_line(program):
    done = program(RACE, fresh=True, OPENREG_SANITIZER="1")
    assert (done.returncode, done.stdout) == (66, "done\n"), done.stderr
    assert f"first: {FIRST}  x.mul_(2)" in done.stderr
    assert f"second: {SECOND}  y = x + 1" in done.stderr
    assert "missing: torch.openreg.current_stream().wait_stream(side)" in done.stderr
    assert f"write it before {SECOND}" in done.stderr
    assert done.stderr.endswith("openreg-sanitizer: 1 finding\n")


def test_a_correct_program_ends_as_ever(program):
    done = program(CORRECT, fresh=True, OPENREG_SANITIZER="1")
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


@pytest.mark.parametrize("variable", [{}, {"OPENREG_SANITIZER": "0"}, {"OPENREG_SANITIZER": ""}])
def test_without_the_variable_nothing_is_checked(program, variable):
    done = program(RACE, **variable)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


@pytest.mark.parametrize("setting", [{"OPENREG_LAUNCH_BLOCKING": "1"}, {"OPENREG_POISON": "1"}])
def test_other_settings_change_nothing(program, setting):
    done = program(RACE, OPENREG_SANITIZER="1", **setting)
    assert done.stderr.count("openreg-sanitizer: race:") == 1
    assert f"first: {FIRST}" in done.stderr
    assert program(CORRECT, OPENREG_SANITIZER="1", **setting).stderr == ""


@pytest.mark.parametrize("seed", range(1, 21))
def test_a_seed_changes_nothing(program, seed):
    done = program(RACE, OPENREG_SANITIZER="1", OPENREG_SCHEDULE_SEED=str(seed))
    assert done.stderr.count("openreg-sanitizer: race:") == 1
    assert f"first: {FIRST}" in done.stderr
    assert f"second: {SECOND}" in done.stderr


def test_a_stack_begins_with_the_program(program):
    done = program(RACE, OPENREG_SANITIZER="1")
    assert f"stack of the first access (innermost last):\n    {FIRST} in <module>  x.mul_(2)\n" in done.stderr


IN_MODULE = """
class Double(torch.nn.Module):
    def forward(self, x):
        return x * 2
side = torch.openreg.Stream()
x = torch.ones(1024, device="openreg")
with torch.openreg.stream(side):
    y = Double()(x)
torch.openreg.synchronize()
"""
CUT = """  stack of the second access (innermost last):
    program.py:11 in <module>  y = Double()(x)
    ... 2 frames of torch
    program.py:7 in forward  return x * 2
"""


def test_a_stack_shows_the_frames_of_the_program_and_the_report_file_all(program, tmp_path):
    done = program(IN_MODULE, OPENREG_SANITIZER="1", OPENREG_SANITIZER_REPORT="races.txt")
    assert CUT in done.stderr
    whole = (tmp_path / "races.txt").read_text()
    assert " frames of " not in whole
    assert "in _wrapped_call_impl  return self._call_impl(*args, **kwargs)\n" in whole


# A finding looks through the variables of the functions that run, for the names of streams.
DELETED = """
import weakref
def use():
    side = torch.openreg.Stream()
    x = torch.ones(1024, device="openreg")
    side.wait_stream(torch.openreg.current_stream())
    with torch.openreg.stream(side):
        x.mul_(2)
    y = x + 1
    seen = weakref.ref(x)
    del x
    print("freed" if seen() is None else "kept")
use()
"""


def test_a_finding_keeps_no_tensor_of_a_function_alive(program):
    done = program(DELETED, OPENREG_SANITIZER="1")
    assert (done.stdout, done.stderr.count("openreg-sanitizer: race:")) == ("freed\n", 1)


def test_the_second_access_raises(program):
    done = program(RACE, OPENREG_SANITIZER="raise")
    assert done.stdout == ""
    assert 'program.py", line 10, in <module>\n' in done.stderr
    assert "SanitizerError: openreg-sanitizer: race: two accesses to the same memory have no order" in done.stderr


def test_a_block_raises_at_the_second_access():
    with pytest.raises(SanitizerError) as caught, torch.openreg.sanitizer("raise"):
        race()
    assert caught.value.finding.kind == "race"
    assert any(entry.name == "race" for entry in caught.traceback)


def test_a_finding_is_reported_while_code_without_built_ins_runs(capfd):
    x, side = torch.ones(4, device="openreg"), torch.openreg.Stream()
    torch.openreg.synchronize()
    with torch.openreg.sanitizer():
        with torch.openreg.stream(side):
            x.add_(1)
        eval("read(2)", {"read": x.add, "__builtins__": {}})
    assert capfd.readouterr().err.count("openreg-sanitizer: race:") == 1


def test_a_block_writes_to_stderr(capfd):
    with torch.openreg.sanitizer() as session:
        for _ in range(3):
            race()
    (finding,) = session.findings
    assert finding.count == 3
    assert capfd.readouterr().err.count("openreg-sanitizer: race:") == 1


def test_blocks_have_the_findings_of_their_time():
    with torch.openreg.sanitizer("collect") as outer:
        with torch.openreg.sanitizer("collect") as inner:
            race()
        with torch.openreg.sanitizer("collect") as later:
            torch.ones(3, device="openreg").add_(1)
    assert [len(item.findings) for item in (outer, inner, later)] == [1, 1, 0]


def test_a_report_is_json_or_sarif_or_text(program, tmp_path):
    for name in ("races.json", "races.sarif", "races.txt"):
        done = program(RACE, OPENREG_SANITIZER="1", OPENREG_SANITIZER_REPORT=name)
        assert done.stdout == "done\n"
    (finding,) = json.loads((tmp_path / "races.json").read_text())["findings"]
    assert finding["kind"] == "race"
    assert (finding["first_line"]["line"], finding["second_line"]["line"]) == (9, 10)
    log = json.loads((tmp_path / "races.sarif").read_text())
    assert log["version"] == "2.1.0"
    (result,) = log["runs"][0]["results"]
    assert result["ruleId"] in {rule["id"] for rule in log["runs"][0]["tool"]["driver"]["rules"]}
    place = result["locations"][0]["physicalLocation"]
    assert (place["artifactLocation"]["uri"], place["region"]["startLine"]) == ("program.py", 10)
    assert result["relatedLocations"][0]["physicalLocation"]["region"]["startLine"] == 9
    assert (tmp_path / "races.txt").read_text().endswith("openreg-sanitizer: 1 finding\n")


@pytest.mark.parametrize(
    ("variables", "text"),
    [
        ({"OPENREG_SANITIZER": "yes"}, "OPENREG_SANITIZER='yes' is unknown; use 1, raise or 0"),
        ({"OPENREG_SANITIZER": "1", "OPENREG_SANITIZER_REPORT": "no/where.json"}, "no/where.json cannot be written"),
        ({"OPENREG_SANITIZER": "1", "OPENREG_SANITIZER_SUPPRESSIONS": "none.txt"}, "none.txt: the file of suppress"),
    ],
)
def test_a_wrong_setting_is_refused(program, variables, text):
    done = program(RACE, **variables)
    assert done.returncode == 1
    assert text in done.stderr
    assert "ImportError" in done.stderr


def test_a_report_that_cannot_be_written_goes_to_stderr(program, tmp_path):
    (tmp_path / "reports").mkdir()
    code = RACE + "import os\nos.rmdir('reports')\n"
    done = program(code, fresh=True, OPENREG_SANITIZER="1", OPENREG_SANITIZER_REPORT="reports/races.json")
    assert (done.returncode, done.stdout) == (66, "done\n")
    assert "races.json: the report cannot be written: No such file or directory; name another file" in done.stderr
    assert done.stderr.count("openreg-sanitizer: race:") == 2  # when it happened, and instead of the report


def test_a_comment_suppresses_a_finding(program):
    for comment in ("ignore", "ignore[race]", "ignore[reuse, race]"):
        code = RACE.replace("y = x + 1", f"y = x + 1  # openreg-sanitizer: {comment}")
        assert program(code, OPENREG_SANITIZER="1").stderr == ""
    code = RACE.replace("y = x + 1", "y = x + 1  # openreg-sanitizer: ignore[reuse]")
    assert "openreg-sanitizer: race:" in program(code, OPENREG_SANITIZER="1").stderr


def test_a_comment_of_a_caller_suppresses_a_finding(program):
    called = RACE.replace("y = x + 1", "add = lambda: x + 1\ny = add()")
    assert "openreg-sanitizer: race:" in program(called, OPENREG_SANITIZER="1").stderr
    accepted = called.replace("y = add()", "y = add()  # openreg-sanitizer: ignore[race]")
    assert program(accepted, OPENREG_SANITIZER="1").stderr == ""


@pytest.mark.parametrize("line", ["race program.py:10", "* *.py  # all", "race program.py:<module>", "race program.py"])
def test_a_file_suppresses_a_finding(program, tmp_path, line):
    (tmp_path / "known.txt").write_text(f"# known\n\n{line}\n")
    done = program(RACE, OPENREG_SANITIZER="1", OPENREG_SANITIZER_SUPPRESSIONS="known.txt")
    assert done.stderr == ""


def test_a_suppression_without_an_effect_is_named(program, tmp_path):
    (tmp_path / "known.txt").write_text("race program.py:10\nreuse other.py\n")
    done = program(RACE, OPENREG_SANITIZER="1", OPENREG_SANITIZER_SUPPRESSIONS="known.txt")
    assert done.stderr.strip().endswith("known.txt:2: this suppression suppresses nothing; remove it")


def test_an_invalid_suppression_is_refused(tmp_path):
    file = tmp_path / "known.txt"
    file.write_text("race a.py\nrases b.py\n")
    with pytest.raises(SuppressionError, match=r"known\.txt:2: 'rases b\.py' is no suppression; write a kind"):
        torch.openreg.sanitizer(suppress=file)


def test_an_unknown_action_is_refused():
    with pytest.raises(ValueError, match="action 'stop' is unknown; use one of report, raise, collect"):
        torch.openreg.sanitizer("stop")


WARNED = """
side = torch.openreg.Stream()
x = torch.ones(1024, device="openreg")
side.wait_stream(torch.openreg.current_stream())
with torch.openreg.stream(side):
    y = x * 2
del x
torch.openreg.current_stream().wait_stream(side)
z = torch.ones(1024, device="openreg")
print("done")
"""


def test_memory_that_is_freed_in_use_is_a_warning(program, tmp_path):
    reports = {"OPENREG_SANITIZER_WARNINGS": "1", "OPENREG_SANITIZER_REPORT": "races.json"}
    done = program(WARNED, fresh=True, OPENREG_SANITIZER="1", **reports)
    assert (done.returncode, done.stdout) == (0, "done\n")
    assert "openreg-sanitizer: warning: freed-in-use: memory is freed while another stream uses it" in done.stderr
    assert "first: program.py:9  y = x * 2" in done.stderr
    assert "second: program.py:10  del x" in done.stderr
    assert "missing: x.record_stream(side)" in done.stderr
    assert done.stderr.endswith("openreg-sanitizer: 0 findings, 1 warning\n")
    (warning,) = json.loads((tmp_path / "races.json").read_text())["findings"]
    assert (warning["kind"], warning["severity"]) == ("freed-in-use", "warning")
    accepted = WARNED.replace("y = x * 2", "y = x * 2  # openreg-sanitizer: ignore[freed-in-use]")
    assert program(accepted, OPENREG_SANITIZER="1", OPENREG_SANITIZER_WARNINGS="1").stderr == ""
    assert program(WARNED, OPENREG_SANITIZER="1").stderr == ""


# The copy hides from the shadow that nothing has written `x`; the values go through a matrix product and a mean.
POISONED = """
weight = torch.ones(16, 4, device="openreg")
x = torch.empty(8, 16, device="openreg")
y = x.clone()
loss = (y @ weight).mean()
print("reached", flush=True)
value = {read}
print("done")
"""


@pytest.mark.parametrize("read", ["loss.item()", "loss.cpu()", "[v for v in y.tolist()]", "weight.add(y[0, 0]).cpu()"])
def test_the_program_ends_where_poison_reaches_the_host(program, read):
    code = POISONED.format(read=read)
    done = program(code, OPENREG_SANITIZER="raise", OPENREG_POISON="1")
    assert (done.returncode, done.stdout) == (1, "reached\n"), done.stderr
    assert "SanitizerError: openreg-sanitizer: poison: a value that was computed from undefined memory" in done.stderr
    assert f"access: program.py:10  value = {read}" in done.stderr
    assert program(code, OPENREG_SANITIZER="1", OPENREG_POISON="1").stderr.endswith("openreg-sanitizer: 1 finding\n")


@pytest.mark.parametrize("value", ["0.0", "float('nan')", "float('inf')"])
def test_a_number_that_was_computed_is_no_poison(program, value):
    code = POISONED.format(read="loss.item()").replace("x = torch.empty(8, 16,", f"x = torch.full((8, 16), {value},")
    done = program(code + "print((loss - loss).item())", OPENREG_SANITIZER="raise", OPENREG_POISON="1")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "read", ["x.bfloat16().cpu()", "x.bfloat16().float().cpu()", "x.bfloat16()[0].item()", "x.half().cpu()"]
)
def test_an_ordinary_nan_stays_one_through_conversions(program, read):
    """PyTorch's conversion to bfloat16 gives it the bits of poison."""
    code = f"x = torch.full((64,), float('nan'), device='openreg')\nvalue = {read}\nprint('done')\n"
    done = program(code, OPENREG_SANITIZER="raise", OPENREG_POISON="1")
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


PINNED = """
x = torch.empty(256, device="openreg").clone()
host = torch.zeros(256).pin_memory()
host.copy_(x, non_blocking=True)
torch.openreg.synchronize()
print(host.sum())
"""


def test_a_view_of_pinned_memory_is_looked_at_once(program):
    code = "h = torch.zeros(16, 16).pin_memory()\nprint(h[:, 1:].t().sum().item())\n"
    done = program(code, OPENREG_SANITIZER="1", OPENREG_POISON="1")
    assert (done.stdout, done.stderr) == ("0.0\n", "")


WAITED = """
side = torch.openreg.Stream()
x = torch.ones(1024, device="openreg")
side.wait_stream(torch.openreg.current_stream())
with torch.openreg.stream(side):
    x.mul_(2)
    total = x.sum().item()
y = x + 1
print(total)
"""


def test_reading_a_number_is_a_wait_also_under_launch_blocking(program):
    done = program(WAITED, OPENREG_SANITIZER="1", OPENREG_LAUNCH_BLOCKING="1")
    assert (done.stdout, done.stderr) == ("2048.0\n", "")


SWALLOWED = RACE.replace("y = x + 1", "try:\n    y = x + 1\nexcept RuntimeError:\n    y = None")


def test_a_finding_whose_error_the_program_catches_is_written(program):
    done = program(SWALLOWED, fresh=True, OPENREG_SANITIZER="raise")
    assert (done.returncode, done.stdout) == (66, "done\n")
    assert done.stderr.count("openreg-sanitizer: race:") == 1


def test_poison_in_pinned_memory_is_found_where_the_host_reads_it(program):
    done = program(PINNED, OPENREG_SANITIZER="1", OPENREG_POISON="1")
    assert "access: program.py:9  print(host.sum())\n    aten::sum on the CPU reads float32[256]" in done.stderr


FORK = """
import os
child = os.fork()
if child == 0:
    print("child", flush=True)
    raise SystemExit(0)
assert os.waitpid(child, 0)[1] == 0
"""


def test_a_forked_child_does_nothing(program):
    done = program(RACE + FORK, OPENREG_SANITIZER="1")
    assert done.stdout.split() == ["done", "child"]
    assert done.stderr.count("openreg-sanitizer: race:") == 1
    assert done.stderr.count("1 finding") == 1


FORKED_FIRST = """
import os
child = os.fork()
if child == 0:
    exec(code)
    raise SystemExit(0)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_child_that_was_forked_before_the_first_use_is_checked(program):
    done = program(f"code = {RACE!r}\n" + FORKED_FIRST, fresh=True, OPENREG_SANITIZER="1")
    assert (done.returncode, done.stdout.split()) == (0, ["done", "66"])
    assert done.stderr.count("openreg-sanitizer: race:") == 1
    assert done.stderr.count("1 finding") == 1


PROFILED = """
import openreg_profiler
from torch.profiler import ProfilerActivity, profile
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]) as profiler:
    exec(code)
print(sum(event.device_time_total > 0 for event in profiler.key_averages()) > 0)
"""


def test_profiler_and_sanitizer_work_together(program):
    done = program(f"code = {RACE!r}\n" + PROFILED, OPENREG_SANITIZER="1")
    assert done.stdout == "done\nTrue\n", done.stderr
    assert done.stderr.count("openreg-sanitizer: race:") == 1
