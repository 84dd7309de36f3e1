# SPDX-License-Identifier: BSD-3-Clause
"""The commands of this repository. `nox --list` shows them; arguments after `--` are passed on.

Packages, their order and their sessions are read from the folders under packages/: a new package
needs no line here. The parts are in tools/.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import signal
import sys
from pathlib import Path

import nox

ROOT = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT))

from tools import torch_release  # noqa: E402
from tools._platform import usable_cores  # noqa: E402
from tools.packages import BUILD_TOOLS, discover, read_requirements  # noqa: E402
from tools.pages.recipe import run_recipe  # noqa: E402
from tools.pages.trace import run_instructions, run_trace  # noqa: E402
from tools.releases.release import run_release  # noqa: E402
from tools.releases.torch_mismatch import run_torch_mismatch  # noqa: E402
from tools.releases.torch_sessions import run_interfaces, run_torch_sessions  # noqa: E402
from tools.sessions.combinations import run_combinations  # noqa: E402
from tools.sessions.environments import fetch_all  # noqa: E402
from tools.sessions.lock import lock  # noqa: E402
from tools.sessions.new_backends import run_new_backends  # noqa: E402
from tools.sessions.package_session import NOX, PYTEST, PackageSession  # noqa: E402
from tools.sessions.stopwatch import Stopwatch  # noqa: E402
from tools.sessions.subsets import run_subsets  # noqa: E402
from tools.sessions.template import run_template  # noqa: E402
from tools.sessions.wheel_quality import run_wheel_quality  # noqa: E402
from tools.sessions.wheelhouse import Wheelhouse  # noqa: E402
from tools.systems.macos import build_for_macos  # noqa: E402
from tools.systems.native_driver import cross_compile, run_emulated, run_sanitizer, run_tidy  # noqa: E402
from tools.tutorial import STEPS  # noqa: E402

PACKAGES = discover(ROOT)
PACKAGE_SESSIONS = [f"test-{name}" for name in PACKAGES]
# These sessions decide whether a change is good. Those without wheels come first: the wheels are built beside them.
WITHOUT_WHEELS = ["asan", "tsan", "lint"]
DEFAULT = [*WITHOUT_WHEELS, "docs", *reversed(PACKAGE_SESSIONS), "wheel-quality"]
# These take longer: the workflow runs them, and `nox` without arguments does not.
SLOW = [
    *("combinations", "conformance", "cross", "emulated", "endurance", "fuzz", "instructions", "libraries", "macos"),
    *("onnx", "quickstart", "recipe", "release", "settings"),
    *("soak", "stress", "subsets", "template", "tidy", "timelines", "tutorial"),
]
STOPWATCH = Stopwatch()
WHEELHOUSE = Wheelhouse(ROOT, PACKAGES, STOPWATCH)
BUILD = ROOT / "build"
SITE = BUILD / "site"

# What `nox -s excerpts` writes with; the tests in tests/ that compare its work need the same.
EXCERPTS = ("cogapp>=3.6,<4", "tree-sitter>=0.25,<1", "tree-sitter-cpp>=0.23,<1")

# Tests of numbers alone. The other tests also count launches and see the host go on, which these settings change.
COMPARED_WITH_THE_CPU = {
    "openreg-ops": ("conformance/test_conformance.py",),
    "openreg-meta": ("training/test_networks.py", "training/test_training.py"),
}

# The tests of tools/ import what the tools use.
LINT_NEEDS = (
    *("check-wheel-contents>=0.6", "deptry==0.25.1", "lief>=0.17", NOX, "packaging>=24.2", "pre-commit>=4"),
    *("pytest>=8.3", "pytest-timeout>=2.3", "pyproject-metadata>=0.9", "pyyaml>=6", "tomli"),
)

nox.needs_version = ">=2026.10.20"  # tools/sessions/package_session.py and .ci/run name it, too
nox.options.default_venv_backend = "virtualenv"  # which needs a tenth of the time that Python's own venv needs
nox.options.reuse_venv = "yes"
nox.options.error_on_external_run = True
nox.options.sessions = DEFAULT
# Without a choice of sessions two run at a time, as most keep one core busy with one test after the other. A named
# session shows its progress. Nox runs each of several sessions in a process of its own, with --parallel-worker.
CHOICES = ("-s", "-e", "-k", "-t", "-l", "-j", "--session", "--keyword", "--tag", "--list", "--parallel")
OPTIONS = sys.argv[1 : sys.argv.index("--")] if "--" in sys.argv else sys.argv[1:]
JOBS = 1 if any(option.startswith(CHOICES) for option in OPTIONS) else min(2, usable_cores())
PARALLEL = JOBS > 1 or "--parallel-worker" in sys.argv
if PARALLEL:
    nox.options.parallel = JOBS

# An environment made by another Python is made anew instead of reused.
os.environ.setdefault("NOX_ENABLE_STALENESS_CHECK", "1")
atexit.register(STOPWATCH.report, ROOT / ".nox" / "times.txt", parallel=PARALLEL)


def package_session(session: nox.Session) -> PackageSession:
    """The session's environment, to install a package into."""
    return PackageSession(session, WHEELHOUSE)


