# SPDX-License-Identifier: BSD-3-Clause
"""`python -m openreg_testing` has the documented exit status and files, and explains wrong arguments."""

import json
import os
import re
from importlib import metadata
from pathlib import Path

import pytest
from _pythons import environment, run_kit

from openreg_testing.conformance import command, suite_tests

pytestmark = pytest.mark.timeout(1800)
FURTHER = pytest.mark.endurance  # further forms of what the default session runs, each in processes of its own

TESTS = Path(__file__).parent
TOASTER = """
import types
import torch

torch.utils.rename_privateuse1_backend("toaster")
module = types.ModuleType("torch.toaster")
module.is_available = module.is_initialized = lambda: True
module.device_count = lambda: 1
module.current_device = lambda: 0
torch._register_device_module("toaster", module)
"""


@pytest.fixture
def kit(tmp_path):
    """Runs the command in a process of its own."""

    def run(command, *arguments, **variables):
        jobs = ("--jobs", "1") if command == "conformance" else ()  # each process imports torch once more
        path = f"{TESTS}{os.pathsep}{tmp_path}"
        env = {name: value for name, value in environment().items() if not name.startswith("TORCH_")}
        env |= {"PYTHONPATH": path, "COLUMNS": "200", **variables}
        return run_kit("-m", "openreg_testing", command, *jobs, *arguments, env=env, folder=tmp_path, timeout=900)

    return run


def test_a_run_writes_its_scorecard_in_every_form(kit, tmp_path):
    arguments = (
        "--device",
        "openreg",
        "--suite",
        "dlpack",
        "--suite",
        "operators",
        "--op",
        "erf",
        "--dtype",
        "float32",
    )
    files = ("--json", "card.json", "--html", "card.html", "--relay", "relay.json")
    done = kit("conformance", *arguments, "--check", "forward", *files)
    assert done.returncode == 0, done.stderr
    assert "no problems" in done.stdout
    document = json.loads((tmp_path / "card.json").read_text("utf-8"))
    assert document["device"] == "openreg"
    assert document["torch"].partition("+")[0] == metadata.version("torch").partition("+")[0]
    assert document["counts"]["operators"] == {"passed": 1}
    assert set(document["counts"]["dlpack"]) == {"passed"}
    relay = json.loads((tmp_path / "relay.json").read_text("utf-8"))
    assert relay["test-results"]["passed"] == len(document["tests"])
    assert len(relay["delivery-id"]) == 40
    assert "dlpack::test_a_tensor_tells_its_device" in (tmp_path / "card.html").read_text("utf-8")
    again = ("--device", "openreg", "--import", "planted", "--suite", "dlpack", "--compare", "card.json")
    done = kit("conformance", *again, PLANTED="dlpack_device")
    assert done.returncode == 1
    assert "dlpack::test_a_tensor_tells_its_device: passed -> failed" in done.stdout
    assert "dlpack::test_a_tensor_tells_its_device: PyTorch expects: Tensor.__dlpack_device__()" in done.stdout
    assert "registration.DLPack is used by torch.from_dlpack" in done.stdout


@FURTHER
def test_the_kit_tries_itself_on_the_cpu(kit):
    done = kit("conformance", "--device", "cpu", "--suite", "serialization", "--suite", "generator", "--verbose")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "skipped generator::test_fork_rng_leaves_no_trace: the CPU is not an accelerator" in done.stdout


