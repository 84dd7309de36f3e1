# SPDX-License-Identifier: BSD-3-Clause
"""The declarations of packages to the doctor are true, and an untrue one is found.

Whether the questions are complete is tested where PyTorch is installed: packages/openreg-doctor/tests.
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
RECORDER = "registration.REGISTER_PRIVATEUSE1_PROFILER"
NO_SENSORS = "not applicable: a simulated device has no sensors and one process"


def test_what_the_packages_declare_is_true():
    assert hooks.problems() == []
    assert {item.package.name for item in hooks.declarations()} >= {
        *("openreg-runtime", "openreg-ops", "openreg-amp", "openreg-autoload", "openreg-meta"),
    }


@pytest.mark.parametrize(
    ("file", "old", "new", "text"),
    [
        (PROFILER, "profiler.py", "gone.py", "no file packages/openreg-profiler/src/openreg_profiler/gone.py"),
        (RANGES, '@pytest.mark.covers("module.profiler")', "", "module.profiler: implemented, but no test covers it"),
        (RANGES, "def test_ranges_are_on_the", "def ranges_are_on_the", "module.profiler: implemented, but no test"),
        (TRAINING, RECORDER, f"{RECORDER}S", f"inside_its_operator covers {RECORDER}S, which is no hook"),
        (PROFILER, 'code = ["src', 'other = ["src', "module.profiler: no package answers, and none says why not"),
        (
            PROFILER,
            'reader = "users',
            'other = "users',
            "no hook module.profiler is known; correct the name, or",
        ),
        (
            RUNTIME,
            "not applicable: the order",
            "the order",
            "Event.from_ipc_handle: the status should begin with one of",
        ),
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


def test_a_row_becomes_a_line_with_links():
    lines = hooks.render().splitlines()
    assert "## The device's module" in lines
    runtime, ops = "../../openreg-runtime", "../../openreg-ops"
    (line,) = (line for line in lines if line.startswith("| `set_sync_debug_mode` |"))
    assert f" | {hooks.OLDEST} | implemented | [_sync_debug.py]({runtime}/src/" in line
    assert f"<br>[sync_debug.cpp]({runtime}/csrc/base/sync_debug.cpp) |" in line
    assert f" | [test_sync_debug]({ops}/tests/test_sync_debug.py): what makes the host wait is refused<br>" in line
    (line,) = (line for line in lines if "`power_draw`" in line)
    assert line.startswith("| `temperature`<br>`power_draw`<br>`clock_rate`<br>")
    assert line.endswith(f"<br>`memory_usage` | users of torch.cuda with NVML | {hooks.OLDEST} | {NO_SENSORS} |  |  |")


def test_the_models_are_the_files_that_answer():
    rows = hooks.models()["rows"]
    assert rows["guard.getDevice"] == {"code": ["packages/openreg-runtime/csrc/pytorch/guard.cpp"]}
    assert rows["module.profiler"] == {"code": ["packages/openreg-profiler/src/openreg_profiler/profiler.py"]}
    assert rows["module.temperature, power_draw, clock_rate, list_gpu_processes, memory_usage"] == {
        "status": NO_SENSORS
    }


def test_what_is_said_of_a_package_that_is_not_installed():
    answered = ["module.profiler", "registration.REGISTER_PRIVATEUSE1_PROFILER"]
    without = "torch.profiler records the host alone"
    brought = {"module": "openreg_profiler", "without": without, "settings": ["OPENREG_PROFILE"], "hooks": answered}
    assert hooks.absent_packages(ROOT, ["openreg-profiler", "openreg-silent"]) == {"openreg-profiler": brought}


def test_the_settings_that_packages_read_are_declared_with_their_meaning():
    declared = {item.package.name: item.data.get("settings", {}) for item in hooks.declarations()}
    for known in declared.values():
        assert all(row["meaning"] and row["example"] and row["default"] for row in known.values())
    for name, known in declared.items():
        sources = (ROOT / "packages" / name / "csrc").rglob("*.cpp")
        read = {found for path in sources for found in re.findall(r'"(OPENREG_[A-Z_]+)"', path.read_text("utf-8"))}
        assert read <= set(known), name
    assert "OPENREG_OPS" in declared["openreg-ops"]