@nox.session
def lint(session: nox.Session) -> None:
    """Formatters, linters and types (.pre-commit-config.yaml), then the shape of the repository."""
    with STOPWATCH.step(session.name, "install"):
        session.install(*LINT_NEEDS, *EXCERPTS)
    with STOPWATCH.step(session.name, "pre-commit"):
        session.run("pre-commit", "run", "--all-files", "--show-diff-on-failure")
    with STOPWATCH.step(session.name, "pytest"):
        session.run("python", "-m", "pytest", "-p", "no:cacheprovider", "tests", *session.posargs)


@nox.session(venv_backend="none")
def wheels(session: nox.Session) -> None:
    """Fill dist/ with the wheel of every package, and fetch what sessions install besides."""
    for wheel in WHEELHOUSE.provide(session, list(PACKAGES)).values():
        session.log(f"dist/{wheel.name}")
    fetch_all(session, WHEELHOUSE, extras=True)


@nox.session(name="wheel-quality")
def wheel_quality(session: nox.Session) -> None:
    """Check what every wheel says, contains and links with, and use it where nothing can be built."""
    run_wheel_quality(session, WHEELHOUSE)


@nox.session
def release(session: nox.Session) -> None:
    """Make, check and try all that would be uploaded, in dist/release/ (-- v4 compares the tag with the versions)."""
    run_release(session, WHEELHOUSE)


@nox.session
def cibuildwheel(session: nox.Session) -> None:
    """Build the native wheels for every Python into wheelhouse/, in containers on Linux (CIBW_BUILD chooses)."""
    session.install("cibuildwheel==4.2.0")
    for package in PACKAGES.values():
        if (package.folder / "CMakeLists.txt").is_file():
            folder = package.folder.relative_to(ROOT).as_posix()
            into = ("--config-file", "pyproject.toml", "--output-dir", "wheelhouse")
            env = {"CIBW_TEST_COMMAND": f"python {{project}}/examples/{package.name}.py"}
            session.run("cibuildwheel", *into, *session.posargs, folder, env=env)


for package_name in PACKAGES:

    @nox.session(name=f"test-{package_name}", tags=["packages"])
    def run_package_tests(session: nox.Session, name: str = package_name) -> None:
        """Test one package: its wheel and what it declares, without the other packages."""
        here = package_session(session)
        here.install(name, extra="test")
        here.test()


@nox.session
def torch(session: nox.Session) -> None:
    """Test every package, with wheels built against another PyTorch (-- 2.14; -- nightly; -- 2.15 test-openreg-ops)."""
    run_torch_sessions(session, PACKAGE_SESSIONS, STOPWATCH)


