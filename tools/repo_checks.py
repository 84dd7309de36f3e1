# SPDX-License-Identifier: BSD-3-Clause
"""Rules that every file or package of this repository keeps, each a function of its root.

A check returns one line per violation, naming the file and what to do; an empty list is a pass.
tests/test_repo_checks.py runs all of them on this repository and each on a tree that breaks it.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from tools import torch_release
from tools.abi import headers_are_needed, headers_have_their_number
from tools.packages import Package, closure, discover, requirement_name
from tools.plugin_checks import (
    added_names_are_declared,
    doctor_knows_no_package,
    native_parts_ask_first,
    plugins_tell_the_doctor,
    runtime_names_no_other_package,
)
from tools.providers import brought_by_one_package, declarations_are_written
from tools.timing_checks import tests_need_no_fast_machine
from tools.workflow_checks import actions_are_pinned, identity_only_to_publish

LONGEST_FILE = 600
NATIVE = {".cpp", ".h"}
DRIVER_PARTS = "packages/openreg-runtime/tests/driver/parts"
CODE = NATIVE | {".py", ".pyi"}
TEXT = CODE | {".cmake", ".in", ".md", ".toml", ".txt", ".yaml", ".yml", ".cfg", ".sh", ""}
SKIPPED_FOLDERS = {"build", "dist", "__pycache__"}
HIDDEN_BUT_OURS = {".ci", ".github"}

SAME_IN_EVERY_PACKAGE = ("LICENSE", "tests/test_isolation.py")
SAME_WHERE_PRESENT = ("tests/gate.py", "tests/doctor_site.py")
PACKAGE_FILES = ("README.md", "CHANGELOG.md", "pyproject.toml", *SAME_IN_EVERY_PACKAGE)

PLATFORM_HEADERS = re.compile(
    r'#\s*include\s*[<"]((sys|mach|mach-o|linux|netinet|arpa)/[^>"]*|win\w*\.h|'
    r"(pthread|dlfcn|unistd|fcntl|sched|semaphore|spawn|poll|link|execinfo|io|process|direct|malloc|intrin)\.h)"
    r'[>"]',
    re.IGNORECASE,
)
PLATFORM_TESTS = re.compile(
    r"#\s*(if|ifdef|ifndef|elif|define).*\b(_WIN32|_WIN64|_MSC_VER|__MINGW\w+|__linux__|__gnu_linux__|__APPLE__|"
    r"__unix__|__GLIBC\w*|_GNU_SOURCE|_POSIX_\w+|TARGET_OS_\w+)\b"
)
# In code, that is, outside of strings and comments.
PLATFORM_CALLS = re.compile(
    r"\b__declspec\b|"
    r"(?<![\w.>])(mmap|munmap|mprotect|madvise|sysconf|sysctl\w*|getpid|fork|vfork|execv\w*|dlopen|dlsym|dlclose|"
    r"shm_open|memfd_create|sched_\w+|pthread_\w+|sem_\w+|usleep|nanosleep|VirtualAlloc\w*|VirtualFree|"
    r"MapViewOfFile\w*|CreateFileMapping\w*|LoadLibrary\w*|GetModuleHandle\w*|GetProcAddress|GetLastError)\s*\("
)
STRING_OR_COMMENT = re.compile(r'"(\\.|[^"\\])*"|//.*|/\*.*?(\*/|$)|^\s\*\s.*')
# The two headers that have to tell how a symbol is exported.
MAY_ASK_FOR_PLATFORM = {"export.h", "openreg.h"}

# Python that asks where it runs, or names what only one system has. One file of a folder may: _platform.py.
PYTHON_PLATFORM = re.compile(
    r"\bsys\.(platform|getwindowsversion)\b|\bos\.(name|uname)\b|\bplatform\.(system|uname|machine|platform)\(|"
    r"\badd_dll_directory\b|\bhasattr\(os\b|\bctypes\.(windll|WinDLL|CDLL\(None)|\.(so|dylib|dll|pyd)[\"']"
)
PYTHON_PLATFORM_FILE = "_platform.py"

TORCH_INCLUDE = re.compile(r'#\s*include\s*[<"]((torch|ATen|c10|caffe2|pybind11)/[^>"]*|Python\.h)')
CATCH_ALL = re.compile(r'#\s*include\s*[<"](ATen/ATen\.h|torch/(all|torch|extension)\.h)[>"]')
# ATen's loops over threads are templates, threaded only where a source is compiled with OpenMP; and the headers that
# have them inside.
PARALLEL_LOOP = re.compile(
    r"\bparallel_(for|reduce)\b|#\s*include\s*<(omp\.h|ATen/(cpu/vml|native/(cpu/(Loops|Reduce|utils)|im2col|nested/"
    r"NestedTensorUtils))\.h)>"
)
GLOB = re.compile(r"\bfile\s*\(\s*GLOB", re.IGNORECASE)
MACHINE_PATH = re.compile(r"(?<![\w.$}])/(home|root|work|Users|workspace|opt|mnt|srv)/\w")
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
SPDX = "SPDX-License-Identifier: BSD-3-Clause"
# Code in a document, where `[](x)` is no link.
CODE_BLOCK = re.compile(r"(?ms)^ *(```+).*?^ *\1 *$")


def files(folder: Path, suffixes: set[str]) -> Iterator[Path]:
    """Our files with one of these endings, in a fixed order; none that a build made."""
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if path.is_dir():
            hidden = path.name.startswith(".") and path.name not in HIDDEN_BUT_OURS
            if not hidden and path.name not in SKIPPED_FOLDERS:
                yield from files(path, suffixes)
        elif path.suffix in suffixes and path.name != ".git":  # a file where the checkout is a git worktree
            yield path


def lines_matching(root: Path, paths: Iterator[Path], pattern: re.Pattern[str], advice: str) -> list[str]:
    """One violation per line that matches."""
    return [
        f"{path.relative_to(root)}:{number}: {match.group().strip()!r}: {advice}"
        for path in paths
        for number, line in enumerate(path.read_text("utf-8", "replace").splitlines(), 1)
        if (match := pattern.search(line))
    ]


def package_shape(root: Path) -> list[str]:
    """Every package has the same files in the same places."""
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


def same_in_every_package(root: Path) -> list[str]:
    """Files that are copies stay copies."""
    problems = []
    for name in SAME_IN_EVERY_PACKAGE + SAME_WHERE_PRESENT:
        copies = [item.folder / name for item in discover(root).values()]
        copies = [path for path in [root / name, *copies, *root.glob(f"templates/*/{name}")] if path.is_file()]
        problems += [
            f"{path.relative_to(root)}: differs from {copies[0].relative_to(root)}"
            for path in copies
            if path.read_bytes() != copies[0].read_bytes()
        ]
    return problems


def names_derive_from_one(root: Path) -> list[str]:
    """Folder, distribution, import package and CMake project of a package share one name."""
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


def sources_listed(root: Path) -> list[str]:
    """CMake names every source and header of a package by its path in the package."""
    problems = []
    for package in discover(root).values():
        folder = package.folder
        scripts = [*files(folder, {".cmake"}), *folder.rglob("CMakeLists.txt")]
        listed = "\n".join(path.read_text("utf-8") for path in scripts)
        for path in [*files(folder / "csrc", NATIVE), *files(folder / "include", NATIVE)]:
            name = re.escape(path.relative_to(folder).as_posix())
            if not re.search(rf"(?<![\w/.]){name}(?![\w.])", listed):
                problems.append(f"{path.relative_to(root)}: not named in CMakeLists.txt")
    return problems


def no_glob(root: Path) -> list[str]:
    """CMake lists its sources."""
    scripts = (path for path in files(root, {".cmake", ".txt", ".in"}))
    return lines_matching(root, scripts, GLOB, "list the files")


def no_catch_all_header(root: Path) -> list[str]:
    """C++ includes the headers of the operators it uses, not all of them."""
    return lines_matching(root, files(root, NATIVE), CATCH_ALL, "include the single headers you need")


def parallel_loops_use_threads(root: Path) -> list[str]:
    """Loops of ATen stand in csrc/kernels, which is compiled with OpenMP as a whole."""
    problems = []
    for package in discover(root).values():
        for path in files(package.folder, NATIVE):
            if path.parent == package.folder / "csrc" / "kernels":
                continue
            for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
                found = PARALLEL_LOOP.search(STRING_OR_COMMENT.sub("", line))
                if found:
                    advice = "runs on one thread here; move the loop to csrc/kernels"
                    problems.append(f"{path.relative_to(root)}:{number}: {found.group()!r}: {advice}")
    return problems


def driver_without_torch(root: Path) -> list[str]:
    """The simulated hardware, and the memory that sanitizers reach, know nothing of PyTorch or Python."""
    runtime = root / "packages" / "openreg-runtime"
    folders = (*(runtime / "csrc" / part for part in ("driver", "memory")), runtime / "tests" / "memory")
    headers = (runtime / "include" / name for name in ("openreg.h", "openreg/runtime/memory_observer.h"))
    paths = [*(path for folder in folders for path in files(folder, NATIVE)), *headers]
    existing = (path for path in paths if path.is_file())
    return lines_matching(root, existing, TORCH_INCLUDE, "this is compiled without torch")


def platform_calls_apart(root: Path) -> list[str]:
    """What differs between operating systems is behind platform.h, in platform_*.cpp."""
    problems = []
    for package in discover(root).values():
        for folder in ("csrc", "include", "tests"):
            paths = [
                path
                for path in files(package.folder / folder, NATIVE)
                if not path.name.startswith("platform_") and path.name not in MAY_ASK_FOR_PLATFORM
            ]
            for pattern in (PLATFORM_HEADERS, PLATFORM_TESTS):
                advice = "move it to a platform_*.cpp"
                problems += lines_matching(root, iter(paths), pattern, advice)
            problems += [
                f"{path.relative_to(root)}:{number}: {match.group()!r}: move it to a platform_*.cpp"
                for path in paths
                for number, line in enumerate(path.read_text("utf-8", "replace").splitlines(), 1)
                if (match := PLATFORM_CALLS.search(STRING_OR_COMMENT.sub("", line)))
            ]
    return problems


def python_platform_apart(root: Path) -> list[str]:
    """Python asks for the operating system in one small file per folder that needs it."""
    folders = [root / "tools", root / "tests"]
    folders += [package.folder / part for package in discover(root).values() for part in ("src", "tests")]
    paths = (
        path
        for folder in folders
        for path in files(folder, {".py", ".pyi"})
        if path.name not in {PYTHON_PLATFORM_FILE, Path(__file__).name, f"test_{Path(__file__).name}"}
    )
    return lines_matching(root, paths, PYTHON_PLATFORM, f"move it to a {PYTHON_PLATFORM_FILE}")


def device_by_its_interface(root: Path) -> list[str]:
    """Who uses the device includes openreg.h and no header of the driver, so that another driver can take its place.

    But for what tests the driver's parts by themselves.
    """
    problems = []
    for package in discover(root).values():
        driver = root / "packages" / "openreg-runtime" / "csrc" / "driver"
        private = {path.name for path in files(driver, {".h"})}
        for path in files(package.folder, NATIVE):
            apart = driver in path.parents or path.relative_to(root).as_posix().startswith(DRIVER_PARTS)
            text = "" if apart else path.read_text("utf-8", "replace")
            for name in re.findall(r'#\s*include\s*[<"]([^>"]+)[>"]', text):
                # A name without a folder may be that of a neighbour.
                neighbour = (path.parent / name).is_file() and driver not in (path.parent / name).resolve().parents
                if not neighbour and ("driver/" in name or name in private):
                    problems.append(f"{path.relative_to(root)}: includes {name} of the driver; use openreg.h")
    return problems


def file_length(root: Path) -> list[str]:
    """No file of code is longer than a reader can keep in mind."""
    problems = []
    for path in files(root, CODE | {".cmake", ".txt"}):
        count = len(path.read_text("utf-8", "replace").splitlines())
        if count > LONGEST_FILE:
            place = path.relative_to(root)
            problems.append(f"{place}: {count} lines, at most {LONGEST_FILE}: split it")
    return problems


def no_machine_paths(root: Path) -> list[str]:
    """Nothing names a folder that exists on one machine only."""
    return lines_matching(root, files(root, TEXT), MACHINE_PATH, "a path of one machine")


def nothing_unfinished(root: Path) -> list[str]:
    """No marker promises what is not there."""
    paths = (path for path in files(root, TEXT) if path.name != Path(__file__).name)
    return lines_matching(root, paths, UNFINISHED, "finish it or open an issue")


def licence_lines(root: Path) -> list[str]:
    """Every file of code names its licence in its first line."""
    return [
        f"{path.relative_to(root)}: the first line should say {SPDX}"
        for path in files(root, CODE)
        if SPDX not in path.read_text("utf-8", "replace").partition("\n")[0]
    ]


def one_autoload(root: Path) -> list[str]:
    """Only openreg-autoload is started by `import torch`."""
    return [
        f"{package.name}: only openreg-autoload may declare the entry point torch.backends"
        for package in discover(root).values()
        if "torch.backends" in package.entry_points and package.name != "openreg-autoload"
    ]


def one_torch(root: Path) -> list[str]:
    """All packages are for the same release of PyTorch; CMake takes it from their versions."""
    literal = re.compile(r"openreg_find_torch\(\s*VERSION\s+[\d.]+")
    advice = "take the release from the version in pyproject.toml: ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}"
    scripts = files(root / "packages", {".txt"})
    return torch_release.problems(root) + lines_matching(root, scripts, literal, advice)


def imported_modules(path: Path) -> Iterator[tuple[int, str]]:
    """Line and top-level name of every absolute import in a Python file."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"), str(path))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name.partition(".")[0]) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.lineno, node.module.partition(".")[0]