def test_a_backend_with_little_gets_a_whole_scorecard(kit, tmp_path):
    (tmp_path / "toaster.py").write_text(TOASTER, "utf-8")
    arguments = ("--device", "toaster", "--import", "toaster", "--suite", "device", "--suite", "streams")
    done = kit("conformance", *arguments, "--json", "card.json", TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    assert done.returncode == 1, done.stderr
    found = json.loads((tmp_path / "card.json").read_text("utf-8"))["tests"]
    statuses = {test["name"]: test["status"] for test in found}
    assert statuses["device::test_devices_are_counted"] == "passed"
    assert statuses["device::test_numbers_go_there_and_back[float32]"] == "failed"
    assert statuses["device::test_set_device_takes_every_form[index]"] == "failed"  # every backend has to have it
    assert statuses["device::test_properties_have_a_name_and_a_size"] == "skipped"  # and this one not
    assert "passed" not in {status for name, status in statuses.items() if name.startswith("streams::")}


def test_random_calls_repeat_by_their_seed(kit):
    one, again = (kit("fuzz", "--device", "openreg", "--seed", "1234", "--count", "3") for _ in range(2))
    assert one.returncode == 0, one.stdout + one.stderr
    # A seed draws other calls from the table of another release of PyTorch, of which some may not be made.
    assert re.fullmatch(r"from seed 1234\n[1-3] calls?, 0 failures\n", one.stdout)
    assert again.stdout == one.stdout
    right = kit("fuzz", "--device", "openreg", "--table", "crashing:RIGHT", "--seed", "6", "--count", "3")
    assert (right.returncode, right.stdout) == (0, "from seed 6\n3 calls, 0 failures\n"), right.stderr


def test_random_calls_that_were_not_made_are_not_counted_and_are_a_problem_if_there_is_no_other(kit):
    made = kit("fuzz", "--device", "openreg", "--table", "crashing:RIGHT", "--seed", "6", "--count", "1")
    assert (made.returncode, made.stdout) == (0, "from seed 6\n1 call, 0 failures\n"), made.stderr
    declined = kit("fuzz", "--device", "openreg", "--table", "crashing:RIGHT", "--seed", "2", "--count", "1")
    assert declined.returncode == 1
    assert declined.stdout.startswith("from seed 2\n0 calls, 0 failures\nnothing was tested: ")


def test_the_suites_are_listed(capsys):
    assert command.main(["conformance", "--list"]) == 0
    assert capsys.readouterr().out.split() == ["operators", *suite_tests.names()]
    assert {"device", "streams", "events", "guard", "allocator", "generator"} < set(suite_tests.names())


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "no backend is named; give --device NAME"),
        (["--device", "npu:0"], "'npu:0' is not the name of a device; give a name such as npu"),
        (["--device", "npu", "--import", "torch_missing"], "--import 'torch_missing': there is no such module"),
        (
            ["--device", "npu", "--suite", "stream"],
            "--suite 'stream' is unknown (the closest is streams); accepted are operators",
        ),
        (["--device", "npu", "--suite", "streams", "--op", "abs"], "--op is for the suite operators"),
        (["--device", "npu", "--quick", "--check", "out"], "--quick chooses checks and dtypes itself"),
        (["--device", "npu", "--check", "flags"], "--check flags needs variables that defer all kernels"),
        (["--device", "npu", "--check", "forward", "--check", "flags"], "pass a --manifest with [flags] environment ="),
        (["--device", "npu", "--pytorch-tests", ".", "--suite", "streams"], "leave out --suite"),
        (["--device", "npu", "--pytorch-tests", ".", "--op", "abs"], "leave out --op"),
        (["--device", "npu", "--pytorch-tests", "absent"], "there is no folder absent; give the folder test/"),
        (["--device", "npu", "--file", "test_ops.py"], "give their folder with --pytorch-tests DIR"),
        (["--device", "npu", "--test", "streams::*", "--op", "abs"], "give one of them"),
        (["--device", "npu", "--compare", "absent.json"], "absent.json cannot be read as JSON"),
        (["--device", "npu", "--json", "absent/card.json"], "does not exist; create it or name another file"),
        (["--device", "npu", "--html", "."], ". is a folder; name a file in it"),
        (["--device", "npu", "--relay", "x" * 300], "name a file that can be written"),
        (["--manifest", "absent.toml"], "absent.toml: the file cannot be read"),
    ],
)
def test_wrong_use_is_reported_with_the_way_out(arguments, told, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert command.main(["conformance", *arguments]) == 2
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["conformance", "--jobs", "0"], "expected a number from 1, got '0'"),
        (["conformance", "--limit", "never"], "expected seconds up to a day, got 'never'"),
        (["conformance", "--table", "tables"], "expected MODULE:NAME, such as torch.testing"),
        (["conformance", "--shard", "5/4"], "expected K/N, such as 1/4, got '5/4'"),
        (["conformance", "--shard", "0/4"], "expected K/N"),
        (["conformance", "--dtype", "half"], "invalid choice: 'half'"),
        (["conformity"], "invalid choice: 'conformity'"),
        ([], "the following arguments are required: conformance|fuzz"),
    ],
)
def test_what_cannot_be_parsed_is_reported(arguments, told, capsys):
    with pytest.raises(SystemExit) as caught:
        command.main(arguments)
    assert caught.value.code == 2
    assert told in capsys.readouterr().err


