# SPDX-License-Identifier: BSD-3-Clause
"""Every check passes on this repository and on a good tree, and fails on one that breaks it; also that of the ABI."""

import shutil

import pytest

from tools import abi, providers, repo_checks
from tools.packages import ROOT

LICENCE = "# SPDX-License-Identifier: BSD-3-Clause\n"
ASKS = "openreg_runtime.require_matching_build(__name__)\n"
ADDS = "openreg_runtime.extend('thing', thing)\n"
NAMES = '[project.entry-points."openreg.names"]\n'
FEATURES = '[project.entry-points."openreg.features"]\n'
PLANNED = 'compile = "openreg-compile"\n'
PLUGIN = '[project.entry-points."openreg.plugins"]\nopenreg_plugin = "openreg_plugin"\n'

RUNTIME, OPS, EXTRA = (f"packages/openreg-{name}" for name in ("runtime", "ops", "extra"))
DRIVER = f"{RUNTIME}/csrc/driver"
RUNTIME_INIT = f"{RUNTIME}/src/openreg_runtime/__init__.py"
OPS_INIT, EXTRA_INIT = f"{OPS}/src/openreg_ops/__init__.py", f"{EXTRA}/src/openreg_extra/__init__.py"
OPS_TOML, EXTRA_TOML, META = f"{OPS}/pyproject.toml", f"{EXTRA}/pyproject.toml", "packages/openreg-meta/pyproject.toml"
MODULE, HEADER, TEST = f"{EXTRA}/csrc/module.cpp", f"{RUNTIME}/include/openreg.h", f"{OPS}/tests/test_one.py"
TABLE = providers.TABLE.as_posix()
GONE = None


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8")


def add_package(root, name, dependencies=(), import_name=None, entry_points=""):
    folder = root / "packages" / name
    import_name = import_name or name.replace("-", "_")
    declared = ", ".join(f'"{item}"' for item in dependencies)
    write(
        folder / "pyproject.toml",
        f'[build-system]\nrequires = ["scikit-build-core"]\n'
        f'[project]\nname = "{name}"\nversion = "2.13.0"\ndependencies = [{declared}]\ndescription = "{name}"\n'
        f'license = "BSD-3-Clause"\nrequires-python = ">=3.10"\nclassifiers = ["Typing :: Typed"]\n{entry_points}',
    )
    for file in ("README.md", "CHANGELOG.md", "LICENSE", "tests/test_isolation.py"):
        write(folder / file, LICENCE)
    write(folder / "src" / import_name / "__init__.py", LICENCE + "import torch\n")
    write(folder / "src" / import_name / "py.typed", "")
    write(root / "examples" / f"{name}.py", LICENCE + f"import {import_name}\n")


@pytest.fixture
def tree(tmp_path):
    """A small repository that keeps every rule."""
    root = tmp_path / "repository"
    write(root / "LICENSE", LICENCE)
    add_package(root, "openreg-runtime", ["torch==2.13.*"])
    add_package(root, "openreg-ops", ["openreg-runtime==2.13.*"])
    extras = f"[project.optional-dependencies]\n{providers.BEGIN}{providers.END}[tool.openreg.planned]\n{PLANNED}"
    add_package(root, "openreg-meta", ["openreg-ops==2.13.*"], import_name="torch_openreg", entry_points=extras)
    brings = f"{NAMES}thing = 'openreg_extra:thing'\n[tool.openreg]\nextra = true\n"
    add_package(root, "openreg-extra", ["openreg-runtime==2.13.*"], entry_points=brings)
    add_package(root, "openreg-plugin", ["openreg-runtime==2.13.*"], entry_points=PLUGIN)
    for file, text in {
        "packages/openreg-plugin/src/openreg_plugin/doctor.toml": 'device = "openreg"\n',
        f"{EXTRA}/CMakeLists.txt": "project(openreg_extra)\nopenreg_install_python_modules(_C)\n# csrc/module.cpp\n",
        f"{EXTRA}/csrc/module.cpp": '#include "openreg.h"\n#include "openreg/runtime/version.h"\n',
        f"{EXTRA}/src/openreg_extra/__init__.py": f"import openreg_runtime\n{ASKS}from openreg_extra import _C\n{ADDS}",
        f"{EXTRA}/tests/doctor_site.py": LICENCE,
        f"{RUNTIME}/CMakeLists.txt": "project(openreg_runtime)\nadd_library(openreg csrc/driver/device.cpp\n"
        "csrc/driver/device.h csrc/driver/platform_linux.cpp include/openreg.h include/openreg/runtime/version.h)\n",
        f"{RUNTIME}/include/openreg/runtime/version.h": "constexpr int kAbiVersion = 1;\n",
        f"{RUNTIME}/include/openreg.h": "",
        f"{DRIVER}/device.h": "",
        f"{DRIVER}/device.cpp": '#include "device.h"\n',
        f"{DRIVER}/platform_linux.cpp": "#include <sys/mman.h>\n",
        f"{RUNTIME}/docs/page.md": "",
    }.items():
        write(root / file, text)
    abi.record(root)
    providers.write(root)
    return root


