# SPDX-License-Identifier: BSD-3-Clause
"""Each of the thirteen bugs planted in a small library is found by one option. Without bugs there is no finding.

docs/testing/your_library.md has the table of them.
"""

import re

import pytest
from _platform import HAS_FORK
from _runs import in_a_new_shell
from library_runs import run, says, says_not

pytest_plugins = ["pytester"]

LIBRARY = """
import torch

_MASKS = {}


def attend(x, length):
    mask = torch.arange(x.shape[1], device=x.device) < length
    return x.masked_fill(~mask, 0.0)


def mean_of_chunks(model, data, size):
    total = None
    for chunk in data.split(size):
        part = model(chunk).sum(0)
        total = part if total is None else total + part
    return total / len(data)


def train(model, data, steps):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = model(data).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses)


def reverse(x):
    return x.flip(0)


def doubled(batches, device):
    found = []
    for batch in batches:
        if device.type == "cpu":
            found.append(batch * 2)
            continue
        copies, current = torch.Stream(device), torch.accelerator.current_stream(device)
        with copies:
            moved = batch.pin_memory().to(device, non_blocking=True)
        current.wait_stream(copies)
        moved.record_stream(current)
        found.append(moved * 2)
    return torch.stack(found)


def sums(batches, device):
    totals = torch.empty(len(batches), device=device)
    if device.type == "cpu":
        return torch.sum(batches, 1, out=totals)
    side, current = torch.Stream(device), torch.accelerator.current_stream(device)
    for index, batch in enumerate(batches):
        x = batch.to(device, non_blocking=True)
        side.wait_stream(current)
        with side:
            totals[index] = x.sum()
        x.record_stream(side)
    current.wait_stream(side)
    return totals


def default_device():
    return torch.accelerator.current_accelerator() or torch.device("cpu")


def model(width):
    return torch.nn.Linear(width, width, device=default_device())
"""

TESTS = """
import torch
import lib


def test_attend():
    x = torch.ones(2, 4, device=lib.default_device())
    assert lib.attend(x, 3).sum() == 6


def test_chunks():
    model, data = lib.model(8), torch.randn(1024, 8, device=lib.default_device())
    with torch.no_grad():
        torch.testing.assert_close(lib.mean_of_chunks(model, data, 64), model(data).mean(0))


def test_train():
    losses = lib.train(lib.model(8), torch.ones(4, 8, device=lib.default_device()), 5)
    assert losses[-1] < losses[0]


def test_reverse():
    x = torch.arange(3, device=lib.default_device())
    assert lib.reverse(x).tolist() == [2, 1, 0]


def test_doubled():
    data = torch.arange(4000.0).reshape(4, 1000)
    torch.testing.assert_close(lib.doubled(data, lib.default_device()).cpu(), data * 2)


def test_sums():
    data = torch.arange(8.0).expand(1000, 8).t().contiguous()
    assert lib.sums(data, lib.default_device()).tolist() == [1000 * row for row in range(8)]


# Tests that look at little: most orders of streams leave finite numbers behind.

def test_doubled_is_finite():
    assert lib.doubled(torch.ones(4, 1000), lib.default_device()).isfinite().all()


def test_sums_are_finite():
    assert lib.sums(torch.ones(8, 1000), lib.default_device()).isfinite().all()


def test_model():
    assert lib.model(8)(torch.ones(8, device=lib.default_device())).shape == (8,)
"""

