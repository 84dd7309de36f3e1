# SPDX-License-Identifier: BSD-3-Clause
"""Whatever packages are installed, they load what they declare, and nothing else.

Runs in the environment of each subset (`nox -s subsets`), where OPENREG_TEST_SESSION names what pip was asked for. What
there is to see follows from the metadata of what is installed.
"""

import functools
import importlib.util
import json
import os
import subprocess
import sys
from importlib import metadata

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tools.packages import discover

REQUESTED = os.environ["OPENREG_TEST_SESSION"].split()
PLUGINS = {point.value: canonicalize_name(point.dist.name) for point in metadata.entry_points(group="openreg.plugins")}
NAMES = {point.name: point.value for point in metadata.entry_points(group="openreg.names")}
FEATURES = {point.name: point.value for point in metadata.entry_points(group="openreg.features")}
AUTOLOADS = bool(metadata.entry_points(group="torch.backends"))
IMPORT_ALL = f"import {', '.join(['torch', *PLUGINS])}\n"
needs_a_device = pytest.mark.skipif(not PLUGINS, reason="none of these packages brings a device")


def installed():
    return {canonicalize_name(item.metadata["Name"]) for item in metadata.distributions()}


def requirements(name, extra=""):
    """What an installed distribution, or an extra of it, asks for on this machine."""
    for line in metadata.requires(name) or ():
        requirement = Requirement(line)
        if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
            yield requirement


def reachable(asked, extra=""):
    """These distributions, which may be asked for with extras, and everything that they ask for in turn."""
    found = set()
    waiting = [(item.name, wanted) for item in map(Requirement, asked) for wanted in {"", extra, *item.extras}]
    while waiting:
        item = waiting.pop()
        if item not in found:
            found.add(item)
            for requirement in requirements(*item):
                needed = canonicalize_name(requirement.name)
                waiting += [(needed, ""), *((needed, wanted) for wanted in requirement.extras)]
    return {name for name, _ in found}


@functools.cache
def python(code, autoload=True):
    """Runs code in a fresh process, once; gives what it printed, as JSON."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("TORCH_")}
    if not autoload:
        env["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
    command = [sys.executable, "-c", f"import json, sys\n{code}"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False, env=env)
    assert (result.returncode, result.stderr) == (0, "")
    return json.loads(result.stdout)


# Prints whether torch has the device, and which plug-ins are loaded.
STATE = f"print(json.dumps([hasattr(torch, 'openreg'), sorted(set(sys.modules) & {set(PLUGINS)!r})]))"


def test_the_environment_holds_what_was_asked_for_and_nothing_else():
    assert installed() == reachable(REQUESTED, extra="test")


def test_what_every_distribution_asks_for_is_there_in_a_version_that_fits():
    for name in installed():
        for requirement in requirements(name):
            version = metadata.version(requirement.name)
            assert requirement.specifier.contains(version, prereleases=True), (name, requirement)


def test_no_module_of_an_absent_package_can_be_imported():
    absent = [package for package in discover().values() if package.name not in installed()]
    assert not [item.name for item in absent if importlib.util.find_spec(item.import_name) is not None]


def test_import_torch_brings_the_device_and_all_plugins_exactly_where_a_loader_is_installed():
    expected = [True, sorted(PLUGINS)] if AUTOLOADS else [False, []]
    assert python(f"import torch\n{STATE}") == expected


def test_loading_can_be_switched_off():
    assert python(f"import torch\n{STATE}", autoload=False) == [False, []]


# Plug-ins require these packages and do not load them. A program without operators has nothing to record or to check.
REQUIRED_ONLY = {"openreg_profiler": {"openreg-ops"}, "openreg_sanitizer": {"openreg-ops"}}


@pytest.mark.parametrize("module", PLUGINS)
def test_a_plugin_brings_the_device_and_loads_what_it_declares_only(module):
    declared = reachable([PLUGINS[module]]) - REQUIRED_ONLY.get(module, set())
    expected = sorted(other for other, distribution in PLUGINS.items() if distribution in declared)
    assert python(f"import {module}, torch\n{STATE}", autoload=False) == [True, expected]


@needs_a_device
@pytest.mark.parametrize("first", ["torch", *PLUGINS])
@pytest.mark.parametrize("autoload", [True, False], ids=["autoload on", "autoload off"])
def test_the_device_module_is_the_same_whatever_is_imported_first(first, autoload):
    names = "print(json.dumps(sorted(vars(torch.openreg))))"
    assert python(f"import {first}\n{IMPORT_ALL}{names}", autoload) == python(f"{IMPORT_ALL}{names}", autoload)


@needs_a_device
def test_the_plugins_add_the_names_that_they_declare_and_no_other():
    code = f"""
