# SPDX-License-Identifier: BSD-3-Clause
"""Large calls of each kernel of this package with a loop over elements use several threads."""

import json
import re
from pathlib import Path

import pytest
from _platform import IS_LINUX

HERE = Path(__file__).resolve().parent
SOURCES = HERE.parents[1] / "csrc"
LOOP = re.compile(r"\b(parallel_for|for_each_item|fill_random|fill_each|fill_samples)\b[<(]")
MEASURE = f"import sys; sys.path.insert(0, {str(HERE)!r}); import kernel_threads; kernel_threads.main({{sources}})"
# A second thread that works has a good part of the first one's time; one that is only woken has next to nothing.
SHARE = 0.2

pytestmark = pytest.mark.skipif(not IS_LINUX, reason="the time of each thread is read from Linux's /proc")


def sources_with_loops():
    found = [path for path in SOURCES.rglob("*.cpp") if LOOP.search(path.read_text("utf-8"))]
    return {path.relative_to(SOURCES).as_posix() for path in found}


def measure(run_python, threads, *sources, **variables):
    result = run_python(
        MEASURE.format(sources=sources),
        OPENREG_NUM_THREADS=str(threads),
        OPENREG_KERNELS="raw",
        OPENREG_FALLBACK="error",
        **variables,
    )
    assert result.returncode == 0, result.stderr[-3000:]
    return json.loads(result.stdout)


def on_one_thread(times):
    return [
        f"{source}, call {number}: {[f'{time / 1e6:.1f} ms' for time in each[:3]]}"
        for source, calls in times.items()
        for number, each in enumerate(calls)
        if len(each) < 2 or each[1] < SHARE * each[0]
    ]


def test_large_calls_of_our_kernels_run_on_several_threads(run_python):
    times = measure(run_python, 2, OMP_WAIT_POLICY="passive")  # threads that wait sleep, and take no time
    assert set(times) == sources_with_loops()
    assert on_one_thread(times) == []


def test_a_kernel_on_one_thread_is_found_out(run_python):
    """Two of them, of which one does much more for an element: the kernel does not matter to how a call is measured."""
    times = measure(run_python, 1, "kernels/abs.cpp", "kernels/softmax.cpp")
    assert len(on_one_thread(times)) == sum(map(len, times.values())) == 3
