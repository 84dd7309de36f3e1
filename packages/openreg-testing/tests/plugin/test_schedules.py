# SPDX-License-Identifier: BSD-3-Clause
"""The marks for seeded schedules, poison, settings and faults run a test in a process of its own, and work."""

import os
import re
import shlex

import library_runs
import pytest
from _platform import HAS_FORK
from _runs import in_a_new_shell, run, write

from openreg_testing.plugin.isolation_marks import Requirements

pytest.importorskip("openreg_runtime")
pytest_plugins = ["pytester"]
pytestmark = pytest.mark.skipif(not HAS_FORK, reason="the workers here are forked")

STREAMS = """
import os
import pytest
import torch

def copied(wait):
    data = torch.ones(1000).pin_memory()
    copies = torch.Stream("openreg")
    with copies:
        moved = data.to("openreg", non_blocking=True)
    if wait:
        torch.accelerator.current_stream().wait_stream(copies)
        moved.record_stream(torch.accelerator.current_stream())
    return moved * 2

def freed(record):
    side, current = torch.Stream("openreg"), torch.accelerator.current_stream()
    x = torch.ones(1000, device="openreg")
    side.wait_stream(current)
    with side:
        y = x * 2
    if record:
        x.record_stream(side)
    del x
    current.wait_stream(side)
    return y

@pytest.mark.schedules(seeds=40)
def test_forgets_to_wait():
    assert copied(wait=False).sum().item() == 2000

@pytest.mark.schedules(seeds=15)
def test_waits():
    assert copied(wait=True).sum().item() == 2000

@pytest.mark.schedules(seeds=40)
@pytest.mark.poison
def test_forgets_to_record():
    assert freed(record=False).sum().item() == 2000

@pytest.mark.schedules(seeds=15)
@pytest.mark.poison
def test_records():
    assert freed(record=True).sum().item() == 2000

@pytest.mark.poison
def test_reads_unwritten_memory():
    assert torch.empty(3, device="openreg").isnan().all()

def test_no_poison_without_the_mark():
    assert not torch.zeros(1000, device="openreg").resize_(10).isnan().any()
    assert "OPENREG_POISON" not in os.environ

@pytest.mark.schedules(seeds=40)
def test_needs_no_device():
    assert os.environ["OPENREG_SCHEDULE_SEED"] == "1"

@pytest.mark.schedules(seeds=40)
def test_skips():
    pytest.skip("not here")

@pytest.mark.schedules(seeds=40)
def test_crashes_under_one_seed():
    torch.ones(1, device="openreg")
    if os.environ["OPENREG_SCHEDULE_SEED"] == "7":
        os.abort()

@pytest.mark.schedules(seeds=40)
@pytest.mark.xfail(strict=True)
def test_is_expected_to_fail_under_some_seed():
    assert copied(wait=False).sum().item() == 2000
"""


@pytest.fixture(scope="module")
def streams(tmp_path_factory):
    folder = tmp_path_factory.mktemp("streams")
    write(folder, test_streams=STREAMS)
    return folder, run(folder)


@pytest.mark.parametrize("test", ["test_forgets_to_wait", "test_forgets_to_record"])
def test_some_order_shows_a_race(streams, test):
    failure = streams[1].tests[test]
    assert failure.kind == "failed"
    assert re.match(r"seed \d+: AssertionError", failure.message)


@pytest.mark.parametrize(("test", "seeds"), [("test_waits", "15"), ("test_records", "15")])
def test_correct_code_passes_under_all_seeds(streams, test, seeds):
    passed = streams[1].tests[test]
    assert (passed.kind, passed.properties["openreg.schedules"]) == ("passed", seeds)


@pytest.mark.endurance
def test_correct_code_passes_under_many_seeds(streams):
    result = run(streams[0], "--schedules=200", "-k", "test_waits or test_records")
    assert result.kinds() == {"test_waits": "passed", "test_records": "passed"}, result.output
    assert {test.properties["openreg.schedules"] for test in result.tests.values()} == {"200"}


