# SPDX-License-Identifier: BSD-3-Clause
"""An environment has exactly the wheels and links that a session requested, and any other distribution is refused."""

import shutil
import sys
import zipfile
from types import SimpleNamespace

import pytest
from helpers import run

from tools import _platform, packages
from tools.packages import ROOT
from tools.sessions import linked, package_session, stopwatch


def make_wheel(folder, name, content="x"):
    path = folder / f"{name.replace('-', '_')}-0.1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        record = f"{name}/__init__.py,sha256={content},1\n"
        archive.writestr(f"{name.replace('-', '_')}-0.1.0.dist-info/RECORD", record)
    return path


def test_an_environment_is_clean_with_exactly_the_wheels_wanted(tmp_path):
    site = tmp_path / _platform.SITE_PACKAGES.replace("*", "3.11")
    runtime, ops = ({name: make_wheel(tmp_path, name)} for name in ("openreg-runtime", "openreg-ops"))
    for wheels, fits in (({}, {}), (runtime, runtime), (ops, {**runtime, **ops})):
        for wheel in wheels.values():
            zipfile.ZipFile(wheel).extractall(site)
        assert [item for item in ({}, runtime, ops, {**runtime, **ops}) if package_session.holds(tmp_path, item)] == [
            fits
        ]
    intruder = site / "openreg_intruder-1.0.dist-info"
    intruder.mkdir()
    assert not package_session.holds(tmp_path, {**runtime, **ops})
    intruder.rmdir()
    assert package_session.holds(tmp_path, {**runtime, **ops})
    make_wheel(tmp_path, "openreg-ops", content="another build")
    assert not package_session.holds(tmp_path, {**runtime, **ops})


