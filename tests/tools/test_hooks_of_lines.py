# SPDX-License-Identifier: BSD-3-Clause
"""Each hook that looks for a pattern finds the files that break its rule, and no others; the tools are pinned."""

import os
import re
import shutil
import subprocess
import sys

import pytest
import yaml
from helpers import write_files

from tools.packages import ROOT, git, read_requirements

HOOKS = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))["repos"][0]["hooks"]
LINES = [hook["id"] for hook in HOOKS if hook["language"] == "pygrep"]
COMMIT = "0123456789abcdef0123456789abcdef01234567"
RUNTIME, OPS = "packages/openreg-runtime", "packages/openreg-ops"
DRIVER, DOCTOR = f"{RUNTIME}/csrc/driver", "packages/openreg-doctor/src/openreg_doctor"
NATIVE = "// SPDX-License-Identifier: BSD-3-Clause\n"
PYTHON = "# SPDX-License-Identifier: BSD-3-Clause\n"

# A rule, a file that is to be found, and what it says after its license.
PLANTED = [
    ("single-headers", f"{OPS}/csrc/a.cpp", "#include <ATen/ATen.h>"),
    ("single-headers", f"{OPS}/csrc/b.h", '#  include "torch/extension.h"'),
    ("no-glob", f"{OPS}/a/CMakeLists.txt", "file( glob sources *.cpp)"),
    ("torch-of-the-version", f"{OPS}/b/CMakeLists.txt", "openreg_find_torch(VERSION 2.12)"),
    ("driver-without-torch", f"{DRIVER}/a.cpp", "#include <c10/util/a.h>"),
    ("driver-without-torch", f"{DRIVER}/include/openreg.h", '#  include "torch/library.h"'),
    ("driver-without-torch", f"{RUNTIME}/csrc/cache/block.h", "#include <c10/core/Stream.h>"),
    ("device-by-its-interface", f"{RUNTIME}/csrc/base/stream.cpp", '#include "../driver/device.h"'),
    ("device-by-its-interface", f"{RUNTIME}/tests/stress/checks.h", '#include "driver/objects/device.h"'),
    ("threaded-loops", f"{OPS}/csrc/loop.cpp", "  at::parallel_for(0, n, 1, body);"),
    ("threaded-loops", f"{OPS}/csrc/loop.h", "for_each_item(n, 1, body);"),
    ("threaded-loops", f"{OPS}/tests/loop.cpp", "#include <ATen/native/cpu/Loops.h>"),
    ("threaded-loops", f"{OPS}/csrc/sum/loop.cpp", '#include "kernels/parallel.h"'),
    ("platform-header", f"{DRIVER}/b.cpp", "#include <pthread.h>"),
    ("platform-header", f"{DRIVER}/c.cpp", "#include <sys/stat.h>"),
    ("platform-header", f"{DRIVER}/d.cpp", "#define _GNU_SOURCE"),
    ("platform-header", f"{OPS}/tests/e.cpp", "#elif defined(__APPLE__)"),
    ("platform-call", f"{DRIVER}/f.cpp", "  const auto id = ::getpid();"),
    ("platform-call", f"{DRIVER}/g.cpp", "__declspec(thread) int x;"),
    ("platform-python", f"{RUNTIME}/src/openreg_runtime/a.py", "if sys.platform == 'win32':"),
    ("platform-python", "tools/b.py", 'hasattr(os, "fork")'),
    ("platform-python", f"{OPS}/tests/test_one.py", 'library = folder / "libother.so"'),
    ("platform-python", f"{OPS}/src/openreg_ops/c.py", "os.add_dll_directory(folder)"),
    ("file-length", f"{OPS}/src/openreg_ops/long.py", "pass\n" * 600),
    ("file-length", f"{OPS}/csrc/long.h", "\n" * 600),
    ("built-files", "other-1.0-py3-none-any.whl", "PK"),
    ("built-files", f"{OPS}/csrc/kernel.o", "ELF"),
    ("machine-path", "README.md", "see " + "/ho" + "me/someone/x"),
    ("machine-path", ".ci/run", "cd " + "/wo" + "rk/x"),
    ("unfinished", f"{DRIVER}/h.cpp", "// TO" + "DO: the rest"),
    ("retired-words", f"{DRIVER}/i.cpp", "// Re" + "hearsals are launches."),
    ("retired-words", "docs/words.md", "This is a verd" + "ict of no" + "body."),
    ("one-autoload", f"{OPS}/pyproject.toml", '[project.entry-points."torch.backends"]'),
    ("doctor-of-any-backend", f"{DOCTOR}/a.py", "# as in openreg_ops"),
    ("doctor-of-any-backend", f"{DOCTOR}/hooks.toml", 'status = "brought by openreg-extra"'),
    ("pinned-actions", ".github/workflows/a.yml", "      - uses: owner/action@v1.2.3"),
    ("pinned-actions", ".github/workflows/b.yaml", f"        uses: owner/action/part@{COMMIT[:12]} # v1.2.3"),
    ("pinned-actions", ".github/workflows/c.yml", f"      - uses: owner/action@{COMMIT}"),
    ("pinned-actions", ".github/workflows/d.yml", f"      - uses: owner/action@{COMMIT} # v1"),
    ("pinned-actions", ".github/actions/mine/action.yml", "    - uses: owner/action@v1"),
    ("identity", ".github/workflows/e.yml", "      id-token: write"),
]
GOOD = {
    f"{OPS}/csrc/kernels/good.cpp": "#include <omp.h>\nat::parallel_for(0, n, 1, body);",
    f"{OPS}/csrc/good.cpp": 'log("parallel_for"); // parallel_for()\n * parallel_for',
    f"{DRIVER}/good.cpp": '// fork() and "dlopen()"\n#include "device.h"\nlog("fork()"); own_fork(); item.fork();',
    f"{DRIVER}/tests/unit_device.h": '#include "driver/objects/device.h"',
    f"{DRIVER}/platform_linux.cpp": "#include <sys/mman.h>\nmmap(0);",
    f"{OPS}/CMakeLists.txt": "openreg_find_torch(VERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})",
    f"{RUNTIME}/src/openreg_runtime/_platform.py": "sys.platform",
    f"{RUNTIME}/src/openreg_runtime/long.py": "pass\n" * 598,
    "packages/openreg-autoload/pyproject.toml": '[project.entry-points."torch.backends"]',
    "docs/reference/glossary.md": "late" + " errors are asynchronous errors",
    "packages/openreg-amp/CHANGELOG.md": "What is held" + " back is deferred.",
    f"{DOCTOR}/good.toml": 'code = ["packages/openreg-extra/csrc/guard.cpp"]',
    f"{DOCTOR}/good.py": "# openreg_doctor and openreg-doctor look at openreg_x",
    ".github/workflows/release.yml": f"- uses: ./here\n- uses: owner/a@{COMMIT} # v12.0.1\n      id-token: write",
    ".github/workflows/site.yml": "      id-token: write",
    ".github/workflows/relay.yml": f"- uses: owner/a/part@{COMMIT} # main\n      id-token: write",
}


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """The files that each rule names, in a repository with all of the above."""
    root = tmp_path_factory.mktemp("planted")
    shutil.copy2(ROOT / ".pre-commit-config.yaml", root)
    for file, text in {**GOOD, **{file: text for _, file, text in PLANTED}, "unlicensed.py": "import sys"}.items():
        notice = {".py": PYTHON, ".cpp": NATIVE, ".h": NATIVE}.get((root / file).suffix, "")
        write_files(root, {file: f"{'' if file.startswith('un') else notice}{text}\n"})
    git(root, "init", "--quiet")
    git(root, "add", "--all")
    others = ",".join(hook["id"] for hook in HOOKS if hook["id"] not in LINES)
    command = [sys.executable, "-m", "pre_commit", "run", "--all-files", "--color", "never"]
    environment = {"PATH": os.environ["PATH"], "SKIP": others, "PRE_COMMIT_HOME": str(root / ".git" / "home")}
    output = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False).stdout
    sections = re.findall(r"- hook id: (\S+)\n- exit code: 1\n\n((?:.+\n)+)", output)
    return {name: {line.partition(":")[0] for line in lines.splitlines()} for name, lines in sections}


@pytest.mark.parametrize("rule", LINES)
def test_a_rule_finds_what_breaks_it_and_nothing_else(found, rule):
    planted = {file for name, file, _ in PLANTED if name == rule} or {"unlicensed.py"}
    assert found.get(rule) == planted


def test_the_pre_commit_file_pins_every_tool():
    (repository,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))["repos"]
    installed = [hook["additional_dependencies"] for hook in repository["hooks"] if "additional_dependencies" in hook]
    assert len(installed) > 5
    assert [first for first, *_ in installed if "==" not in first] == []


def test_the_guide_is_typed_against_the_sphinx_that_builds_it():
    guide = read_requirements(ROOT / "docs" / "requirements.txt")
    assert [item for item in guide if item.startswith("sphinx>")] == [
        item for hook in HOOKS for item in hook.get("additional_dependencies", []) if item.startswith("sphinx>")
    ]
