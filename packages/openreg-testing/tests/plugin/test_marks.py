# SPDX-License-Identifier: BSD-3-Clause
"""Marks and options fail exactly the tests that fall back, wait, or leave the device in another state."""

import pytest
from library_runs import refused, run, says, says_not

pytest_plugins = ["pytester"]


def test_no_fallback_ends_the_test_on_the_line(pytester, monkeypatch):
    pytester.makepyfile(
        """
        import pytest, torch

        def flip(device):
            with torch.openreg.fallback_operators("aten::flip"):
                return torch.ones(2, device=device).flip(0)  # here

        @pytest.mark.no_fallback
        def test_marked(device):
            flip(device)

        def test_free(device):
            flip(device)
        """
    )
    result = run(pytester, monkeypatch, "--device", "openreg")
    result.assert_outcomes(passed=1, failed=1)
    says(result, "FAILED", "::test_marked", "flip(0)  # here", "aten::flip", "fallbacks to the CPU: 1 in 1 test")
    result = run(pytester, monkeypatch, "--device", "openreg", "--no-fallback")
    result.assert_outcomes(failed=2)


def test_no_sync_names_the_line_of_the_library(pytester, monkeypatch):
    pytester.mkpydir("lib").joinpath("steps.py").write_text(
        "def wait(x):\n    return x.sum().item()\n\n\ndef swallow(x):\n    try:\n        return x.sum().item()\n"
        "    except BaseException:\n        return 0\n"
    )
    pytester.makepyfile(
        """
        import pytest, torch
        from lib import steps

        @pytest.mark.no_sync
        def test_of_the_library(device):
            steps.wait(torch.ones(2, device=device))

        @pytest.mark.no_sync
        def test_swallowed(device):
            steps.swallow(torch.ones(2, device=device))

        @pytest.mark.no_sync
        def test_of_its_own(device):
            assert torch.ones(2, device=device).sum() == 2
            torch.testing.assert_close(torch.ones(2, device=device), torch.ones(2, device=device))

        @pytest.mark.no_sync(strict=True)
        def test_strict(device):
            torch.ones(2, device=device).tolist()

        @pytest.mark.no_sync(strict=True)
        def test_strict_and_allowed(device, allow_sync):
            total = torch.ones(2, device=device).sum()
            with allow_sync():
                assert total == 2

        def test_free(device):
            steps.wait(torch.ones(2, device=device))
        """
    )
    result = run(pytester, monkeypatch, "--device", "openreg")
    result.assert_outcomes(passed=3, failed=3)
    for name in ("of_the_library", "swallowed", "strict"):
        says(result, f"FAILED test_no_sync_names_the_line_of_the_library.py::test_{name} - ")
    says(result, "the host waits for the device at lib/steps.py:2 (no_sync, --no-sync)", "at lib/steps.py:7 (no_sync")
    result = run(pytester, monkeypatch, "--device", "openreg", "--no-sync", "-k", "free or of_its_own")
    result.assert_outcomes(passed=1, failed=1)


PRINTED = """
    import pytest, torch

    def test_prints(device):
        x, y = torch.ones(3, device=device), torch.zeros(3, device=device)
        assert x.sum() == 4, (x, y)

    def test_compares(device):
        x = torch.ones(3, device=device)
        assert {"key": [x]} == {"key": [1]}.keys()

    @pytest.mark.no_sync(strict=True)
    def test_fails_by_itself(device):
        x = torch.ones(3, device=device)
        assert x is None
"""


def test_a_file_that_pytest_takes_for_tests_is_no_library(pytester, monkeypatch):
    pytester.makepyfile(
        test_shared="def number(x):\n    return x.item()",
        test_x="""
        import torch
        from test_shared import number

        def test_one(device):
            assert number(torch.ones(1, device=device)) == 1
        """,
    )
    run(pytester, monkeypatch, "--device", "openreg", "--no-sync").assert_outcomes(passed=1)


@pytest.mark.parametrize("options", [("--device", "openreg"), ("--cuda-as", "openreg")], ids=lambda options: options[0])
def test_what_pytest_reads_to_print_values_is_no_wait(pytester, monkeypatch, options):
    pytester.makepyfile(PRINTED)
    result = run(pytester, monkeypatch, *options, "--showlocals", "-vv")
    result.assert_outcomes(failed=3)
    says(result, "host waits: 1, 0 of them in code outside tests", "tensor([1., 1., 1.], device=")
    says_not(result, "the host waits for the device at", "pluggy/")


def test_a_doctest_waits_in_its_file(pytester, monkeypatch):
    example = ">>> import torch\n>>> torch.ones(2, device='openreg').sum().item()\n2.0\n"
    pytester.makepyfile(lib=f'"""An example.\n\n{example}"""\n')
    result = run(pytester, monkeypatch, "--device", "openreg", "--doctest-modules", "lib.py")
    result.assert_outcomes(passed=1)
    says(result, "host waits: 1, 0 of them in code outside tests")


