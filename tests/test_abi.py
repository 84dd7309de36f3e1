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


def raise_number(checkout, by=1):
    number = abi.state(checkout)[0]
    change(checkout / abi.VERSION, f"kAbiVersion = {number};", f"kAbiVersion = {number + by};")
    return number


@pytest.mark.parametrize("other", SAME)
def test_comments_and_layout_are_no_change(other):
    assert other != HEADER
    assert abi.digest(other) == abi.digest(HEADER)


@pytest.mark.parametrize("other", OTHER)
def test_code_is(other):
    assert other != HEADER
    assert abi.digest(other) != abi.digest(HEADER)


def test_every_public_header_is_recorded(checkout):
    assert {"openreg.h", "openreg/runtime/launch.h"} <= set(abi.recorded(checkout)[1])
    assert abi.headers_have_their_number(checkout) == []


@pytest.mark.parametrize(
    "damage",
    [
        lambda include: change(include / "openreg.h", "orStreamCreate(", "orStreamMake("),
        lambda include: (include / "openreg/runtime/launch.h").unlink(),
        lambda include: (include / "openreg/runtime/added.h").write_text("#pragma once\n", "utf-8"),
    ],
)
def test_a_header_that_changes_alone_is_named_and_not_recorded(checkout, damage, capsys):
    before = abi.recorded(checkout)
    damage(checkout / abi.INCLUDE)
    number = abi.state(checkout)[0]
    (problem,) = abi.headers_have_their_number(checkout)
    assert f".h changed: raise kAbiVersion to {number + 1}" in problem
    with pytest.raises(SystemExit):
        abi.record(checkout)
    assert capsys.readouterr().err == f"{problem}\n"
    assert abi.recorded(checkout) == before


def test_a_raised_number_wants_a_record(checkout):
    change(checkout / abi.INCLUDE / "openreg.h", "orStreamCreate(", "orStreamMake(")
    number = raise_number(checkout)
    (problem,) = abi.headers_have_their_number(checkout)
    assert f"is of ABI {number}, the headers are of ABI {number + 1}" in problem
    abi.record(checkout)
    assert abi.headers_have_their_number(checkout) == []
    assert abi.recorded(checkout)[0] == number + 1


def test_a_number_does_not_go_back(checkout, capsys):
    number = raise_number(checkout, by=-1)
    (problem,) = abi.headers_have_their_number(checkout)
    assert (
        f"the ABI {number} is recorded, and kAbiVersion is {number - 1}: raise kAbiVersion to {number + 1}" in problem
    )
    with pytest.raises(SystemExit):
        abi.record(checkout)
    assert capsys.readouterr().err == f"{problem}\n"


def test_a_header_that_only_the_runtime_includes_is_not_public(checkout):
    assert abi.headers_are_needed(ROOT) == []
    package = checkout / abi.INCLUDE.parents[1]
    for name in ("launch.h", "stream.h"):
        assert (checkout / abi.INCLUDE / "openreg" / "runtime" / name).is_file()
    runtime, other = package / "openreg-runtime" / "csrc" / "launch.cpp", package / "openreg-ops" / "csrc" / "add.cpp"
    for path, header in ((runtime, "launch.h"), (other, "stream.h")):
        path.parent.mkdir(parents=True)
        path.write_text(f'#include "openreg/runtime/{header}"\n', "utf-8")
    problems = abi.headers_are_needed(checkout)
    assert any("launch.h: nobody outside of the runtime includes it: move it to csrc/" in item for item in problems)
    assert not any("/stream.h" in item for item in problems)