from importlib.metadata import EntryPoint
before = dict(vars(__import__("openreg_runtime").openreg))
import {", ".join(PLUGINS)}
named = set({sorted(NAMES)!r})
changed = {{name for name, value in vars(torch.openreg).items() if before.get(name) is not value}}
added = {{name for name in changed if name in named or not name.startswith("_")}}
loaded = {{name: EntryPoint(name, value, "").load() for name, value in {NAMES!r}.items()}}
wrong = [name for name, value in loaded.items() if value is not getattr(torch.openreg, name)]
print(json.dumps([sorted(added), wrong]))
"""
    assert python(f"import torch\n{code}", autoload=False) == [sorted(NAMES), []]


def test_features_are_declared_once_and_by_modules_that_are_there():
    assert len(FEATURES) == len(metadata.entry_points(group="openreg.features"))
    for module in FEATURES.values():
        assert importlib.util.find_spec(module) is not None


AUTOCAST = 'torch.autocast("openreg", dtype=torch.bfloat16)'
FAKE = f"{AUTOCAST}, torch._subclasses.FakeTensorMode()"
ONES = 'torch.ones(3, 3, device="openreg")'
PRODUCT = f"y = {ONES} @ {ONES}; result = [str(y.dtype), y.float().cpu().tolist()[0]]"


@needs_a_device
@pytest.mark.parametrize(
    ("context", "statement", "brings", "expected"),
    [
        ("torch.no_grad()", f"result = ({ONES} + 1).tolist()[0]", "openreg-ops", [2, 2, 2]),
        (FAKE, f"x = {ONES.replace('ones', 'empty')}; result = str((x @ x).dtype)", "openreg-amp", "torch.bfloat16"),
        (AUTOCAST, PRODUCT, "openreg-ops", ["torch.bfloat16", [3.0, 3.0, 3.0]]),
    ],
    ids=["tensors", "autocast", "an operator under autocast"],
)
def test_a_feature_works_or_the_error_names_the_package_that_brings_it(context, statement, brings, expected):
    if context == AUTOCAST and "openreg-amp" not in installed():
        pytest.skip("autocast is about openreg-amp")
    code = f"""
try:
    with {context}:
        {statement}
        print(json.dumps(result))
except NotImplementedError as error:
    print(json.dumps(str(error)))
"""
    answer = python(IMPORT_ALL + code)
    assert answer == expected if brings in installed() else f"pip install {brings}" in answer


@pytest.mark.skipif("openreg-doctor" not in installed(), reason="the doctor is openreg-doctor")
def test_the_doctor_names_what_is_absent_and_finds_nothing_else_wrong():
    command = [sys.executable, "-m", "openreg_doctor", "--json", "--timeout", "600"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=1200, check=False)
    told = json.loads(result.stdout)
    problems = {item["check"]: item["fix"] for item in told["findings"] if item["status"] == "problem"}
    notes = {item["check"] for item in told["findings"] if item["status"] == "note"}
    if not PLUGINS:
        assert set(problems) == {"autoload.device"}
        return
    assert told["device"] == "openreg"
    operators = {} if "openreg-ops" in installed() else {"registration.the minimal set of operators"}
    assert set(problems) == set(operators)
    assert all(fix == "pip install openreg-ops" for fix in problems.values())
    absent = {item.name for item in discover().values() if "openreg_doctor.packages" in item.entry_points} - installed()
    assert {name.removeprefix("packages.") for name in notes if name.startswith("packages.")} == absent