def test_a_manifest_of_another_device_is_refused(tmp_path, capsys):
    path = tmp_path / "npu.toml"
    path.write_text('device = "npu"', "utf-8")
    assert command.main(["conformance", "--device", "toaster", "--manifest", str(path)]) == 2
    assert "--device 'toaster', but" in capsys.readouterr().err


def test_a_device_that_does_not_come_is_reported(kit, tmp_path):
    done = kit("conformance", "--device", "npu")
    assert done.returncode == 2
    assert "there is no device 'npu': after `import torch`, the loaded backend is 'openreg'" in done.stderr
    done = kit("conformance", "--device", "npu", TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    assert "no PrivateUse1 backend is loaded; pass the name of the backend as --device" in done.stderr
    (tmp_path / "falls_over.py").write_text("raise OSError('libnpu.so is not there')", "utf-8")
    done = kit("conformance", "--device", "npu", "--import", "falls_over")
    assert done.returncode == 2
    assert "the device 'npu' cannot be initialized: OSError: libnpu.so is not there" in done.stderr
    (tmp_path / "ends.py").write_text("import os\nos.abort()", "utf-8")
    done = kit("conformance", "--device", "npu", "--import", "ends")
    assert done.returncode == 2
    assert "the device 'npu' cannot be initialized: crashed with" in done.stderr


@FURTHER
def test_a_manifest_with_unknown_operators_and_tests_is_refused(kit, tmp_path):
    (tmp_path / "card.toml").write_text('device = "openreg"\n[operators.erfff]\nfails = "it does"', "utf-8")
    done = kit("conformance", "--manifest", "card.toml", "--op", "erf", "--check", "forward", "--dtype", "float32")
    assert done.returncode == 2
    assert "card.toml: [operators] 'erfff' names no entry of PyTorch's table of operators" in done.stderr
    (tmp_path / "card.toml").write_text('device = "openreg"\n[tests."streams::x"]\nfails = "it does"', "utf-8")
    done = kit("conformance", "--manifest", "card.toml", "--test", "dlpack::*")
    assert done.returncode == 2
    assert "card.toml: [tests] 'streams::x' names no test of the kit" in done.stderr
    done = kit("conformance", "--manifest", "card.toml", "--suite", "streams")
    assert done.returncode == 2
    assert "card.toml: [tests] 'streams::x' names no test of the kit" in done.stderr
    done = kit("conformance", "--manifest", "card.toml", "--suite", "dlpack", "--json", "card.json")
    assert done.returncode == 0
    assert (tmp_path / "card.json").is_file()


def test_a_table_that_is_not_there_is_reported(kit):
    done = kit("conformance", "--device", "openreg", "--table", "no_such_module:TABLE")
    assert done.returncode == 2
    assert "no_such_module:TABLE: ModuleNotFoundError" in done.stderr


# A backend with which the first test of the suite `dlpack` leaves a file.
LEAVES_A_FILE = """
import pathlib, torch, torch_openreg
torch.Tensor.__dlpack_device__ = lambda self: pathlib.Path("ran").touch()
"""


@pytest.mark.parametrize(
    ("manifest", "options", "told"),
    [
        ("", ("--table", "no_such_module:TABLE"), "no_such_module:TABLE: ModuleNotFoundError"),
        ("[operators.erfff]\nfails = 'it does'", (), "[operators] 'erfff' names no entry"),
        (
            "[flags]\nenvironment = {A_VARIABLE = '1'}\ntable = 'no_such_module:TABLE'",
            ("--check", "flags", "--shard", "1/9999"),
            "no_such_module:TABLE: ModuleNotFoundError",
        ),
    ],
    ids=["table", "entry", "table of the check of flags"],
)
def test_operators_that_cannot_be_run_are_reported_before_the_tests_of_other_suites(
    kit, tmp_path, manifest, options, told
):
    (tmp_path / "leaves_a_file.py").write_text(LEAVES_A_FILE, "utf-8")
    (tmp_path / "card.toml").write_text(manifest, "utf-8")
    backend = ("--device", "openreg", "--import", "leaves_a_file", "--manifest", "card.toml")
    done = kit("conformance", *backend, "--suite", "dlpack", "--suite", "operators", *options)
    assert done.returncode == 2
    assert told in done.stderr
    assert not (tmp_path / "ran").exists()


def test_nothing_to_run_is_a_problem(kit):
    done = kit("conformance", "--device", "openreg", "--op", "no_such_operator", "--check", "forward")
    assert done.returncode == 1
    assert "nothing was run" in done.stdout
