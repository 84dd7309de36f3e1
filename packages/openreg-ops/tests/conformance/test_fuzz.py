# SPDX-License-Identifier: BSD-3-Clause
"""The fuzzer finds planted bugs, and a seed reproduces its call. The long run is nox -s fuzz."""

import pytest
import torch
from manifest import SETUP

from openreg_testing.conformance.operators import entries, fuzz

TABLE = "conformance_faults:FUZZ_TABLE"

pytestmark = pytest.mark.filterwarnings("ignore:B?Complex.* support is experimental")


@pytest.fixture(scope="module")
def failures(processes):
    """By seed, of calls from a table of five entries, four of which are wrong on the device."""
    return fuzz.fuzz(SETUP, seconds=1200, first=1, count=60, table=TABLE, processes=processes)[0]


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ("wrong_number", "not close"),
        ("wrong_for_strides", "not close"),
        ("loses_the_device", "the device is lost"),
    ],
)
def test_a_fault_is_found(failures, entry, reason):
    assert [text for text in failures.values() if f"[{entry} " in text and reason in text]


@pytest.mark.timeout(1800)
def test_a_call_that_ends_the_process_costs_one_seed(failures):
    assert any("crashed with" in text for text in failures.values())
    assert len({text.rpartition("[")[2].split()[0] for text in failures.values()}) > 2


@pytest.mark.timeout(1800)
def test_what_is_right_passes(failures):
    assert not [text for text in failures.values() if "[right " in text]


@pytest.mark.timeout(1800)
def test_a_seed_stands_for_one_call(failures, processes):
    seed, text = next((seed, text) for seed, text in failures.items() if "[wrong_number " in text)
    again, _ = fuzz.fuzz(SETUP, seconds=1200, first=seed, count=1, table=TABLE, processes=processes)
    assert again == {seed: text}


def entry(name):
    (op,) = (op for op in entries.load(fuzz.TABLE) if op.full_name == name)
    return op


@pytest.mark.parametrize("name", ["tensor_split", "native_group_norm"])
def test_operands_on_the_cpu_and_those_that_the_cpu_reads_wrongly_are_no_faults(name):
    op = entry(name)
    calls = [fuzz.RandomCall(seed, [op]) for seed in range(30)]
    assert [found for call in calls if call.prepare() and (found := fuzz.difference_of(call))] == []


def call_of(name, dtype, form, *args):
    call = fuzz.RandomCall(0, [entry(name)])
    call.dtype, call.form, call.flags, call.inputs = dtype, form, [], (args, {})
    return call


def test_a_call_with_two_faults_may_be_refused_for_either():
    number, mask = torch.zeros(5, dtype=torch.uint8), torch.zeros(5, 5, dtype=torch.bool)
    call = call_of("masked_fill", torch.uint6, "in place", number.view(torch.uint6), mask, 1)
    assert fuzz.difference_of(call) is None
    ours = call.run("openreg")
    assert fuzz.has_two_faults(call, ours)
    call.inputs = ((number.view(torch.uint6), mask[0], 1), {})
    assert not fuzz.has_two_faults(call, ours)


def test_a_dtype_may_be_refused_where_there_is_nothing_to_compute():
    assert fuzz.difference_of(call_of("linalg.inv", torch.uint2, "plain", torch.empty(0, 0, dtype=torch.uint2))) is None
    assert not fuzz.needs_no_kernel(call_of("linalg.inv", torch.float32, "plain", torch.empty(0, 0)))
    assert not fuzz.needs_no_kernel(call_of("linalg.inv", torch.uint2, "plain", torch.empty(1, 1, dtype=torch.uint2)))
