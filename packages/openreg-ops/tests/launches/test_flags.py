# SPDX-License-Identifier: BSD-3-Clause
"""A kernel uses the values that PyTorch's flags have at its launch, not those while it runs."""

import importlib.util
import re
import warnings
from pathlib import Path

import pytest
import torch
from manifest import MANIFEST, SETUP
from parity import DEVICE
from torch.nn import functional

from openreg_testing.conformance.operators import entries, flags, run

SCRIPT = Path(__file__).resolve().parents[2] / "tools" / "flags.py"
FAULTS = "conformance_faults:FLAG_TABLE"

# Tasks are deferred until the host waits for them.
HELD = {"OPENREG_SCHEDULE_SEED": "1", "OPENREG_NUM_THREADS": "2"}
PREAMBLE = "import torch, openreg_ops\ntorch.manual_seed(2026)\n"


@pytest.fixture
def deterministic():
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


@pytest.fixture(scope="module")
def large(processes):
    """The scorecard of calls that are large enough for kernels to choose by flags."""
    return run.run(SETUP, checks=("flags",), table=MANIFEST.flag_table, processes=processes)


# Entries whose kernels read flags or get them as arguments, and a few of every other kind, because kernels of ours and
# of the CPU alike are launched under the flags of the call. All entries and dtypes: nox -s conformance
SOME = (
    *("*index*", "*put*", "*scatter*", "gather", "masked_fill", "nn.functional.max_unpool*", "nn.functional.embed*"),
    *("*mm", "*mv", "matmul", "linalg.solve", "linalg.det", "nn.functional.linear", "nn.functional.conv*"),
    *("nn.functional.scaled_dot_product_attention", "nn.functional.*_norm", "nn.functional.gelu", "nn.functional.relu"),
    *("*softmax", "sum", "mean", "std", "cumsum", "sort", "topk", "add", "div.*", "pow", "sin", "sigmoid", "angle"),
    *("where", "cat", "fft.fft", "nn.functional.dropout", "normal", "nn.functional.interpolate.*", "linspace", "full"),
    *("nn.functional.cross_entropy", "nn.functional.mse_loss", "nn.functional.max_pool2d", "nn.functional.pad.*"),
)


@pytest.mark.timeout(1800)
def test_what_counts_is_the_launch(processes):
    card = run.quick_flags(SETUP, dtypes=("float32",), ops=SOME, processes=processes)
    assert len(card.reports) > 90
    assert card.problems() == []


@pytest.mark.timeout(1800)
def test_what_counts_is_the_launch_in_large_calls(large):
    assert large.problems() == []


@pytest.mark.timeout(1800)
def test_the_harness_notices_a_flag_that_is_read_late(processes):
    card = run.run(SETUP, ["float32"], checks=("flags",), jobs=1, table=FAULTS, processes=processes)
    found = {report["name"]: report["failures"] for report in card.reports}
    assert found["reads_no_flag"] == {}
    assert (
        "torch.set_default_dtype set to another value after the launch: other numbers" in found["reads_late"]["flags"]
    )
    assert "torch.use_deterministic_algorithms: AcceleratorError" in found["raises_late"]["flags"]
    assert "a result, not RuntimeError on the calling line" in found["ignores_the_alert"]["flags"]


def test_every_flag_of_pytorch_is_accounted_for():
    assert flags.unknown_setters() == []
    assert all(flags.NOT_OF_KERNELS.values())


