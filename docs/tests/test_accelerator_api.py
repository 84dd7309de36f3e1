# SPDX-License-Identifier: BSD-3-Clause
"""The table of PyTorch's interface of every accelerator is that of the installed PyTorch, and its examples are true."""

import dataclasses
import json

import pytest
import torch
from guide import accelerator
from guide.accelerator import Group, Row, TableError

GROUPS = {group.key: group for group in accelerator.groups()}
ROWS = {f"{key}: {row.name}": row for key, group in GROUPS.items() for row in group.rows}

EVALUATE = """
import copy, io, json, pickle, sys
from multiprocessing.reduction import ForkingPickler
import torch
import torch.multiprocessing
sys.path[:0] = {folders!r}
from guide import accelerator

def raises(kind, function, *arguments):
    try:
        function(*arguments)
    except kind:
        return True
    return False

found = {{}}
for group in accelerator.groups():
    for row in group.rows:
        torch.accelerator.set_device_index(0)
        event = torch.Event("openreg", enable_timing=True)
        event.record()
        namespace = {{
            "copy": copy, "io": io, "pickle": pickle, "torch": torch, "raises": raises,
            "ForkingPickler": ForkingPickler,
            "x": torch.ones(1024, device="openreg"), "s": torch.Stream(device="openreg"), "e": event,
            "g": torch.Generator("openreg"),
        }}
        try:
            told = "" if accelerator.evaluate(row, namespace) else "false"
        except Exception as error:
            told = repr(error)
        found[f"{{group.key}}: {{row.name}}"] = told
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def evaluated(run_python, tmp_path_factory):
    """What the example of each row gives: an empty text if it is true."""
    folders = [str(accelerator.ROOT), str(accelerator.ROOT / "docs" / "_extensions")]
    done = run_python(EVALUATE.format(folders=folders), tmp_path_factory.mktemp("examples"), {})
    return json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else pytest.fail(done.stderr)


@pytest.mark.parametrize("name", ROWS)
def test_the_example_of_a_row_is_true(evaluated, name):
    assert evaluated[name] == ""


@pytest.mark.parametrize("key", GROUPS)
def test_the_rows_are_the_names_of_the_installed_torch(key):
    assert accelerator.differences(GROUPS[key]) == []


@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if row.cuda.startswith("torch.")])
def test_the_counterpart_for_cuda_exists(name):
    """A function or a class; members of a class exist only where torch was compiled with CUDA."""
    assert hasattr(torch.cuda, ROWS[name].cuda.split(".")[2])


@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if row.file])
def test_the_place_that_decides_by_a_name_is_there(name):
    assert ROWS[name].line() > 0


def test_a_place_that_is_gone_is_named():
    row = dataclasses.replace(ROWS["dlpack: Tensor.__dlpack_device__"], text="no such text")
    with pytest.raises(TableError, match=r"Tensor\.__dlpack_device__: torch .* has no 'no such text' in _tensor\.py"):
        row.line()


def test_a_name_without_a_row_and_a_row_without_a_name_are_told():
    group = Group("some", "some", "['here', 'new']", [Row("here", "", "True"), Row("gone", "", "True")])
    new, gone = accelerator.differences(group)
    assert new.startswith("some.new: torch ")
    assert new.endswith(" has it, and it has no row")
    assert gone.startswith("some.gone: torch ")
    assert gone.endswith(" does not have it")


def test_the_page_has_a_table_for_each_group_of_the_installed_pytorch(page):
    html, warnings = page(":::{accelerator-api}\n:::")
    assert warnings == ""
    assert html.count('class="wide-table') == sum(bool(group.rows) for group in GROUPS.values())
    assert "differs: replaced by the runtime" in html
