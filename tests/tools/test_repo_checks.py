# SPDX-License-Identifier: BSD-3-Clause
"""Every check of the repository passes on it, and fails on a copy that violates its rule."""

import pytest
from helpers import replace, write_files

from tools import abi, providers, torch_release
from tools.checks import repo_checks

RELEASE, OTHER_RELEASE = torch_release.current(), torch_release.others()[0]
LICENSE = "# SPDX-License-Identifier: BSD-3-Clause\n"
NAMES = '[project.entry-points."openreg.names"]\n'
FEATURES = '[project.entry-points."openreg.features"]\n'
PLANNED = "[tool.openreg.planned]\n"

RUNTIME, OPS, EXTRA = (f"packages/openreg-{name}" for name in ("runtime", "ops", "profiler"))
DRIVER = f"{RUNTIME}/csrc/driver"
TESTING = "packages/openreg-testing/src/openreg_testing"
PROBES = "packages/openreg-doctor/src/openreg_doctor/probes"
RUNTIME_INIT, EXTRA_INIT = f"{RUNTIME}/src/openreg_runtime/__init__.py", f"{EXTRA}/src/openreg_profiler/__init__.py"
RUNTIME_TOML, OPS_TOML, EXTRA_TOML = (f"{folder}/pyproject.toml" for folder in (RUNTIME, OPS, EXTRA))
META = "packages/openreg-meta/pyproject.toml"
HEADER, TEST = f"{DRIVER}/include/openreg.h", f"{OPS}/tests/test_one.py"
ADDED, INCLUDES = f"{RUNTIME}/include/openreg/runtime/added.h", '#include "openreg/runtime/added.h"\n'
TABLE = providers.TABLE.as_posix()
GONE = None


def damage(root, file, old, new):
    """Replaces text of a file or appends to it; with GONE, takes it away or renames it."""
    path = root / file
    if old is GONE:
        path.rename(root / (new or "gone"))
    else:
        replace(path, old, new)


def one_test(*lines, before=""):
    """A test with these lines."""
    return LICENSE + before + "def test_it():\n" + "".join(f"    {line}\n" for line in lines)


