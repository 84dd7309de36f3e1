# SPDX-License-Identifier: BSD-3-Clause
"""The doctor finds each fault that is planted in an installation, and names its effect and its fix."""

import json
import os
import re
from importlib import metadata as installed

import pytest

from openreg_testing.doctor_site import Installation

# The release of torch that the wheels are compiled for, as "2.13".
RELEASE = ".".join(installed.version("torch").split(".")[:2])
NO_OPERATORS = "registration.the minimal set of operators"


@pytest.fixture
def installation(tmp_path):
    return Installation(tmp_path / "site", "openreg_runtime", command=("openreg_runtime", "doctor"))


def edit(path, old, new):
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new), "utf-8")


def runtime(installation):
    return installation.folder / "openreg_runtime"


def plugin(installation, code, distribution="vendor-plugin", module=""):
    """A plug-in of a third party with this code, which declares nothing to the doctor."""
    module = module or distribution.replace("-", "_")
    installation.announce(distribution, "openreg.plugins", f"{module} = {module}")
    (installation.folder / module).mkdir()
    (installation.folder / module / "__init__.py").write_text(code, "utf-8")
    return installation.folder / module


def runtime_record(installation):
    return json.loads((runtime(installation) / "_build.json").read_text("utf-8"))


def test_without_operators_the_package_that_brings_them_is_named_and_nothing_else_is_wrong(installation):
    diagnosis = installation.doctor()
    diagnosis.finds(NO_OPERATORS, "aten::empty.memory_format", "pip install openreg-ops")
    assert set(diagnosis.problems) == {NO_OPERATORS}
    assert "pip install openreg-amp" in diagnosis.texts("note")["packages.openreg-amp"]


def test_a_missing_attribute(installation):
    names = runtime(installation) / "openreg" / "__init__.py"
    names.write_text(names.read_text("utf-8") + "\ndel manual_seed_all\n", "utf-8")
    diagnosis = installation.doctor()
    diagnosis.finds("module.manual_seed_all", "torch.openreg.manual_seed_all: missing", "torch.manual_seed() warns")
    assert set(diagnosis.problems) == {NO_OPERATORS, "module.manual_seed_all"}


def test_an_attribute_of_the_wrong_kind(installation):
    names = runtime(installation) / "openreg" / "__init__.py"
    names.write_text(names.read_text("utf-8") + "\nsynchronize = 3\n", "utf-8")
    installation.doctor().finds("module.synchronize", "should be callable, is int")


def test_a_missing_registration(installation):
    edit(runtime(installation) / "_startup.py", "generate_methods_for_privateuse1_backend(for_storage=True)", "pass")
    check = "registration.torch.utils.generate_methods_for_privateuse1_backend"
    installation.doctor().finds(check, "torch.Tensor.is_openreg", "openreg-runtime")


def test_a_plugin_for_another_abi(installation):
    vendor = plugin(installation, "import openreg_runtime\nopenreg_runtime.require_matching_build(__name__)\n")
    record = runtime_record(installation)
    wrong = record["abi_version"] + 1
    (vendor / "_build.json").write_text(json.dumps({**record, "abi_version": wrong}), "utf-8")
    diagnosis = installation.doctor()
    diagnosis.finds("abi.vendor-plugin", f"ABI {wrong} of openreg-runtime", f"ABI {wrong - 1}", "pip install --upgrade")
    diagnosis.finds("startup.vendor_plugin", "wrong ABI number")


def test_another_torch(installation):
    version = installation.replace("torch") / "version.py"
    text = version.read_text("utf-8")
    version.unlink()
    version.write_text(text + "\n__version__ = '2.12.1'\n", "utf-8")
    diagnosis = installation.doctor(fresh=True)
    diagnosis.finds("environment.torch", "torch 2.12.1 is imported", f"but pip lists torch {RELEASE}")
    (wanted,) = re.findall(r"^2\.\d+", runtime_record(installation)["torch_version"])
    fix = f"pip install 'torch=={wanted}.*', or another release of openreg: pip install --upgrade openreg-runtime"
    diagnosis.finds("startup.openreg_runtime", "wrong torch", "2.12.1", fix)


def test_a_plugin_for_another_torch(installation):
    vendor = plugin(installation, "import openreg_runtime\nopenreg_runtime.require_matching_build(__name__)\n")
    record = {**runtime_record(installation), "torch_version": "2.9.1"}
    (vendor / "_build.json").write_text(json.dumps(record), "utf-8")
    diagnosis = installation.doctor()
    fix = "pip install --upgrade vendor-plugin"
    diagnosis.finds("startup.vendor_plugin", "wrong torch", "vendor-plugin works with torch 2.9.*", fix)
    diagnosis.finds("abi.vendor-plugin", "vendor-plugin works with torch 2.9.*", fix)
    assert "pip install 'torch" not in diagnosis.output


