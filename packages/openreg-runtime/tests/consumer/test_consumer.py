# SPDX-License-Identifier: BSD-3-Clause
"""C and C++ projects can find, compile and link what the wheel installs. Wrong versions are refused."""

import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from cmake_runs import cmake, run, site_packages
from driver._platform import SCRIPTS_FOLDER

PROJECT = Path(__file__).resolve().parent
DRIVER = PROJECT.parents[1] / "csrc" / "driver"
C_PROJECT = """\
cmake_minimum_required(VERSION 3.24...4.0)
project(program LANGUAGES C)
set(VERSION 1.4 CACHE STRING "")
find_package(openreg_driver ${VERSION} REQUIRED CONFIG)
add_executable(use_driver use_driver.c)
target_link_libraries(use_driver PRIVATE openreg::openreg)
"""
# All of the driver in one translation unit, which takes a third of the time of several.
ONE_UNIT = "cmake_language(DEFER CALL set_target_properties openreg PROPERTIES UNITY_BUILD_BATCH_SIZE 0)\n"
# The release of torch that the wheel is compiled for, as "2.13".
RELEASE = ".".join(metadata.version("torch").split(".")[:2])


def configure(build, *definitions, prefix=None, python=sys.executable):
    return cmake(
        *("-S", PROJECT, "-B", build, "-G", "Ninja"),
        f"-DCMAKE_PREFIX_PATH={prefix or site_packages()}",
        f"-DPython_EXECUTABLE={python}",
        *definitions,
    )


def fake_torch(folder, version, *, debug=False):
    """An interpreter's worth of torch: enough to be found, with another version."""
    (folder / "torch").mkdir(parents=True)
    (folder / "torch" / "__init__.py").write_text("raise ImportError('it must not be imported')\n")
    (folder / "torch" / "version.py").write_text(f"__version__ = {version!r}\ndebug = {debug}\n")
    return folder


def test_a_project_finds_links_and_runs_both_libraries(tmp_path):
    status, output = configure(tmp_path)
    assert status == 0, output
    status, output = cmake("--build", tmp_path)
    assert status == 0, output
    driver = run(tmp_path / "use_driver")
    assert driver.returncode == 0, driver.stderr
    assert "received 'there and back'" in driver.stdout
    observer = run(tmp_path / "use_observer")
    assert observer.returncode == 0, observer.stderr
    assert "2 submitted, 2 completed, 1 written" in observer.stdout
    runtime = run(tmp_path / "use_runtime")
    assert runtime.returncode == 0, runtime.stderr
    assert "the kernel wrote 999" in runtime.stdout
    aliases = run(tmp_path / "use_aliases")
    assert aliases.returncode == 0, aliases.stderr


def test_the_driver_alone_needs_neither_torch_nor_python(tmp_path):
    prefix = tmp_path / "prefix"
    shutil.copytree(site_packages() / "openreg_runtime", prefix / "openreg_runtime")
    build = tmp_path / "build"
    status, output = configure(build, "-DCONSUMER_COMPONENT=driver", prefix=prefix, python=tmp_path / "no-such-python")
    assert status == 0, output
    assert "Found torch" not in output
    assert "Found Python" not in output
    status, output = cmake("--build", build)
    assert status == 0, output
    assert run(build / "use_driver").returncode == 0
    assert run(build / "use_observer").returncode == 0


def test_the_driver_is_a_project_of_its_own_for_programs_in_c(tmp_path):
    source = tmp_path / "a copied driver"
    shutil.copytree(DRIVER, source, ignore=shutil.ignore_patterns("tests"))
    program = tmp_path / "program"
    program.mkdir()
    shutil.copy(PROJECT / "use_driver.c", program)
    (program / "CMakeLists.txt").write_text(C_PROJECT, "utf-8")
    (tmp_path / "one_unit.cmake").write_text(ONE_UNIT, "utf-8")
    one_unit = f"-DCMAKE_PROJECT_TOP_LEVEL_INCLUDES={tmp_path / 'one_unit.cmake'}"
    installed = f"-DCMAKE_PREFIX_PATH={tmp_path / 'installed'}"
    for command in (
        ("-S", source, "-B", tmp_path / "build", "-G", "Ninja", "-DOPENREG_DRIVER_TESTS=OFF", one_unit),
        ("--build", tmp_path / "build"),
        ("--install", tmp_path / "build", "--prefix", tmp_path / "installed"),
        ("-S", program, "-B", tmp_path / "use", "-G", "Ninja", installed),
        ("--build", tmp_path / "use"),
    ):
        status, output = cmake(*command)
        assert status == 0, output
    assert "received 'there and back'" in run(tmp_path / "use" / "use_driver").stdout
    status, output = cmake("-S", program, "-B", tmp_path / "other", "-G", "Ninja", installed, "-DVERSION=2.0")
    assert status != 0
    assert 'compatible with requested version "2.0"' in output