def allowed_imports(names: list[str], packages: dict[str, Package]) -> set[str]:
    """The modules that packages and the requirements they declare bring."""
    allowed = set(sys.stdlib_module_names)
    for name in names:
        allowed.add(packages[name].import_name)
        for item in map(requirement_name, packages[name].requirements):
            allowed.add(packages[item].import_name if item in packages else item.replace("-", "_"))
    return allowed


def imports_declared(root: Path) -> list[str]:
    """A package imports what its pyproject.toml declares; its example what that brings in turn.

    Code of a package that builds on the runtime may import torch: the runtime is its torch.
    """
    packages = discover(root)
    problems = []
    for package in packages.values():
        own = allowed_imports([package.name], packages) | {"torch"}
        brought = allowed_imports(closure(package.name, packages), packages)
        checked = [(path, own) for path in files(package.folder / "src", {".py", ".pyi"})]
        example = root / "examples" / f"{package.name}.py"
        if example.is_file():
            checked.append((example, brought))
        for path, allowed in checked:
            problems += [
                f"{path.relative_to(root)}:{line}: {package.name} does not declare {module!r}"
                for line, module in imported_modules(path)
                if module not in allowed
            ]
    return problems


def documents_tell_the_truth(root: Path) -> list[str]:
    """Links in documents lead to files; Python in a package's README is part of its example, which lanes run."""
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