def test_another_torch_in_the_metadata(installation):
    (info,) = installation.folder.glob("torch-*.dist-info")
    metadata = (info / "METADATA").read_text("utf-8")
    info.unlink()
    info.mkdir()
    (info / "METADATA").write_text(metadata.replace(f"\nVersion: {RELEASE}", "\nVersion: 2.12", 1), "utf-8")
    installation.doctor().finds(
        "packages.openreg-runtime.requires.torch",
        f"needs torch=={RELEASE}.*, which is 2.12",
        f"pip install 'torch=={RELEASE}.*'",
    )


def test_a_torch_that_does_not_import(installation):
    (installation.folder / "torch").unlink()
    diagnosis = installation.doctor(fresh=True)
    mend = f"pip install --force-reinstall 'torch=={RELEASE}.*'"
    diagnosis.finds("environment.torch", "ModuleNotFoundError: No module named 'torch'", mend)


def test_another_backend_that_takes_the_dispatch_key_first(installation):
    code = "import torch\ndef load():\n    torch.utils.rename_privateuse1_backend('rival')\n"
    (installation.folder / "rival.py").write_text(code, "utf-8")
    installation.announce("rival-backend", "torch.backends", "rival = rival:load")
    diagnosis = installation.doctor()
    diagnosis.finds(
        "autoload.shadowed",
        "the backend 'rival' names PrivateUse1 before openreg does",
        "rival = rival:load, of rival-backend",
        "TORCH_DEVICE_BACKEND_AUTOLOAD=0",
        "pip uninstall rival-backend",
    )
    assert "startup.openreg_runtime" not in diagnosis.problems  # alone, it loads


def test_a_plugin_that_raises(installation):
    plugin(installation, "try:\n    {}['key']\nexcept KeyError as error:\n    raise RuntimeError('luck') from error\n")
    diagnosis = installation.doctor()
    diagnosis.finds("startup.vendor_plugin", "broken plug-in", "RuntimeError: luck", "KeyError", "pip uninstall")
    assert set(diagnosis.problems) == {NO_OPERATORS, "startup.vendor_plugin"}  # everything else was examined


def test_a_plugin_is_reinstalled_by_the_name_of_its_distribution(installation):
    plugin(installation, "raise RuntimeError('luck')\n", distribution="acme-kernels", module="harmless")
    diagnosis = installation.doctor()
    fix = "pip install --force-reinstall --no-deps acme-kernels, or remove it: pip uninstall acme-kernels"
    diagnosis.finds("startup.harmless", "harmless does not load", "what acme-kernels provides", fix)


def test_a_plugin_that_ends_the_process(installation):
    plugin(installation, "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n")
    diagnosis = installation.doctor()
    diagnosis.finds("startup.vendor_plugin", "(crash)", "SIGSEGV", "vendor_plugin/__init__.py")
    assert set(diagnosis.problems) == {NO_OPERATORS, "startup.vendor_plugin"}


# The doctor with all the patience in the world for what comes before the plug-in, and little for the plug-in.
SOON_IMPATIENT = """
import runpy, sys, time
sys.orig_argv = ["python", "-m", "openreg_runtime", *sys.argv[1:]]
from openreg_doctor import children

def wait(child, report, errors, patience, wait=children._wait):
    begin = b'{"begin": "import vendor_plugin"}'
    while child.poll() is None and begin not in children._content(report, 0, 1 << 20):
        time.sleep(0.01)
    return wait(child, report, errors, 1)

children._wait = wait
runpy.run_module("openreg_runtime", run_name="__main__")
"""


def test_a_plugin_that_never_comes_back(installation):
    plugin(installation, "import time\ntime.sleep(1000)\n")
    diagnosis = installation.python("-c", SOON_IMPATIENT, "doctor", "--json", "--timeout", "600")
    diagnosis.finds("startup.vendor_plugin", "(hang)", "reported nothing within 1 s")


def test_an_entry_point_without_its_module(installation):
    installation.announce("gone-plugin", "openreg.plugins", "gone = gone_module")
    diagnosis = installation.doctor()
    diagnosis.finds("abi.gone-plugin", "announces the module 'gone_module' and does not have it")
    diagnosis.finds("startup.gone_module", "missing module", "No module named 'gone_module'")


def test_an_entry_point_that_is_not_the_name_of_a_module(installation):
    (installation.folder / "harmless.py").write_text("VALUE = 1\n", "utf-8")
    installation.announce("vendor-plugin", "openreg.plugins", "vplug = harmless:VALUE")
    diagnosis = installation.doctor()
    diagnosis.finds("abi.vendor-plugin", "the openreg plug-in 'harmless:VALUE' of the package vendor-plugin is not the")
    fix = "pip uninstall vendor-plugin"
    diagnosis.finds("startup.harmless:VALUE", "does not load (not the name of a module)", fix)
    assert "Reinstall" not in diagnosis.output
    assert "startup.harmless" not in diagnosis.texts("ok")


