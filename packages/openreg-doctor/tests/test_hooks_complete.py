# SPDX-License-Identifier: BSD-3-Clause
"""The table hooks.toml has every virtual function that the installed PyTorch calls on a backend.

That each row has code and tests is checked where the whole repository is, in tests/tools/test_hooks.py. The names of a
device's module are compared by the package that has them.
"""

from pathlib import Path

import pytest
import torch

from openreg_doctor import table
from openreg_doctor.declarations import virtual_functions

GROUPS = {group.key: group for group in table.read(torch.__version__)}
INTERFACES = {key: group for key, group in GROUPS.items() if group.header}


def test_the_interfaces_are_all_there():
    assert {group.class_name for group in INTERFACES.values()} == {
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
    header = Path(torch.__file__).parent / "include" / group.header
    declared = virtual_functions(header.read_text("utf-8"), group.class_name)
    assert declared
    assert sorted({name for row in group.rows for name in row.names}) == sorted(set(declared))


def test_a_row_of_a_later_release_is_left_out():
    rows = {row.key: row.since for group in table.read() for row in group.rows}
    later = {key for key, since in rows.items() if since == "2.15"}
    assert later
    old = {row.key for group in table.read("2.13.1+cpu") for row in group.rows}
    assert old == {key for key, since in rows.items() if since in ("", "2.13")}