def command_in(outcome):
    """The arguments of the printed command, without the program."""
    (line,) = re.findall(r"To repeat:\n\s+(pytest .*)", outcome.text)
    return shlex.split(line)[1:]


@pytest.mark.parametrize("test", ["test_forgets_to_wait", "test_forgets_to_record"])
def test_the_printed_command_repeats_the_failure(streams, test):
    folder, result = streams
    seed = re.match(r"seed (\d+)", result.tests[test].message)[1]
    arguments = command_in(result.tests[test])
    assert arguments[-1] == f"--schedule-seed={seed}"
    again = run(folder, *arguments)
    assert again.kinds() == {test: "failed"}, again.output


def test_a_failure_under_a_seed_names_the_sanitizer_as_the_next_step(streams):
    (line,) = re.findall(r"the missing one:\n\s+(pytest .*)", streams[1].tests["test_forgets_to_wait"].text)
    test, *options = shlex.split(line)[1:]
    assert test == "test_streams.py::test_forgets_to_wait"
    assert options[-3:] == ["--device", "openreg", "--sanitize"]
    assert not any(option.startswith("--schedule") for option in options)


def test_seeds_below_the_one_that_failed_pass(streams):
    folder, result = streams
    seed = int(re.match(r"seed (\d+)", result.tests["test_forgets_to_wait"].message)[1])
    assert result.tests["test_forgets_to_wait"].properties["openreg.schedules"] == str(seed)
    below = run(folder, "test_streams.py::test_forgets_to_wait", f"--schedules={max(1, seed - 1)}")
    assert below.kinds()["test_forgets_to_wait"] == ("passed" if seed > 1 else "failed")


@pytest.mark.parametrize("test", ["test_reads_unwritten_memory", "test_no_poison_without_the_mark"])
def test_poison_is_for_the_marked_test(streams, test):
    assert streams[1].tests[test].kind == "passed"


@pytest.mark.parametrize("test", ["test_needs_no_device", "test_skips"])
def test_what_no_order_can_change_runs_once(streams, test):
    assert streams[1].tests[test].properties["openreg.schedules"] == "1"


def test_a_crash_under_one_seed_is_reported_with_the_seed(streams):
    crash = streams[1].tests["test_crashes_under_one_seed"]
    assert crash.message.startswith("seed 7: its process crashed with SIGABRT in the call of the test")
    assert "in test_crashes_under_one_seed" in crash.text
    assert command_in(crash)[-1] == "--schedule-seed=7"


def test_a_failure_that_is_expected_may_come_with_any_seed(streams):
    assert streams[1].tests["test_is_expected_to_fail_under_some_seed"].kind == "skipped"


IN_A_CLASS = """
import pytest

@pytest.mark.schedules
class TestInAClass:
    def test_has_the_mark_of_its_class(self):
        pass
"""


def test_the_mark_may_be_a_class_s_and_needs_no_number(pytester):
    assert Requirements.of(pytester.getitem(IN_A_CLASS, "test_has_the_mark_of_its_class")).seeds == 200


UNMARKED = """
import pytest
import torch

def test_unmarked():
    data = torch.ones(1000).pin_memory()
    copies = torch.Stream("openreg")
    with copies:
        moved = data.to("openreg", non_blocking=True)
    assert (moved * 2).sum().item() == 2000

@pytest.mark.schedules(seeds=2)
def test_marked():
    torch.ones(1, device="openreg")
"""


# Two races, whose tests look at what most orders of streams leave as it should be: only poison shows them.
WEAK = """
import torch

def moved(data):
    copies = torch.Stream("openreg")
    with copies:
        return data.pin_memory().to("openreg", non_blocking=True)

def test_all_is_finite():
    assert torch.openreg.device_count() == 3
    assert torch.isfinite(moved(torch.ones(1000))).all(), "a race"

def test_of_zeros():
    assert torch.openreg.device_count() == 3
    assert (moved(torch.zeros(1000)) == 0).all(), "a race"
"""


