# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch's table of operators in float32, forward and backward; and that the harness notices what is wrong.

All dtypes and checks: nox -s conformance.
"""

import conformance_faults
import pytest
import registered
import torch
from conformance import command, entries, exceptions, outcome, record
from conformance.scorecard import Scorecard

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
    "takes_a_shape_of_its_own": ("writes: out sliced", "not close"),
    "writes_beyond": ("writes: out in the middle", "neighbours of the view were written to"),
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


@pytest.fixture(scope="module")
def quick():
    """The scorecard of all entries, most in float32; its reports name the operators that ran."""
    return command.quick()


@pytest.fixture(scope="module")
def faults():
    """The reports of the entries that are wrong on purpose, by name."""
    card = command.run(["float32"], jobs=2, limit=20, table=FAULTS)
    return {report["name"]: report for report in card.reports}


@pytest.mark.timeout(1800)
def test_every_entry_gives_what_the_cpu_gives(quick):
    table = entries.load(command.TABLE)
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
def test_the_harness_passes_what_is_right(faults):
    assert faults["right"]["failures"] == {}
    assert faults["right"]["fell_back"] == {}
    assert faults["right"]["samples"] == 2


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", EXPECTED)
def test_the_harness_notices(faults, name):
    check, reason = EXPECTED[name]
    assert reason in faults[name]["failures"][check]


@pytest.mark.timeout(1800)
def test_the_harness_counts_fallbacks(faults):
    assert faults["falls_back"]["failures"] == {}
    assert faults["falls_back"]["fell_back"] == {"conformance_faults::double": 2}


def card_of(complete=True, **reports):
    """A scorecard of float32 reports: name to failures."""
    return Scorecard(
        [{"name": name, "dtype": "float32", "failures": found} for name, found in reports.items()],
        len(reports),
        complete,
    )


def test_a_failure_fails_the_run():
    assert card_of(False, abs={"forward": "wrong"}).problems() == ["abs float32: forward: wrong"]
    assert card_of(False, abs={}).problems() == []


def test_an_exception_excuses_a_failure_and_has_to_be_needed(monkeypatch):
    monkeypatch.setattr("conformance.scorecard.EXCEPTIONS", {"abs": "a reason"})
    assert card_of(False, abs={"forward": "wrong"}).problems() == []
    assert "abs: listed as an exception, and passes" in card_of(abs={}).problems()


def test_exceptions_are_few(monkeypatch):
    monkeypatch.setattr("conformance.scorecard.EXCEPTIONS", dict.fromkeys(map(str, range(11)), "a reason"))
    assert "11 entries are excepted; at most 10 may be" in card_of(False).problems()


def test_exceptions_have_reasons():
    assert all(exceptions.EXCEPTIONS.values())
    assert all(exceptions.LATE.values())


def test_too_few_native_entries_fail_a_complete_run():
    assert "1 entries run float32 natively; at least 600 have to" in card_of(abs={}, add={"forward": "x"}).problems()


def test_a_late_entry_has_to_be_late(monkeypatch):
    monkeypatch.setattr("conformance.scorecard.LATE", {"abs": "a reason"})
    assert "abs: listed as late, and fails at once" in card_of(abs={}).problems()


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


def test_the_command_ends_with_a_status(monkeypatch, tmp_path, capsys):
    target = tmp_path / "card.json"
    arguments = ["--table", FAULTS, "--dtype", "float32", "--check", "forward", "--jobs", "1", "--json", str(target)]
    assert command.main([*arguments, "--op", "right"]) == 0
    assert "all as it has to be" in capsys.readouterr().out
    assert '"passed": 1' in target.read_text("utf-8")
    assert command.main([*arguments, "--op", "wrong_shape"]) == 1
    assert "wrong_shape float32: forward: shape" in capsys.readouterr().out
    assert command.main([*arguments, "--op", "unknown"]) == 1


def test_no_entry_loses_a_name():
    """Faults and expectations do not drift apart."""
    names = {op.name for op in conformance_faults.TABLE}
    assert names == {*EXPECTED, "right", "falls_back"}
