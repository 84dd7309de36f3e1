# SPDX-License-Identifier: BSD-3-Clause
"""A good wheel passes, and each thing that may be wrong with one is reported.

That auditwheel sees a needless library is shown where auditwheel is: the check plants one before it trusts the answer.
"""

import subprocess
import sys
import zipfile

import pytest

from tools import check_wheels
from tools._platform import IS_WINDOWS, LINUX_LIBRARY_SUFFIX
from tools.packages import ROOT, Package

METADATA = """\
Metadata-Version: 2.4
Name: openreg-ops
Version: 0.1.0
Summary: Operators
License-Expression: BSD-3-Clause
License-File: LICENSE
Classifier: Development Status :: 3 - Alpha
Classifier: Programming Language :: Python :: 3.10
Classifier: Programming Language :: Python :: 3.11
Classifier: Programming Language :: Python :: 3.12
Classifier: Programming Language :: Python :: 3.13
Classifier: Programming Language :: Python :: 3.14
Classifier: Typing :: Typed
Requires-Python: >=3.10
Requires-Dist: openreg-runtime==0.1.*
Requires-Dist: pytest>=8.3; extra == "test"
Provides-Extra: test
Description-Content-Type: text/markdown

# Operators
"""
SO = LINUX_LIBRARY_SUFFIX
INFO = "openreg_ops-0.1.0.dist-info"
GOOD = {
    f"{INFO}/METADATA": METADATA,
    f"{INFO}/licenses/LICENSE": "",
    "openreg_ops/__init__.py": "",
    "openreg_ops/py.typed": "",
}
REPORT = {
    "wheel": "openreg_ops.whl",
    "pure": False,
    "pyfpe": False,
    "ucs2": False,
    "unsupported_isa": False,
    "external_libs": {f"libc10{SO}": None, f"libtorch_cpu{SO}": None, f"libopenreg_runtime{SO}": None},
    "policy_upgrades": {"manylinux_2_41_x86_64": {"libs_to_eliminate": [f"libc10{SO}"]}},
}
OURS = {f"libopenreg{SO}", f"libopenreg_runtime{SO}"}


@pytest.fixture
def package(tmp_path):
    (tmp_path / "README.md").write_text("# Operators\n", encoding="utf-8")
    return Package("openreg-ops", tmp_path, "0.1.0", ("openreg-runtime==0.1.*",), (), {}, {})


def problems(package, files):
    wheel = package.folder / "openreg_ops-0.1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return check_wheels.metadata_problems(package, wheel)


def test_a_good_wheel_passes(package):
    assert problems(package, GOOD) == []


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("Version: 0.1.0", "Version: 0.2.0", "the version is 0.2.0, not 0.1.0"),
        ("Version: 0.1.0", "Version: next", "invalid"),
        ("Classifier: Typing :: Typed\n", "", "classifiers are missing: ['Typing :: Typed']"),
        ("Python :: 3.12", "Python :: 3.9", "Python :: 3.12"),
        ("License-Expression: BSD-3-Clause", "License-Expression: MIT", "the licence is not BSD-3-Clause"),
        ("License-Expression: BSD-3-Clause", "License-Expression: Ours", "invalid"),
        ("Summary: Operators\n", "", "the summary is missing"),
        ("# Operators", "# Other", "the long description is not README.md"),
        ("text/markdown", "text/plain", "the long description is not Markdown"),
        ("Requires-Dist: openreg-runtime==0.1.*\n", "", "it needs [], not ['openreg-runtime==0.1.*']"),
        (">=3.10", ">=3.9", "Requires-Python is not >=3.10"),
    ],
)
def test_metadata_that_is_wrong_is_reported(package, old, new, said):
    assert old in METADATA
    found = problems(package, {**GOOD, f"{INFO}/METADATA": METADATA.replace(old, new)})
    assert any(said in line for line in found), found


@pytest.mark.parametrize(
    ("file", "said"), [("openreg_ops/py.typed", "py.typed is missing"), (f"{INFO}/licenses/LICENSE", "the licence")]
)
def test_a_file_that_is_missing_is_reported(package, file, said):
    (found,) = problems(package, {name: text for name, text in GOOD.items() if name != file})
    assert said in found


def test_libraries_of_torch_and_our_own_are_no_problem():
    assert check_wheels.library_problems(REPORT, OURS) == []
    assert check_wheels.library_problems({"wheel": "x", "pure": True}, OURS) == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"external_libs": {"libplanted.so.7": None, f"libc10{SO}": None}}, "needs libplanted.so.7, which no Linux"),
        ({"external_libs": {f"libtorch_cuda{SO}": None}}, "needs libtorch_cuda"),
        ({"external_libs": {f"libopenreg_other{SO}": None}}, "needs libopenreg_other"),
        ({"unsupported_isa": True}, "unsupported_isa"),
        ({"policy_upgrades": {"manylinux_2_41": {"blacklisted_symbols": {"libz.so.1": ["a"]}}}}, "forbids"),
        ({"error": "no such policy"}, "no such policy"),
    ],
)
def test_a_report_of_auditwheel_that_is_not_clean_fails(change, said):
    (found,) = check_wheels.library_problems({**REPORT, **change}, OURS)
    assert said in found


def test_shared_libraries_of_a_wheel_are_those_by_name(package):
    problems(package, {f"openreg_ops/_C{SO}": "", "openreg_ops/lib/libz.so.1.3": "", "openreg_ops/soup.so.py": ""})
    (wheel,) = package.folder.glob("*.whl")
    assert check_wheels.libraries_in(wheel) == {f"_C{SO}", "libz.so.1.3"}


@pytest.mark.skipif(IS_WINDOWS, reason="a script stands for the compiler, and Windows runs no such file")
def test_a_machine_with_a_compiler_is_not_plain(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("print('ran')", encoding="utf-8")
    command = [sys.executable, str(ROOT / "tools" / "check_plain_machine.py"), str(script)]
    tools = tmp_path / "tools"
    tools.mkdir()
    result = subprocess.run(command, env={"PATH": str(tools)}, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (0, "ran\n")
    (tools / "cmake").write_text("#!/bin/sh\n", encoding="utf-8")
    (tools / "cmake").chmod(0o755)
    result = subprocess.run(command, env={"PATH": str(tools)}, capture_output=True, text=True, check=False)
    assert result.returncode != 0
    assert f"this machine has {tools / 'cmake'}" in result.stderr
