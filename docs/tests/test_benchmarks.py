# SPDX-License-Identifier: BSD-3-Clause
"""The benchmarks whose tests need torch name existing workloads, and draw charts from results. Nothing is timed."""

import json
import subprocess
import sys
from functools import cache

import pytest
from conftest import ROOT

BENCHMARKS = ROOT / "benchmarks"
# Processes, because modules of the benchmarks and of the guide have the same names.
NEEDS = """
import json, collectives, curves, targets
names = [curve.workload(count) for curve in curves.CURVES for count in curve.counts]
compiled = [name for names in targets.COMPILE_TIMES.values() for name in names]
added = [targets.ADDED_IMPORT, *collectives.WORKLOADS, *compiled]
print(json.dumps([names, added, [target.needs for target in targets.TARGETS]]))
"""

# A clock that counts its readings, and workloads that do nothing, write down what happens: t, d or c.
BLOCKS = """
import itertools, timeit
import torch, measure
from workloads import Workload

done, times = [], itertools.count()
timeit.default_timer = lambda: (done.append("t"), next(times))[1]
for workload in (
    Workload("disturbed", lambda _: lambda: done.append("c"), disturb=lambda _: done.append("d"), calls=3),
    Workload("until return", lambda _: lambda: done.append("c"), until_return=True, disturb=lambda _: done.append("d")),
):
    done.clear()
    measure.seconds_per_call(workload, torch.device("cpu"), 20)
    print("".join(done))
"""


def script(*arguments):
    return subprocess.run(
        [sys.executable, *arguments], cwd=BENCHMARKS, check=True, stdout=subprocess.PIPE, text=True, timeout=240
    ).stdout


@cache
def described():
    return json.loads(script("describe.py"))


@cache
def declared():
    return json.loads(script("-c", NEEDS))


def results(families):
    return {"machine": described()["machine"], "settings": {"rounds": 5, "seconds": 0.2}, "families": families}


@pytest.fixture(scope="module")
def draw(tmp_path_factory):
    """Draws charts of made-up numbers; returns their contents."""

    def draw_charts(families):
        folder = tmp_path_factory.mktemp("charts")
        (folder / "results.json").write_text(json.dumps(results(families)))
        files = [folder / "ratios.svg", folder / "curves.svg"]
        script("chart.py", str(folder / "results.json"), "--chart", str(files[0]), "--curves", str(files[1]))
        return [path.read_bytes() if path.exists() else b"" for path in files]

    return draw_charts


@pytest.fixture(scope="module")
def drawn(draw):
    """The charts of everything()."""
    return draw(everything())


def measured(middle):
    return [middle * part for part in (0.98, 0.99, 1, 1.01, 1.02)]


def everything():
    names, _, _ = declared()
    families = {
        family: {name: {"openreg": measured(2e-6), "cpu": measured(3e-6)} for name in workloads}
        for family, workloads in described()["families"].items()
    }
    return {**families, "scaling": {name: {"openreg": measured(2e-6)} for name in names}}


def test_every_target_names_workloads_that_exist():
    points, added, needs = declared()
    names = {name for workloads in described()["families"].values() for name in workloads}
    assert {name for need in needs for name in need} <= names | {*points, *added}


def test_a_block_after_a_disturbance_times_its_first_call():
    disturbed, until_return = script("-c", BLOCKS).splitlines()
    assert {block[:5] for block in disturbed.split("d")[1:]} == {"tccct"}
    assert disturbed.count("d") >= 3
    assert {block[:202] for block in until_return.split("d")[1:]} == {f"t{'c' * 200}t"}


def test_the_caption_counts_the_processes_of_what_is_drawn(drawn, draw):
    families = everything()
    families["import time"] = {"import torch": {"openreg": [1.0] * 11, "cpu": [1.0] * 11}}
    families["peak memory"] = {"train MLP": {"openreg": [1.0] * 3, "cpu": [1.0] * 3}}
    families["host costs"] = {"launch": {"openreg": [1.0] * 2}}
    for chart in drawn:
        assert b"medians of 5 processes" in chart
    ratios, curves = draw(families)
    assert b"medians of 5 to 11 processes" in ratios
    assert b"medians of 5 processes" in curves


def test_both_charts_are_drawn_as_svg(drawn):
    for content in drawn:
        assert content.startswith(b"<?xml")
        assert b"<svg" in content


def test_the_same_results_give_the_same_files(drawn, draw):
    assert draw(everything()) == drawn


def test_the_chart_changes_with_a_number(drawn, draw):
    families = everything()
    families["operators"]["matmul, large"]["openreg"] = measured(9e-6)
    assert draw(families)[0] != drawn[0]


def test_what_was_not_measured_is_not_drawn(draw):
    ratios, curves = draw({"memory": {"allocate and free 1 KiB": {"openreg": measured(1), "cpu": measured(1)}}})
    assert ratios
    assert not curves
