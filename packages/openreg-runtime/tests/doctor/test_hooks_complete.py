# SPDX-License-Identifier: BSD-3-Clause
"""The table of hooks has every public name of this package, and each name that it declares exists.

Virtual functions of PyTorch's interfaces are compared in openreg-doctor. That each row has code and tests is checked
where the whole repository is, in tests/tools/test_hooks.py.
"""

import pytest
import torch
from test_hooks_table import CALLS

from openreg_doctor import backend, table
from openreg_runtime import openreg

pytestmark = pytest.mark.every_subset

(OPENREG,) = [item for item in backend.declared()[0] if item.device == "openreg"]
ROWS = [row for group in table.read(torch.__version__, OPENREG.packages) if group.key == "module" for row in group.rows]
NAMES = [name for row in ROWS for name in row.names]


def owners_of(row):
    return [package.distribution for package in OPENREG.owners(row.key)]


def test_every_public_name_and_every_call_of_pytorch_has_its_row():
    brought_by_others = {name for row in ROWS if "openreg-runtime" not in owners_of(row) for name in row.names}
    assert set(openreg.__all__) | set(CALLS) | {"_initialized"} <= set(NAMES)
    assert not (set(openreg.__all__) | {"_initialized"}) & brought_by_others


def test_every_name_that_the_table_promises_exists():
    implemented = [row for row in ROWS if not row.status and "openreg-runtime" in owners_of(row)]
    promised = [row for row in implemented if " " not in row.name]
    assert len(promised) > 50
    for row in promised:
        value = openreg
        for part in row.name.split("."):
            value = getattr(value, part)


def test_no_name_is_promised_twice():
    assert len(NAMES) == len(set(NAMES))


@pytest.mark.parametrize("name", [name for name in openreg.__all__ if callable(getattr(openreg, name))])
def test_what_does_not_apply_is_not_there(name):
    assert not [row for row in ROWS if name in row.names and row.status.startswith("not applicable")]