def damage(root, file, old, new):
    """Replaces text of a file, appends to it or, with GONE, takes it away or renames it."""
    path = root / file
    if old is GONE:
        path.rename(root / (new or "gone"))
    elif old:
        text = path.read_text("utf-8")
        assert old in text
        path.write_text(text.replace(old, new, 1), "utf-8")
    else:
        write(path, (path.read_text("utf-8") if path.exists() else "") + new)


def one_test(*lines, before=""):
    """A test with these lines."""
    return LICENCE + before + "def test_it():\n" + "".join(f"    {line}\n" for line in lines)


# A rule, and a change that breaks it: a file, what is replaced in it, and by what.
PLANTED = [
    ("package_shape", f"{OPS}/README.md", GONE, GONE),
    ("package_shape", f"{OPS}/src/openreg_ops/py.typed", GONE, GONE),
    ("package_shape", "examples/openreg-meta.py", GONE, GONE),
    ("package_shape", f"{RUNTIME}/CMakeLists.txt", GONE, GONE),
    ("same_in_every_package", f"{OPS}/LICENSE", "", "x"),
    ("same_in_every_package", f"{OPS}/tests/test_isolation.py", "", "x"),
    ("same_in_every_package", "templates/package/tests/test_isolation.py", "", "x"),
    ("same_in_every_package", f"{OPS}/tests/doctor_site.py", "", "x"),
    ("names_derive_from_one", OPS, GONE, "packages/ops"),
    ("names_derive_from_one", f"{OPS}/src/openreg_ops", GONE, f"{OPS}/src/ops"),
    ("names_derive_from_one", f"{OPS}/CMakeLists.txt", "", "project(ops)\n"),
    ("metadata_is_alike", OPS_TOML, "license =", "other ="),
    ("metadata_is_alike", OPS_TOML, "description =", "other ="),
    ("metadata_is_alike", OPS_TOML, ">=3.10", ">=3.9"),
    ("metadata_is_alike", OPS_TOML, '"Typing :: Typed"', ""),
    ("sources_listed", f"{DRIVER}/event.cpp", "", "\n"),
    ("sources_listed", f"{DRIVER}/linux.cpp", "", "\n"),
    ("sources_listed", f"{DRIVER}/event.h", "", "\n"),
    ("sources_listed", f"{RUNTIME}/include/openreg/runtime/event.h", "", "\n"),
    ("parallel_loops_use_threads", MODULE, "", "  at::parallel_for(0, n, 1, body);\n"),
    ("parallel_loops_use_threads", MODULE, "", "#include <ATen/native/cpu/Loops.h>\n"),
    ("pins_are_of_one_release", EXTRA_TOML, "2.13.0", "2.14.0"),
    ("pins_are_of_one_release", EXTRA_TOML, "2.13.0", "2.12.0"),
    ("pins_are_of_one_release", f"{RUNTIME}/pyproject.toml", "torch==2.13.*", "torch>=2.13"),
    ("documents_tell_the_truth", "README.md", "", "[see](docs/none.md)\n"),
    ("documents_tell_the_truth", f"{OPS}/README.md", "", "```python\nimport openreg_other\n```\n"),
    ("native_parts_ask_first", f"{EXTRA}/CMakeLists.txt", "openreg_install_python_modules(_C)", "install(TARGETS _C)"),
    ("native_parts_ask_first", EXTRA_INIT, ASKS, ""),
    ("native_parts_ask_first", EXTRA_INIT, "import openreg_runtime", "from openreg_extra import _C"),
    ("headers_have_their_number", HEADER, "", "int orAdded(void);\n"),
    ("headers_are_needed", f"{RUNTIME}/include/openreg/runtime/event.h", "", "\n"),
    ("plugins_tell_the_doctor", "packages/openreg-plugin/src/openreg_plugin/doctor.toml", GONE, GONE),
    ("declarations_are_written", META, "all = ", "most = "),
    ("declarations_are_written", META, 'all = ["openreg-extra==2.13.*"]', "all = []"),
    ("declarations_are_written", META, "\nextra = ", "\nother = "),
    ("declarations_are_written", META, "extra==2.13.*", "extra==2.14.*"),
    ("declarations_are_written", META, providers.END, ""),
    ("declarations_are_written", META, "openreg-compile", "openreg-jit"),
    ("declarations_are_written", EXTRA_TOML, "extra = true", ""),
    ("declarations_are_written", EXTRA_TOML, "thing = ", "other = "),
    ("declarations_are_written", TABLE, "openreg-extra", "openreg-ops"),
    ("declarations_are_written", TABLE, GONE, GONE),
    ("brought_by_one_package", OPS_TOML, "", f"{NAMES}thing = 'openreg_ops:thing'\n"),
    ("brought_by_one_package", OPS_TOML, "", f"{FEATURES}compile = 'openreg_ops'\n"),
    ("runtime_names_no_other_package", RUNTIME_INIT, "", 'TEXT = "pip install openreg-ops"\n'),
    ("runtime_names_no_other_package", RUNTIME_INIT, "", "# As openreg_extra does.\n"),
    ("runtime_names_no_other_package", RUNTIME_INIT, "", '"""torch_openreg calls it."""\n'),
    ("runtime_names_no_other_package", RUNTIME_INIT, "", 'find_spec("openreg_compile")\n'),
    ("runtime_names_no_other_package", f"{DRIVER}/device.cpp", "", "namespace openreg::ops {}\n"),
    ("runtime_names_no_other_package", HEADER, "", '#include "openreg/ops/kernel.h"\n'),
    ("runtime_names_no_other_package", f"{RUNTIME}/CMakeLists.txt", "", "# openreg-meta brings it\n"),
    (
        *("runtime_names_no_other_package", f"{RUNTIME}/pyproject.toml", ""),
        "[project.optional-dependencies]\ntest = ['openreg-extra']\n",
    ),
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
def test_this_repository_keeps_the_rule(check):
    problems = check(ROOT)
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("check", repo_checks.CHECKS, ids=lambda check: check.__name__)
def test_a_good_tree_passes(check, tree):
    assert check(tree) == []


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
def test_a_test_for_any_machine_passes(lines, tree):
    write(tree / TEST, one_test(*lines))
    assert repo_checks.tests_need_no_fast_machine(tree) == []


def test_code_in_a_document_has_no_links(tree):
    block = "````text\n```cpp\n[](int x) {}\n```\n````\n"
    write(tree / "README.md", f"[see](LICENSE)\n\n{block}\n```cpp\n[&](auto y) {{}}\n```\n")
    assert repo_checks.documents_tell_the_truth(tree) == []
    write(tree / "README.md", f"{block}\n[see](docs/none.md)\n\n{block}")
    assert repo_checks.documents_tell_the_truth(tree) == ["README.md: no file docs/none.md"]


def test_the_first_program_of_a_readme_imports_what_it_uses(tree):
    write(tree / "examples" / "openreg-ops.py", "import torch\n\nprint(torch.ones(2))\n")
    readme = tree / "packages" / "openreg-ops" / "README.md"
    write(readme, "```python\nimport torch\n```\n\n```python\nprint(torch.ones(2))\n```\n")
    assert repo_checks.documents_tell_the_truth(tree) == []
    write(readme, "```python\nprint(torch.ones(2))\n```\n")
    (problem,) = repo_checks.documents_tell_the_truth(tree)
    assert problem.startswith("packages/openreg-ops/README.md: its first program does not run alone")


@pytest.mark.parametrize(("rule", "file", "old", "new"), PLANTED)
def test_a_planted_violation_is_found(rule, file, old, new, tree):
    damage(tree, file, old, new)
    assert getattr(repo_checks, rule)(tree) != []


def test_every_check_has_a_planted_violation():
    assert {rule for rule, *_ in PLANTED} == {item.__name__ for item in repo_checks.CHECKS}


def test_the_runtime_may_name_itself_and_what_it_depends_on(tree):
    damage(tree, RUNTIME_INIT, "", "# openreg-runtime, openreg_runtime, openreg::runtime, openreg/runtime/version.h\n")
    damage(tree, RUNTIME_INIT, "", "# openreg_operator, openreg-opsy, my-openreg-ops, openreg::operators\n")
    assert repo_checks.runtime_names_no_other_package(tree) == []
    damage(tree, RUNTIME_INIT, "", "# openreg-below\n")
    add_package(tree, "openreg-below")
    assert repo_checks.runtime_names_no_other_package(tree) != []
    damage(tree, f"{RUNTIME}/pyproject.toml", '["torch==2.13.*"]', '["torch==2.13.*", "openreg-below"]')
    assert repo_checks.runtime_names_no_other_package(tree) == []


def test_the_tests_of_the_runtime_may_ask_for_what_does_not_build_on_it(tree):
    add_package(tree, "openreg-tool")
    asks = "[project.optional-dependencies]\ntest = ['{}']\n"
    damage(tree, f"{RUNTIME}/pyproject.toml", "", asks.format("openreg-tool==2.13.*"))
    assert repo_checks.runtime_names_no_other_package(tree) == []
    damage(tree, RUNTIME_INIT, "", "# openreg_tool does it\n")
    (problem,) = repo_checks.runtime_names_no_other_package(tree)
    assert problem.startswith(RUNTIME_INIT)


HEADER = """\
// What it is.
#pragma once
#include <cstdint>

constexpr const char* kPlace = "http://x"; /* a
   place */
void launch(int64_t size,  // in bytes
            int stream);
"""
SAME = [
    HEADER.replace("// What it is.", "// Something else.\n//\n"),
    HEADER.replace("  // in bytes\n            int", " int"),
    HEADER.replace("/* a\n   place */", ""),
    HEADER.replace("(int64_t", "(\n    int64_t").replace(", ", ","),
]
OTHER = [
    HEADER.replace("int stream", "unsigned stream"),
    HEADER.replace("int64_t size", "int64_tsize"),
    HEADER.replace("http://x", "http://y"),
    HEADER.replace("http://x", "http:/ /x"),
    HEADER.replace("<cstdint>\n\n", "<cstdint> "),
    HEADER.replace("void launch", "inline void launch"),
]


@pytest.fixture
def checkout(tmp_path):
    """The headers and the record of this repository."""
    shutil.copytree(ROOT / abi.INCLUDE, tmp_path / abi.INCLUDE)
    (tmp_path / abi.RECORD).parent.mkdir()
    shutil.copy2(ROOT / abi.RECORD, tmp_path / abi.RECORD)
    return tmp_path


def change(path, old, new):
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new), "utf-8")


