# SPDX-License-Identifier: BSD-3-Clause
"""The workflow reports to PyTorch's CI relay what the conformance kit writes for it, and only where that is wanted."""

import re

import yaml

from tools.packages import ROOT

WORKFLOW = yaml.safe_load((ROOT / ".github" / "workflows" / "relay.yml").read_text("utf-8"))
JOBS = WORKFLOW["jobs"]
(REPORT,) = JOBS["report"]["steps"]


def test_every_value_that_the_kit_writes_is_an_input_of_the_same_name():
    results = re.compile(r"fromJSON\(needs\.conformance\.outputs\.results\)\.([\w-]+)")
    given = {name: results.findall(value) for name, value in REPORT["with"].items()}
    # Those of Card.relay() in openreg-testing, whose own tests name them, too.
    written = ("delivery-id", "test-results", "failed-tests-detail")
    assert {name: keys for name, keys in given.items() if keys} == {name: [name] for name in written}


def test_nothing_is_reported_unless_the_repository_wants_it():
    assert "vars.PYTORCH_CI_RELAY == 'true'" in JOBS["report"]["if"]


def test_only_the_job_that_reports_can_prove_who_it_is():
    assert JOBS["report"]["permissions"] == {"id-token": "write"}
    assert "permissions" not in JOBS["conformance"]
    assert WORKFLOW["permissions"] == {"contents": "read"}