# Ten orders of streams for each test, in forked processes.
ORDERS = "--schedules=10"
# Bug: what is replaced by what, the option that finds it, and what the report says.
BUGS = {
    "a tensor on the wrong device": (
        "torch.arange(x.shape[1], device=x.device)",
        "torch.arange(x.shape[1])",
        [],
        ["FAILED test_lib.py::test_attend", "lib/__init__.py", "same device"],
    ),
    "a device without its index": (
        "torch.arange(x.shape[1], device=x.device)",
        "torch.arange(x.shape[1], device=torch.device(x.device.type, 0))",
        ["--device", "openreg:1"],
        ["FAILED test_lib.py::test_attend", "lib/__init__.py", "same device"],
    ),
    "a hidden fallback": (
        "return x.flip(0)",
        "return torch.ops.planted.reverse(x)",
        ["--no-fallback"],
        ["FAILED test_lib.py::test_reverse", "lib/__init__.py", "planted::reverse", "fallback_mode('allow')"],
    ),
    "a cache that grows": (
        "    mask = torch.arange",
        "    mask = _MASKS[x] = torch.arange",
        ["--check-leaks"],
        ["ERROR test_lib.py::test_attend", "(check_leaks, --check-leaks)", "in lib._MASKS"],
    ),
    "a history that keeps its graphs": (
        "losses.append(loss.detach())",
        "losses.append(loss.detach()); _MASKS[loss] = loss",
        ["--check-leaks"],
        ["ERROR test_lib.py::test_train", "(check_leaks, --check-leaks)"],
    ),
    "all memory at once": (
        "    for chunk in data.split(size):\n        part = model(chunk).sum(0)",
        "    for chunk in [data]:\n        part = model(chunk.repeat(64, 1)).sum(0) / 64",
        ["--memory-limit", "1MiB"],
        ["FAILED test_lib.py::test_chunks", "and the limit is 1.0 MiB", "(memory_limit, --memory-limit)"],
    ),
    "a wait in every step": (
        "losses.append(loss.detach())",
        "losses.append(torch.tensor(loss.item()))",
        ["--no-sync"],
        ["FAILED test_lib.py::test_train", "the host waits for the device at lib/__init__.py:", "(no_sync, --no-sync)"],
    ),
    "a device that is never used": (
        'return torch.accelerator.current_accelerator() or torch.device("cpu")',
        'return torch.device("cuda" if torch.cuda.is_available() else "cpu")',
        [],
        ["never launched anything, and passed: 9 of 9 tests that passed", "  test_lib.py::test_train"],
    ),
    "a hard-coded cuda beside a used device": (
        "return x.flip(0)",
        'return x.to("cuda" if torch.cuda.is_available() else "cpu").flip(0)',
        [],
        ["lib/__init__.py:33 calls torch.cuda.is_available(), in test_lib.py::test_reverse", "To repeat the first:"],
    ),
    "a forgotten wait": (
        "        current.wait_stream(copies)\n",
        "",
        [ORDERS, "-k", "test_doubled and not finite"],
        [
            "FAILED test_lib.py::test_doubled - seed ",
            "Mismatched elements",
            "test_lib.py::test_doubled",
            "--schedule-seed=",
        ],
    ),
    "a forgotten record_stream": (
        "        x.record_stream(side)\n",
        "",
        [ORDERS, "-k", "test_sums and not finite"],
        ["FAILED test_lib.py::test_sums - seed ", "--schedule-seed="],
    ),
    "a forgotten wait whose test looks at finiteness": (
        "        current.wait_stream(copies)\n",
        "",
        [ORDERS, "-k", "doubled_is_finite"],
        ["FAILED test_lib.py::test_doubled_is_finite - seed ", "--schedule-seed="],
    ),
    "a forgotten record_stream whose test looks at finiteness": (
        "        x.record_stream(side)\n",
        "",
        [ORDERS, "-k", "sums_are_finite"],
        ["FAILED test_lib.py::test_sums_are_finite - seed ", "--schedule-seed="],
    ),
}

# An operator for the CPU alone, as another package may bring it.
OPERATOR = """
torch.library.define("planted::reverse", "(Tensor x) -> Tensor")
torch.library.impl("planted::reverse", "CPU", lambda x: x.flip(0))
"""


def write(pytester, library):
    pytester.mkpydir("lib").joinpath("__init__.py").write_text(library)
    pytester.makepyfile(test_lib=TESTS)


def planted(before, after):
    assert LIBRARY.count(before) == 1
    return LIBRARY.replace(before, after) + (OPERATOR if "planted::" in after or "planted." in after else "")


NEEDS_FORK = pytest.mark.skipif(not HAS_FORK, reason="the workers here are forked")


@pytest.mark.parametrize(
    "bug", [pytest.param(bug, marks=NEEDS_FORK if ORDERS in option else ()) for bug, (_, _, option, _) in BUGS.items()]
)
def test_a_bug_is_found_and_again_by_the_printed_command(pytester, monkeypatch, tmp_path, bug):
    before, after, option, explanation = BUGS[bug]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    library = planted(before, after)
    if "--device" in option:
        found = 'torch.accelerator.current_accelerator() or torch.device("cpu")'
        library = library.replace(found, 'torch.device("openreg:1")')
    write(pytester, library)
    args = option if "--device" in option else ["--device", "openreg", *option]
    result = run(pytester, monkeypatch, *args)
    says(result, *explanation)
    if not HAS_FORK or not {"--schedule-seed=", "To repeat the first:"} & set(explanation):
        return
    (line,) = re.findall(r"To repeat(?: the first)?:\n\s+(.*)", result.stdout.str())
    again = in_a_new_shell(line, pytester.path, tmp_path).output
    shown = [text.partition(" - seed ")[0] for text in explanation]
    assert [text for text in shown if text not in again and not text.startswith(("To repeat", "--sch"))] == [], again


# Without a seed the threads of the streams race, so that a bug of order shows at times.
UNSEEN = [bug for bug, (_, _, option, _) in BUGS.items() if option and not {"--device", ORDERS} & set(option)]


@pytest.mark.parametrize("bugs", [UNSEEN[:-1], UNSEEN[-1:]], ids=", ".join)  # two change the same line
def test_without_their_options_bugs_go_unseen(pytester, monkeypatch, bugs):
    library = LIBRARY
    for before, after, *_ in map(BUGS.get, bugs):
        assert library.count(before) == 1
        library = library.replace(before, after)
    write(pytester, library + OPERATOR)
    run(pytester, monkeypatch, "--device", "openreg").assert_outcomes(passed=9)


@pytest.mark.parametrize(
    "orders",
    [
        pytest.param([], id="as it comes"),
        pytest.param(["--schedules=4"], marks=NEEDS_FORK, id="some orders"),
        pytest.param([ORDERS], marks=[NEEDS_FORK, pytest.mark.endurance], id="many orders"),
    ],
)
def test_the_library_without_bugs_has_no_finding(pytester, monkeypatch, orders):
    write(pytester, LIBRARY)
    options = ["--no-fallback", "--no-sync", "--check-leaks", "--memory-limit", "1MiB", *orders]
    result = run(pytester, monkeypatch, "--device", "openreg", *options)
    result.assert_outcomes(passed=9)
    says_not(result, "never launched", "leak:", "fallbacks to the CPU", "device error", "CUDA, which")
