# SPDX-License-Identifier: BSD-3-Clause
"""The conformance kit finds each bug that is planted in a backend, and passes the backend without bugs."""

import functools
import re

import pytest
from _kit import call

from openreg_testing.conformance import suite_tests
from openreg_testing.conformance.bring_up import Setup
from openreg_testing.conformance.manifest import Exclusion, Manifest, OperatorExpectations
from openreg_testing.conformance.operators import run
from openreg_testing.conformance.operators.checks import ARGUMENTS, COMPILED

pytestmark = pytest.mark.timeout(1800)
FURTHER = pytest.mark.endurance  # further forms of what the default session runs, each in processes of its own

# What is planted -> the test that finds it, and a word of the reason.
FOUND = {
    "device_count": ("device::test_the_hooks_count_the_same", "the hooks count 2 devices, the module 3"),
    "context": ("device::test_the_context_changes_the_device_and_back", "assert 1 == 0"),
    "stream_context": ("streams::test_the_module_has_a_context", "torch.<device>.stream"),
    "event_class": ("events::test_the_module_has_an_event_class", "torch.Event"),
    "resize": ("allocator::test_no_elements_need_no_memory", "resized"),
    "global_seed": ("generator::test_the_global_seed_repeats_numbers", "module.manual_seed_all is used by"),
    "random_state": ("generator::test_fork_rng_leaves_no_trace", "fork_rng"),
    "location": ("serialization::test_a_tensor_comes_back_to_its_device[float32]", "torch.load returns a tensor"),
    "dlpack_device": ("dlpack::test_a_tensor_tells_its_device", "extension devices"),
    "padding": ("nested::test_an_operator_on_jagged_tensors_gives_what_the_cpu_gives[amax]", "not close"),
    "coalescing": ("sparse::test_elements_of_one_place_are_added", "assert ("),
    "autocast_list": ("autocast::test_products_run_in_the_lower_precision[mm]", "the first list"),
    "gelu": ("modules::test_a_module_gives_what_the_cpu_gives[nn.GELU]", "not close"),
    "momentum": ("optimizers::test_steps_are_those_of_the_cpu[[]Adam-one by one[]]", "not close"),
    "compiled": ("compiled::test_a_compiled_module_gives_what_the_cpu_gives[nn.ReLU]", "not close"),
    "keeps_linear": ("export::test_a_program_is_taken_apart_as_on_the_cpu[nn.Linear]", "aten.linear"),
    "fake_device": ("export::test_a_fake_tensor_has_the_device", "FakeTensor"),
}

# Mistakes of one backend, of which none changes what finds another: a process for each would take most of the time.
TOGETHER = (
    *("device_count event_class location dlpack_device padding coalescing", "context autocast_list gelu keeps_linear"),
    *("stream_context global_seed momentum compiled", "resize random_state", "fake_device"),
)


def setup_of(mistake="", **others):
    return Setup("openreg", ("planted",), Manifest(environment={"PLANTED": mistake}, **others))


def literal(pattern):
    return pattern if "[[]" in pattern else pattern.replace("[", "[[]")


def results(patterns, setup):
    suites = {pattern.partition("::")[0] for pattern in patterns}
    found = call(suite_tests.run, setup, sorted(suites), [literal(pattern) for pattern in patterns], jobs=1)
    return [result for result, _ in found], [note for _, note in found if note]


@functools.cache
def of_all_in(group):
    """What finds the mistakes of a group says of a backend that has all of them, by name."""
    found, notes = results([FOUND[mistake][0] for mistake in group.split()], setup_of(group))
    assert notes == []
    return {result.name: result for result in found}


@pytest.mark.parametrize("mistake", FOUND)
def test_a_mistake_is_found_by_the_suite_that_promises_it(mistake):
    pattern, reason = FOUND[mistake]
    (group,) = (group for group in TOGETHER if mistake in group.split())
    result = of_all_in(group)[pattern.replace("[[]", "[").replace("[]]", "]")]
    assert result.status == "failed", result
    assert reason in result.reason
    assert result.promises