# A rule, and a change that breaks it: a file, what is replaced in it, and by what.
PLANTED = [
    ("package_shape", f"{OPS}/README.md", GONE, GONE),
    ("package_shape", f"{OPS}/src/openreg_ops/py.typed", GONE, GONE),
    ("package_shape", "examples/openreg-meta.py", GONE, GONE),
    ("package_shape", f"{RUNTIME}/CMakeLists.txt", GONE, GONE),
    ("packages_have_the_license", f"{OPS}/LICENSE", "", "x"),
    ("packages_have_the_license", "templates/package/LICENSE", "", "x"),
    ("names_derive_from_one", OPS, GONE, "packages/ops"),
    ("names_derive_from_one", f"{OPS}/src/openreg_ops", GONE, f"{OPS}/src/ops"),
    ("names_derive_from_one", f"{OPS}/CMakeLists.txt", "", "project(ops)\n"),
    ("metadata_is_alike", OPS_TOML, "license =", "other ="),
    ("metadata_is_alike", OPS_TOML, "description =", "other ="),
    ("metadata_is_alike", OPS_TOML, ">=3.10", ">=3.9"),
    ("metadata_is_alike", OPS_TOML, '"Typing :: Typed",', ""),
    ("sources_listed", f"{DRIVER}/added.cpp", "", "\n"),
    ("sources_listed", f"{DRIVER}/platform/linux.cpp", "", "\n"),
    ("sources_listed", f"{DRIVER}/added.h", "", "\n"),
    ("sources_listed", ADDED, "", "\n"),
    ("includes_go_down", f"{DRIVER}/base/lock.h", "", '#include "api/driver.h"\n'),
    ("imports_go_down", f"{TESTING}/workers/wire.py", "", "from openreg_testing.plugin import sizes\n"),
    ("imports_go_down", f"{TESTING}/plugin/waits.py", "", "from .usage import USAGE\n"),
    ("imports_go_down", f"{PROBES}/device.py", "", "from ..checks import device\n"),
    ("types_have_names_of_their_own", f"{OPS}/csrc/support/added.h", "", "class Device {\n};\n"),
    ("types_have_names_of_their_own", f"{OPS}/src/openreg_ops/_added.py", "", "class CommandProcessor:\n    pass\n"),
    ("pins_are_of_one_release", EXTRA_TOML, f'version = "{RELEASE}', f'version = "{OTHER_RELEASE}'),
    ("pins_are_of_one_release", EXTRA_TOML, f'version = "{RELEASE}', 'version = "2.12'),
    ("pins_are_of_one_release", RUNTIME_TOML, f'  "torch=={RELEASE}.*"', f'  "torch>={RELEASE}"'),
    ("documents_tell_the_truth", "README.md", "", "[see](docs/none.md)\n"),
    ("documents_tell_the_truth", f"{OPS}/README.md", "", "```python\nimport openreg_other\n```\n"),
    ("native_parts_ask_first", f"{EXTRA}/CMakeLists.txt", "openreg_install_python_modules(_C)", "install(TARGETS _C)"),
    ("native_parts_ask_first", EXTRA_INIT, "openreg_runtime.require_matching_build(__name__)\n", ""),
    ("native_parts_ask_first", EXTRA_INIT, "import openreg_runtime", "from openreg_profiler import _C"),
    ("headers_have_their_number", HEADER, "", "int orAdded(void);\n"),
    ("headers_are_needed", ADDED, "", "\n"),
    ("plugins_tell_the_doctor", f"{EXTRA}/src/openreg_profiler/doctor.toml", GONE, GONE),
    ("declarations_are_written", META, "all = ", "most = "),
    ("declarations_are_written", META, f'all = ["openreg-compile=={RELEASE}.*", ', "all = ["),
    ("declarations_are_written", META, "\nprofiler = ", "\nother = "),
    ("declarations_are_written", META, f"profiler=={RELEASE}.*", f"profiler=={OTHER_RELEASE}.*"),
    ("declarations_are_written", META, providers.END, ""),
    ("declarations_are_written", META, "", f"{PLANNED}jit = 'openreg-jit'\n"),
    ("declarations_are_written", EXTRA_TOML, "extra = true", ""),
    ("declarations_are_written", EXTRA_TOML, 'profiler = "openreg_profiler:', 'other = "openreg_profiler:'),
    ("declarations_are_written", TABLE, "openreg-profiler", "openreg-ops"),
    ("declarations_are_written", TABLE, GONE, GONE),
    ("brought_by_one_package", RUNTIME_TOML, "", f"{NAMES}profiler = 'openreg_runtime:profiler'\n"),
    ("brought_by_one_package", RUNTIME_TOML, "", f"{FEATURES}profiler = 'openreg_runtime'\n"),
    ("brought_by_one_package", META, "", f"{PLANNED}profiler = 'openreg-other'\n"),
    ("runtime_names_no_other_package", RUNTIME_INIT, "", 'TEXT = "pip install openreg-ops"\n'),
    ("runtime_names_no_other_package", RUNTIME_INIT, "", "# As openreg_profiler does.\n"),
    ("runtime_names_no_other_package", RUNTIME_INIT, "", '"""torch_openreg calls it."""\n'),
    # Its tests may ask for that one.
    ("runtime_names_no_other_package", RUNTIME_INIT, "", "# openreg_testing does it.\n"),
    # A package that is planned, and a name that is in the runtime.
    ("runtime_names_no_other_package", META, "", f"{PLANNED}x = 'openreg-find-torch'\n"),
    ("runtime_names_no_other_package", f"{DRIVER}/objects/device.cpp", "", "namespace openreg::ops {}\n"),
    ("runtime_names_no_other_package", HEADER, "", '#include "openreg/ops/kernel.h"\n'),
    ("runtime_names_no_other_package", f"{RUNTIME}/CMakeLists.txt", "", "# openreg-meta brings it\n"),
    ("runtime_names_no_other_package", RUNTIME_TOML, "openreg-testing", "openreg-profiler"),
    ("runtime_names_no_other_package", RUNTIME_TOML, f'  "openreg-doctor=={RELEASE}.*",\n', ""),
    *(
        ("tests_need_no_fast_machine", TEST, "", text)
        for text in (
            one_test("assert time.monotonic() - begin < 5"),
            one_test("took = time.perf_counter() - begin", "assert 0.1 < took < LIMIT"),
            one_test("assert 2 <= start.elapsed_time(end) < 2000"),
            one_test("assert 5 > time.time() - begin"),
            one_test("torch.openreg._sleep(10)", "assert not torch.openreg.current_stream().query()"),
            one_test("api.delay(None, 0.01)", "assert not api.stream_ready(None)"),
            one_test("pause()", "assert is_busy()", before="def pause():\n    torch.openreg._sleep(10)\n"),
            one_test("subprocess.run(command, timeout=30)"),
        )
    ),
]


@pytest.mark.parametrize("check", repo_checks.CHECKS, ids=lambda check: check.__name__)
def test_this_repository_keeps_the_rule(check, checkout):
    problems = check(checkout)
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize(
    "lines",
    [
        ("assert time.monotonic() - begin >= 0.05",),
        ("assert start.elapsed_time(end) >= 2",),
        ("assert api.elapsed(end, start) <= -10",),
        ("outside = time.monotonic() - begin", "assert 20 <= api.elapsed(start, end) <= outside"),
        ("assert time.monotonic() < deadline",),
        ("gate.close()", "torch.openreg._sleep(10)", "assert is_busy()"),
        ("torch.openreg._sleep(10)", "torch.openreg.synchronize()", "assert torch.openreg.current_stream().query()"),
        ("subprocess.run(command, timeout=120)",),
    ],
)
def test_a_test_for_any_machine_passes(lines, checkout):
    write_files(checkout, {TEST: one_test(*lines)})
    assert repo_checks.tests_need_no_fast_machine(checkout) == []