@pytest.fixture(scope="module")
def weak(tmp_path_factory):
    folder = tmp_path_factory.mktemp("weak")
    write(folder, test_weak=WEAK)
    return folder, run(folder, "--schedules=40", OPENREG_DEVICE_COUNT="3", PYTEST_ADDOPTS="--schedules 30 -v")


def test_schedules_poison_by_themselves(weak):
    folder, result = weak
    assert result.kinds() == {"test_all_is_finite": "failed", "test_of_zeros": "failed"}, result.output
    seeds = max(int(re.match(r"seed (\d+)", test.message)[1]) for test in result.tests.values())
    without = run(folder, f"--schedules={seeds}", OPENREG_DEVICE_COUNT="3", OPENREG_POISON="0")
    assert set(without.kinds().values()) == {"passed"}, without.output


@pytest.mark.parametrize("test", ["test_all_is_finite", "test_of_zeros"])
def test_the_printed_command_repeats_the_failure_in_a_new_shell(weak, tmp_path, test):
    folder, result = weak
    (line,) = re.findall(r"To repeat:\n\s+(.*)", result.tests[test].text)
    again = in_a_new_shell(line, folder, tmp_path)
    assert again.kinds() == {test: "failed"}, again.output
    message = result.tests[test].message.partition("\n")[0]
    assert message.partition(": ")[2] == again.tests[test].message.partition("\n")[0] == "AssertionError: a race"


def test_one_seed_counts_more_than_the_schedules_of_a_configuration(tmp_path):
    write(tmp_path, test_seed="import os\n\ndef test_seed():\n    assert os.environ['OPENREG_SCHEDULE_SEED'] == '5'\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --schedules 4\n", "utf-8")
    assert run(tmp_path, "--schedule-seed=5").kinds() == {"test_seed": "passed"}


def test_poison_may_be_left_out_of_schedules(tmp_path):
    code = (
        "import os, pytest, torch\n\n@pytest.mark.schedules(seeds=2)\n@pytest.mark.device_settings(OPENREG_POISON=0)\n"
    )
    asserted = 'not torch.empty(3, device="openreg").isnan().any()'
    write(tmp_path, test_one=f"{code}def test_one():\n    assert {asserted}\n")
    assert run(tmp_path).kinds() == {"test_one": "passed"}


def test_the_option_is_for_all_selected_tests(tmp_path):
    write(tmp_path, test_unmarked=UNMARKED)
    result = run(tmp_path, "--device", "openreg", "test_unmarked.py", "--schedules=40")
    assert result.kinds() == {"test_unmarked": "failed", "test_marked": "passed"}
    assert result.tests["test_unmarked"].message.startswith("seed ")
    assert result.tests["test_marked"].properties["openreg.schedules"] == "40"
    test, *options, seed = command_in(result.tests["test_unmarked"])
    assert (test, seed[:15]) == ("test_unmarked.py::test_unmarked", "--schedule-seed")
    assert options[options.index("--device") + 1] == "openreg"
    assert "test_unmarked.py" not in options
    (search,) = re.findall(r"pytest .* --sanitize$", result.tests["test_unmarked"].text, re.MULTILINE)
    assert search.count("--device") == 1


def test_the_option_works_under_xdist_and_with_isolation(tmp_path):
    write(tmp_path, test_unmarked=UNMARKED)
    result = run(tmp_path, "--schedules", "40", "-n", "1", "--isolate", "-m", "not schedules")
    assert result.kinds() == {"test_unmarked": "failed"}
    program, *options = command_in(result.tests["test_unmarked"])
    assert program == "test_unmarked.py::test_unmarked"
    assert "--isolate" in options
    assert not {"-n", "1", "-m", "--schedules"} & set(options)


def test_one_seed_runs_in_the_process_itself(tmp_path):
    asserted = f"os.environ['OPENREG_SCHEDULE_SEED'] == '5' and os.getppid() == {os.getpid()}"
    write(tmp_path, test_seed=f"import os\n\ndef test_seed():\n    assert {asserted}\n")
    assert run(tmp_path, "--schedule-seed=5", fresh=True).kinds() == {"test_seed": "passed"}