def included(header):
    """The headers of the runtime that a header includes, itself and through others."""
    direct = re.findall(r'#include [<"]openreg/runtime/(\w+\.h)[>"]', header.read_text("utf-8"))
    return {inner for name in direct for inner in (header.parent / name, *included(header.parent / name))}


def chains(headers):
    """The headers in groups, in each of which the next one includes the one before."""
    left = sorted(headers, key=lambda header: (len(included(header)), header.read_text("utf-8").count("#include")))
    left.reverse()
    while left:
        chain = [left.pop(0)]
        while inner := next((header for header in left if header in included(chain[0])), None):
            left.remove(inner)
            chain.insert(0, inner)
        yield chain


def test_every_public_header_compiles_alone(tmp_path):
    """The first of a chain is alone, and the next one would find what the one before declares alone as well."""
    include = site_packages() / "openreg_runtime" / "include"
    headers = sorted(include.glob("openreg/runtime/*.h"))
    assert headers
    sources = []
    for chain in chains(headers):
        sources.append(tmp_path / f"{chain[-1].stem}.cpp")
        sources[-1].write_text("".join(f"#include <{header.relative_to(include).as_posix()}>\n" for header in chain))
    listed = ";".join(path.as_posix() for path in sources)
    status, output = configure(tmp_path / "build", f"-DCONSUMER_SOURCES={listed}")
    assert status == 0, output
    status, output = cmake("--build", tmp_path / "build", "--target", "further")
    assert status == 0, output


@pytest.mark.parametrize("version", ["2.12.1", "2.99.0+cpu", "2.99.0.dev20261101+cpu"])
def test_another_torch_is_refused_with_both_versions_and_the_way_out(tmp_path, monkeypatch, version):
    monkeypatch.setenv("PYTHONPATH", str(fake_torch(tmp_path / "other", version)))
    status, output = configure(tmp_path / "build")
    assert status != 0
    assert f"openreg_runtime (built against torch {RELEASE}" in output
    assert f"torch installed for it is {version}." in output
    assert "isolated build, which" not in output
    assert f'pip install "torch=={RELEASE}.*"' in output
    assert "--no-build-isolation" in output


def test_a_debug_build_of_torch_is_refused_with_the_way_to_another(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(fake_torch(tmp_path / "other", f"{RELEASE}.0", debug=True)))
    status, output = configure(tmp_path / "build")
    assert status != 0
    assert f"{RELEASE}.0, a debug build" in output
    assert f'pip install --force-reinstall "torch=={RELEASE}.*"' in output


def test_an_isolated_build_reports_why_it_finds_no_torch(tmp_path, monkeypatch):
    # pip puts a folder of this name on PYTHONPATH, whose sitecustomize hides what is installed; here it hides torch.
    hiding = tmp_path / "pip-build-env-1" / "site"
    hiding.mkdir(parents=True)
    (hiding / "sitecustomize.py").write_text("import sys\nsys.modules['torch'] = None\n", "utf-8")
    monkeypatch.setenv("PYTHONPATH", str(hiding))
    status, output = configure(tmp_path / "build")
    assert status != 0
    assert f"needs torch {RELEASE}.*" in output
    assert "isolated build, which" in output
    assert "pip install --no-build-isolation <package>" in output


def test_a_missing_torch_is_explained(tmp_path):
    bare = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", bare], check=True)
    status, output = configure(tmp_path / "build", python=bare / SCRIPTS_FOLDER / "python")
    assert status != 0
    assert "no torch is installed for it" in output
    assert f'pip install "torch=={RELEASE}.*"' in output


@pytest.mark.parametrize("version", ["0.2", "1.0"])
def test_another_minor_version_of_the_runtime_is_refused(tmp_path, version):
    status, output = configure(tmp_path, f"-DCONSUMER_VERSION={version}")
    assert status != 0
    assert f'requested version "{version}"' in output
