# SPDX-License-Identifier: BSD-3-Clause
"""The table docs/hooks.toml leaves out nothing that the installed PyTorch asks for, nor any public name of ours.

That the table is true, file by file and test by test, is checked where the whole repository is: tests/test_hooks.py.
"""

import sys
from pathlib import Path

import pytest
import torch
from test_hooks_table import CALLS

from openreg_runtime import openreg
from openreg_runtime.doctor.declarations import virtual_functions

pytestmark = pytest.mark.every_subset

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # pytest brings it

TABLE = tomllib.loads((Path(__file__).resolve().parents[1] / "docs" / "hooks.toml").read_text("utf-8"))
INTERFACES = {key: group for key, group in TABLE.items() if "header" in group}


RELEASE = tuple(int(part) for part in torch.__version__.split(".")[:2])


def is_asked_for(entry):
    """Whether the installed PyTorch knows the thing."""
    return tuple(int(part) for part in entry.get("since", "0.0").split(".")) <= RELEASE


def names_in(group):
    rows = [row for row, entry in group.items() if isinstance(entry, dict) and is_asked_for(entry)]
    return [name for row in rows for name in row.split(", ")]


def test_the_interfaces_are_all_there():
    assert {group["class"] for group in INTERFACES.values()} == {
        "AcceleratorHooksInterface",
        "PrivateUse1HooksInterface",
        "DeviceGuardImplInterface",
        "Allocator",
        "DeviceAllocator",
        "HostAllocator",
        "CachingHostAllocatorImpl",
        "GeneratorImpl",
        "GraphImplInterface",
    }


@pytest.mark.parametrize("key", INTERFACES)
def test_every_virtual_function_of_the_interface_has_its_row(key):
    group = INTERFACES[key]
    header = Path(torch.__file__).parent / "include" / group["header"]
    declared = virtual_functions(header.read_text("utf-8"), group["class"])
    assert declared
    assert sorted(set(names_in(group))) == sorted(set(declared))


def test_every_public_name_and_every_call_of_pytorch_has_its_row():
    known = set(names_in(TABLE["module"]))
    assert set(openreg.__all__) | set(CALLS) | {"_initialized"} <= known


def test_every_name_that_the_table_promises_exists():
    for row, entry in TABLE["module"].items():
        if isinstance(entry, dict) and "status" not in entry and " " not in row:
            value = openreg
            for part in row.split("."):
                value = getattr(value, part)


def test_no_name_is_promised_twice():
    names = names_in(TABLE["module"])
    assert len(names) == len(set(names))


@pytest.mark.parametrize("name", [name for name in openreg.__all__ if callable(getattr(openreg, name))])
def test_what_does_not_apply_is_not_there(name):
    rows = [row for row, entry in TABLE["module"].items() if isinstance(entry, dict) and name in row.split(", ")]
    assert not any(TABLE["module"][row].get("status", "").startswith("not applicable") for row in rows)
