# SPDX-License-Identifier: BSD-3-Clause
"""Includes that violate the order of folders are reported, and valid ones pass."""

import pytest
from helpers import write_files

from tools.layers import HEAD, problems_of

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