def test_counting_waits_leaves_warnings_to_the_tests(pytester, monkeypatch):
    pytester.makeini("[pytest]\nfilterwarnings = error")
    pytester.makepyfile(
        """
        import warnings
        import pytest, torch

        def test_an_error_filter_sees_none(device):
            assert torch.ones(2, device=device).sum() == 2

        def test_a_recorder_sees_its_own(device, recwarn):
            with warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter("always")
                torch.ones(2, device=device).tolist()
                warnings.warn("mine")
            assert [str(item.message) for item in seen] == ["mine"]
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                torch.ones(2, device=device).tolist()
            with pytest.warns(UserWarning, match="mine") as seen:
                torch.ones(2, device=device).tolist()
                warnings.warn("mine")
            assert len(seen) == 1
            assert not recwarn

        def test_the_mode_is_given_back():
            pass
        """
    )
    result = run(pytester, monkeypatch, "--device", "openreg", "-W", "ignore::pytest.PytestAssertRewriteWarning")
    result.assert_outcomes(passed=3)
    says(result, "host waits: 4, 0 of them in code outside tests")


def test_memory_limit_compares_the_peak(pytester, monkeypatch):
    pytester.makepyfile(
        """
        import pytest, torch

        def use(device):
            torch.ones(2**20, device=device)  # 4 MiB, for a moment

        @pytest.mark.memory_limit("1MiB")
        def test_too_much(device):
            use(device)

        @pytest.mark.memory_limit("5MiB")
        def test_enough(device):
            use(device)

        def test_of_the_option(device):
            use(device)
        """
    )
    result = run(pytester, monkeypatch, "--device", "openreg", "--memory-limit", "3.5 MiB")
    result.assert_outcomes(passed=1, failed=2)
    says(result, "::test_too_much - ", "::test_of_the_option - ", "the limit is 1.0 MiB (1048576 B) (memory_limit")
    says(result, "needed 4.0 MiB", "peak memory: 4.0 MiB of")


LEAKS = """
    import pytest, torch

    CACHE = {}

    class Layer:
        made = []

    def test_in_a_variable(device):
        CACHE["a"] = torch.ones(1000, device=device)

    def test_in_a_class(device):
        Layer.made.append(torch.ones(10, 10, dtype=torch.float64, device=device))

    def test_in_a_graph(device):
        weight = torch.ones(1000, device=device, requires_grad=True)
        CACHE["loss"] = (weight * 2).exp().sum()

    @pytest.mark.check_leaks(allowed="1MiB")
    def test_allowed(device):
        CACHE["b"] = torch.ones(1000, device=device)

    @pytest.fixture(scope="module")
    def shared():
        return torch.ones(1000, device="openreg")

    @pytest.fixture
    def own(device):
        return torch.ones(1000, device=device)

    def test_fixtures_are_none(own, shared):
        pass

    def test_garbage_is_none(device):
        cycle = [torch.ones(1000, device=device)]
        cycle.append(cycle)

    def test_a_backward_pass_is_none(device):
        model = torch.nn.Linear(100, 100).to(device)
        model(torch.ones(100, 100, device=device)).sum().backward()

    class TestClass:
        def test_an_attribute_is_none(self, device):
            self.x = torch.ones(1000, device=device)

    def test_an_error_that_was_expected_is_none(device):
        x = torch.ones(1000, device=device)
        with pytest.raises(ValueError):
            raise ValueError(x.shape)
"""


def test_what_stays_after_a_test_is_named(pytester, monkeypatch):
    pytester.makepyfile(test_leaks=LEAKS)
    result = run(pytester, monkeypatch, "--device", "openreg", "--check-leaks")
    result.assert_outcomes(passed=9, errors=3)
    says(
        result,
        "ERROR test_leaks.py::test_in_a_variable",
        "float32 1000, 3.9 KiB, in test_leaks.CACHE",
        "ERROR test_leaks.py::test_in_a_class",
        "float64 10x10, 800 B, in test_leaks.Layer.made",
        "ERROR test_leaks.py::test_in_a_graph",
        "leak: 4.0 KiB in test_leaks.py::test_in_a_variable",
    )


def test_leaks_are_looked_for_where_asked(pytester, monkeypatch):
    pytester.makepyfile(test_leaks=LEAKS)
    result = run(pytester, monkeypatch, "--device", "openreg")
    result.assert_outcomes(passed=9)
    pytester.makepyfile(
        test_leaks="""
        import pytest, torch
        KEPT = []

        @pytest.mark.check_leaks
        def test_marked():
            KEPT.append(torch.ones(10, device="openreg"))
        """
    )
    result = run(pytester, monkeypatch)  # the mark asks for the accelerator of the process
    result.assert_outcomes(passed=1, errors=1)
    says(result, "in test_leaks.KEPT")


