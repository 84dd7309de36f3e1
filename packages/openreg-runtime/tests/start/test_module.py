# SPDX-License-Identifier: BSD-3-Clause
"""Every public name of torch.openreg is listed, documented and typed."""

import inspect
import types
from pathlib import Path

import pytest

import openreg_runtime
from openreg_runtime import openreg

pytestmark = pytest.mark.every_subset

NAMES = openreg.__all__


def signatures(name):
    """Every function that a public name brings: itself, or what a class of ours defines."""
    value = getattr(openreg, name)
    if inspect.isfunction(value):
        yield name, value
    elif inspect.isclass(value):
        for key, member in vars(value).items():
            function = getattr(member, "__func__", None) or getattr(member, "fget", None) or member
            if inspect.isfunction(function) and function.__module__ == value.__module__:
                yield f"{name}.{key}", function


def test_the_list_of_names_is_sorted_and_has_each_once():
    assert sorted(set(NAMES)) == NAMES


def test_every_public_name_of_the_module_is_in_the_list():
    public = {
        name
        for name, value in vars(openreg).items()
        if not name.startswith("_")
        and not isinstance(value, types.ModuleType)
        and getattr(value, "__module__", "").startswith("openreg_runtime")
    }
    assert public <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_documented(name):
    value = getattr(openreg, name)
    assert inspect.getdoc(value), name
    for full_name, function in signatures(name):
        if not full_name.rpartition(".")[2].startswith("_"):
            assert inspect.getdoc(function), full_name


@pytest.mark.parametrize("name", NAMES)
def test_every_parameter_and_result_has_a_type(name):
    for full_name, function in signatures(name):
        signature = inspect.signature(function)
        parameters = [item for item in signature.parameters.values() if item.name not in {"self", "cls"}]
        assert all(item.annotation is not item.empty for item in parameters), full_name
        assert signature.return_annotation is not signature.empty, full_name


def test_the_package_is_marked_as_typed():
    folder = Path(openreg_runtime.__file__).parent
    assert (folder / "py.typed").is_file()
    assert (folder / "_C.pyi").is_file()


def test_the_native_module_has_exactly_what_its_stub_says():
    stub = (Path(openreg_runtime.__file__).parent / "_C.pyi").read_text("utf-8")
    told = {line.split("(")[0].removeprefix("def ") for line in stub.splitlines() if line.startswith("def ")}
    bound = {name for name, value in vars(openreg_runtime._C).items() if callable(value)}
    assert told == bound


@pytest.mark.covers("module._lazy_call", "registration.device_lazy_init")
def test_a_queued_call_runs_once_when_the_device_is_initialized(succeed):
    succeed("""
        import torch, openreg_runtime
        calls = []
        torch.openreg._lazy_call(lambda: calls.append(torch.openreg.is_initialized()))
        assert calls == []
        torch.UntypedStorage(8, device="openreg")
        assert calls == [True]
        torch.openreg._lazy_call(lambda: calls.append("now"))
        torch.openreg._lazy_init()
        assert calls == [True, "now"]
    """)
