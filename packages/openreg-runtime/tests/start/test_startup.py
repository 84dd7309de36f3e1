# SPDX-License-Identifier: BSD-3-Clause
"""Importing the package registers the device, and refuses what does not fit. Errors name packages that are missing."""

import json
import sys
from importlib.resources import files

import pytest
import torch
from driver._platform import HAS_FORK

import openreg_runtime
from openreg_runtime import _startup

pytestmark = pytest.mark.every_subset

# The release of torch that the wheels are compiled for, as "2.13", and a minor version that they are not.
RELEASE = ".".join(torch.__version__.split(".")[:2])
MAJOR, MINOR = (int(part) for part in RELEASE.split("."))
OTHERS = [f"{MAJOR}.{MINOR - 1}.1", f"{MAJOR}.{MINOR + 1}.0", f"{MAJOR}.{MINOR + 1}.0a0+git1234", "2.1.3"]
OTHERS += [f"{RELEASE}0.0", f"{MAJOR + 1}.{MINOR}.0", f"{MAJOR}.{MINOR + 1}.0.dev20261120+cpu"]


@pytest.mark.covers("module.the module itself", "registration.torch.utils.rename_privateuse1_backend")
def test_the_device_has_a_name_and_a_module():
    assert torch._C._get_privateuse1_backend_name() == "openreg"
    assert torch.openreg.__name__.endswith(".openreg")
    assert sys.modules["torch.openreg"] is torch.openreg
    assert torch.get_device_module("openreg") is torch.openreg
    assert torch.device("openreg", 1).type == "openreg"


@pytest.mark.covers("registration.torch.utils.generate_methods_for_privateuse1_backend")
def test_tensors_modules_and_storages_get_methods_of_the_device():
    assert not torch.zeros(1).is_openreg
    assert not torch.UntypedStorage(1).is_openreg
    assert callable(torch.Tensor.openreg)
    assert callable(torch.nn.Module.openreg)
    assert callable(torch.UntypedStorage.openreg)


def test_every_public_name_of_the_module_exists_and_is_documented():
    for name in torch.openreg.__all__:
        assert getattr(torch.openreg, name).__doc__, name


@pytest.mark.covers("module.is_available", "module.init")
def test_importing_initializes_nothing(succeed):
    succeed(f"""
        import os, torch, openreg_runtime
        assert torch.openreg.is_available() and torch.openreg.device_count() == 2
        assert not torch.openreg.is_initialized() and not torch.openreg._initialized
        if {HAS_FORK}:
            child = os.fork()
            if child == 0:
                torch.openreg.init()
                os._exit(3 if torch.openreg.is_initialized() else 4)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
        assert not torch.openreg.is_initialized()
    """)


@pytest.mark.covers("registration.register_graphsafe_rng_device_type")
def test_the_compiler_learns_of_the_device_when_it_is_imported(succeed):
    succeed("""
        import torch, openreg_runtime
        import torch._functorch._aot_autograd.utils as utils
        assert utils.supports_graphsafe_rng(torch.device("openreg"))
        assert not torch.openreg.is_initialized()
    """)


@pytest.mark.parametrize("version", OTHERS)
def test_another_torch_is_refused_with_both_versions_and_the_command(monkeypatch, version):
    monkeypatch.setattr(torch, "__version__", torch.torch_version.TorchVersion(version))
    with pytest.raises(ImportError) as error:
        _startup.refuse_other_torch()
    assert version in str(error.value)
    assert f"works with torch {RELEASE}.*" in str(error.value)
    assert f"pip install 'torch=={RELEASE}.*'" in str(error.value)


@pytest.mark.parametrize("version", [RELEASE + patch for patch in (".0", ".1+cpu", ".0.dev20260101", ".0a0+git1")])
def test_every_build_of_the_right_torch_is_accepted(monkeypatch, version):
    monkeypatch.setattr(torch, "__version__", torch.torch_version.TorchVersion(version))
    _startup.refuse_other_torch()