def test_without_a_mistake_all_of_them_pass():
    patterns = [pattern for mistake, (pattern, _) in FOUND.items() if mistake != "compiled"]  # nothing generates code
    found, _ = results(patterns, setup_of())
    assert len(found) == len(patterns)
    assert {result.status for result in found} == {"passed"}


def test_an_operator_with_a_wrong_kernel_is_found():
    card = call(run.run, setup_of("gelu"), ["float32"], ["nn.functional.gelu"], ["forward"], jobs=1)
    (problem,) = card.problems()
    assert "nn.functional.gelu float32: forward: Tensor-likes are not close" in problem


def test_the_check_of_gradients_runs_without_the_others():
    card = call(run.run, setup_of("gelu_gradient"), ["float32"], ["nn.functional.gelu"], ["backward"], jobs=1)
    (problem,) = card.problems()
    assert "nn.functional.gelu float32: backward: Tensor-likes are not close" in problem


def test_a_crash_of_a_backward_pass_is_found_again_by_its_check_alone():
    checks = ["forward", "backward"]
    card = call(run.run, setup_of("gelu_gradient_crash"), ["float32"], ["nn.functional.gelu"], checks, jobs=1)
    (report,) = card.reports
    assert list(report["failures"]) == ["process"]
    assert report["failures"]["process"].startswith("backward: crashed")


@pytest.mark.parametrize(
    ("mistake", "entry", "check"),
    [
        ("sparse_sine", "sin", "sparse: coo"),
        pytest.param("sparse_gradient", "abs", "sparse: csr gradient", marks=FURTHER),
    ],
)
def test_an_operator_with_a_wrong_kernel_for_a_sparse_layout_is_found(mistake, entry, check):
    card = call(run.run, setup_of(mistake), ["float32"], [entry], ["forward", "sparse"], jobs=1)
    (report,) = card.reports
    assert "forward" not in report["failures"]
    assert "not close" in report["failures"][check]


@FURTHER
def test_without_a_mistake_sparse_layouts_pass():
    assert call(run.run, setup_of(), ["float32"], ["sin", "abs"], ["sparse"], jobs=1).problems() == []


def test_an_out_overload_is_as_exact_as_the_entry_has_to_be():
    def problems(**operators):
        setup = setup_of("less_exact_with_out", operators=operators)
        return call(run.run, setup, ["float32"], ["erfinv"], ["overloads"], jobs=1).problems()

    (problem,) = problems()
    assert "erfinv float32: overloads: aten.erfinv.out" in problem
    assert problems(erfinv=OperatorExpectations(tolerances={"float32": (0, 1e-2)})) == []


@FURTHER
def test_an_out_overload_that_refuses_what_the_cpu_takes_is_found():
    card = call(run.run, setup_of("refuses_strides_with_out"), ["float32"], ["erfinv"], ["overloads"], jobs=1)
    (problem,) = card.problems()
    assert "out is not contiguous" in problem


def test_a_result_whose_strides_are_wrong_in_another_layout_is_found():
    card = call(run.run, setup_of("contiguous_result"), ["float32"], ["erfinv"], ["forward", "layouts"], jobs=1)
    (report,) = card.reports
    assert set(report["failures"]) == {"layouts: result", "layouts: gradient"}  # the gradient has the result's strides
    reason = report["failures"]["layouts: result"]
    assert re.match(r"transposed, all: strides \[\d+, 1\], not \[1, \d+\], of shape ", reason)


def test_an_operator_with_wrong_code_is_found():
    card = call(run.run, setup_of("compiled"), ["float32"], ["erf"], [COMPILED], jobs=1)
    (problem,) = card.problems()
    assert "erf float32: compiled: Tensor-likes are not close" in problem


@FURTHER
def test_a_device_for_which_nothing_generates_code_fails_and_says_so():
    card = call(run.run, setup_of(), ["float32"], ["erf"], [COMPILED], jobs=1)
    (problem,) = card.problems()
    assert re.search(r"erf float32: compiled: .*openreg-compile, which is not installed", problem)


