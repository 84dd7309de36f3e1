# SPDX-License-Identifier: BSD-3-Clause
"""The table docs/hooks.toml leaves out nothing that the installed PyTorch asks for, nor any public name of ours.

That the table is true, file by file and test by test, is checked where the whole repository is: tests/test_hooks.py.
"""

import re
import sys
from pathlib import Path

import pytest
import torch
from test_hooks_table import CALLS

from openreg_runtime import openreg

pytestmark = pytest.mark.every_subset

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # pytest brings it

TABLE = tomllib.loads((Path(__file__).resolve().parents[1] / "docs" / "hooks.toml").read_text("utf-8"))
INTERFACES = {key: group for key, group in TABLE.items() if "header" in group}


def names_in(group):
    return [name for row, entry in group.items() if isinstance(entry, dict) for name in row.split(", ")]


def virtual_functions(header, class_name):
    """Names of the virtual functions that a class of PyTorch's headers declares, destructors apart."""
    text = (Path(torch.__file__).parent / "include" / header).read_text("utf-8")
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL)
    start = re.search(rf"\b(?:struct|class)\s+(?:\w+\s+)?{class_name}\b[^;{{(]*\{{", text).end()
    depth, end = 1, start
    while depth:
        depth += {"{": 1, "}": -1}.get(text[end], 0)
        end += 1
    return re.findall(r"\bvirtual\b[^;{(~]*?\b(\w+)\s*\(", text[start:end])


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
    declared = virtual_functions(group["header"], group["class"])
    assert declared
    assert sorted(set(names_in(group))) == sorted(set(declared))


def test_a_virtual_function_is_found_in_any_form(tmp_path, monkeypatch):
    header = tmp_path / "include" / "x.h"
    header.parent.mkdir()
    header.write_text("""
        struct Other { virtual void other(); };
        struct API Wanted : Base {
          virtual ~Wanted() = default;
          virtual int plain() const = 0;  // virtual calls (in a comment)
          virtual std::pair<int, int> body(int x [[maybe_unused]]) { return {x, x}; }
          virtual void
          next_line(
              int x);
        };
        struct Later { virtual void later(); };
    """)
    monkeypatch.setattr(torch, "__file__", str(tmp_path / "__init__.py"))
    assert virtual_functions("x.h", "Wanted") == ["plain", "body", "next_line"]


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
