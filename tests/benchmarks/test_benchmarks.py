# SPDX-License-Identifier: BSD-3-Clause
"""The benchmarks compute statistics, compare results with targets and compare two runs. Nothing is timed here."""

import math
import socket
import sys
from types import SimpleNamespace

import compare
import curves
import processes
import pytest
import results
import run
import targets
from _platform import SO_MAX_PACING_RATE, slow_links
from targets import Target, against, exposed, longest, mean_ratio, mean_to_eager, worst_ratio, worst_to_eager_on_cpu

from tools._platform import IS_LINUX


def times(**by_device):
    """Five numbers around a median for each device."""
    return {device: [middle * part for part in (0.99, 0.995, 1, 1.005, 1.01)] for device, middle in by_device.items()}


def both(openreg, cpu):
    return {"openreg": openreg, "cpu": cpu}


def target_result(target, workloads):
    (found,) = targets.judge({"some": {name: times(**devices) for name, devices in workloads.items()}}, (target,))
    return found


def change(old, new, family="some"):
    (found,) = compare.changes({family: {"add": old}}, {family: {"add": new}})
    return found


def test_the_spread_is_half_the_distance_of_the_quartiles_and_two_workloads_of_one_name_are_refused():
    assert results.spread([1.0, 2.0, 3.0, 4.0, 5.0]) == 1.5
    assert results.spread([7.0]) == 0
    with pytest.raises(ValueError, match="'add'"):
        results.flat({"a": {"add": {}}, "b": {"add": {}}})


@pytest.mark.parametrize(
    ("value", "family", "text"),
    [(25e-9, "", "25 ns"), (1.5e-6, "", "1.50 µs"), (2.0, "", "2.00 s"), (3 << 20, "peak memory", "3.0 MiB")],
)
def test_amounts_have_the_unit_that_fits(value, family, text):
    assert results.amount(value, family) == text


def test_results_come_back_from_their_file(tmp_path):
    families = {"some": {"add": times(openreg=2.0)}}
    results.save(tmp_path / "new" / "results.json", {"processors": 2}, {"rounds": 5}, families)
    loaded = results.load(tmp_path / "new" / "results.json")
    assert loaded == {"machine": {"processors": 2}, "settings": {"rounds": 5}, "families": families}


@pytest.mark.parametrize("text", ["no json", "[]", "{}"])
def test_another_file_is_refused_by_its_name(tmp_path, text):
    (tmp_path / "other.json").write_text(text)
    with pytest.raises(ValueError, match=r"other\.json: no .*run\.py --json"):
        results.load(tmp_path / "other.json")


@pytest.mark.parametrize(
    ("reduction", "limit", "workloads", "value", "met"),
    [
        (worst_ratio, 1.0, {"add": both(0.9, 1.0), "mul": both(0.5, 1.0)}, 0.9, True),
        (worst_ratio, 1.0, {"add": both(1.5, 1.0), "mul": both(0.1, 1.0)}, 1.5, False),
        (mean_ratio, 1.0, {"add": both(4.0, 1.0), "mul": both(1.0, 4.0)}, 1.0, True),
        (mean_ratio, 1.0, {"add": both(8.0, 1.0), "mul": both(2.0, 1.0)}, 4.0, False),
        (longest, 8e-6, {"add": {"openreg": 7e-6}, "mul": {"openreg": 1e-6}}, 7e-6, True),
        (longest, 8e-6, {"add": both(9e-6, 1e-3), "mul": {"openreg": 1e-6}}, 9e-6, False),
        (against("mul"), 1.2, {"add": both(1.3, 1.0), "mul": both(1.0, 9.0)}, 1.3, False),
        (mean_ratio, 1.0, {"add": both(1.0, 1.0)}, None, None),
        (mean_ratio, 1.0, {"add": both(1.0, 1.0), "mul": {"openreg": 1.0}}, None, None),
    ],
)
def test_a_target_is_met_or_missed_and_not_judged_where_something_is_missing(reduction, limit, workloads, value, met):
    names = ("add",) if limit == 1.2 else ("add", "mul")
    found = target_result(Target("both", names, reduction, limit, "mul" if limit == 1.2 else ""), workloads)
    assert found.met is met
    assert (found.measured is None) == (value is None)
    assert value is None or math.isclose(found.measured.value, value)
    assert value is None or found.measured.decided_by == ("add" if reduction in (worst_ratio, longest) else "")


def test_a_target_needs_the_workload_with_which_it_compares():
    assert Target("after", ("after",), against("before"), 1.2, "before").needs == ("after", "before")


def test_there_is_no_ratio_to_a_memory_that_the_system_does_not_measure():
    assert results.ratio({"openreg": [0, 0], "cpu": [0, 0]}) is None


@pytest.mark.parametrize(
    ("reduction", "value", "decided"), [(mean_to_eager, 1.0, ""), (worst_to_eager_on_cpu, 4.0, "a")]
)
def test_compiled_workloads_are_compared_with_the_eager_ones(reduction, value, decided):
    workloads = {
        "a, eager": both(1.0, 2.0),
        "a, compiled": both(2.0, 1.0),
        "b, eager": both(2.0, 1.0),
        "b, compiled, as a graph": both(1.0, 1.0),
    }
    target = Target("compiled", ("a, compiled", "b, compiled, as a graph"), reduction, 9.0)
    found = target_result(target, workloads)
    assert math.isclose(found.measured.value, value)
    assert found.measured.decided_by == (decided and "a, compiled")
    assert set(target.needs) == set(workloads)


