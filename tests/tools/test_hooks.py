# SPDX-License-Identifier: BSD-3-Clause
"""The declarations of packages to the doctor are true, and an untrue one is found.

That the hook table is complete is tested where PyTorch is installed: packages/openreg-doctor/tests.
"""

import re

import pytest
from helpers import replace

from tools import hooks
from tools.packages import ROOT

RUNTIME, OPS, PROFILER = (
    f"packages/openreg-{name}/src/openreg_{name}/doctor.toml" for name in ("runtime", "ops", "profiler")
)
PROJECT, RANGES, TRAINING = (
    f"packages/openreg-profiler/{name}" for name in ("pyproject.toml", "tests/test_ranges.py", "tests/test_training.py")
)
TABLE = hooks.TABLE.as_posix()
RECORDER = "registration.REGISTER_PRIVATEUSE1_PROFILER"


def test_what_the_packages_declare_is_true():
    assert hooks.problems() == []
    assert {item.package.name for item in hooks.declarations()} >= {
        *("openreg-runtime", "openreg-ops", "openreg-amp", "openreg-autoload", "openreg-meta"),
    }


GUARD = "packages/openreg-runtime/csrc/pytorch/guard.cpp"


@pytest.mark.parametrize(
    ("file", "old", "new", "text"),
    [
        (
            TABLE,
            "csrc/random/graph.cpp",
            "csrc/random/gone.cpp",
            "graph.replay: no file packages/openreg-runtime/csrc/",
        ),
        (TABLE, f'code = ["{GUARD}"]\n\n[guard.type]', "[guard.type]", "guard.type: neither code nor a status"),
        (TABLE, "not applicable: the order", "the order", "Event.from_ipc_handle: the status should begin with one of"),
        (RANGES, '@pytest.mark.covers("module.profiler")', "", "module.profiler: implemented, but no test covers it"),
        (RANGES, "def test_ranges_are_on_the", "def ranges_are_on_the", "module.profiler: implemented, but no test"),
        (TRAINING, RECORDER, f"{RECORDER}S", f"inside_its_operator covers {RECORDER}S, which is no hook"),
        (RUNTIME, '"guard.*"', '"guards.*"', "no hook guards.* is known; correct the name"),
        (
            RUNTIME,
            '"guard.*", ',
            "",
            "guard.type: its code is in ['openreg-runtime'], and doctor.toml declares it in []",
        ),
        (PROFILER, f'["{RECORDER}"]', "[]", f"{RECORDER}: its code is in ['openreg-profiler', 'openreg-runtime'], and"),
        (
            OPS,
            "operators of SyncB",
            "parts of SyncB",
            "no hook registration.the parts of SyncBatchNorm is known; correct",
        ),
        (PROJECT, "openreg_doctor.packages", "other", "doctor.toml is not announced"),
    ],
)
def test_an_untrue_declaration_is_found_out(checkout, file, old, new, text):
    replace(checkout / file, old, new)
    assert any(text in problem for problem in hooks.problems(checkout))


def test_the_code_and_the_tests_of_a_row():
    rows, tests = {row.key: row for group in hooks.load() for row in group.rows}, hooks.covering_tests()
    assert rows["guard.getDevice"].code == (GUARD,)
    assert rows["module.profiler"].code == ("packages/openreg-profiler/src/openreg_profiler/profiler.py",)
    no_sensors = rows["module.temperature, power_draw, clock_rate, list_gpu_processes, memory_usage"]
    assert (no_sensors.status, no_sensors.code) == (
        "not applicable: a simulated device has no sensors and one process",
        (),
    )
    assert hooks.tests_of(rows["module.set_sync_debug_mode"], tests) == [
        "packages/openreg-ops/tests/launches/test_sync_debug.py::test_what_makes_the_host_wait_is_refused",
        "packages/openreg-ops/tests/launches/test_sync_debug.py::test_what_lets_the_host_go_on_is_allowed",
        "packages/openreg-runtime/tests/device/test_sync_debug.py::test_a_wait_for_a_stream_is_warned_of",
        "packages/openreg-runtime/tests/device/test_sync_debug.py::test_a_wait_for_a_stream_is_refused_before_it_begins",
    ]


def test_what_is_said_of_a_package_that_is_not_installed():
    implemented = [RECORDER, "module.profiler"]
    without = "torch.profiler records the host alone"
    brought = {"module": "openreg_profiler", "without": without, "settings": ["OPENREG_PROFILE"], "hooks": implemented}
    assert hooks.absent_packages(ROOT, ["openreg-profiler", "openreg-silent"]) == {"openreg-profiler": brought}


def test_the_settings_that_packages_read_are_declared_with_their_meaning():
    declared = {item.package.name: item.content.settings for item in hooks.declarations()}
    for known in declared.values():
        assert all(setting.meaning and setting.example and setting.default for setting in known)
    for name, known in declared.items():
        sources = (ROOT / "packages" / name / "csrc").rglob("*.cpp")
        read = {found for path in sources for found in re.findall(r'"(OPENREG_[A-Z_]+)"', path.read_text("utf-8"))}
        assert read <= {setting.name for setting in known}, name
    assert "OPENREG_OPS" in [setting.name for setting in declared["openreg-ops"]]