@FURTHER
def test_code_for_the_cpu_is_what_it_is_measured_by():
    card = call(run.run, Setup("cpu", (), Manifest()), ["float32"], ["erf", "mm"], [COMPILED], jobs=1)
    assert card.problems() == []
    codes = {report["name"]: report["compiled"] for report in card.reports}
    assert all(code["ours"] == code["cpu"] and not code["cpu_fails"] for code in codes.values())
    assert codes["erf"]["cpu"]["generated"]
    assert codes["mm"]["cpu"]["external"]


@FURTHER
def test_a_shard_is_a_part_and_all_of_them_are_the_whole():
    entries = ["erf", "erfc", "erfinv"]
    parts = [call(run.run, setup_of(), ["float32"], entries, ["forward"], jobs=1, shard=(k, 2)) for k in (1, 2)]
    names = [[report["name"] for report in card.reports] for card in parts]
    assert [len(part) for part in names] == [2, 1]
    assert sorted(names[0] + names[1]) == entries


@pytest.mark.parametrize("mistake", ["crash", "crash_of_a_device_in_use"])
def test_a_crash_costs_the_test_that_crashed(mistake):
    """Also where the backend uses its device when it is imported, so that no process can be forked from that one."""
    card = call(run.run, setup_of(mistake), ["float32"], ["erfinv", "erf"], ["forward"], jobs=1)
    reasons = {report["name"]: report["failures"] for report in card.reports}
    assert reasons["erf"] == {}
    assert "crashed" in reasons["erfinv"]["process"]
    assert "Fatal Python error: Aborted" in reasons["erfinv"]["process"]


def test_a_crash_in_one_check_hides_nothing_of_the_others():
    setup = setup_of("wrong_and_crashes_with_out")
    card = call(run.run, setup, ["float32"], ["erfinv"], ["forward", "out"], jobs=1)
    (report,) = card.reports
    assert set(report["failures"]) == {"forward", "process"}
    assert "not close" in report["failures"]["forward"]
    assert report["failures"]["process"].startswith("out: crashed")


@FURTHER
def test_natively_run_entries_are_not_counted_where_the_device_tells_no_fallbacks():
    known = call(run.run, setup_of(), ["float32"], ["erf"], ["forward"], jobs=1)
    unknown = call(run.run, setup_of("tells_no_fallbacks"), ["float32"], ["erf"], ["forward"], jobs=1)
    assert known.row("float32") == (1, 1, 0, 0, 1, 0)
    assert unknown.row("float32") == (1, 1, 0, 0, None, None)


def test_a_crash_in_a_suite_says_what_was_expected_and_in_which_line():
    ((result,), _) = results(["dlpack::test_a_tensor_tells_its_device"], setup_of("dlpack_crash"))
    assert result.status == "failed"
    expected, crashed, users = result.reason.splitlines()
    assert expected.startswith("PyTorch expects: Tensor.__dlpack_device__() returns")
    assert re.search(r"crashed .*Fatal Python error: Aborted, in \S+ \(.*planted\.py:\d+\)$", crashed)
    assert "registration.DLPack is used by" in users


@FURTHER
def test_a_backend_that_crashes_on_every_tenth_operator_gives_a_whole_scorecard():
    card = call(
        run.run, setup_of("no_reset"), ["float32"], checks=["forward"], jobs=2, limit=20, table="crashing:TABLE"
    )
    failed = {report["name"]: report["failures"] for report in card.reports if report["failures"]}
    assert len(card.reports) == 40
    assert set(failed) == {f"operator_{number}" for number in (0, 5, 7, 10, 20, 30)}
    assert "the device was lost and has no reset_device()" in failed.pop("operator_7")["process"]
    assert "took longer than 20 s" in failed.pop("operator_5")["process"]
    assert all("crashed" in found["process"] for found in failed.values())


@pytest.mark.parametrize(
    ("mistake", "told"),
    [
        ("reset_raises", "reset_device() failed: the driver does not answer"),
        ("reset_does_nothing", "reset_device() left the device lost: "),
        ("no_reset", "the device was lost and has no reset_device(): "),
    ],
)
def test_a_device_that_cannot_be_reset_costs_the_operator_that_lost_it(mistake, told):
    table = "crashing:LOSES_THE_DEVICE_AND_RIGHT"
    card = call(run.run, setup_of(mistake), ["float32"], checks=["forward"], jobs=1, table=table)
    failures = {report["name"]: report["failures"] for report in card.reports}
    assert told in failures["operator_7"]["process"]
    assert failures["operator_8"] == {}