def test_an_entry_point_of_torch_without_its_module(installation):
    installation.announce("gone-backend", "torch.backends", "gone = gone_module:load")
    diagnosis = installation.doctor()
    diagnosis.finds("autoload.entry-point.gone", "there is no module gone_module", "pip uninstall gone-backend")
    diagnosis.finds("autoload.import-torch", "gone_module", "TORCH_DEVICE_BACKEND_AUTOLOAD=0")


@pytest.mark.parametrize(
    ("value", "cause"),
    [
        ("harmless:VALUE", "TypeError: 'int' object is not callable"),
        ("harmless:missing", "AttributeError: module 'harmless' has no attribute 'missing'"),
        ("harmless:load", "OSError: no toaster in the kitchen"),
    ],
)
def test_an_entry_point_of_torch_that_fails(installation, value, cause):
    code = "VALUE = 1\ndef load():\n    raise OSError('no toaster in the kitchen')\n"
    (installation.folder / "harmless.py").write_text(code, "utf-8")
    installation.announce("a-backend", "torch.backends", f"abackend = {value}")
    diagnosis = installation.doctor()
    said = f"abackend = {value}, of a-backend: {cause}"
    diagnosis.finds("autoload.import-torch", said, "pip uninstall a-backend; until", "TORCH_DEVICE_BACKEND_AUTOLOAD=0")
    assert "pip uninstall openreg-autoload" not in diagnosis.output


def test_two_packages_with_one_entry_point(installation):
    (installation.folder / "harmless.py").write_text("def load(): pass\n", "utf-8")
    for distribution in ("first-backend", "second-backend"):
        installation.announce(distribution, "torch.backends", "twice = harmless:load")
    installation.doctor().finds(
        "autoload.entry-point.twice", "first-backend and second-backend both announce twice", "pip uninstall"
    )


def test_a_missing_shared_library(installation):
    (library,) = (runtime(installation) / "lib").glob("*openreg_runtime.*")
    library.unlink()
    installation.doctor().finds(
        "startup.openreg_runtime", "missing shared library", library.name, "pip install --force-reinstall"
    )


def test_a_damaged_shared_library(installation):
    (library,) = (runtime(installation) / "lib").glob("*openreg.*")
    library.write_bytes(b"not a library")
    installation.doctor().finds("startup.openreg_runtime", "damaged shared library", library.name)


def test_a_library_compiled_for_another_torch(installation):
    """The doctor reports the error of the loader: the module needs a symbol that no library has."""
    (library,) = (runtime(installation) / "lib").glob("*openreg_runtime.*")
    content = library.read_bytes()
    symbol = b"RegisterPrivateUse1HooksInterface"
    assert symbol in content
    library.write_bytes(content.replace(symbol, b"RegisterPrivateUse9HooksInterface"))
    installation.doctor().finds("startup.openreg_runtime", "compiled for another torch or runtime", "PrivateUse9")


def test_settings_that_are_refused(installation):
    diagnosis = installation.doctor(OPENREG_DEVICE_COUNT="many", PYTORCH_ALLOC_CONF="nonsense:1")
    diagnosis.finds("settings.OPENREG_DEVICE_COUNT", "'many'", "a whole number from 1 to 64", "unset")
    diagnosis.finds("settings.PYTORCH_ALLOC_CONF", "nonsense", "unset PYTORCH_ALLOC_CONF")
    assert diagnosis.texts("ok")["device.count"].startswith("2 available")  # examined without them


def test_a_setting_that_is_no_text(installation):
    diagnosis = installation.doctor(OPENREG_DEVICE_COUNT=os.fsdecode(b"2\xff"))
    diagnosis.finds("settings.OPENREG_DEVICE_COUNT", "its bytes are not UTF-8", "unset OPENREG_DEVICE_COUNT")
    assert set(diagnosis.problems) == {NO_OPERATORS, "settings.OPENREG_DEVICE_COUNT"}


def test_a_setting_that_does_not_exist(installation):
    warning = installation.doctor(OPENREG_DEVICE_COUT="3").texts("warning")["settings.OPENREG_DEVICE_COUT"]
    assert "a similar setting is OPENREG_DEVICE_COUNT" in warning


def test_two_runtimes_on_the_path(installation, tmp_path):
    other = tmp_path / "other"
    installation.add("openreg_runtime", other)
    (info,) = other.glob("*.dist-info")
    edit(info / "METADATA", f"\nVersion: {RELEASE}.", "\nVersion: 1.7.")
    diagnosis = installation.doctor(PYTHONPATH=os.pathsep.join((str(installation.folder), str(other))))
    diagnosis.finds("packages.openreg_runtime.copies", str(other), "PYTHONPATH")
    diagnosis.finds("packages.openreg-runtime.versions", f"{RELEASE}.", "1.7.")
