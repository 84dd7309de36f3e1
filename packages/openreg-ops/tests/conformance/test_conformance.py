# SPDX-License-Identifier: BSD-3-Clause
"""All operators of PyTorch's table agree with the CPU in float32, and the harness finds planted bugs.

All samples, dtypes and checks: nox -s conformance.
"""

import conformance_faults
import pytest
import registered
import torch
from manifest import SETUP

from openreg_testing.conformance.operators import entries, outcome, record, run, tasks

FAULTS = "conformance_faults:TABLE"
EXPECTED = {
    "wrong_number": ("forward", "not close"),
    "wrong_dtype": ("forward", "dtype torch.float64"),
    "wrong_shape": ("forward", "shape (12,)"),
    "on_the_host": ("forward", "the result is on cpu"),
    "wrong_gradient": ("backward", "not close"),
    "wrong_for_strides": ("noncontiguous", "not close"),
    "wrong_inplace": ("in-place", "not close"),
    "ignores_out": ("out", "same size"),
    "forgets_strides": ("layouts: result", "transposed, all: strides [3, 1], not [1, 4]"),
    "wrong_where_the_cpu_asserts": ("layouts: values", "not close"),
    "takes_a_shape_of_its_own": ("writes: out sliced", "not close"),
    "writes_beyond": ("writes: out in the middle", "neighbors of the view were written to"),
    "refuses_expanded": ("writes: in-place self expanded", "RuntimeError"),
    "takes_overlaps": ("writes: in-place other partly overlaps", "a result; the CPU: RuntimeError"),
    "warns": ("warnings", "UserWarning: of nothing"),
    "forgets_to_warn": ("warnings", "UserWarning: of something"),
    "warns_on_the_engine": ("warnings", "standard error: Warning: of nothing"),
    "loses_the_device": ("dtypes uint16", "the device is lost"),
    "refuses_a_dtype": ("dtypes float64", "NotImplementedError: not for float64; the CPU: a result"),
    "crashes": ("process", "crashed"),
    "hangs": ("process", "took longer"),
    "accepts_anything": ("errors", "a result; the CPU: ValueError"),
    "other_distribution": ("random", "distributed differently"),
    "not_repeatable": ("random", "not repeatable"),
}
RIGHT = ("right", "right_where_the_cpu_asserts")
# An entry is compared with at most so many samples, which differ from each other; most entries have fewer.
MOST_SAMPLES = 12


@pytest.fixture(scope="module")
def quick(processes):
    """The scorecard of all entries, most in float32; its reports name the operators that ran."""
    return run.quick(SETUP, most_samples=MOST_SAMPLES, record_operators=True, processes=processes)


@pytest.fixture(scope="module")
def faults(processes):
    """The reports of the entries that are wrong on purpose, by name."""
    card = run.run(SETUP, ["float32"], jobs=2, limit=20, table=FAULTS, processes=processes)
    return {report["name"]: report for report in card.reports}


@pytest.mark.timeout(1800)
def test_every_entry_gives_what_the_cpu_gives(quick):
    table = entries.load(tasks.TABLE)
    no_dtype_of_ours = {op.full_name for op in table if not entries.dtypes_of(op)}  # 8-bit floats alone
    assert no_dtype_of_ours == {"torch._scaled_mm", "torch._scaled_mm_v2"}
    assert len(quick.reports) >= len(table) - len(no_dtype_of_ours) >= 700
    assert quick.problems() == []


@pytest.mark.timeout(1800)
def test_every_registered_operator_is_exercised(quick, run_python):
    """By the table's entries or by the samples in registered.py."""
    seen = {name for report in quick.reports for name in report.get("exercised", ())}
    seen |= registered.exercise()
    missing = registered.names(run_python) - seen
    assert sorted(missing) == []


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", RIGHT)
def test_the_harness_passes_what_is_right(faults, name):
    assert faults[name]["failures"] == {}
    assert faults[name]["fell_back"] == {}
    assert faults[name]["samples"] == 2


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", EXPECTED)
def test_the_harness_notices(faults, name):
    check, reason = EXPECTED[name]
    assert reason in faults[name]["failures"][check]


@pytest.mark.timeout(1800)
def test_the_harness_counts_fallbacks(faults):
    assert faults["falls_back"]["failures"] == {}
    assert faults["falls_back"]["fell_back"] == {"conformance_faults::double": 2}


def test_the_record_sees_operators_in_gradients_and_no_fallback():
    def compute():
        x = torch.ones(3, device="openreg", requires_grad=True)
        torch.nn.functional.softmax(x, 0).sum().backward()
        conformance_faults.falls_back(x.detach())

    with record.operators() as seen:
        outcome.attempt(compute, "openreg")
        torch.ones(3).erf()
    assert {"aten::_softmax", "aten::_softmax_backward_data"} <= seen
    assert not {"conformance_faults::double", "aten::mul.Tensor", "aten::erf"} & seen


def test_no_entry_loses_a_name():
    """Faults and expectations do not drift apart."""
    names = {op.name for op in conformance_faults.TABLE}
    assert names == {*EXPECTED, *RIGHT, "falls_back"}
