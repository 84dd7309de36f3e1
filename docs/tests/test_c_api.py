# SPDX-License-Identifier: BSD-3-Clause
"""The reference of the C API has every declaration of the header, each with the comment above it."""

import re

import pytest
from conftest import ROOT
from guide.c_api import comment_text, markdown, read_header

HEADER = """\
/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What it is for.
 *   - A contract of orStop().
 */
#ifndef OPENREG_H_
#define OPENREG_H_
#ifdef __cplusplus
extern "C" {
#endif

/* The version. */
#define OPENREG_API_VERSION 3

typedef enum orKind {
  orKindA = 0,
  orKindB = 1, /* the second */
} orKind;

/* A pair. */
typedef struct orPair {
  int first; /* of the two */
  /* The other,
   * in two lines. */
  int second;
} orPair;

typedef struct orThing* orThing_t; /* opaque */

/* ---- Ways to stop ---- */

/* Stops, as
 * orGo() does not. */
OPENREG_API int orStop(int* why);
OPENREG_API int orGo(void);

#ifdef __cplusplus
}
#endif
#endif /* OPENREG_H_ */
"""


@pytest.fixture
def entries():
    return {entry.declaration: entry for section in read_header(HEADER).sections for entry in section.entries}


def test_the_comment_at_the_top_is_the_introduction():
    assert read_header(HEADER).introduction == "What it is for.\n- A contract of {c:func}`orStop`."


def test_a_list_of_words_is_a_list():
    comment = "/* KIND is one of\n *   copy    a copy\n *   launch  a kernel\n * Each once. */"
    assert comment_text(comment) == "KIND is one of\n\n- `copy`: a copy\n- `launch`: a kernel\n\nEach once."


def test_sections_are_those_of_the_header():
    assert [section.title for section in read_header(HEADER).sections] == ["Types", "Ways to stop"]


def test_a_function_has_the_comment_above_it(entries):
    assert entries["int orStop(int* why)"].comment == "Stops, as\n{c:func}`orGo` does not."
    assert entries["int orGo(void)"].comment == ""
    assert not entries["int orStop(int* why)"].shares_comment


def test_types_and_macros_are_there(entries):
    assert entries["orKind"].kind == "enum"
    assert entries["orPair"].comment == "A pair."
    assert entries["struct orThing* orThing_t"].comment == "opaque"
    assert entries["OPENREG_API_VERSION"].comment.startswith("The version.")
    assert "OPENREG_H_" not in entries


def test_what_stands_behind_something_else_is_no_comment(entries):
    assert entries["int orGo(void)"].comment == ""


def test_parts_have_the_comment_in_their_line_or_above(entries):
    assert [(part.declaration, part.comment) for part in entries["orKind"].members] == [
        ("orKindA = 0", ""),
        ("orKindB = 1", "the second"),
    ]
    assert [(part.declaration, part.comment) for part in entries["orPair"].members] == [
        ("int first", "of the two"),
        ("int second", "The other,\nin two lines."),
    ]


def test_an_entry_becomes_a_directive_with_its_parts_inside(entries):
    text = markdown(entries["orKind"])
    assert text.startswith("````{c:enum} orKind\n")
    assert "```{c:enumerator} orKindB = 1\n\nthe second\n" in text


def test_a_function_directly_below_another_shares_its_comment(page, tmp_path):
    header = tmp_path / "some.h"
    header.write_text("/* Two ways. */\n\n/* Stop and go. */\nint orStop(int* why);\nint orGo(void);\n", "utf-8")
    html, warnings = page(f":::{{c-api}} {header}\n:::")
    assert warnings == ""
    (pair,) = re.findall(r'<dl class="c function">.*?</dl>', html, re.DOTALL)
    assert re.findall(r'id="c\.(\w+)"|(<dd>)', pair) == [("orStop", ""), ("orGo", ""), ("", "<dd>")]


def test_every_function_of_the_device_is_in_its_reference():
    text = (ROOT / "packages/openreg-runtime/csrc/driver/include/openreg.h").read_text("utf-8")
    names = set(re.findall(r"OPENREG_API [\w ]+?[ *]+(or\w+)\(", text))
    found = {
        re.search(r"(or\w+)\(", entry.declaration).group(1)
        for section in read_header(text).sections
        for entry in section.entries
        if entry.kind == "function"
    }
    assert len(names) > 60
    assert found == names


def test_a_header_that_does_not_exist_is_refused(page):
    _, warnings = page(":::{c-api} no/such/header.h\n:::")
    assert "c-api: no file no/such/header.h" in warnings