def test_what_computation_hides_of_communication_is_not_exposed():
    workloads = {"both": {"openreg": 5.0}, "communication": {"openreg": 4.0}, "computation": {"openreg": 4.0}}
    found = target_result(Target("exposed", tuple(workloads), exposed, 0.2), workloads)
    assert math.isclose(found.measured.value, 0.25)
    assert found.met is False


@pytest.mark.skipif(not IS_LINUX, reason="only Linux lets a program slow its connections")
def test_connections_become_slow_links_and_pipes_do_not():
    rate = 125_000_000
    with socket.create_server(("127.0.0.1", 0)) as server:
        before = slow_links(rate)
        left, right = socket.socketpair(socket.AF_UNIX)
        with left, right, socket.create_connection(server.getsockname()) as connection:
            assert connection.getsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE) != rate
            assert slow_links(rate) == before + 1
            assert connection.getsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE) == rate


def test_every_curve_is_judged_against_its_first_point():
    for curve in curves.CURVES:
        (target,) = (item for item in targets.TARGETS if item.base == curve.base)
        assert target.limit == 1.2
        assert set(target.needs) == {curve.workload(count) for count in curve.counts}


@pytest.mark.parametrize(
    ("old", "new", "family", "said"),
    [
        (times(openreg=1.0), times(openreg=1.1), "some", "slower"),
        (times(openreg=1.0), times(openreg=0.5), "some", "faster"),
        (times(openreg=1e6), times(openreg=2e6), "peak memory", "more"),
        # Within the spread of the one or of the other.
        ({"openreg": [0.7, 0.8, 1.0, 1.2, 1.3]}, times(openreg=1.15), "some", ""),
        (times(openreg=1.0), {"openreg": [0.9, 1.0, 1.15, 1.3, 1.4]}, "some", ""),
        # However small the spread.
        ({"openreg": [1.0] * 5}, {"openreg": [1.04] * 5}, "some", ""),
        ({"openreg": [1.0] * 5}, {"openreg": [1.06] * 5}, "some", "slower"),
    ],
)
def test_a_change_beyond_the_spread_and_five_percent_is_flagged(old, new, family, said):
    found = change(old, new, family)
    assert found.label == said
    assert found.is_regression == (said in {"slower", "more"})


def test_the_change_of_the_cpu_stands_beside():
    assert math.isclose(change(times(openreg=1.0, cpu=1.0), times(openreg=1.5, cpu=1.5)).cpu, 0.5)


def test_workloads_that_only_one_file_has_are_not_compared():
    old = {"some": {"add": times(openreg=1.0), "gone": times(openreg=1.0)}}
    new = {"some": {"add": times(openreg=1.0)}}
    assert [item.name for item in compare.changes(old, new)] == ["add"]
    assert compare.only_in(old, new) == ["gone"]


@pytest.mark.parametrize(
    ("families", "only", "expected"),
    [
        ([], "", {"memory": ["copy", "allocate"], "training": ["train"]}),
        (["training"], "", {"training": ["train"]}),
        ([], "all", {"memory": ["allocate"]}),
        (["scaling"], "", {}),
    ],
)
def test_families_and_names_choose_the_workloads(families, only, expected):
    assert run.chosen_workloads({"memory": ["copy", "allocate"], "training": ["train"]}, families, only) == expected


@pytest.mark.parametrize(
    ("good", "measured"),
    [
        (0, None),
        (3, {"memory": {"copy": {"openreg": [1], "cpu": [1, 1]}}}),
        (10, {"memory": {"copy": {"openreg": [1] * 5, "cpu": [1] * 5}}, "first": {"add": {"openreg": [1]}}}),
    ],
)
def test_what_was_measured_before_a_failure_is_in_the_file(tmp_path, monkeypatch, good, measured):
    """The process after `good` ones of a family of workloads fails, or if all are good, the second of two parts."""
    path, processes_done = tmp_path / "results.json", []

    def script(name, *_, **__):
        if name == "describe.py":
            return {"machine": {}, "families": {"memory": ["copy"]}}
        if len(processes_done) == good:
            sys.exit("failed")
        processes_done.append(name)
        return {"copy": 1}

    monkeypatch.setitem(sys.modules, "rich", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "rich.progress", SimpleNamespace(track=lambda turns, **_: turns))
    monkeypatch.setattr(run, "run_script", script)
    monkeypatch.setattr(
        run, "PARTS", {"first": lambda *_: {"add": {"openreg": [1]}}, "second": lambda *_: sys.exit("failed")}
    )
    monkeypatch.setattr(sys, "argv", ["run.py", "--json", str(path)])
    with pytest.raises(SystemExit, match="failed"):
        run.main()
    assert (results.load(path)["families"] if path.exists() else None) == measured


def test_the_devices_take_turns_to_be_first():
    assert [processes.turn(number)[0] for number in range(4)] == ["openreg", "cpu", "openreg", "cpu"]
