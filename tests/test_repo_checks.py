# SPDX-License-Identifier: BSD-3-Clause
"""Every check passes on this repository and on a good tree, and fails on one that breaks it."""

import pytest

from tools import abi, providers, repo_checks
from tools.packages import ROOT

LICENCE = "# SPDX-License-Identifier: BSD-3-Clause\n"
ASKS = "openreg_runtime.require_matching_build(__name__)\n"
ADDS = "openreg_runtime.extend('thing', thing)\n"
NAMES = '[project.entry-points."openreg.names"]\n'
FEATURES = '[project.entry-points."openreg.features"]\n'
BUDGET = "[tool.openreg.budget]\nbuild = 10\nlane = 60\n"
PLANNED = 'compile = "openreg-compile"\n'
WORKFLOW = ".github/workflows/release.yml"
COMMIT = "0123456789abcdef0123456789abcdef01234567"
GOOD_WORKFLOW = f"""\
permissions:
  contents: read
jobs:
  build:
    steps:
      - uses: ./here
      - uses: owner/action/part@{COMMIT} # v1.2.3
      - name: with a name
        uses: owner/action@{COMMIT} # v12.0.1
  publish:
    permissions:
      id-token: write
"""
NATIVE_LICENCE = "// SPDX-License-Identifier: BSD-3-Clause\n"


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
        f'[project]\nname = "{name}"\nversion = "2.13.0"\ndependencies = [{declared}]\n'
        f"{BUDGET}{entry_points}",
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
    write(root / "packages/openreg-plugin/src/openreg_plugin/doctor.toml", 'device = "openreg"\n')
    add_package(root, "openreg-doctor", ["torch==2.13.*"])
    write(root / "packages/openreg-doctor/src/openreg_doctor/models.json", '["packages/openreg-ops/csrc/view.cpp"]\n')
    native = root / "packages" / "openreg-extra"
    write(native / "CMakeLists.txt", "project(openreg_extra)\nopenreg_install_python_modules(_C)\n# csrc/module.cpp\n")
    write(native / "csrc/module.cpp", NATIVE_LICENCE + '#include "openreg.h"\n#include "openreg/runtime/version.h"\n')
    start = f"{LICENCE}import openreg_runtime\n{ASKS}from openreg_extra import _C\n{ADDS}"
    write(native / "src/openreg_extra/__init__.py", start)
    runtime = root / "packages" / "openreg-runtime"
    write(
        runtime / "CMakeLists.txt",
        "project(openreg_runtime)\nopenreg_find_torch(VERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})\n"
        "add_library(openreg csrc/driver/device.cpp csrc/driver/device.h csrc/driver/comment.h\n"
        "  csrc/driver/platform_linux.cpp)\n"
        "# public: include/openreg.h include/openreg/runtime/version.h\n",
    )
    write(runtime / "include/openreg/runtime/version.h", NATIVE_LICENCE + "constexpr int kAbiVersion = 1;\n")
    write(runtime / "include/openreg.h", NATIVE_LICENCE + "#if defined(_WIN32)\n#endif\n")
    write(runtime / "csrc/driver/device.h", NATIVE_LICENCE)
    write(runtime / "csrc/driver/device.cpp", NATIVE_LICENCE + '#include "device.h"\n')
    write(runtime / "csrc/driver/comment.h", NATIVE_LICENCE + '// fork() and "dlopen()"\n')
    write(runtime / "tests/driver/parts_device.h", NATIVE_LICENCE + '#include "driver/device.h"\n')
    write(runtime / "src/openreg_runtime/_platform.py", LICENCE + "import sys\n\nsys.platform\n")
    write(runtime / "csrc/driver/platform_linux.cpp", NATIVE_LICENCE + "#include <sys/mman.h>\n")
    write(root / WORKFLOW, GOOD_WORKFLOW)
    (runtime / "docs").mkdir()
    abi.record(root)
    providers.write(root)
    return root