def test_refusing_torch_leaves_the_process_usable(succeed):
    succeed("""
        import torch
        right, torch.__version__ = torch.__version__, "2.12.0"
        try:
            import openreg_runtime
        except ImportError as error:
            assert "torch 2.12.0 is installed" in str(error)
        else:
            raise AssertionError("not refused")
        assert not hasattr(torch, "openreg")
        assert torch._C._get_privateuse1_backend_name() == "privateuseone"
        assert (torch.ones(2) + 1).tolist() == [2, 2]
        torch.__version__ = right
        import openreg_runtime
        assert torch.openreg.is_available()
    """)


@pytest.mark.covers("registration.torch.utils.rename_privateuse1_backend")
def test_another_backend_in_the_process_is_named_and_stays(succeed):
    succeed("""
        import torch
        torch.utils.rename_privateuse1_backend("rival")
        try:
            import openreg_runtime
        except ImportError as error:
            assert "'rival'" in str(error)
            assert "process of its own" in str(error)
            assert "TORCH_DEVICE_BACKEND_AUTOLOAD=0" in str(error)
        else:
            raise AssertionError("not refused")
        assert torch.device("rival").type == "rival"
        assert not hasattr(torch, "openreg")
        assert (torch.ones(2) + 1).tolist() == [2, 2]
    """)


@pytest.mark.covers("registration.torch.utils.rename_privateuse1_backend")
def test_another_backend_without_a_name_is_recognized_by_its_kernels(succeed):
    succeed("""
        import torch
        library = torch.library.Library("aten", "IMPL")
        library.impl("empty.memory_format", lambda *arguments, **keywords: torch.zeros(1), "PrivateUse1")
        try:
            import openreg_runtime
        except ImportError as error:
            assert "a backend that has not named itself already is registered" in str(error)
        else:
            raise AssertionError("not refused")
        assert torch._C._get_privateuse1_backend_name() == "privateuseone"
        assert not hasattr(torch, "openreg")
    """)


@pytest.mark.parametrize("rename", ["torch.utils.rename_privateuse1_backend('openreg')", ""])
def test_another_package_of_the_same_name_is_refused(succeed, rename):
    succeed(f"""
        import types, torch
        torch.openreg = types.ModuleType("torch_openreg.openreg")
        {rename}
        try:
            import openreg_runtime
        except ImportError as error:
            assert "another package named 'openreg'" in str(error)
        else:
            raise AssertionError("not refused")
        assert (torch.ones(2) + 1).tolist() == [2, 2]
    """)


@pytest.mark.parametrize("again", ["importlib.reload(openreg_runtime)", "forget(); import openreg_runtime"])
def test_a_second_load_is_refused_and_the_device_stays(succeed, again):
    succeed(f"""
        import importlib, sys, torch, openreg_runtime
        def forget():
            for name in [name for name in sys.modules if name.startswith("openreg_runtime")]:
                del sys.modules[name]
        try:
            {again}
        except ImportError as error:
            assert "already" in str(error), error
            assert "Start a new process" in str(error)
        else:
            raise AssertionError("not refused")
        assert torch.openreg.Stream().query()
    """)


def test_a_backend_that_comes_later_is_refused_and_the_device_stays():
    with pytest.raises(RuntimeError, match="openreg"):
        torch.utils.rename_privateuse1_backend("rival")
    assert torch._C._get_privateuse1_backend_name() == "openreg"
    assert torch.openreg.Stream().query()


PROVIDERS = json.loads(files("openreg_runtime").joinpath("_providers.json").read_text("utf-8"))
# What was tried -> the error, and the feature or name that a package brings.
ABSENT = {
    'torch.empty(3, device="openreg")': ("NotImplementedError", "tensors"),
    'torch.tensor([1.0], device="openreg:1")': ("NotImplementedError", "tensors"),
    'torch.ones(3).to("openreg")': ("NotImplementedError", "tensors"),
    'torch.UntypedStorage(8, device="openreg").cpu()': ("NotImplementedError", "tensors"),
    "torch.openreg.fallback_stats()": ("AttributeError", "fallback_stats"),
    "torch.openreg.reset_fallback_stats()": ("AttributeError", "reset_fallback_stats"),
    'torch.openreg.fallback_mode("error")': ("AttributeError", "fallback_mode"),
    "torch.openreg.amp.autocast": ("AttributeError", "amp"),
    "torch.float16 in torch.openreg.get_amp_supported_dtype()": ("NotImplementedError", "autocast"),
    'torch.autocast("openreg")': ("NotImplementedError", "autocast"),
    'torch.amp.autocast("openreg", dtype=torch.bfloat16)': ("NotImplementedError", "autocast"),
}