def test_a_device_error_belongs_to_the_test_that_made_it(pytester, monkeypatch):
    pytester.makepyfile(
        """
        import pytest, torch

        def break_it(device):
            with torch.openreg.inject_faults("launch:1"):
                torch.ones(2, device=device)

        def test_first(device):
            break_it(device)

        def test_second(device):
            assert (torch.ones(2, device=device) + 1).sum() == 4

        @pytest.fixture
        def breaks(device):
            yield
            break_it(device)

        def test_third(breaks):
            pass

        def test_fourth(device):
            assert (torch.ones(2, device=device) + 1).sum() == 4

        def test_fifth(device):
            break_it(device)
            assert False, "for another reason"

        def test_sixth(device):
            assert (torch.ones(2, device=device) + 1).sum() == 4
        """
    )
    result = run(pytester, monkeypatch, "--device", "openreg")
    name = "test_a_device_error_belongs_to_the_test_that_made_it.py"
    result.assert_outcomes(passed=4, failed=2, errors=1)
    says(result, f"FAILED {name}::test_first", f"ERROR {name}::test_third", f"FAILED {name}::test_fifth")
    says(result, "the device failed in this test", "an injected fault", "for another reason")
    says(result, f"device error: {name}::test_fifth")


def test_a_device_that_is_lost_is_the_reason_of_all_later_failures(pytester, monkeypatch):
    pytester.makepyfile(
        test_lost="""
        import torch

        def test_loses_it(device):
            with torch.openreg.inject_faults("lose:1"):
                torch.ones(2, device=device)

        def test_later(device):
            torch.ones(2, device=device)
        """
    )
    result = run(pytester, monkeypatch, "--device", "openreg")
    result.assert_outcomes(failed=1, errors=1)
    says(result, "the device cannot be used since test_lost.py::test_loses_it", "(--isolate)")


@pytest.mark.parametrize(
    ("mark", "explanation"),
    [
        ("memory_limit", 'the mark is memory_limit("512MiB"), got memory_limit()'),
        ('memory_limit("many")', "expected a size such as 512MiB"),
        ("no_sync(True)", "the mark is no_sync or no_sync(strict=True), got no_sync(True)"),
        ("no_fallback('x')", "the mark no_fallback takes no arguments"),
        ("check_leaks(most=3)", 'the mark is check_leaks or check_leaks(allowed="1MiB"), got check_leaks(most=3)'),
    ],
)
def test_a_mark_that_says_nothing_is_refused(pytester, monkeypatch, mark, explanation):
    pytester.makepyfile(test_x=f"import pytest\n@pytest.mark.{mark}\ndef test_a(): pass")
    refused(run(pytester, monkeypatch, "--strict-markers"), "test_x.py::test_a", explanation)


def test_xdist_fails_the_test_of_such_a_mark(pytester, monkeypatch):
    pytester.makepyfile(test_x="import pytest\n@pytest.mark.memory_limit('many')\ndef test_a(): pass")
    result = run(pytester, monkeypatch, "--device", "openreg", "-n", "1")
    result.assert_outcomes(errors=1)
    says(result, "expected a size such as 512MiB")
    says_not(result, "INTERNALERROR")


def test_marks_have_nothing_to_look_at_without_a_device(pytester, monkeypatch):
    monkeypatch.setenv("TORCH_DEVICE_BACKEND_AUTOLOAD", "0")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    pytester.makepyfile(
        """
        import pytest, torch

        @pytest.mark.no_sync
        @pytest.mark.no_fallback
        @pytest.mark.check_leaks
        @pytest.mark.memory_limit("1MiB")
        def test_on_the_cpu(device):
            assert torch.ones(2, device=device).sum() == 2
        """
    )
    run(pytester, monkeypatch).assert_outcomes(passed=1)


# A backend that has a name, a module and devices, and nothing that counts.
TOY = """
    import sys
    import torch

    torch.utils.rename_privateuse1_backend("toy")
    torch._register_device_module("toy", sys.modules[__name__])
    is_available = lambda: True
    is_initialized = lambda: True
    device_count = lambda: 1
    current_device = lambda: 0
    synchronize = lambda device=None: None
"""


def test_a_backend_without_counters_is_said_to_have_none(pytester, monkeypatch):
    monkeypatch.setenv("TORCH_DEVICE_BACKEND_AUTOLOAD", "0")
    monkeypatch.setenv("PYTHONPATH", str(pytester.path))
    pytester.makepyfile(
        torch_toy=TOY,
        test_x="import pytest\ndef test_a(): pass\n@pytest.mark.no_fallback\ndef test_b(): pass",
    )
    result = run(pytester, monkeypatch, "--device", "toy")
    result.assert_outcomes(passed=1, errors=1)
    says(result, "torch.toy does not count launches, fallbacks, host waits")
    says(result, "no_fallback cannot be checked on toy: torch.toy has no")
    says_not(result, "never launched")
    refused(
        run(pytester, monkeypatch, "--device", "toy", "--no-fallback"),
        "--no-fallback cannot be checked on toy: torch.toy has no fallback_stats",
    )
