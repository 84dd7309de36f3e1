# SPDX-License-Identifier: BSD-3-Clause
"""A test or a part of it fails if it launches more kernels than its budget allows."""

import pytest
import torch
from library_runs import refused, run, says, says_not

from openreg_testing.budgets import count_launches, launch_budget

pytest_plugins = ["pytester"]

DEVICE = "openreg"


@pytest.fixture
def x():
    return torch.ones(3, device=DEVICE)


@pytest.mark.parametrize(("launches", "copies"), [(2, None), (3, 1), (2, 0)])
def test_a_piece_of_code_stays_within_its_budget(x, launches, copies):
    with launch_budget(launches, copies=copies):
        x * 2 + 1


def test_an_exception_within_leaves_the_count_of_the_outer_block(x):
    budget = launch_budget(1)

    @budget
    def outer():
        with pytest.raises(ZeroDivisionError):
            inner()
        x * 2 + 1

    @budget
    def inner():
        raise ZeroDivisionError

    with pytest.raises(AssertionError, match="on openreg: 2 launches, and the budget is 1"):
        outer()


@pytest.mark.parametrize(
    ("launches", "copies", "message"),
    [
        (1, None, "on openreg: 2 launches, and the budget is 1"),
        (2, 0, "on openreg: 1 copies, and the budget is 0"),
        (0, 0, "on openreg: 2 launches, and the budget is 0; 1 copies, and the budget is 0"),
    ],
)
def test_one_more_than_its_budget_is_an_error(x, launches, copies, message):
    def work():
        (x * 2 + 1).cpu()

    with pytest.raises(AssertionError, match=message), launch_budget(launches, copies=copies):
        work()


def test_only_what_runs_inside_counts(x):
    for _ in range(3):
        x = x + 1
    with launch_budget(1, device=DEVICE):
        x + 1


def test_an_error_inside_is_not_replaced(x):
    with pytest.raises(TypeError), launch_budget(0):
        (x * 2)()


def test_a_device_that_does_not_count_is_reported():
    with (
        pytest.raises(RuntimeError, match=r"cannot be counted on cpu: torch\.cpu has no device_stats"),
        launch_budget(1, device="cpu"),
    ):
        pass


def test_what_a_piece_of_code_launches_is_counted_on_all_devices(x):
    other = torch.ones(3, device=f"{DEVICE}:1")
    with count_launches() as outer:
        with count_launches() as inner:
            x * 2 + 1
        (other * 2).cpu()
    assert (inner.launches, inner.copies) == (2, 0)
    assert (outer.launches, outer.copies) == (3, 1)


def test_the_mark_counts_what_the_test_launches(pytester, monkeypatch):
    pytester.makepyfile(
        """
        import pytest, torch

        @pytest.fixture
        def x():
            return torch.ones(3, device="openreg") * 2 + 1

        @pytest.mark.launch_budget(1)
        def test_within(x):
            x + 1

        @pytest.mark.launch_budget(1)
        def test_beyond(x):
            x + 1 + 1

        @pytest.mark.launch_budget(3, copies=0)
        def test_copied(x):
            x.tolist()

        @pytest.mark.launch_budget(0)
        def test_wrong(x):
            x + 1
            assert False, "of its own"
        """
    )
    result = run(pytester, monkeypatch)
    result.assert_outcomes(passed=1, failed=3)
    says(result, "on openreg: 2 launches, and the budget is 1 (launch_budget)")
    says(result, "on openreg: 1 copies, and the budget is 0 (launch_budget)")
    says(result, "AssertionError: of its own")
    says_not(result, "1 launches, and the budget is 0")


@pytest.mark.parametrize(
    "mark", ["launch_budget", "launch_budget(-1)", "launch_budget('2')", "launch_budget(1, most=2)"]
)
def test_a_mark_of_another_form_is_refused(pytester, monkeypatch, mark):
    pytester.makepyfile(f"import pytest\n\n@pytest.mark.{mark}\ndef test_it():\n    pass\n")
    refused(
        run(pytester, monkeypatch), "the mark is launch_budget(3) or launch_budget(3, copies=0), got launch_budget("
    )


def test_a_mark_gives_each_test_a_sound_device(pytester, monkeypatch):
    pytester.makeconftest(
        """
        def pytest_collection_modifyitems(items):
            for item in items:
                item.add_marker("sound_device")
        """
    )
    pytester.makepyfile(
        """
        import torch

        def test_breaks_it():
            torch.ones(3, device="openreg")[torch.tensor([7], device="openreg")]

        def test_finds_it_sound():
            assert torch.ones(3, device="openreg").sum() == 3

        def test_uses_nothing():
            pass
        """
    )
    result = run(pytester, monkeypatch)
    result.assert_outcomes(passed=2, failed=1)
    says(result, "::test_breaks_it - ", "the device failed in this test, after the call that caused it had returned")
    says_not(result, "never launched anything")
