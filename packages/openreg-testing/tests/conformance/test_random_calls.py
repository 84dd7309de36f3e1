# SPDX-License-Identifier: BSD-3-Clause
"""The fuzzer makes the calls that the manifest and the operators allow, and counts those."""

import warnings

import pytest
from _kit import call

from openreg_testing.conformance.bring_up import Setup
from openreg_testing.conformance.manifest import Manifest, OperatorExpectations

with warnings.catch_warnings():
    warnings.filterwarnings("ignore", "Fail to import hypothesis", ImportWarning)
    from openreg_testing.conformance.operators import fuzz

pytestmark = pytest.mark.timeout(1800)
SEEDS = 40


def calls_of(**manifest):
    setup = Setup("openreg", ("torch_openreg",), Manifest(**manifest))
    failures, calls = call(fuzz.fuzz, setup, 1200, 1, SEEDS, "crashing:RIGHT")
    assert failures == {}
    return calls


def test_only_calls_that_the_operator_supports_are_made_and_counted():
    assert 0 < calls_of() < SEEDS  # it has neither out= nor an in-place form


@pytest.mark.parametrize(
    "manifest", [{"operators": {"operator_1": OperatorExpectations(skip="no kernel")}}, {"only_listed": True}]
)
def test_an_operator_that_the_manifest_leaves_out_is_not_called(manifest):
    assert calls_of(**manifest) == 0


def test_a_dtype_that_the_manifest_leaves_out_is_not_drawn():
    in_one = calls_of(operators={"operator_1": OperatorExpectations(dtypes=("float32",))})
    in_another = calls_of(operators={"operator_1": OperatorExpectations(dtypes=("float16",))})
    assert 0 < in_one < calls_of()
    assert in_another < in_one
