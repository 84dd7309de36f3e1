# SPDX-License-Identifier: BSD-3-Clause
"""The terminal, HTML, JUnit XML and xdist reports state what each test did on the device."""

import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser

import pytest
from library_runs import run, says, says_not

pytest_plugins = ["pytester"]

TESTS = """
    import pytest, torch
    from lib import steps

    def test_launches(device):
        steps.add(torch.ones(2, device=device))

    @pytest.mark.parametrize("text", ["<script>alert(1)</script>"])
    def test_never(text):
        torch.ones(2) + 1

    def test_copies(device):
        assert torch.ones(2).to(device).cpu().sum() == 2

    def test_skipped(device):
        pytest.skip("<b>not here</b>")

    def test_failed(device):
        assert torch.ones(2, device=device).sum() == 3

    @pytest.mark.xfail
    def test_xfailed():
        assert False

    def test_falls_back(device):
        with torch.openreg.fallback_operators("aten::flip"):
            torch.ones(2, device=device).flip(0)
"""


@pytest.fixture
def suite(pytester):
    pytester.mkpydir("lib").joinpath("steps.py").write_text("def add(x):\n    return (x + 1).sum().item()\n")
    pytester.makepyfile(test_lib=TESTS)
    return pytester


class Page(HTMLParser):
    """Tags with their attributes, and the text of table rows."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.rows, self.styles = [], [], ""
        self._tag = ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._tag = tag
        if tag == "tr":
            self.rows.append("")

    def handle_data(self, data):
        if self._tag == "style":
            self.styles += data
        elif self.rows:
            self.rows[-1] += f" {data.strip()}"


@pytest.mark.parametrize("workers", [[], ["-n", "2"]], ids=["one process", "xdist"])
def test_every_report_says_what_each_test_did(suite, monkeypatch, workers):
    result = run(
        suite, monkeypatch, "--device", "openreg", "--openreg-report", "out/r.html", "--junitxml", "j.xml", *workers
    )
    result.assert_outcomes(passed=4, skipped=1, failed=1, xfailed=1)
    says(
        result,
        "= device openreg =",
        "fallbacks to the CPU: 1 in 1 test: aten::flip 1",
        "  lib/steps.py:2: 1",
        "never launched anything, and passed: 2 of 4 tests that passed",
        "  test_lib.py::test_never[<script>alert(1)</script>]",
        "  test_lib.py::test_copies",
        "not checked: waits between streams, and with the host; --sanitize finds those that are missing",
    )

    cases = {case.get("name"): case for case in ElementTree.parse(suite.path / "j.xml").iter("testcase")}
    facts = {
        name: {item.get("name"): item.get("value") for item in case.iter("property")} for name, case in cases.items()
    }
    assert int(facts["test_launches"]["openreg.launches"]) >= 3
    assert facts["test_launches"]["openreg.waits"] == "1"
    assert facts["test_copies"]["openreg.launches"] == "0"
    assert int(facts["test_copies"]["openreg.copies"]) == 2
    assert facts["test_falls_back"]["openreg.fallbacks"] == "{'aten::flip': 1}"

    text = (suite.path / "out" / "r.html").read_text("utf-8")
    page = Page(text)
    assert not [item for item in page.tags if item[0] in ("script", "link", "img", "b")]
    assert not [item for item in page.tags if {"src", "href"} & set(item[1])]
    assert "prefers-color-scheme: dark" in page.styles
    rows = {row.split()[0]: row for row in page.rows[1:]}
    assert len(rows) == len(cases)
    assert "never launched anything" in rows["test_lib.py::test_never[<script>alert(1)</script>]"]
    assert "never launched anything" not in rows["test_lib.py::test_launches"]
    assert "host wait: lib/steps.py:2 1" in rows["test_lib.py::test_launches"]
    assert "fallback: aten::flip 1" in rows["test_lib.py::test_falls_back"]
    assert "<b>not here</b>" in rows["test_lib.py::test_skipped"]
    assert "failed" in rows["test_lib.py::test_failed"]


@pytest.mark.parametrize(
    ("unused", "options", "told"), [(2, (), True), (1, (), False), (2, ("--default-device",), False)]
)
def test_where_most_tests_do_not_use_the_device_the_way_to_make_them_is_named(
    pytester, monkeypatch, unused, options, told
):
    pytester.makepyfile(
        f"""
        import pytest, torch

        @pytest.mark.parametrize("number", range({unused}))
        def test_names_none(number):
            {"pass" if options else "torch.ones(2) + 1"}

        def test_uses(device):
            torch.ones(2, device=device) + 1
        """
    )
    result = run(pytester, monkeypatch, "--device", "openreg", *options)
    says(result, f"never launched anything, and passed: {unused} of {unused + 1} tests that passed")
    (says if told else says_not)(result, "--default-device makes them on the device")


UNUSED = """
import torch

def test_one():
    assert (torch.ones(2) + 1).sum() == 4

def test_two():
    assert torch.ones(2).sum() == 2
"""


@pytest.mark.parametrize("workers", [[], ["-n", "2"], ["--isolate"]], ids=["one process", "xdist", "isolated"])
def test_a_run_that_never_used_the_device_ends_with_a_warning(pytester, monkeypatch, workers):
    pytester.makepyfile(test_lib=UNUSED)
    result = run(
        pytester, monkeypatch, "--device", "openreg", "--color=yes", "--openreg-report", "report.html", *workers
    )
    result.assert_outcomes(passed=2)
    warning = (
        "Nothing was tested on openreg: 2 tests launched no kernel and copied nothing there. Tests that name no device "
        "make their tensors on the CPU: --default-device makes them on the device."
    )
    assert result.outlines[-1] == f"\x1b[33m\x1b[1m{warning}\x1b[0m"
    assert warning in (pytester.path / "report.html").read_text("utf-8")
    says_not(result, "That is more than half")


@pytest.mark.parametrize(
    ("code", "options", "reason"),
    [
        ("torch.cuda.is_available()", (), "The lines that mean CUDA, above, may be the reason. Tests that name no"),
        ('torch.ones(1, device="cpu")', ("--default-device",), "--default-device has no effect on code that names a"),
    ],
    ids=["cuda", "a named device"],
)
def test_the_warning_names_what_may_be_the_reason(pytester, monkeypatch, code, options, reason):
    pytester.makepyfile(
        lib=f"import torch\n\ndef work():\n    {code}\n",
        test_lib="import lib\n\ndef test_one():\n    lib.work()\n",
    )
    result = run(pytester, monkeypatch, "--device", "openreg", *options)
    result.assert_outcomes(passed=1)
    assert reason in result.outlines[-1]


@pytest.mark.parametrize(
    ("body", "options"),
    [
        ("torch.ones(2, device='openreg') + 1", ("--device", "openreg")),
        ("torch.ones(2).to('openreg')", ("--device", "openreg")),
        ("raise AssertionError", ("--device", "openreg")),
        ("pass", ("--device", "cpu")),
        ("pass", ()),
    ],
    ids=["a kernel", "a copy", "a failure", "the CPU", "no device"],
)
def test_other_runs_end_without_the_warning(pytester, monkeypatch, body, options):
    pytester.makepyfile(f"import torch\n\ndef test_one():\n    {body}\n")
    says_not(run(pytester, monkeypatch, *options), "Nothing was tested")