def of_two_settings(flag, call):
    """Whether a call on the CPU depends on the flag, on this processor."""
    plain = call()
    flag.change()
    try:
        return not torch.equal(plain, call())
    finally:
        flag.restore()


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("flag", "call"),
    [
        (flags.ONEDNN, lambda x: functional.conv2d(x.view(4, 16, 16, 4), x.view(-1)[:2304].view(16, 16, 3, 3))),
        (flags.MATMUL, lambda x: x @ x),
        (flags.CONVOLUTION, lambda x: functional.conv2d(x.view(4, 16, 16, 4), x.view(-1)[:2304].view(16, 16, 3, 3))),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_a_listed_flag_is_read_late(large, flag, call):
    """Else the list says more than is true."""
    x = torch.randn(64, 64)
    if not of_two_settings(flag, lambda: call(x)):
        pytest.skip("this processor computes the same either way")
    assert any(flag.name in report["flags"] for report in large.reports)


def test_the_page_is_what_the_script_gives():
    spec = importlib.util.spec_from_file_location("flags_page", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.PAGE.read_text("utf-8") == module.render(), "run python packages/openreg-ops/tools/flags.py"


# Deterministic algorithms


def max_unpool(dims):
    def call(device):
        x = torch.ones(1, 1, *[2] * dims, device=device)
        indices = torch.zeros(x.shape, dtype=torch.int64, device=device)
        return getattr(functional, f"max_unpool{dims}d")(x, indices, 2)

    return call


def put(accumulate):
    def call(device):
        x = torch.zeros(3, device=device)
        return x.put_(torch.tensor([1, 1], device=device), torch.ones(2, device=device), accumulate=accumulate)

    return call


REFUSED = {"put_": put(False), **{f"max_unpool{dims}d": max_unpool(dims) for dims in (1, 2, 3)}}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.usefixtures("deterministic")
def test_an_operator_without_a_deterministic_algorithm_is_refused_at_the_call(name):
    with pytest.raises(RuntimeError) as theirs:
        REFUSED[name]("cpu")
    with pytest.raises(RuntimeError, match=re.escape(str(theirs.value))) as ours:
        REFUSED[name](DEVICE)
    assert type(ours.value) is type(theirs.value)
    assert torch.ones(2, device=DEVICE).sum().item() == 2


@pytest.mark.parametrize("name", REFUSED)
def test_it_may_warn_instead_on_the_calling_line(name):
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = REFUSED[name](DEVICE)
            expected = REFUSED[name]("cpu")
    finally:
        torch.use_deterministic_algorithms(False)
    assert [str(item.message) for item in caught].count(str(caught[0].message)) == 2
    assert "deterministic" in str(caught[0].message)
    assert torch.equal(result.cpu(), expected)


@pytest.mark.usefixtures("deterministic")
def test_adding_up_is_not_refused():
    assert put(True)(DEVICE).tolist() == [0, 2, 0]


REPEATABLE = (
    PREAMBLE
    + """
call = {call}
places = torch.randint(50, (200_000, ))
values = torch.randn(200_000, 2)
torch.use_deterministic_algorithms(True)
expected = call(torch.zeros(50, 2), places, values)
for _ in range(4):
    operands = [x.to("openreg") for x in (torch.zeros(50, 2), places, values)]
    torch.openreg.synchronize()
    torch.use_deterministic_algorithms(True)
    result = call(*operands)
    torch.use_deterministic_algorithms(False)
    assert torch.equal(result.cpu(), expected)
"""
)


@pytest.mark.parametrize(
    "call",
    [
        "lambda x, i, v: x.index_put_((i,), v, accumulate=True)",
        "lambda x, i, v: x.index_put_((i,), v)",
        "lambda x, i, v: x.index_copy_(0, i, v)",
        "lambda x, i, v: x[:, 0].contiguous().put_(i, v[:, 0].contiguous(), accumulate=True)",
    ],
    ids=["accumulate", "index_put", "index_copy", "put"],
)
def test_a_launch_under_deterministic_algorithms_is_repeatable_whenever_it_runs(run_python, call):
    result = run_python(REPEATABLE.format(call=call), **HELD)
    assert result.returncode == 0, result.stderr[-2000:]


# Memory that was never written

MADE = {
    "empty": lambda device, dtype: torch.empty(5, dtype=dtype, device=device),
    "empty_strided": lambda device, dtype: torch.empty_strided((2, 3), (1, 2), dtype=dtype, device=device),
    "empty_like": lambda device, dtype: torch.empty_like(torch.ones(3, dtype=dtype, device=device)),
    "empty_permuted": lambda device, dtype: torch.empty_permuted((2, 3), (1, 0), dtype=dtype, device=device),
    "new_empty": lambda device, dtype: torch.ones(1, dtype=dtype, device=device).new_empty(4),
    "new_empty_strided": lambda device, dtype: torch.ones(1, dtype=dtype, device=device).new_empty_strided((4,), (1,)),
    "out": lambda device, dtype: torch.empty(4, out=torch.ones(2, dtype=dtype, device=device)),
    "resize_": lambda device, dtype: torch.ones(2, dtype=dtype, device=device).resize_(5),
    "resize_as_": lambda device, dtype: torch.ones(2, dtype=dtype, device=device).resize_as_(
        torch.empty(3, 2, dtype=dtype, device=device)
    ),
    "resize_ of a view": lambda device, dtype: torch.ones(4, dtype=dtype, device=device)[1:3].resize_(5),
}
DTYPES = [torch.float32, torch.bfloat16, torch.float64, torch.complex64, torch.int8, torch.int64, torch.bool]


@pytest.mark.parametrize("dtype", DTYPES, ids=entries.name_of)
@pytest.mark.parametrize("name", MADE)
@pytest.mark.usefixtures("deterministic")
def test_unwritten_memory_is_filled_as_on_the_cpu(name, dtype):
    ours, theirs = MADE[name](DEVICE, dtype), MADE[name]("cpu", dtype)
    torch.testing.assert_close(ours.cpu(), theirs, rtol=0, atol=0, equal_nan=True)
    assert ours.stride() == theirs.stride()


@pytest.mark.usefixtures("deterministic")
def test_it_need_not_be_filled():
    torch.utils.deterministic.fill_uninitialized_memory = False
    try:
        x = torch.ones(4, device=DEVICE)
        x.resize_(2).resize_(4)
        assert x.tolist() == [1, 1, 1, 1]
    finally:
        torch.utils.deterministic.fill_uninitialized_memory = True


# Small numbers: a flag of the calling thread

FLUSH = (
    PREAMBLE
    + """
tiny = torch.full(({count},), 1e-39)
assert torch.set_flush_denormal(True)
flushed = tiny.to("openreg")
torch.openreg.synchronize()
results = []
for flush in (True, False, True, True, False):
    torch.set_flush_denormal(flush)
    results.append((flush, flushed * 2))
    torch.set_flush_denormal(not flush)
    torch.openreg.synchronize()
torch.set_flush_denormal(False)
for flush, result in results:
    assert (result.cpu() == 0).all().item() is flush, flush
    assert (result.cpu() != 0).all().item() is not flush, flush
"""
)


@pytest.mark.parametrize("count", [4, 1_000_000], ids=["one thread", "all threads"])
def test_small_numbers_are_flushed_as_the_launching_thread_does(run_python, count):
    result = run_python(FLUSH.format(count=count), **HELD)
    if "torch.set_flush_denormal(True)" in result.stderr and "AssertionError" in result.stderr:
        pytest.skip("this processor cannot flush small numbers")
    assert result.returncode == 0, result.stderr[-2000:]


def test_a_thread_that_does_not_flush_is_left_alone(run_python):
    code = (
        PREAMBLE
        + """
import threading
x = torch.full((4,), 1e-39, device="openreg")
torch.set_flush_denormal(True)
seen = []
def work():
    torch.set_flush_denormal(False)
    seen.append(x * 2)
thread = threading.Thread(target=work)
thread.start()
thread.join()
torch.set_flush_denormal(False)
assert (seen[0].cpu() != 0).all().item()
"""
    )
    result = run_python(code)
    assert result.returncode == 0, result.stderr[-2000:]


# The default dtype


@pytest.mark.parametrize("name", ["sin", "sigmoid", "angle", "reciprocal"])
def test_integers_are_computed_in_the_default_dtype_of_the_launch(run_python, name):
    code = (
        PREAMBLE
        + f"""
x = torch.tensor([3, -2, 7])
torch.set_default_dtype(torch.float64)
expected = torch.{name}(x)
operand = x.to("openreg")
torch.openreg.synchronize()
result = torch.{name}(operand)
torch.set_default_dtype(torch.float32)
assert result.dtype == torch.float64
assert torch.equal(result.cpu(), expected)
"""
    )
    result = run_python(code, **HELD)
    assert result.returncode == 0, result.stderr[-2000:]
