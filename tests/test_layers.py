# SPDX-License-Identifier: BSD-3-Clause
"""Includes and imports that violate the order of folders are reported, and valid ones pass."""

import pytest
from helpers import write_files

from tools.layers import HEAD, import_problems, problems_of

TREE = {
    "README.md": f"# A tree\n\n{HEAD}| `base` | What knows nothing. |\n| `upper` | What uses it. |\n\nMore.\n",
    "base/lock.h": "#include <mutex>\n",
    "base/lock.cpp": '#include "base/lock.h"\n',
    "upper/user.h": '#include "base/lock.h"\n#include "other/package.h"\n',
    "upper/family/one.h": '#include "upper/family/two.h"\n#include "base/lock.h"\n',
    "upper/family/two.h": "\n",
    "project/CMakeLists.txt": "project(own)\n",
    "project/own.h": "\n",
    "module.cpp": '#include "upper/user.h"\n',
}
ROW = "| `upper` | What uses it. |\n"
NO_SENTENCE = TREE["README.md"].replace("What uses it.", " ")


def test_includes_that_go_down_or_stay_pass(tmp_path):
    write_files(tmp_path, TREE)
    assert problems_of(tmp_path) == []


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"base/lock.cpp": '#include "upper/user.h"\n'}, "base/lock.cpp: includes upper/user.h, which belongs to"),
        ({"base/lock.cpp": '#include "lock.h"\n'}, 'base/lock.cpp: write "base/lock.h", with its folder'),
        ({"base/a.h": '#include "base/b.h"\n', "base/b.h": '#include "base/a.h"\n'}, "include each other in a circle"),
        ({"upper/other/a.h": '#include "upper/family/two.h"\n'}, "includes upper/family/two.h, of another folder"),
        ({"third/a.h": "\n"}, "third: no row in the table of layers"),
        ({"README.md": NO_SENTENCE}, "upper: no row in the table of layers"),
        (
            {"README.md": TREE["README.md"].replace(ROW, f"{ROW}| `third` | x |\n")},
            "README.md: there is no layer third",
        ),
    ],
)
def test_what_breaks_the_order_is_named(tmp_path, changed, problem):
    write_files(tmp_path, TREE | changed)
    (found,) = problems_of(tmp_path)
    assert problem in found


README = TREE["README.md"]
PACKAGE = {
    "README.md": README,
    "__init__.py": "import base64\n",
    "public.py": "from package.upper.user import use\n",
    "names.py": "from .base import lock\n",
    "base/__init__.py": "",
    "base/lock.py": "import os\nfrom . import wire\n",
    "base/wire.py": "from package.base import wire\nfrom package._C import bytes_of\n",  # itself, by its name
    "upper/__init__.py": "from ..base.lock import Lock\n",
    "upper/user.py": "import package.base.lock\nfrom .. import names\n\ndef use():\n    from .family import one\n",
    "upper/family/one.py": "from ...base import lock, wire\nfrom ... import other\n",
    "_C.pyi": "def bytes_of() -> bytes: ...\n",
    "data/table.toml": "",
    "include/package/kernel.h": "",
}
CHECKED = "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    from {} import {}\n"
LATER = "def use():\n    import package.upper.user\n"


def problems_in(folder, files):
    write_files(folder / "package", files)
    return import_problems(folder / "package")


def test_imports_that_go_down_or_stay_pass(tmp_path):
    assert problems_in(tmp_path, PACKAGE) == []


UPWARD = "base/wire.py: imports upper/user.py, which belongs to a higher layer"
PACKAGE_OF_UPWARD = "base/wire.py: imports upper/__init__.py, which belongs to a higher layer"
AROUND = "base/wire.py: imports upper/user.py, through a file beside the folders, which belongs to a higher layer"


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"base/wire.py": "import package.upper.user\n"}, UPWARD),
        ({"base/wire.py": "from ..upper import user\n"}, UPWARD),
        ({"base/wire.py": LATER}, UPWARD),
        ({"base/wire.py": CHECKED.format("..upper", "user")}, UPWARD),
        ({"base/wire.py": "from package import upper\n"}, PACKAGE_OF_UPWARD),
        ({"base/wire.py": "from ..upper import Name\n"}, PACKAGE_OF_UPWARD),
        ({"base/wire.py": "from package.upper import *\n"}, PACKAGE_OF_UPWARD),
        ({"base/wire.py": "from .. import public\n"}, AROUND),
        ({"third/a.py": "\n"}, "third: no row in the table of layers"),
        ({"README.md": NO_SENTENCE}, "upper: no row in the table of layers"),
        ({"README.md": README.replace(ROW, f"{ROW}| `data` | x |\n")}, "README.md: there is no layer data"),
    ],
)
def test_an_import_that_breaks_the_order_is_named(tmp_path, changed, problem):
    alone = {"upper/user.py": "", "upper/__init__.py": ""}  # they import nothing, so that there is no circle as well
    assert problems_in(tmp_path, {**PACKAGE, **alone, **changed}) == [problem]


CIRCLE = {
    "between one folder's modules": {"base/wire.py": "from .lock import Lock\n"},
    "for type checkers": {"base/wire.py": CHECKED.format(".lock", "Lock")},
    "in a function": {"base/lock.py": "from . import wire\n", "base/wire.py": "def use():\n    from . import lock\n"},
    "beside the folders": {"names.py": "from . import public\n"},
}


@pytest.mark.parametrize("readme", [README, "# Without a table\n"], ids=["layers", "no layers"])
@pytest.mark.parametrize("changed", CIRCLE.values(), ids=CIRCLE)
def test_a_circle_of_modules_is_named_with_and_without_layers(tmp_path, changed, readme):
    (found,) = problems_in(tmp_path, {**PACKAGE, **changed, "README.md": readme})
    files, _, problem = found.partition(": ")
    assert problem == "these import each other in a circle"
    assert set(changed) <= set(files.split(" -> "))