@nox.session(venv_backend="none")
def interfaces(session: nox.Session) -> None:
    """Print how the hooks of the torch that wheels are built against differ from the recorded ones."""
    run_interfaces(session, WHEELHOUSE)


@nox.session(name="torch-mismatch", venv_backend="none")
def torch_mismatch(session: nox.Session) -> None:
    """Wheels for every release of PyTorch beside each of the releases: each pair works or is refused, none crashes."""
    run_torch_mismatch(session, WHEELHOUSE)


@nox.session
def quickstart(session: nox.Session) -> None:
    """Train the model of examples/quickstart.py, also with the minimal operators, and build all packages."""
    here = package_session(session)
    here.install("openreg-meta", "scikit-learn", "rich")
    script = str(ROOT / "examples" / "quickstart.py")
    here.run("quickstart.py", "python", script, *session.posargs)
    here.run("with OPENREG_OPS=minimal", "python", script, *session.posargs, settings={"OPENREG_OPS": "minimal"})
    WHEELHOUSE.provide(session, list(PACKAGES))  # the README's next command installs from dist/


def build_guide(session: nox.Session, *options: str) -> PackageSession:
    """Build the guide into build/site, warnings being errors. Returns the environment that it was built in."""
    if sys.version_info < (3, 11):
        session.skip("Sphinx 8.2 and the wheel of Graphviz need Python 3.11")
    here = package_session(session)
    requirements = read_requirements(ROOT / "docs" / "requirements.txt")
    here.install(
        "openreg-testing", "openreg-profiler", "openreg-predict", "openreg-sanitizer", *requirements, extra="device"
    )
    build = ("python", "-m", "sphinx", "--builder", "html", "--fail-on-warning", "--keep-going", "--nitpicky")
    doctrees = ("--doctree-dir", str(BUILD / "doctrees"))
    here.run("sphinx", *build, *options, *doctrees, str(ROOT / "docs"), str(SITE))
    return here


@nox.session
def docs(session: nox.Session) -> None:
    """Build the guide into build/site, warnings being errors, and run every example on its pages."""
    # Whether a timeline shows what its page says depends on the machine's speed. The session `timelines` checks it.
    here = build_guide(session, "-D", "timeline_unshown=draw")
    here.run(
        "pytest",
        *("python", "-m", "pytest", "-c", str(ROOT / "pyproject.toml"), "--rootdir", str(ROOT)),
        *("-p", "no:cacheprovider", "--site", str(SITE), str(ROOT / "docs" / "tests"), *session.posargs),
    )


def published() -> list[str]:
    """Return the options of Sphinx for a guide that is published. GitHub tells a workflow where the repository is."""
    # A picture is published even if it does not show what its page says, which the session `timelines` checks.
    options = ["-D", "timeline_unshown=draw", "-A", f"releases={','.join(torch_release.SUPPORTED)}"]
    if "GITHUB_REPOSITORY" in os.environ:
        repository = f"{os.environ['GITHUB_SERVER_URL']}/{os.environ['GITHUB_REPOSITORY']}"
        options += ["-A", f"repository={repository}"]
        options += ["-D", f"html_theme_options.source_view_link={repository}/blob/main/docs/{{filename}}?plain=1"]
        options += ["-D", f"html_theme_options.source_edit_link={repository}/edit/main/docs/{{filename}}"]
    return options


@nox.session
def site(session: nox.Session) -> None:
    """Build the guide as it is published: with links to the repository, and to the other releases' guides beside it."""
    build_guide(session, *published())


@nox.session
def timelines(session: nox.Session) -> None:
    """Build the guide, and fail if no run of a timeline's program shows what its page says of it."""
    build_guide(session)


@nox.session
def excerpts(session: nox.Session) -> None:
    """Write the code that documents show from the files that they name (docs/README.md says how)."""
    with STOPWATCH.step(session.name, "install"):
        session.install("tomli", *EXCERPTS)
    session.run("python", "-m", "tools.pages.excerpts")