def test_what_the_manifest_excuses_is_no_problem():
    name = "dlpack::test_a_tensor_tells_its_device"
    known = {name: Exclusion(fails="the number is another one")}
    ((result,), notes) = results([name], setup_of("dlpack_device", tests=known))
    assert (result.status, notes) == ("expected failure", [])
    assert result.reason.startswith("the number is another one (")


def test_an_exclusion_that_is_not_needed_is_reported():
    name = "dlpack::test_a_tensor_tells_its_device"
    ((result,), notes) = results([name], setup_of(tests={name: Exclusion(fails="the number is another one")}))
    assert result.status == "passed"
    (note,) = notes
    reason = "an expected failure (the number is another one), but the test passes; delete the entry"
    assert note == f"{name}: the manifest lists {reason}"


def test_what_the_manifest_leaves_out_is_not_run():
    name = "dlpack::test_a_tensor_tells_its_device"
    ((result,), _) = results([name], setup_of("dlpack_device", tests={name: Exclusion(skip="of no use here")}))
    assert (result.status, result.reason) == ("skipped", "of no use here")


def test_the_manifest_chooses_operators_and_dtypes():
    listed = {"erf": OperatorExpectations(dtypes=("bfloat16",)), "erfc": OperatorExpectations(skip="it is not there")}
    setup = setup_of(operators=listed, only_listed=True)
    card = call(run.run, setup, (), ["erf", "erfc", "erfinv"], ["forward"], jobs=1)
    assert [(report["name"], report["dtype"]) for report in card.reports] == [("erf", "bfloat16")]


@pytest.mark.parametrize(
    ("runnable", "dtypes", "tested"),
    [
        ((), ("int64",), "int64"),
        (("bfloat16", "float16"), (), "bfloat16"),
        (("bfloat16", "float16"), ("float32", "first"), "bfloat16"),
    ],
)
def test_checks_that_run_once_per_entry_run_in_the_first_dtype_of_the_run(runnable, dtypes, tested):
    setup = setup_of(operators={"diff": OperatorExpectations(dtypes=runnable)})
    reports = call(run.run, setup, dtypes, ["diff"], ["errors"], jobs=1).reports
    assert [report["dtype"] for report in reports if report["error_inputs"]] == [tested]


def test_layouts_are_checked_in_the_first_dtype_of_the_run():
    (report,) = call(run.run, setup_of("contiguous_result"), ["int64"], ["erfinv"], ["layouts"], jobs=1).reports
    assert list(report["failures"]) == ["layouts: result"]


@pytest.mark.parametrize(
    ("mistake", "kind", "word"),
    [
        ("takes_what_the_cpu_refuses", "arguments: computes", "not implemented for 'ComplexFloat'"),
        ("refuses_what_the_cpu_takes", "arguments: raises", "not of float64"),
        ("gives_another_result", "arguments: result", "not close"),
        ("loses_the_device", "arguments: lost", "out of range"),
        ("ends_the_process", "process", "crashed with SIGABRT"),
    ],
)
def test_what_goes_wrong_with_a_changed_argument_is_found(mistake, kind, word):
    (report,) = call(run.run, setup_of(mistake), ["float32"], ["erf"], [ARGUMENTS], jobs=1).reports
    assert list(report["failures"]) == [kind]
    assert word in report["failures"][kind]


def test_a_call_that_ends_the_process_on_the_cpu_is_no_fault_and_hides_none_after_it():
    right = call(run.run, setup_of(), ["float32"], ["erf"], [ARGUMENTS], jobs=1)
    ended = call(run.run, setup_of("ends_the_process_on_the_cpu"), ["float32"], ["erf"], [ARGUMENTS], jobs=1)
    assert right.problems() == ended.problems() == []
    assert 0 < ended.reports[0]["calls"] < right.reports[0]["calls"]
