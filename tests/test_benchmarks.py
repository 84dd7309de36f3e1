# SPDX-License-Identifier: BSD-3-Clause
"""What the benchmarks make of numbers: statistics, targets, and the comparison of two runs. Nothing here is timed."""

import math

import compare
import curves
import processes
import pytest
import results
import run
import targets
from targets import Target, against, longest, mean_ratio, worst_ratio


def times(**by_device):
    """Five numbers around a median for each device."""
    return {device: [middle * part for part in (0.99, 0.995, 1, 1.005, 1.01)] for device, middle in by_device.items()}


def families(**workloads):
    return {"some": {name: times(**by_device) for name, by_device in workloads.items()}}


def verdict(target, **workloads):
    (found,) = targets.judge(families(**workloads), (target,))
    return found


def change(old, new, family="some"):
    (found,) = compare.changes({family: {"add": old}}, {family: {"add": new}})
    return found


def test_the_spread_is_half_the_distance_of_the_quartiles():
    assert results.spread([1.0, 2.0, 3.0, 4.0, 5.0]) == 1.5
    assert results.spread([7.0]) == 0


def test_two_workloads_of_one_name_are_refused():
    with pytest.raises(ValueError, match="'add'"):
        results.flat({"a": {"add": {}}, "b": {"add": {}}})


@pytest.mark.parametrize(
    ("value", "family", "text"),
    [
        (25e-9, "", "25 ns"),
        (1.5e-6, "", "1.50 µs"),
        (0.0125, "", "12.50 ms"),
        (2.0, "", "2.00 s"),
        (3 << 20, "peak memory", "3.0 MiB"),
    ],
)
def test_amounts_have_the_unit_that_fits(value, family, text):
    assert results.amount(value, family) == text


def test_results_come_back_from_their_file(tmp_path):
    found = families(add={"openreg": 2.0})
    results.save(tmp_path / "new" / "results.json", {"processors": 2}, {"rounds": 5}, found)
    loaded = results.load(tmp_path / "new" / "results.json")
    assert loaded == {"machine": {"processors": 2}, "settings": {"rounds": 5}, "families": found}


@pytest.mark.parametrize("text", ["no json", "[]", "{}"])
def test_another_file_is_refused_by_its_name(tmp_path, text):
    (tmp_path / "other.json").write_text(text)
    with pytest.raises(ValueError, match=r"other\.json: no .*run\.py --json"):
        results.load(tmp_path / "other.json")


def test_a_hit_and_a_miss_of_a_ratio():
    target = Target("add", ("add",), worst_ratio, 1.0)
    assert verdict(target, add={"openreg": 0.9, "cpu": 1.0}).met is True
    assert verdict(target, add={"openreg": 1.1, "cpu": 1.0}).met is False


def test_the_worst_ratio_decides_and_is_named():
    target = Target("both", ("add", "mul"), worst_ratio, 1.0)
    found = verdict(target, add={"openreg": 1.5, "cpu": 1.0}, mul={"openreg": 0.1, "cpu": 1.0})
    assert found.measured == targets.Measured(1.5, "add")


def test_the_mean_of_ratios_is_geometric():
    target = Target("both", ("add", "mul"), mean_ratio, 1.0)
    found = verdict(target, add={"openreg": 4.0, "cpu": 1.0}, mul={"openreg": 1.0, "cpu": 4.0})
    assert math.isclose(found.measured.value, 1.0)
    found = verdict(target, add={"openreg": 8.0, "cpu": 1.0}, mul={"openreg": 2.0, "cpu": 1.0})
    assert math.isclose(found.measured.value, 4.0)


def test_a_limit_in_seconds_looks_at_openreg_alone():
    target = Target("item", ("item",), longest, 8e-6)
    assert verdict(target, item={"openreg": 7e-6}).met is True
    assert verdict(target, item={"openreg": 9e-6, "cpu": 1e-3}).met is False


def test_growth_is_relative_to_another_workload_of_openreg():
    target = Target("after", ("after",), against("before"), 1.2, "before")
    found = verdict(target, before={"openreg": 1.0, "cpu": 9.0}, after={"openreg": 1.3, "cpu": 1.0})
    assert math.isclose(found.measured.value, 1.3)
    assert found.met is False


@pytest.mark.parametrize(
    "workloads",
    [
        {"add": {"openreg": 1.0, "cpu": 1.0}},
        {"add": {"openreg": 1.0, "cpu": 1.0}, "mul": {"openreg": 1.0}},
    ],
    ids=["workload", "device"],
)
def test_a_target_of_which_something_is_missing_is_not_judged(workloads):
    found = verdict(Target("both", ("add", "mul"), mean_ratio, 1.0), **workloads)
    assert found.measured is None
    assert found.met is None


def test_a_target_of_a_workload_that_does_not_exist_is_found_out():
    target = Target("after", ("after",), against("before"), 1.2, "before")
    assert targets.unknown({"after"}, (target,)) == ["before"]


def test_every_curve_is_judged_against_its_first_point():
    for curve in curves.CURVES:
        (target,) = (item for item in targets.TARGETS if item.base == curve.base)
        assert target.limit == 1.2
        assert set(target.needs) == {curve.workload(count) for count in curve.counts}


def test_a_planted_regression_is_flagged():
    found = change(times(openreg=1.0), times(openreg=1.1))
    assert found.verdict == "slower"
    assert found.is_regression


def test_a_change_within_the_spread_is_none():
    noisy = {"openreg": [0.7, 0.8, 1.0, 1.2, 1.3]}
    assert change(noisy, times(openreg=1.15)).verdict == ""
    assert change(times(openreg=1.0), {"openreg": [0.9, 1.0, 1.15, 1.3, 1.4]}).verdict == ""


def test_less_than_five_percent_is_none_however_small_the_spread():
    assert change({"openreg": [1.0] * 5}, {"openreg": [1.04] * 5}).verdict == ""
    assert change({"openreg": [1.0] * 5}, {"openreg": [1.06] * 5}).verdict == "slower"


def test_what_became_faster_is_no_regression():
    found = change(times(openreg=1.0), times(openreg=0.5))
    assert found.verdict == "faster"
    assert not found.is_regression


def test_more_memory_is_a_regression():
    found = change(times(openreg=1e6), times(openreg=2e6), family="peak memory")
    assert found.verdict == "more"
    assert found.is_regression


def test_the_change_of_the_cpu_stands_beside():
    found = change(times(openreg=1.0, cpu=1.0), times(openreg=1.5, cpu=1.5))
    assert math.isclose(found.cpu, 0.5)


def test_workloads_that_only_one_file_has_are_not_compared():
    old, new = families(add={"openreg": 1.0}, gone={"openreg": 1.0}), families(add={"openreg": 1.0})
    assert [item.name for item in compare.changes(old, new)] == ["add"]
    assert compare.only_in(old, new) == ["gone"]


NAMES = {"memory": ["copy", "allocate"], "training": ["train"]}


@pytest.mark.parametrize(
    ("families", "only", "expected"),
    [
        ([], "", NAMES),
        (["training"], "", {"training": ["train"]}),
        ([], "all", {"memory": ["allocate"]}),
        (["scaling"], "", {}),
    ],
)
def test_families_and_names_choose_the_workloads(families, only, expected):
    assert run.chosen_workloads(NAMES, families, only) == expected


def test_the_devices_take_turns_to_be_first():
    assert [processes.turn(number)[0] for number in range(4)] == ["openreg", "cpu", "openreg", "cpu"]