@nox.session
def trace(session: nox.Session) -> None:
    """Write what `x + y` executes into docs/trace, by callgrind; run excerpts after it."""
    run_trace(session, package_session(session), WHEELHOUSE)


@nox.session
def instructions(session: nox.Session) -> None:
    """Compare the instructions of `x + y` with docs/trace/account.json, by callgrind."""
    run_instructions(session, package_session(session))


@nox.session
def tutorial(session: nox.Session) -> None:
    """Install and check each step of the tutorial as its page says, then new backends (-- 3 operators: only these)."""
    with STOPWATCH.step(session.name, "install"):
        pinned = f"torch=={torch_release.current()}.*"
        session.install(pinned, "numpy", "scikit-build-core>=0.11", "tomli", *BUILD_TOOLS)
        session.install(str(ROOT / "packages" / "openreg-doctor"))  # as docs/tutorial/index.md says
    chosen = session.posargs or [*(str(step) for step in STEPS), "operators", "new"]
    for step in (item for item in chosen if item != "new"):
        with STOPWATCH.step(session.name, f"step {step}"):
            folder = Path(session.create_tmp()) / step
            shutil.rmtree(folder, ignore_errors=True)
            if step == "operators":
                session.run("python", "-m", "tools.tutorial_operators", "check", str(folder))
            else:
                session.run("python", "-m", "tools.tutorial", "check", str(folder), step)
    if "new" in chosen:
        run_new_backends(session, WHEELHOUSE)


@nox.session
def recipe(session: nox.Session) -> None:
    """Add the operators of docs/operators/adding.md to a copy of openreg-ops, build it and test them (-- -k random)."""
    run_recipe(session, WHEELHOUSE, STOPWATCH)


@nox.session
def bench(session: nox.Session) -> None:
    """Measure openreg beside the CPU for about 25 minutes (-- --family training --chart FILE --compare FILE)."""
    here = package_session(session)
    requirements = read_requirements(ROOT / "benchmarks" / "requirements.txt")
    here.install("openreg-meta", "openreg-compile", "openreg-distributed", *requirements)
    if "--build-time" in session.posargs:  # the other packages are compiled against the runtime
        WHEELHOUSE.install(session, PACKAGES["openreg-runtime"], editable=False)
    # Names of files are the caller's, and the wheels are built again where nox built them.
    places = ("--directory", session.invoked_from, "--build-python", str(WHEELHOUSE.python(session)))
    here.run("run.py", "python", str(ROOT / "benchmarks" / "run.py"), *places, *session.posargs)


@nox.session
def soak(session: nox.Session) -> None:
    """Use both devices from eight threads for a minute, with poison on (-- --seconds 600 --seed 7)."""
    here = package_session(session)
    here.install("openreg-meta", "numpy")
    program = PACKAGES["openreg-meta"].folder / "tests" / "endurance" / "soak.py"
    here.run(program.name, "python", str(program), *session.posargs)


def kit(command: str, *arguments: str) -> tuple[str, ...]:
    """A command of the conformance kit, with what it has to know of openreg."""
    manifest = PACKAGES["openreg-ops"].folder / "tests" / "conformance.toml"
    return ("python", "-m", "openreg_testing", command, "--manifest", str(manifest), *arguments)


@nox.session
def conformance(session: nox.Session) -> None:
    """All suites of the conformance kit, also of compiled code (-- --op 'fft.*' --json FILE, --shard 1/4)."""
    here = package_session(session)
    here.install("openreg-testing", "openreg-compile", extra="test")
    BUILD.mkdir(exist_ok=True)
    # .github/workflows/relay.yml reports the second one.
    reports = ("--json", str(BUILD / "scorecard.json"), "--relay", str(BUILD / "relay.json"))
    here.run("conformance", *kit("conformance"), *(session.posargs or reports))
    if not session.posargs:
        compiled = ("--suite", "compiled", "--suite", "operators", "--check", "compiled")
        here.run("conformance of compiled code", *kit("conformance", *compiled))
        wrong = ("--suite", "operators", "--check", "arguments", "--check", "storages")
        here.run("conformance of wrong arguments", *kit("conformance", *wrong))