@pytest.mark.parametrize(("other", "same"), [*((text, True) for text in SAME), *((text, False) for text in OTHER)])
def test_code_is_a_change_and_comments_and_layout_are_none(other, same):
    assert other != HEADER
    assert (abi.digest(other) == abi.digest(HEADER)) == same


def added(include):
    (include / "openreg/runtime/added.h").write_text("#pragma once\n", "utf-8")


@pytest.mark.parametrize(
    ("damage", "by", "said"),
    [
        (lambda include: change(include / "openreg.h", "orStreamCreate(", "orStreamMake("), 0, "raise kAbiVersion to"),
        (lambda include: (include / "openreg/runtime/launch.h").unlink(), 0, "raise kAbiVersion to"),
        (added, 0, "raise kAbiVersion to"),
        (lambda include: None, -1, "raise kAbiVersion to"),
        (added, 1, "the headers are of ABI"),
    ],
)
def test_headers_and_their_number_change_together_and_are_recorded_then(checkout, damage, by, said, capsys):
    before, number = abi.recorded(checkout), abi.state(checkout)[0]
    assert {"openreg.h", "openreg/runtime/launch.h"} <= set(before[1])
    assert abi.headers_have_their_number(checkout) == []
    damage(checkout / abi.INCLUDE)
    change(checkout / abi.VERSION, f"kAbiVersion = {number};", f"kAbiVersion = {number + by};")
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
    package = checkout / abi.INCLUDE.parents[1]
    for path, header in (("openreg-runtime/csrc/launch.cpp", "launch.h"), ("openreg-ops/csrc/add.cpp", "stream.h")):
        (package / path).parent.mkdir(parents=True)
        (package / path).write_text(f'#include "openreg/runtime/{header}"\n', "utf-8")
    problems = abi.headers_are_needed(checkout)
    assert any("launch.h: nobody outside of the runtime includes it: move it to csrc/" in item for item in problems)
    assert not any("/stream.h" in item for item in problems)