@pytest.mark.covers("module.get_amp_supported_dtype", "module.amp", "module.fallback_mode")
@pytest.mark.parametrize("code", ABSENT)
def test_what_an_absent_package_brings_names_it_and_the_command(succeed, code):
    kind, what = ABSENT[code]
    package = {**PROVIDERS["features"], **PROVIDERS["names"]}[what]
    assert package not in {"", "openreg-runtime"}
    succeed(f"""
        import torch, openreg_runtime
        try:
            {code}
        except {kind} as error:
            assert type(error) is {kind}, type(error)
            assert "{package}" in str(error), error
            assert "pip install {package}" in str(error), error
        else:
            raise AssertionError("no error")
        assert torch.openreg.Stream().query()
        assert torch.UntypedStorage(8, device="openreg").nbytes() == 8
        assert (torch.ones(2) + 1).tolist() == [2, 2]
    """)


@pytest.mark.covers("module.get_amp_supported_dtype")
def test_disabled_autocast_needs_no_other_package(succeed):
    succeed("""
        import torch, openreg_runtime
        assert torch.openreg.get_amp_supported_dtype() == []
        with torch.autocast("openreg", enabled=False):
            assert not torch.is_autocast_enabled("openreg")
    """)


@pytest.mark.covers("registration.the boxed fallback")
def test_the_operator_without_a_kernel_is_named(succeed):
    succeed("""
        import torch, openreg_runtime
        try:
            torch.empty(3, device="openreg")
        except NotImplementedError as error:
            assert "aten::empty.memory_format" in str(error)
        else:
            raise AssertionError("no error")
    """)


def test_an_unknown_name_is_an_ordinary_attribute_error():
    with pytest.raises(AttributeError, match=r"torch\.openreg.*nonsense"):
        torch.openreg.nonsense  # noqa: B018
    assert not hasattr(torch.openreg, "nonsense")


def test_code_without_a_module_name_extends_the_module():
    try:
        exec("extend('added_by_a_test', 7)", {"extend": openreg_runtime.extend})
        assert torch.openreg.added_by_a_test == 7
    finally:
        del torch.openreg.added_by_a_test


def test_a_package_may_add_a_name_once():
    openreg_runtime.extend("added_by_a_test", 7)
    try:
        assert torch.openreg.added_by_a_test == 7
        with pytest.raises(ValueError, match=r"torch\.openreg\.added_by_a_test"):
            openreg_runtime.extend("added_by_a_test", 8)
        assert torch.openreg.added_by_a_test == 7
    finally:
        del torch.openreg.added_by_a_test


def test_a_package_cannot_replace_what_exists():
    before = torch.openreg.synchronize
    with pytest.raises(ValueError, match=r"torch\.openreg\.synchronize"):
        openreg_runtime.extend("synchronize", print)
    assert torch.openreg.synchronize is before


def test_a_stand_in_is_replaced_once(succeed):
    succeed("""
        import torch, openreg_runtime
        openreg_runtime.extend("get_amp_supported_dtype", lambda: [torch.bfloat16])
        assert torch.openreg.get_amp_supported_dtype() == [torch.bfloat16]
        with torch.autocast("openreg", dtype=torch.bfloat16):
            assert torch.is_autocast_enabled("openreg")
        assert not torch.is_autocast_enabled("openreg")
        try:
            openreg_runtime.extend("get_amp_supported_dtype", list)
        except ValueError as error:
            assert "already exists" in str(error)
        else:
            raise AssertionError("replaced twice")
    """)