@nox.session
def fuzz(session: nox.Session) -> None:
    """Random operators, dtypes, layouts and flags against the CPU for ten minutes (-- --seconds 60 --seed 7)."""
    here = package_session(session)
    here.install("openreg-ops", extra="test")
    here.run("fuzz", *kit("fuzz"), *session.posargs)


@nox.session
def onnx(session: nox.Session) -> None:
    """Export models from the device to ONNX, and compare what onnxruntime computes (-- -k llama)."""
    here = package_session(session)
    tools = ("onnxruntime>=1.22", "transformers>=5", "pytest>=8.3", "pytest-timeout>=2.3")
    here.install("openreg-ops", "openreg-meta", *tools, extra="onnx")
    here.run("pytest", "python", *PYTEST, str(ROOT / "tests" / "onnx"), *session.posargs)
    here.run("export_onnx.py", "python", str(ROOT / "examples" / "export_onnx.py"))


@nox.session
def libraries(session: nox.Session) -> None:
    """Libraries train on the device, and what they know by name stands where the guide says (-- -k safetensors)."""
    here = package_session(session)
    tools = ("accelerate==1.15.0", "safetensors==0.8.0", "transformers==5.24.0", "pytest>=8.3", "pytest-timeout>=2.3")
    # torchtitan imports triton, and does not require it.
    trainers = ("lightning==2.6.6", "torchao==0.18.0", "torchtitan==0.3.0", "triton")
    here.install("openreg-meta", "openreg-compile", "openreg-distributed", *tools, *trainers)
    here.run("pytest", "python", *PYTEST, str(ROOT / "tests" / "libraries"), *session.posargs)


@nox.session
def settings(session: nox.Session) -> None:
    """Compare numbers with the CPU's while each launch is waited for, and while memory is poisoned (-- -k matmul)."""
    here = package_session(session)
    # The tests that the arguments choose may all be of one package: pytest ends with 5 where it finds none.
    success = [0, 5] if session.posargs else [0]
    for name, files in COMPARED_WITH_THE_CPU.items():
        here.install(name, extra="test")
        tests = [str(PACKAGES[name].folder / "tests" / file) for file in files]
        for variable in ("OPENREG_LAUNCH_BLOCKING", "OPENREG_POISON"):
            command = ("python", *PYTEST, *tests, *session.posargs)
            here.run(f"{name} with {variable}", *command, settings={variable: "1"}, success_codes=success)


@nox.session
def endurance(session: nox.Session) -> None:
    """End 1000 processes without torch and 100 with it while work is queued; then every test marked endurance."""
    here = package_session(session)
    here.install("openreg-meta", extra="test")
    marked = ("python", *PYTEST, "--timeout", "1200", "-m", "endurance")
    without_torch = PACKAGES["openreg-runtime"].folder / "tests" / "driver" / "test_exits.py"
    here.run("exits without torch", *marked, "--process-exits", "1000", str(without_torch))
    here.run("soaks in short", *marked, str(PACKAGES["openreg-meta"].folder / "tests"))
    with_torch = PACKAGES["openreg-meta"].folder / "tests" / "endurance" / "exits.py"
    here.run("exits with torch", "python", str(with_torch), "--processes", "100")
    for name, package in PACKAGES.items():
        sources = (path.read_text("utf-8") for path in (package.folder / "tests").rglob("test_*.py"))
        if name != "openreg-meta" and any("mark.endurance" in source for source in sources):
            here.install(name, extra="test")
            here.run(name, *marked, str(package.folder / "tests"))