class Session:
    """As much of a session of nox as an installation uses."""

    name = "test-openreg-ops"

    def __init__(self, environment):
        self.virtualenv = SimpleNamespace(location=str(environment))

    def error(self, message):
        raise RuntimeError(message)


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Installs openreg-ops, which needs openreg-runtime, where the installer brings the wheels that it is given.

    Returns the names that were removed from the environment before.
    """
    site = tmp_path / "environment" / _platform.SITE_PACKAGES.replace("*", "3.11")
    site.mkdir(parents=True)
    ops = packages.Package("openreg-ops", tmp_path, "0.1.0", ("openreg-runtime",), (), {}, {})
    wheels = {name: make_wheel(tmp_path, name) for name in ("openreg-runtime", "openreg-ops")}
    house = SimpleNamespace(
        packages={"openreg-ops": ops}, provide=lambda *_: wheels, stopwatch=stopwatch.Stopwatch(), dist=tmp_path
    )

    def install(*brought):
        removed = []

        def uninstall(*arguments):
            removed.extend(arguments[arguments.index(str(tmp_path / "environment")) + 1 :])
            shutil.rmtree(site)
            site.mkdir()

        def fill(*_):
            for wheel in brought:
                zipfile.ZipFile(wheel).extractall(site)

        monkeypatch.setattr(package_session, "uv", uninstall)
        monkeypatch.setattr(package_session, "fill", fill)
        package_session.PackageSession(Session(tmp_path / "environment"), house).install("openreg-ops")
        return removed

    return install


def test_a_session_has_exactly_the_wheels_of_its_package_whatever_an_earlier_run_left(install, tmp_path):
    wanted = [make_wheel(tmp_path, name) for name in ("openreg-runtime", "openreg-ops")]
    assert install(*wanted) == []
    assert install(*wanted) == []
    (tmp_path / "environment" / _platform.SITE_PACKAGES.replace("*", "3.11") / "openreg_amp-1.0.dist-info").mkdir()
    assert set(install(*wanted)) == {"openreg_amp", "openreg_runtime", "openreg_ops"}


@pytest.mark.parametrize(
    "brought",
    [
        {"openreg-runtime": "x"},
        {"openreg-runtime": "x", "openreg-ops": "x", "openreg-amp": "x"},
        {"openreg-runtime": "x", "openreg-ops": "another build"},
    ],
    ids=["one is missing", "one that was not requested", "one of another build"],
)
def test_a_session_with_any_other_distribution_of_ours_ends(install, tmp_path, brought):
    (tmp_path / "index").mkdir()
    wheels = [make_wheel(tmp_path / "index", name, content) for name, content in brought.items()]
    with pytest.raises(RuntimeError, match="were installed") as error:
        install(*wheels)
    assert all(name.replace("-", "_") in str(error.value) for name in brought)


def test_the_state_check_fails_where_it_should():
    script = ROOT / "tools" / "sessions" / "check_shared_state.py"
    result = run(sys.executable, str(script), "pytest_timeout=editable")
    assert result.returncode != 0
    assert "pytest_timeout is installed regular, not editable" in result.stderr


def installed(environment, name, version="1.0", *, needs=(), files=("__init__.py",)):
    """A distribution in an environment, as pip leaves it."""
    site = environment / _platform.SITE_PACKAGES.replace("*", "3.11")
    record = [f"{name}/{file}" for file in files] + ["../../../bin/program"]
    for file in record:
        (site / file).parent.mkdir(parents=True, exist_ok=True)
        (site / file).write_text(str(environment))
    metadata = site / f"{name}-{version}.dist-info"
    metadata.mkdir()
    requirements = "".join(f"Requires-Dist: {item}\n" for item in needs)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{requirements}")
    record += [f"{metadata.name}/METADATA", f"{metadata.name}/RECORD"]
    (metadata / "RECORD").write_text("".join(f"{file},,\n" for file in record))
    return site


def test_a_distribution_and_what_it_needs_are_linked_and_nothing_else(tmp_path):
    source, target = tmp_path / "source", tmp_path / "target"
    installed(source, "torch", needs=("Needed>=1", "present", "absent; extra == 'more'"), files=("a.py", "deep/b.py"))
    installed(source, "needed", needs=("torch",))
    installed(source, "absent")
    installed(source, "present")
    site = installed(target, "present")
    (target / "bin" / "program").unlink(missing_ok=True)
    linked.link_distribution("torch", source, target)
    assert sorted(path.name for path in site.glob("*.dist-info")) == [
        *("needed-1.0.dist-info", "present-1.0.dist-info", "torch-1.0.dist-info")
    ]
    assert (site / "torch" / "deep" / "b.py").read_text() == str(source)
    assert (site / "present" / "__init__.py").read_text() == str(target)
    assert not (target / "bin" / "program").exists()


def names(site):
    return sorted(path.name.removesuffix(".dist-info") for path in site.glob("*.dist-info"))


def test_another_version_of_the_distribution_replaces_it_and_its_requirements(tmp_path):
    source, target = tmp_path / "source", tmp_path / "target"
    installed(source, "torch", "2.0", needs=("needed",))
    installed(source, "needed", "2.0")
    site = installed(target, "torch", "1.0", files=("__init__.py", "gone.py"))
    installed(target, "needed", "1.0")
    installed(target, "other", "1.0")
    linked.link_distribution("torch", source, target)
    assert names(site) == ["needed-2.0", "other-1.0", "torch-2.0"]
    assert (site / "torch" / "__init__.py").read_text() == str(source)
    assert not (site / "torch" / "gone.py").exists()
    # Whoever chose another version of a requirement keeps it.
    shutil.rmtree(site / "needed-2.0.dist-info")
    installed(target, "needed", "3.0")
    linked.link_distribution("torch", source, target)
    assert names(site) == ["needed-3.0", "other-1.0", "torch-2.0"]


@pytest.mark.parametrize("before", [(), ("1.0",)], ids=["first link", "replacement"])
def test_an_interrupted_link_is_repeated(tmp_path, monkeypatch, before):
    source, target = tmp_path / "source", tmp_path / "target"
    installed(source, "torch", "2.0", needs=("needed",), files=("a.py", "b.py"))
    installed(source, "needed", "2.0")
    site = installed(target, "other", "1.0")
    for version in before:
        installed(target, "torch", version, files=("a.py", "b.py"))
        installed(target, "needed", version)
    link, count = linked._link, 0
    while True:
        count += 1
        left = iter(range(count))

        def interrupted(*paths, left=left):
            if next(left, None) is None:
                raise KeyboardInterrupt
            link(*paths)

        monkeypatch.setattr(linked, "_link", interrupted)
        try:
            linked.link_distribution("torch", source, target)
        except KeyboardInterrupt:
            continue
        break
    assert count > 1
    assert names(site) == ["needed-2.0", "other-1.0", "torch-2.0"]
    for file in ("torch/a.py", "torch/b.py", "needed/__init__.py", "torch-2.0.dist-info/METADATA"):
        assert (site / file).samefile(source / site.relative_to(target) / file)


def test_a_requirement_with_an_extra_brings_what_the_extra_needs(tmp_path):
    """torch's CUDA builds require the libraries by extras of one distribution."""
    source, target = tmp_path / "source", tmp_path / "target"
    installed(source, "torch", needs=("toolkit[first]", "toolkit[second]"))
    installed(source, "toolkit", needs=("one; extra == 'first'", "two; extra == 'second'", "three; extra == 'third'"))
    for name in ("one", "two", "three"):
        installed(source, name)
    site = installed(target, "other")
    linked.link_distribution("torch", source, target)
    linked_names = {path.name.removesuffix("-1.0.dist-info") for path in site.glob("*.dist-info")}
    assert linked_names == {"one", "other", "toolkit", "torch", "two"}


def test_what_is_not_installed_is_not_linked(tmp_path):
    installed(tmp_path / "source", "other")
    site = installed(tmp_path / "target", "third")
    linked.link_distribution("torch", tmp_path / "source", tmp_path / "target")
    assert [path.name for path in site.glob("*.dist-info")] == ["third-1.0.dist-info"]