def test_code_in_a_document_has_no_links(checkout):
    block = "````text\n```cpp\n[](int x) {}\n```\n````\n"
    write_files(checkout, {"README.md": f"[see](LICENSE)\n\n{block}\n```cpp\n[&](auto y) {{}}\n```\n"})
    assert repo_checks.documents_tell_the_truth(checkout) == []
    write_files(checkout, {"README.md": f"{block}\n[see](docs/none.md)\n\n{block}"})
    assert repo_checks.documents_tell_the_truth(checkout) == ["README.md: no file docs/none.md"]


def test_the_first_program_of_a_readme_imports_what_it_uses(checkout):
    shown = "```python\nprint(torch.ones(2))\n```\n"
    texts = {"examples/openreg-ops.py": "import torch\n\nprint(torch.ones(2))\n"}
    write_files(checkout, {**texts, f"{OPS}/README.md": f"```python\nimport torch\n```\n\n{shown}"})
    assert repo_checks.documents_tell_the_truth(checkout) == []
    write_files(checkout, {f"{OPS}/README.md": shown})
    (problem,) = repo_checks.documents_tell_the_truth(checkout)
    assert problem.startswith("packages/openreg-ops/README.md: its first program does not run alone")


@pytest.mark.parametrize(("rule", "file", "old", "new"), PLANTED)
def test_a_planted_violation_is_found(rule, file, old, new, checkout):
    damage(checkout, file, old, new)
    assert getattr(repo_checks, rule)(checkout) != []


def test_every_check_has_a_planted_violation():
    assert {rule for rule, *_ in PLANTED} == {item.__name__ for item in repo_checks.CHECKS}


def test_the_runtime_may_name_itself_and_what_it_depends_on(checkout):
    damage(
        checkout, RUNTIME_INIT, "", "# openreg-runtime, openreg_runtime, openreg::runtime, openreg/runtime/device.h\n"
    )
    damage(checkout, RUNTIME_INIT, "", "# openreg_operator, openreg-opsy, my-openreg-ops, openreg::operators\n")
    damage(checkout, RUNTIME_INIT, "", "# openreg-doctor\n")
    assert repo_checks.runtime_names_no_other_package(checkout) == []


API = """\
// What it is.
#pragma once
#include <cstdint>

constexpr const char* kPlace = "http://x"; /* a
   place */
void launch(int64_t size,  // in bytes
            int stream);
"""
SAME = [
    API.replace("// What it is.", "// Something else.\n//\n"),
    API.replace("  // in bytes\n            int", " int"),
    API.replace("/* a\n   place */", ""),
    API.replace("(int64_t", "(\n    int64_t").replace(", ", ","),
]
OTHER = [
    API.replace("int stream", "unsigned stream"),
    API.replace("int64_t size", "int64_tsize"),
    API.replace("http://x", "http://y"),
    API.replace("http://x", "http:/ /x"),
    API.replace("<cstdint>\n\n", "<cstdint> "),
    API.replace("void launch", "inline void launch"),
]


@pytest.mark.parametrize(("other", "same"), [*((text, True) for text in SAME), *((text, False) for text in OTHER)])
def test_code_is_a_change_and_comments_and_layout_are_none(other, same):
    assert other != API
    assert (abi.digest(other) == abi.digest(API)) == same


def added(root):
    replace(root / ADDED, "", "#pragma once\n")


@pytest.mark.parametrize(
    ("damage", "by", "said"),
    [
        (lambda root: replace(root / HEADER, "orStreamCreate(", "orStreamMake("), 0, "raise kAbiVersion to"),
        (lambda root: (root / abi.INCLUDE / "openreg/runtime/launch.h").unlink(), 0, "raise kAbiVersion to"),
        (added, 0, "raise kAbiVersion to"),
        (lambda root: None, -1, "raise kAbiVersion to"),
        (added, 1, "the headers are of ABI"),
    ],
)
def test_headers_and_their_number_change_together_and_are_recorded_then(checkout, damage, by, said, capsys):
    before, number = abi.recorded(checkout), abi.state(checkout)[0]
    assert {"openreg.h", "openreg/runtime/launch.h"} <= set(before[1])
    assert abi.headers_have_their_number(checkout) == []
    damage(checkout)
    replace(checkout / abi.VERSION, f"kAbiVersion = {number};", f"kAbiVersion = {number + by};")
    (problem,) = abi.headers_have_their_number(checkout)
    assert said in problem
    if by > 0:
        abi.record(checkout)
        assert abi.headers_have_their_number(checkout) == []
        assert abi.recorded(checkout)[0] == number + by
        return
    assert f"raise kAbiVersion to {number + 1}" in problem
    with pytest.raises(SystemExit):
        abi.record(checkout)
    assert capsys.readouterr().err == f"{problem}\n"
    assert abi.recorded(checkout) == before


def test_a_header_that_only_the_runtime_includes_is_not_public(checkout):
    write_files(checkout, {ADDED: "#pragma once\n", f"{RUNTIME}/csrc/added.cpp": INCLUDES})
    (problem,) = abi.headers_are_needed(checkout)
    assert "added.h: no file outside of the runtime includes it: move it to csrc/" in problem
    write_files(checkout, {f"{OPS}/csrc/added.cpp": INCLUDES})
    assert abi.headers_are_needed(checkout) == []