@nox.session(venv_backend="none")
def combinations(session: nox.Session) -> None:
    """Editable and regular installs of runtime and ops, all four, share one device state."""
    run_combinations(session, WHEELHOUSE)


@nox.session
def subsets(session: nox.Session) -> None:
    """Each useful subset of the packages in an environment of its own (-- --list; -- runtime+ops)."""
    run_subsets(session, WHEELHOUSE)


@nox.session
def template(session: nox.Session) -> None:
    """Make a package of templates/package in a copy of the repository, and run its linters and its tests."""
    run_template(session, WHEELHOUSE)


@nox.session
def cross(session: nox.Session) -> None:
    """Compile the driver for Windows and macOS, wherever this runs; arguments choose other targets."""
    cross_compile(session, STOPWATCH)


@nox.session
def emulated(session: nox.Session) -> None:
    """Run the driver's native tests for Windows under Wine, and for Linux on aarch64 under QEMU."""
    run_emulated(session, STOPWATCH)


@nox.session
def macos(session: nox.Session) -> None:
    """Compile and link every native package for macOS arm64 against torch's own wheel (-- openreg-runtime)."""
    build_for_macos(session, PACKAGES, STOPWATCH)


@nox.session
def tidy(session: nox.Session) -> None:
    """Check names, exceptions and globals of the device and what else needs no torch by clang-tidy (.clang-tidy)."""
    run_tidy(session, STOPWATCH)


@nox.session
def tsan(session: nox.Session) -> None:
    """Stress the driver and what else needs no torch, 8 s each under the thread sanitizer; `-- --seconds 600`."""
    run_sanitizer(session, STOPWATCH, "thread")


@nox.session
def asan(session: nox.Session) -> None:
    """The same under the sanitizers of addresses, leaks and undefined behavior."""
    run_sanitizer(session, STOPWATCH, "address")


@nox.session
def stress(session: nox.Session) -> None:
    """What tsan and asan do in short, a minute for each program (-- --seconds 600)."""
    for sanitizer in ("thread", "address"):
        run_sanitizer(session, STOPWATCH, sanitizer, seconds=60)


@nox.session(name="ci-matrix", venv_backend="none")
def ci_matrix(session: nox.Session) -> None:
    """Print the default sessions, the slow ones and the releases of PyTorch as JSON; workflows make jobs of them."""
    releases = {"releases": torch_release.others(), "every_release": list(torch_release.SUPPORTED)}
    lines = [f"{name}={json.dumps(items)}" for name, items in {"sessions": DEFAULT, "slow": SLOW, **releases}.items()]
    for line in lines:
        session.log(line)
    if "GITHUB_OUTPUT" in os.environ:
        with open(os.environ["GITHUB_OUTPUT"], "a", encoding="utf-8") as output:
            output.writelines(f"{line}\n" for line in lines)


# `nox -t full`: the sessions of .github/workflows/ci.yml. Those of the other workflows have no tag.
for name in (*DEFAULT, *SLOW):
    nox.registry.get()[name].tags.append("full")

if PARALLEL:
    if __name__ == "user_nox_module":  # nox's name for this file; tests import it, beside other runs
        lock(ROOT / ".nox" / ".cache")
    # The wheels are made before all that needs one; otherwise whoever needs one first makes it.
    nox.options.sessions = ["wheels", *DEFAULT]
    # nox ends the processes of its sessions where it is interrupted, and leaves them behind where it is terminated.
    for number in (signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):
        if signal.getsignal(number) is signal.SIG_DFL:  # and not ignored, as by nohup
            signal.signal(number, signal.default_int_handler)
    # Any other session writes what these read, and so runs alone.
    for name in ("wheels", *DEFAULT):
        function = nox.registry.get()[name]
        function.allow_parallel = True
        function.requires = [] if name in ("wheels", *WITHOUT_WHEELS) else ["wheels"]
