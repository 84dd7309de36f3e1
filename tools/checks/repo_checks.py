# SPDX-License-Identifier: BSD-3-Clause
"""Checks the rules that every package and test of this repository follows. Each check is a function of its root.

A check returns one line per violation, which names the file and what to do. Rules that a single line can break are in
.pre-commit-config.yaml. tests/tools/test_repo_checks.py runs all checks on this repository, and each on a tree that
breaks its rule.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tools import hooks
from tools.abi import headers_are_needed, headers_have_their_number
from tools.checks.type_names import types_have_names_of_their_own
from tools.layers import NATIVE, imports_go_down, includes_go_down
from tools.packages import closure, discover, read_toml, siblings
from tools.providers import TABLE, brought_by_one_package, declarations_are_written, planned
from tools.torch_release import pins_are_of_one_release

SKIPPED_FOLDERS = {"build", "dist", "__pycache__"}

SAME_CLASSIFIERS = ("Development Status", "Programming Language :: Python", "Typing")
PACKAGE_FILES = ("README.md", "CHANGELOG.md", "LICENSE", "pyproject.toml")

SPDX = "SPDX-License-Identifier: BSD-3-Clause"
# A block of code in a document, in which `[](x)` is no link.
CODE_BLOCK = re.compile(r"(?ms)^ *(```+).*?^ *\1 *$")


def files(folder: Path, suffixes: set[str]) -> Iterator[Path]:
    """Yields the files below a folder with one of these suffixes, in a fixed order, without hidden and built ones."""
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if path.is_dir():
            if not path.name.startswith(".") and path.name not in SKIPPED_FOLDERS:
                yield from files(path, suffixes)
        elif path.suffix in suffixes:
            yield path


def package_shape(root: Path) -> list[str]:
    """Checks that every package has the same files in the same places."""
    problems = []
    for package in discover(root).values():
        place = package.folder.relative_to(root)
        source = f"src/{package.import_name}"
        wanted = [*PACKAGE_FILES, f"{source}/__init__.py", f"{source}/py.typed"]
        if (package.folder / "csrc").is_dir():
            wanted.append("CMakeLists.txt")
        problems += [f"{place}/{name}: missing" for name in wanted if not (package.folder / name).is_file()]
        if not (root / "examples" / f"{package.name}.py").is_file():
            problems.append(f"examples/{package.name}.py: missing")
    return problems


def packages_have_the_license(root: Path) -> list[str]:
    """Checks that the license of every package and template is that of the repository."""
    license_text = (root / "LICENSE").read_bytes()
    copies = [path for part in ("packages", "templates") for path in sorted(root.glob(f"{part}/*/LICENSE"))]
    return [f"{path.relative_to(root)}: differs from LICENSE" for path in copies if path.read_bytes() != license_text]


def names_derive_from_one(root: Path) -> list[str]:
    """Checks that folder, distribution, import package and CMake project of a package have the same name."""
    problems = []
    for package in discover(root).values():
        place = package.folder.relative_to(root)
        if package.folder.name != package.name:
            problems.append(f"{place}: the distribution is called {package.name}")
        sources = package.folder / "src"
        for path in sorted(sources.iterdir()) if sources.is_dir() else ():
            if path.is_dir() and path.name not in {package.import_name, "__pycache__"}:
                problems.append(f"{path.relative_to(root)}: should be {package.import_name}")
        cmake = package.folder / "CMakeLists.txt"
        text = cmake.read_text("utf-8") if cmake.is_file() else ""
        projects = re.findall(r"(?m)^project\((\w+)", text)
        if projects and projects != [package.import_name]:
            problems.append(f"{place}/CMakeLists.txt: project() should be {package.import_name}")
    return problems


def metadata_is_alike(root: Path) -> list[str]:
    """Checks that the packages agree in license, README, supported Pythons and classifiers, and have descriptions."""
    projects = {name: read_toml(item.folder / "pyproject.toml")["project"] for name, item in discover(root).items()}
    said = {
        name: [
            *(project.get(key) for key in ("readme", "license", "license-files", "requires-python")),
            *sorted(item for item in project.get("classifiers", ()) if item.startswith(SAME_CLASSIFIERS)),
            "description" in project,
        ]
        for name, project in projects.items()
    }
    usual = next(iter(said.values()), [])
    return [
        f"{name}: pyproject.toml says {item}, and others say {usual}" for name, item in said.items() if item != usual
    ]


def sources_listed(root: Path) -> list[str]:
    """Checks that CMake names every source and header by its path in the package, or in its CMake project."""
    problems = []
    for package in discover(root).values():
        folder = package.folder
        scripts = [*files(folder, {".cmake"}), *folder.rglob("CMakeLists.txt")]
        listed = "\n".join(path.read_text("utf-8") for path in scripts)
        for path in [*files(folder / "csrc", NATIVE), *files(folder / "include", NATIVE)]:
            if "tests" in path.relative_to(folder).parts:
                continue
            project = next(parent for parent in path.parents if (parent / "CMakeLists.txt").is_file())
            names = "|".join(re.escape(path.relative_to(place).as_posix()) for place in (folder, project))
            if not re.search(rf"(?<![\w/.])(?:{names})(?![\w.])", listed):
                problems.append(f"{path.relative_to(root)}: not named in CMakeLists.txt")
    return problems


def documents_tell_the_truth(root: Path) -> list[str]:
    """Checks that links in documents lead to files, and that a package's example contains the Python of its README.

    Sessions run the examples.
    """
    problems = []
    for path in files(root, {".md"}):
        for target in re.findall(r"\]\((?!https?:|#)([^)#\s]+)", CODE_BLOCK.sub("", path.read_text("utf-8"))):
            if not (path.parent / target).exists():
                problems.append(f"{path.relative_to(root)}: no file {target}")
    for package in discover(root).values():
        readme = package.folder / "README.md"
        example = root / "examples" / f"{package.name}.py"
        if readme.is_file() and example.is_file():
            shown = re.findall(r"(?ms)^```python\n(.*?)^```", readme.read_text("utf-8"))
            code = example.read_text("utf-8")
            place = readme.relative_to(root)
            if any(block not in code for block in shown):
                problems.append(f"{place}: shows code that is not in examples/{example.name}")
            if shown and "import " not in shown[0]:
                problems.append(f"{place}: its first program does not run alone, without an import")
    return problems


RUNTIME = "openreg-runtime"
PLUGINS = "openreg.plugins"
RECORD = "openreg_install_python_modules("
QUESTION = "openreg_runtime.require_matching_build(__name__)"

# The files and folders of the runtime that count as its source.
SOURCES = ("src", "csrc", "include", "cmake", "tools", "CMakeLists.txt", "pyproject.toml")
TEXTS = {".py", ".pyi", ".cpp", ".h", ".cmake", ".txt", ".toml", ".json", ".in"}


def native_parts_ask_first(root: Path) -> list[str]:
    """Checks that a package with native parts records their build, and calls the runtime before it loads them."""
    problems = []
    for package in discover(root).values():
        if package.name == RUNTIME or not (package.folder / "csrc").is_dir():
            continue
        cmake = package.folder / "CMakeLists.txt"
        if not cmake.is_file() or RECORD not in cmake.read_text("utf-8"):
            problems.append(f"{package.folder.relative_to(root)}/CMakeLists.txt: install with {RECORD}...)")
        source = package.folder / "src" / package.import_name / "__init__.py"
        before, call, _ = source.read_text("utf-8").partition(QUESTION)
        if not call or re.search(rf"(?m)^\s*(from|import) {package.import_name}\b", before):
            problems.append(f"{source.relative_to(root)}: {QUESTION} has to come before its own imports")
    return problems


def names_of(package: str) -> str:
    """Returns a pattern for the names of a package: for pip, for Python, for C++ and in includes of its headers."""
    short = re.escape(package.removeprefix("openreg-")).replace(r"\-", "[-_]")
    other = "|torch[-_]openreg" if package == "openreg-meta" else ""
    return rf"openreg(?:-|_|::|/){short}{other}"


def runtime_names_no_other_package(root: Path) -> list[str]:
    """Checks that the runtime's source names no package that builds on it, except in one generated table.

    Its pyproject.toml may name packages that its tests need, if these do not need the runtime.
    """
    packages = discover(root)
    if RUNTIME not in packages:
        return []
    below = set(closure(RUNTIME, packages))
    others = sorted({*packages, *planned(root).values()} - below)
    tools = siblings(packages[RUNTIME].extras.get("test", ()), packages)
    declared = [name for name in others if name not in tools or RUNTIME in closure(name, packages)]
    anywhere, in_metadata = (
        re.compile(rf"(?<![\w-])(?:{'|'.join(map(names_of, names))})(?![\w-])") for names in (others, declared)
    )
    folder = packages[RUNTIME].folder
    places = [folder / name for name in SOURCES]
    paths = [path for place in places for path in ([place] if place.is_file() else sorted(place.rglob("*")))]
    problems = []
    for path in paths:
        pattern = in_metadata if path == folder / "pyproject.toml" else anywhere
        if path.suffix in TEXTS and path != root / TABLE:
            problems += [
                f"{path.relative_to(root).as_posix()}:{number}: names {match.group()}; what packages bring is in "
                f"{TABLE.name}, which they declare"
                for number, line in enumerate(path.read_text("utf-8", "replace").splitlines(), 1)
                if (match := pattern.search(line))
            ]
    return problems


def plugins_tell_the_doctor(root: Path) -> list[str]:
    """Checks that a package with a plug-in has a doctor.toml, so that its absence can be reported (tools/hooks.py)."""
    problems = []
    for package in discover(root).values():
        place = package.folder.relative_to(root) / "src" / package.import_name / hooks.DECLARATION
        if PLUGINS in package.entry_points and not (root / place).is_file():
            problems.append(f"{place}: missing; it says what the package brings (templates/package has one)")
    return problems


SHORTEST_GUARD = 120  # seconds: the least timeout of a test against a hang
CLOCK = r"\b(?:perf_counter|monotonic|time)(?:_ns)?\(\)"
# A difference of clock readings, or the time between events.
DURATION = rf"{CLOCK} - |- [\w.]*{CLOCK}|\belapsed(?:_time)?\("
# A positive number that is fixed in advance, made of literals and CONSTANTS.
FIXED = r"(?!0 )\(*[\dA-Z][^a-df-z<>=,]*(?=[<>=,]| and | or |$)"
SIDE = "(?:(?! and | or )[^<>=])*"  # one side of a comparison
PAUSE = r"\b(?:_sleep|delay)\("  # a call that makes the device wait
UNFINISHED = re.compile(r"\s*assert (?:not .*\b(?:query|stream_ready|event_ready)\(|(?!not ).*\bis_busy\()")


def problems_of(code: str, pausing: str) -> Iterator[str]:
    """Yields what is wrong in a function or class, whose code has one statement per line.

    `pausing` is a pattern for calls that make a stream wait.
    """
    names = re.findall(rf"(?m)^\s*(\w+) = .*(?:{DURATION})", code)
    measured = "|".join([DURATION, *(rf"\b{name}\b" for name in names)])
    too_long = re.compile(rf"(?:{measured}){SIDE}<=? {FIXED}|{FIXED}>=? {SIDE}(?:{measured})")
    pauses = re.search(pausing, code) and "gate" not in code.lower()
    for line in code.splitlines():
        if line.strip().startswith("assert ") and too_long.search(f"{line} "):
            yield f"{line}: a duration below a limit needs a fast machine: assert a lower bound, or use a gate"
        if pauses and UNFINISHED.match(line):
            yield f"{line}: a pause that is still running needs a fast machine: hold the work by a gate"
        if any(float(seconds) < SHORTEST_GUARD for seconds in re.findall(r"\btimeout=(\d[\d.]*)(?=[,)])", line)):
            yield f"{line}: a guard against hangs is at least {SHORTEST_GUARD} s long"


# Cached, because the tests of tools/ check many copies of the same files.
@cache
def problems_in(text: str) -> tuple[str, ...]:
    """Returns what is wrong in a file, each with the line at which its function begins."""
    nodes = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    blocks = [(node, ast.unparse(node)) for node in nodes]
    helpers = [
        rf"\b{node.name}\b" for node, code in blocks if re.search(PAUSE, code) and not node.name.startswith("test_")
    ]
    pausing = "|".join([PAUSE, *helpers])
    return tuple(f"{node.lineno}: {found}" for node, code in blocks for found in problems_of(code, pausing))


def tests_need_no_fast_machine(root: Path) -> list[str]:
    """Checks that tests do not depend on the speed of the machine.

    They must not assert upper bounds of durations. A test that needs unfinished tasks must block the stream by a gate,
    which the test opens, and not by a pause.
    """
    folders = [root / "tests", root / "docs" / "tests", *root.glob("templates/*/tests")]
    folders += [package.folder / "tests" for package in discover(root).values()]
    return [
        f"{path.relative_to(root)}:{what}"
        for path in sorted(path for folder in folders for path in folder.rglob("*.py"))
        for what in problems_in(path.read_text("utf-8"))
    ]


CHECKS = (
    *(package_shape, packages_have_the_license, names_derive_from_one, metadata_is_alike, sources_listed),
    *(pins_are_of_one_release, documents_tell_the_truth, native_parts_ask_first),
    *(headers_are_needed, headers_have_their_number, brought_by_one_package, declarations_are_written),
    *(runtime_names_no_other_package, plugins_tell_the_doctor, tests_need_no_fast_machine, includes_go_down),
    *(imports_go_down, types_have_names_of_their_own),
)
