# SPDX-License-Identifier: BSD-3-Clause
"""The number of the ABI changes with the code of the public headers, and with nothing else."""

import shutil

import pytest

from tools import abi
from tools.packages import ROOT

HEADER = """\
// What it is.
#pragma once
#include <cstdint>

constexpr const char* kPlace = "http://x"; /* a
   place */
void launch(int64_t size,  // in bytes
            int stream);
"""
SAME = [
    HEADER.replace("// What it is.", "// Something else.\n//\n"),
    HEADER.replace("  // in bytes\n            int", " int"),
    HEADER.replace("/* a\n   place */", ""),
    HEADER.replace("(int64_t", "(\n    int64_t").replace(", ", ","),
]
OTHER = [
    HEADER.replace("int stream", "unsigned stream"),
    HEADER.replace("int64_t size", "int64_tsize"),
    HEADER.replace("http://x", "http://y"),
    HEADER.replace("http://x", "http:/ /x"),
    HEADER.replace("<cstdint>\n\n", "<cstdint> "),
    HEADER.replace("void launch", "inline void launch"),
]


@pytest.fixture
def checkout(tmp_path):
    """The headers and the record of this repository."""
    shutil.copytree(ROOT / abi.INCLUDE, tmp_path / abi.INCLUDE)
    (tmp_path / abi.RECORD).parent.mkdir()
    shutil.copy2(ROOT / abi.RECORD, tmp_path / abi.RECORD)
    return tmp_path


def change(path, old, new):
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new), "utf-8")


@pytest.mark.parametrize(("other", "same"), [*((text, True) for text in SAME), *((text, False) for text in OTHER)])
def test_code_is_a_change_and_comments_and_layout_are_none(other, same):
    assert other != HEADER
    assert (abi.digest(other) == abi.digest(HEADER)) == same


def added(include):
    (include / "openreg/runtime/added.h").write_text("#pragma once\n", "utf-8")


@pytest.mark.parametrize(
    ("damage", "by", "said"),
    [
        (lambda include: change(include / "openreg.h", "orStreamCreate(", "orStreamMake("), 0, "raise kAbiVersion to"),
        (lambda include: (include / "openreg/runtime/launch.h").unlink(), 0, "raise kAbiVersion to"),
        (added, 0, "raise kAbiVersion to"),
        (lambda include: None, -1, "raise kAbiVersion to"),
        (added, 1, "the headers are of ABI"),
    ],
)
def test_headers_and_their_number_change_together_and_are_recorded_then(checkout, damage, by, said, capsys):
    before, number = abi.recorded(checkout), abi.state(checkout)[0]
    assert {"openreg.h", "openreg/runtime/launch.h"} <= set(before[1])
    assert abi.headers_have_their_number(checkout) == []
    damage(checkout / abi.INCLUDE)
    change(checkout / abi.VERSION, f"kAbiVersion = {number};", f"kAbiVersion = {number + by};")
    (problem,) = abi.headers_have_their_number(checkout)
    assert said in problem
    if by > 0:
        abi.record(checkout)
        assert abi.headers_have_their_number(checkout) == []
        assert abi.recorded(checkout)[0] == number + by
        return
    assert f"raise kAbiVersion to {number + 1}" in problem
    with pytest.raises(SystemExit):
        abi.record(checkout)
    assert capsys.readouterr().err == f"{problem}\n"
    assert abi.recorded(checkout) == before


def test_a_header_that_only_the_runtime_includes_is_not_public(checkout):
    package = checkout / abi.INCLUDE.parents[1]
    for path, header in (("openreg-runtime/csrc/launch.cpp", "launch.h"), ("openreg-ops/csrc/add.cpp", "stream.h")):
        (package / path).parent.mkdir(parents=True)
        (package / path).write_text(f'#include "openreg/runtime/{header}"\n', "utf-8")
    problems = abi.headers_are_needed(checkout)
    assert any("launch.h: nobody outside of the runtime includes it: move it to csrc/" in item for item in problems)
    assert not any("/stream.h" in item for item in problems)