def lanes_declare_budgets(root: Path) -> list[str]:
    """Every package declares what its build and its lane may take."""
    return [
        f"packages/{name}/pyproject.toml: [tool.openreg.budget] has to give `build` and `lane`, whole seconds above 0"
        for name, package in discover(root).items()
        if set(package.budget) != {"build", "lane"}
        or not all(type(seconds) is int and seconds > 0 for seconds in package.budget.values())
    ]


CHECKS = (
    package_shape,
    same_in_every_package,
    names_derive_from_one,
    sources_listed,
    no_glob,
    no_catch_all_header,
    parallel_loops_use_threads,
    driver_without_torch,
    platform_calls_apart,
    python_platform_apart,
    device_by_its_interface,
    file_length,
    no_machine_paths,
    nothing_unfinished,
    licence_lines,
    one_autoload,
    one_torch,
    imports_declared,
    documents_tell_the_truth,
    native_parts_ask_first,
    headers_are_needed,
    headers_have_their_number,
    added_names_are_declared,
    brought_by_one_package,
    declarations_are_written,
    lanes_declare_budgets,
    runtime_names_no_other_package,
    plugins_tell_the_doctor,
    doctor_knows_no_package,
    tests_need_no_fast_machine,
    actions_are_pinned,
    identity_only_to_publish,
)