DRIVER = "packages/openreg-runtime/csrc/driver"
DEVICE = f"{DRIVER}/device.cpp"
RUNTIME_INIT = "packages/openreg-runtime/src/openreg_runtime/__init__.py"
OPS_INIT = "packages/openreg-ops/src/openreg_ops/__init__.py"
CMAKE = "packages/openreg-runtime/CMakeLists.txt"
EXTRA = "packages/openreg-extra"
EXTRA_TOML = f"{EXTRA}/pyproject.toml"
EXTRA_INIT = f"{EXTRA}/src/openreg_extra/__init__.py"
OPS_TOML = "packages/openreg-ops/pyproject.toml"
META = "packages/openreg-meta/pyproject.toml"
PLUGIN = '[project.entry-points."openreg.plugins"]\nopenreg_plugin = "openreg_plugin"\n'
DOCTOR = "packages/openreg-doctor/src/openreg_doctor"
BACKENDS = '[project.entry-points."torch.backends"]\nopenreg = "openreg_ops:start"\n'


def appended(file, text):
    def damage(root):
        path = root / file
        write(path, (path.read_text(encoding="utf-8") if path.exists() else "") + text)

    return damage


def removed(file):
    return lambda root: (root / file).unlink()


def replaced(file, old, new):
    def damage(root):
        text = (root / file).read_text(encoding="utf-8")
        assert old in text
        write(root / file, text.replace(old, new, 1))

    return damage


def one_test(*lines, before=""):
    """A test with these lines."""
    body = "".join(f"    {line}\n" for line in lines)
    return appended("packages/openreg-ops/tests/test_one.py", f"{LICENCE}{before}def test_it():\n{body}")


def renamed(old, new):
    return lambda root: (root / old).rename(root / new)