SETTINGS = """
import os
import pytest
import torch

pytestmark = pytest.mark.device_settings(OPENREG_DEVICE_COUNT=3)

def test_of_the_module():
    assert torch.openreg.device_count() == 3

@pytest.mark.device_settings(OPENREG_DEVICE_MEMORY="64MiB")
def test_of_both():
    assert torch.openreg.device_count() == 3
    with pytest.raises(torch.OutOfMemoryError):
        torch.empty(64 << 20, device="openreg")

@pytest.mark.device_settings(OPENREG_DEVICE_COUNT=1)
@pytest.mark.schedules(seeds=2)
@pytest.mark.poison
@pytest.mark.faults("alloc:1", "alloc:2,alloc:3", "alloc:4")
def test_of_all_kinds():
    assert torch.openreg.device_count() == 1
    assert os.environ["OPENREG_POISON"] == "1"
    assert os.environ["OPENREG_SCHEDULE_SEED"] in "12"
    with pytest.raises(torch.OutOfMemoryError):
        torch.empty(3, device="openreg")
    assert torch.empty(3, device="openreg").isnan().all()
"""


def test_settings_hold_for_the_test_and_combine(tmp_path):
    write(tmp_path, test_settings=SETTINGS)
    result = run(tmp_path)
    assert set(result.kinds().values()) == {"passed"}, result.output


FAULTS = """
import pytest
import torch

@pytest.fixture
def allocated():
    return torch.ones(3, device="openreg")

@pytest.mark.faults("alloc:1,alloc:2,alloc:3,alloc:4")
def test_hits_the_test_and_not_its_fixtures(allocated):
    with pytest.raises(torch.OutOfMemoryError):
        torch.empty(10 << 20, device="openreg")

@pytest.mark.faults("copy:1")
def test_does_not_survive():
    torch.ones(3, device="openreg").cpu()

@pytest.mark.faults("lose:1")
def test_loses_the_device():
    with pytest.raises(RuntimeError, match="lost"):
        torch.ones(3, device="openreg").sum().item()

def test_has_a_device():
    assert torch.ones(3, device="openreg").sum().item() == 3
"""


def test_faults_stay_in_their_test(tmp_path):
    write(tmp_path, test_faults=FAULTS)
    result = run(tmp_path)
    assert result.kinds() == {
        "test_hits_the_test_and_not_its_fixtures": "passed",
        "test_does_not_survive": "failed",
        "test_loses_the_device": "passed",
        "test_has_a_device": "passed",
    }
    assert "an injected fault" in result.tests["test_does_not_survive"].message


