# SPDX-License-Identifier: BSD-3-Clause
"""A timeline shows a program and draws the device's tasks. The build fails if the program fails."""

import re

import pytest


def timeline(title, *lines):
    return "\n".join([f"::::{{timeline}} {title}", *lines, "::::"])


def test_the_program_is_shown_and_drawn(page):
    html, warnings = page(
        timeline(
            "An <addition>",
            ":caption: What `add` does",
            ":memory:",
            'x = torch.ones(1000, device="openreg")',
            "---",
            "y = x.exp()",
        )
    )
    assert warnings == ""
    text = re.sub("<[^>]+>", "", html)
    assert 'x = torch.ones(1000, device="openreg")' in text.replace("&quot;", '"')
    assert "y = x.exp()" in text
    assert "<title>An &lt;addition&gt;</title>" in html
    assert "What <code" in html
    for drawn in ("host", "default stream", "KiB"):
        assert drawn in text


def test_only_what_follows_the_line_is_drawn(page):
    html, warnings = page(
        timeline("Two", "torch.openreg.profiler.name_stream(torch.openreg.current_stream(), 'here')", "---",
                 "torch.openreg._sleep(3_000_000)")
    )  # fmt: skip
    assert warnings == ""
    assert ">here<" in html
    assert ">pause<" in html


def test_settings_reach_the_program(page):
    html, warnings = page(
        timeline("Two devices", ":environment: OPENREG_DEVICE_COUNT=3", "torch.ones(4, device='openreg:2').exp()")
    )
    assert warnings == ""
    assert ">exp<" in html


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        (("torch.ones(2, device='openreg:77')",), "openreg:77"),
        (("x = 1 + 1",), "no work of an openreg device"),
        ((":draw: nothing", "torch.ones(4, device='openreg').exp()"), "no range 'nothing'"),
        ((":claim: device('aten::sin').begin > 0", "torch.ones(4, device='openreg').exp()"), "names 'aten::sin'"),
        (
            (":claim: tasks[0].begin < launches[0].begin", "torch.ones(4, device='openreg').exp()"),
            "shows what the picture claims: tasks[0].begin < launches[0].begin",
        ),
    ],
)
def test_a_program_that_cannot_be_drawn_fails_the_build(page, lines, problem):
    _, warnings = page(timeline("Broken", *lines))
    assert problem in warnings
    assert "Broken" in warnings


def test_a_build_for_tests_draws_a_run_that_does_not_show_its_claim(page):
    claim = ":claim: tasks[0].begin < launches[0].begin"
    html, warnings = page(timeline("Broken", claim, "torch.ones(4, device='openreg').exp()"), timeline_unshown="draw")
    assert warnings == ""
    assert ">exp<" in html