PLANTED = {
    "no readme": ("package_shape", removed("packages/openreg-ops/README.md")),
    "no py.typed": ("package_shape", removed("packages/openreg-ops/src/openreg_ops/py.typed")),
    "no example": ("package_shape", removed("examples/openreg-meta.py")),
    "native without cmake": ("package_shape", removed(CMAKE)),
    "another licence": ("same_in_every_package", appended("packages/openreg-ops/LICENSE", "x")),
    "another proof": (
        "same_in_every_package",
        appended("packages/openreg-ops/tests/test_isolation.py", "x"),
    ),
    "another proof in the template": (
        "same_in_every_package",
        appended("templates/package/tests/test_isolation.py", "x"),
    ),
    "folder name": ("names_derive_from_one", renamed("packages/openreg-ops", "packages/ops")),
    "import name": (
        "names_derive_from_one",
        renamed("packages/openreg-ops/src/openreg_ops", "packages/openreg-ops/src/ops"),
    ),
    "cmake project name": (
        "names_derive_from_one",
        appended("packages/openreg-ops/CMakeLists.txt", "project(ops)\n"),
    ),
    "unlisted source": ("sources_listed", appended(f"{DRIVER}/event.cpp", NATIVE_LICENCE)),
    "listed by a longer name only": ("sources_listed", appended(f"{DRIVER}/linux.cpp", "")),
    "unlisted public header": (
        "sources_listed",
        appended("packages/openreg-runtime/include/openreg/runtime/event.h", NATIVE_LICENCE),
    ),
    "unlisted private header": ("sources_listed", appended(f"{DRIVER}/event.h", NATIVE_LICENCE)),
    "glob": ("no_glob", appended(CMAKE, "file( glob sources *.cpp)\n")),
    "all of ATen": ("no_catch_all_header", appended(DEVICE, "#include <ATen/ATen.h>\n")),
    "all of torch": ("no_catch_all_header", appended(DEVICE, "#include <torch/extension.h>\n")),
    "a loop of ATen": (
        "parallel_loops_use_threads",
        appended(f"{EXTRA}/csrc/module.cpp", "  at::parallel_for(0, n, 1, body);\n"),
    ),
    "a header with loops of ATen": (
        "parallel_loops_use_threads",
        appended(f"{EXTRA}/csrc/module.cpp", "#include <ATen/native/cpu/Loops.h>\n"),
    ),
    "driver includes c10": ("driver_without_torch", appended(DEVICE, "#include <c10/util/a.h>\n")),
    "driver API includes torch": (
        "driver_without_torch",
        appended("packages/openreg-runtime/include/openreg.h", '#  include "torch/library.h"\n'),
    ),
    "memory includes c10": (
        "driver_without_torch",
        appended("packages/openreg-runtime/csrc/memory/block.h", "#include <c10/core/Stream.h>\n"),
    ),
    "platform header": ("platform_calls_apart", appended(DEVICE, "#include <pthread.h>\n")),
    "platform folder": ("platform_calls_apart", appended(DEVICE, "#include <sys/stat.h>\n")),
    "platform call": ("platform_calls_apart", appended(DEVICE, "  const auto id = ::getpid();\n")),
    "platform keyword": ("platform_calls_apart", appended(DEVICE, "__declspec(thread) int x;\n")),
    "platform macro": ("platform_calls_apart", appended(DEVICE, "#define _GNU_SOURCE\n")),
    "platform test in Python": (
        "python_platform_apart",
        appended(RUNTIME_INIT, "if sys.platform == 'win32':\n    pass\n"),
    ),
    "missing function in Python": ("python_platform_apart", appended("tools/new.py", 'hasattr(os, "fork")\n')),
    "library suffix": (
        "python_platform_apart",
        appended("packages/openreg-ops/tests/test_one.py", 'library = folder / "libother.so"\n'),
    ),
    "loader path": ("python_platform_apart", appended(OPS_INIT, "os.add_dll_directory(folder)\n")),
    "a header of the driver": (
        "device_by_its_interface",
        appended("packages/openreg-runtime/csrc/runtime/stream.cpp", '#include "../driver/device.h"\n'),
    ),
    "a header of the driver in a test of the whole": (
        "device_by_its_interface",
        appended("packages/openreg-runtime/tests/driver/checks.h", '#include "driver/device.h"\n'),
    ),
    "a header of the driver by its name": (
        "device_by_its_interface",
        appended("packages/openreg-ops/csrc/stream.cpp", '#include "device.h"\n'),
    ),
    "platform test": ("platform_calls_apart", appended(DEVICE, "#elif defined(__APPLE__)\n")),
    "long file": ("file_length", appended(RUNTIME_INIT, "pass\n" * 600)),
    "machine path": ("no_machine_paths", appended("README.md", "see " + "/ho" + "me/someone/x\n")),
    "machine path in a script": ("no_machine_paths", appended(".ci/run", "cd " + "/wo" + "rk/x\n")),
    "marker": ("nothing_unfinished", appended(DEVICE, "// TO" + "DO: the rest\n")),
    "no licence line": ("licence_lines", appended("tools/new.py", "import sys\n")),
    "second autoload": ("one_autoload", appended("packages/openreg-ops/pyproject.toml", BACKENDS)),
    "another torch in cmake": (
        "one_torch",
        appended("packages/openreg-ops/CMakeLists.txt", "openreg_find_torch(VERSION 2.12)\n"),
    ),
    "a package for another torch": (
        "one_torch",
        replaced("packages/openreg-extra/pyproject.toml", "2.13.0", "2.14.0"),
    ),
    "a package for a torch that is not served": (
        "one_torch",
        replaced("packages/openreg-extra/pyproject.toml", "2.13.0", "2.12.0"),
    ),
    "any torch": ("one_torch", replaced("packages/openreg-runtime/pyproject.toml", "torch==2.13.*", "torch>=2.13")),
    "undeclared package": ("imports_declared", appended(OPS_INIT, "import numpy.linalg\n")),
    "undeclared sibling": (
        "imports_declared",
        appended(RUNTIME_INIT, "import openreg_ops\n"),
    ),
    "dead link": ("documents_tell_the_truth", appended("README.md", "[see](docs/none.md)\n")),
    "readme shows other code": (
        "documents_tell_the_truth",
        appended("packages/openreg-ops/README.md", "```python\nimport openreg_other\n```\n"),
    ),
    "native parts without a record": (
        "native_parts_ask_first",
        replaced(f"{EXTRA}/CMakeLists.txt", "openreg_install_python_modules(_C)", "install(TARGETS _C DESTINATION .)"),
    ),
    "native parts that do not ask": (
        "native_parts_ask_first",
        replaced(f"{EXTRA}/src/openreg_extra/__init__.py", ASKS, ""),
    ),
    "native parts that ask too late": (
        "native_parts_ask_first",
        replaced(f"{EXTRA}/src/openreg_extra/__init__.py", "import openreg_runtime", "from openreg_extra import _C"),
    ),
    "a changed public header": (
        "headers_have_their_number",
        appended("packages/openreg-runtime/include/openreg.h", "int orAdded(void);\n"),
    ),
    "no extra for everything": ("declarations_are_written", replaced(META, "all = ", "most = ")),
    "a plug-in of which the doctor knows nothing": (
        "plugins_tell_the_doctor",
        removed("packages/openreg-plugin/src/openreg_plugin/doctor.toml"),
    ),
    "a package that the doctor's code names": (
        "doctor_knows_no_package",
        appended(f"{DOCTOR}/__init__.py", "# as in openreg_ops\n"),
    ),
    "a package that the doctor's table names": (
        "doctor_knows_no_package",
        appended(f"{DOCTOR}/hooks.toml", 'status = "brought by openreg-extra"\n'),
    ),
    "an extra that is not in everything": (
        "declarations_are_written",
        replaced(META, 'all = ["openreg-extra==2.13.*"]', "all = []"),
    ),
    "an extra of another name": ("declarations_are_written", replaced(META, "\nextra = ", "\nother = ")),
    "an extra of another version": ("declarations_are_written", replaced(META, "extra==2.13.*", "extra==2.14.*")),
    "an extra that no package asked for": ("declarations_are_written", replaced(EXTRA_TOML, "extra = true", "")),
    "no place for extras": ("declarations_are_written", replaced(META, providers.END, "")),
    "a name that is not in the table": ("declarations_are_written", replaced(EXTRA_TOML, "thing = ", "other = ")),
    "another package in the table": (
        "declarations_are_written",
        replaced(providers.TABLE, "openreg-extra", "openreg-ops"),
    ),
    "no table": ("declarations_are_written", removed(providers.TABLE)),
    "a planned package of another name": ("declarations_are_written", replaced(META, "openreg-compile", "openreg-jit")),
    "a name of two packages": (
        "brought_by_one_package",
        appended(OPS_TOML, f"{NAMES}thing = 'openreg_ops:thing'\n"),
    ),
    "a feature that is planned and there": (
        "brought_by_one_package",
        appended(OPS_TOML, f"{FEATURES}compile = 'openreg_ops'\n"),
    ),
    "a header that only the runtime needs": (
        "headers_are_needed",
        appended("packages/openreg-runtime/include/openreg/runtime/event.h", NATIVE_LICENCE),
    ),
    "no budget": ("lanes_declare_budgets", replaced(OPS_TOML, BUDGET, "")),
    "no budget of the build": ("lanes_declare_budgets", replaced(OPS_TOML, "build = 10\n", "")),
    "a budget of nothing": ("lanes_declare_budgets", replaced(OPS_TOML, "lane = 60", "lane = 0")),
    "a budget in words": ("lanes_declare_budgets", replaced(OPS_TOML, "lane = 60", 'lane = "1 min"')),
    "a name without an attribute": ("brought_by_one_package", appended(OPS_TOML, f"{NAMES}other = 'openreg_ops'\n")),
    "a name of another's module": ("brought_by_one_package", appended(OPS_TOML, f"{NAMES}other = 'openreg_extra:x'\n")),
    "a feature with an attribute": ("brought_by_one_package", appended(OPS_TOML, f"{FEATURES}x = 'openreg_ops:x'\n")),
    "a name that is not declared": (
        "added_names_are_declared",
        appended(OPS_INIT, "import openreg_runtime\nopenreg_runtime.extend('other', 1)\n"),
    ),
    "a name that is added under another module": (
        "added_names_are_declared",
        appended(OPS_INIT, "from openreg_runtime import extend\nextend('other', 1)\n"),
    ),
    "a name that is computed": ("added_names_are_declared", replaced(EXTRA_INIT, "'thing'", "str(1)")),
    "a name that nothing adds": ("added_names_are_declared", replaced(EXTRA_INIT, ADDS, "")),
    "a package in a string of the runtime": (
        "runtime_names_no_other_package",
        appended(RUNTIME_INIT, 'TEXT = "pip install openreg-ops"\n'),
    ),
    "a package in a comment of the runtime": (
        "runtime_names_no_other_package",
        appended(RUNTIME_INIT, "# As openreg_extra does.\n"),
    ),
    "the import name of the whole in the runtime": (
        "runtime_names_no_other_package",
        appended(RUNTIME_INIT, '"""torch_openreg calls it."""\n'),
    ),
    "a planned package in the runtime": (
        "runtime_names_no_other_package",
        appended(RUNTIME_INIT, 'find_spec("openreg_compile")\n'),
    ),
    "a package in C++ of the runtime": (
        "runtime_names_no_other_package",
        appended(DEVICE, '// "Install it with: pip install openreg-ops"\n'),
    ),
    "a package's namespace in the runtime": (
        "runtime_names_no_other_package",
        appended(DEVICE, "namespace openreg::ops {}\n"),
    ),
    "a package's header in the runtime": (
        "runtime_names_no_other_package",
        appended("packages/openreg-runtime/include/openreg.h", '#include "openreg/ops/kernel.h"\n'),
    ),
    "a package in CMake of the runtime": (
        "runtime_names_no_other_package",
        appended(CMAKE, "# openreg-meta brings it\n"),
    ),
    "another gate": (
        "same_in_every_package",
        lambda root: [appended(f"packages/openreg-{name}/tests/gate.py", name)(root) for name in ("ops", "meta")],
    ),
    "a limit of time": ("tests_need_no_fast_machine", one_test("assert time.monotonic() - begin < 5")),
    "a limit of time in a variable": (
        "tests_need_no_fast_machine",
        one_test("took = time.perf_counter() - begin", "assert 0.1 < took < LIMIT"),
    ),
    "a limit of the device's time": (
        "tests_need_no_fast_machine",
        one_test("assert 2 <= start.elapsed_time(end) < 2000"),
    ),
    "a limit on the left": ("tests_need_no_fast_machine", one_test("assert 5 > time.time() - begin")),
    "a pause that has to last": (
        "tests_need_no_fast_machine",
        one_test("torch.openreg._sleep(10)", "assert not torch.openreg.current_stream().query()"),
    ),
    "a pause of the driver that has to last": (
        "tests_need_no_fast_machine",
        one_test("api.delay(None, 0.01)", "assert not api.stream_ready(None)"),
    ),
    "a pause in a helper that has to last": (
        "tests_need_no_fast_machine",
        one_test("pause()", "assert is_busy()", before="def pause():\n    torch.openreg._sleep(10)\n"),
    ),
    "a short guard": ("tests_need_no_fast_machine", one_test("subprocess.run(command, timeout=30)")),
    "an action by a name": (
        "actions_are_pinned",
        replaced(WORKFLOW, f"action/part@{COMMIT} # v1.2.3", "action@v1.2.3"),
    ),
    "half of a commit": ("actions_are_pinned", replaced(WORKFLOW, COMMIT, COMMIT[:12])),
    "no version": ("actions_are_pinned", replaced(WORKFLOW, " # v12.0.1", "")),
    "half of a version": ("actions_are_pinned", replaced(WORKFLOW, "# v1.2.3", "# v1")),
    "a workflow with the longer ending": ("actions_are_pinned", appended(f"{WORKFLOW[:-3]}yaml", "- uses: a/b@main\n")),
    "a token for who builds": ("identity_only_to_publish", replaced(WORKFLOW, "  publish:\n", "  upload:\n")),
    "a token for all": ("identity_only_to_publish", replaced(WORKFLOW, "contents: read", "id-token: write")),
    "example needs more": (
        "imports_declared",
        appended("examples/openreg-runtime.py", "import openreg_ops\n"),
    ),
}


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
    one_test(*lines)(tree)
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


@pytest.mark.parametrize("planted", PLANTED)
def test_a_planted_violation_is_found(planted, tree):
    name, damage = PLANTED[planted]
    damage(tree)
    problems = getattr(repo_checks, name)(tree)
    assert problems, f"{name} did not see it"


def test_every_check_has_a_planted_violation():
    assert {name for name, _ in PLANTED.values()} == {item.__name__ for item in repo_checks.CHECKS}


def test_the_runtime_may_name_itself_and_what_it_depends_on(tree):
    appended(RUNTIME_INIT, "# openreg-runtime, openreg_runtime, openreg::runtime, openreg/runtime/version.h\n")(tree)
    appended(RUNTIME_INIT, "# openreg_operator, openreg-opsy, my-openreg-ops, openreg::operators\n")(tree)
    assert repo_checks.runtime_names_no_other_package(tree) == []
    appended(RUNTIME_INIT, "# openreg-below\n")(tree)
    add_package(tree, "openreg-below")
    assert repo_checks.runtime_names_no_other_package(tree) != []
    replaced("packages/openreg-runtime/pyproject.toml", '["torch==2.13.*"]', '["torch==2.13.*", "openreg-below"]')(tree)
    assert repo_checks.runtime_names_no_other_package(tree) == []