def test_without_openreg_the_marks_change_nothing_and_faults_are_skipped(tmp_path):
    code = """
import os
import pytest

@pytest.mark.schedules(seeds=3)
def test_schedules():
    assert "OPENREG_SCHEDULE_SEED" not in os.environ

@pytest.mark.poison
def test_poison():
    pass

@pytest.mark.faults("alloc:1")
def test_faults():
    raise AssertionError
"""
    write(tmp_path, test_marks=code)
    result = run(tmp_path, "-rs", TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    assert result.kinds() == {"test_schedules": "passed", "test_poison": "passed", "test_faults": "skipped"}
    assert "there is no device openreg" in result.output


@pytest.mark.parametrize("option", ["--schedules=3", "--schedule-seed=3"])
def test_without_openreg_the_options_are_usage_errors(tmp_path, option):
    write(tmp_path, test_one="def test_one():\n    pass")
    result = run(tmp_path, option, TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    assert result.status == 4
    assert 'in this process; to install it: pip install "openreg-testing[device]"' in result.output


@pytest.mark.parametrize(
    ("mark", "accepted"),
    [
        ("schedules(seeds=0)", "a number of seeds from 1 on"),
        ("schedules('many')", "a number of seeds from 1 on"),
        ("schedules(True)", "a number of seeds from 1 on"),
        ("schedules(3, seeds=3)", "a number of seeds from 1 on"),
        ("schedules(count=3)", "a number of seeds from 1 on"),
        ("poison('yes')", "it takes no argument"),
        ("faults()", "KIND:N or KIND:N@DEVICE"),
        ("faults('alloc')", "KIND:N or KIND:N@DEVICE"),
        ("faults('alloc:0')", "KIND:N or KIND:N@DEVICE"),
        ("faults('allocation:1')", "KIND:N or KIND:N@DEVICE"),
        ("faults(1)", "KIND:N or KIND:N@DEVICE"),
        ("device_settings()", "environment variables, such as"),
        ("device_settings('OPENREG_POISON')", "environment variables, such as"),
        ("device_settings(OPENREG_POISON=1.5)", "environment variables, such as"),
        ("device_settings(OPENREG_POISSON=1)", "did you mean OPENREG_POISON?"),
    ],
)
def test_a_mark_with_bad_arguments_is_a_usage_error_that_names_the_test(pytester, monkeypatch, mark, accepted):
    pytester.makepyfile(test_bad=f"import pytest\n\n@pytest.mark.{mark}\ndef test_bad():\n    pass\n")
    result = library_runs.run(pytester, monkeypatch)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert f"test_bad.py::test_bad: the mark {mark.partition('(')[0]}(" in result.stderr.str()
    assert accepted in result.stderr.str()


def test_under_xdist_a_bad_mark_is_an_error_of_collection(tmp_path):
    write(tmp_path, test_bad="import pytest\n\n@pytest.mark.poison(1)\ndef test_bad():\n    pass\n")
    result = run(tmp_path, "-n1")
    assert result.status != 0
    assert "test_bad.py::test_bad: the mark poison(1) is not accepted; it takes no argument" in result.output
    assert "INTERNALERROR" not in result.output


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--schedules=0"], "give a whole number from 1 to 18446744073709551615, not '0'"),
        (["--schedules=many"], "give a whole number from 1 to 18446744073709551615, not 'many'"),
        (["--schedule-seed=-1"], "give a whole number from 0 to 18446744073709551615, not '-1'"),
        (["--schedules=3", "--schedule-seed=3"], "--schedules and --schedule-seed exclude each other"),
        (["--schedules=3", "--pdb"], "--schedule-seed runs one order of streams in this process"),
    ],
)
def test_options_that_make_no_sense_are_usage_errors(pytester, monkeypatch, arguments, text):
    pytester.makepyfile("def test_one():\n    pass")
    result = library_runs.run(pytester, monkeypatch, *arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert text in result.stderr.str()


def test_a_run_with_a_debugger_prints_the_command_for_one_test(tmp_path):
    code = "import pytest\n\n@pytest.mark.poison\n@pytest.mark.schedules\ndef test_one():\n    pass\n"
    write(tmp_path, test_one=code)
    result = run(tmp_path, "--pdb")
    assert result.status == 4
    assert "OPENREG_POISON=1 OPENREG_SCHEDULE_SEED=1 pytest" in result.output


def test_seeds_that_are_given_twice_are_a_usage_error(tmp_path):
    marks = "@pytest.mark.schedules\n@pytest.mark.device_settings(OPENREG_SCHEDULE_SEED=1)\n"
    write(tmp_path, test_one=f"import pytest\n\n{marks}def test_one():\n    pass\n")
    result = run(tmp_path)
    assert result.status == 4
    assert "test_one.py::test_one: its mark device_settings sets OPENREG_SCHEDULE_SEED" in result.output


SETTINGS = """
import os
import pytest
import torch

@pytest.mark.device_settings(OPENREG_DEVICE_MEMORY="64MiB")
@pytest.mark.schedules(seeds=2)
def test_settings(device):
    assert torch.accelerator.get_memory_info(device)[1] == 64 << 20
"""


@pytest.mark.parametrize("options", [("--device", "openreg"), ("--device", "openreg:1", "--isolate"), ()])
def test_settings_hold_where_the_run_has_asked_for_the_device_before(tmp_path, options):
    write(tmp_path, test_settings=SETTINGS)
    result = run(tmp_path, *options)
    assert result.kinds() == {"test_settings": "passed"}, result.output
