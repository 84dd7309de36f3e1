# SPDX-License-Identifier: BSD-3-Clause
"""--device sets the device, its environment variables and defaults in time, and refuses invalid tables and names."""

import pytest
from library_runs import refused, run, says, says_not

pytest_plugins = ["pytester"]

LAUNCHES = "import torch\ndef test_add(device):\n    assert (torch.ones(2, device=device) + 1).sum() == 4\n"


def test_variables_are_set_before_a_conftest_is_imported_and_torch_is_not(pytester, monkeypatch):
    pytester.makeconftest(
        """
        import os, sys
        assert "torch" not in sys.modules
        SEEN = dict(os.environ)
        """
    )
    pytester.makepyfile(
        """
        def test_seen():
            from conftest import SEEN
            assert SEEN["TORCH_DEVICE"] == SEEN["ACCELERATE_TORCH_DEVICE"] == "openreg:1"
            assert SEEN["TRANSFORMERS_TEST_DEVICE"] == SEEN["DIFFUSERS_TEST_DEVICE"] == "openreg:1"
            assert SEEN["TORCH_BACKEND"] == SEEN["TRANSFORMERS_TEST_BACKEND"] == "torch_openreg"
            assert SEEN["PYTORCH_TESTING_DEVICE_ONLY_FOR"] == "openreg"

        def test_fixture(device, two_devices):
            import torch
            assert device == two_devices[0] == torch.device("openreg", 1)
            assert two_devices[1] == torch.device("openreg", 0)
            assert torch.accelerator.current_device_index() == 1
        """
    )
    run(pytester, monkeypatch, "--device", "openreg:1", fresh=True).assert_outcomes(passed=2)


def test_without_an_option_or_a_mark_nothing_is_imported_or_written(pytester, monkeypatch):
    pytester.makepyfile(
        """
        import os, sys
        def test_nothing():
            assert "torch" not in sys.modules
            assert "TORCH_DEVICE" not in os.environ
        """
    )
    result = run(pytester, monkeypatch, fresh=True)
    result.assert_outcomes(passed=1)
    says_not(result, "device ", "launch")


def test_a_library_finds_the_specification_by_its_path(pytester, monkeypatch):
    pytester.makepyfile(
        """
        import importlib, os

        def test_as_transformers_and_diffusers_import_it():
            path = os.environ["TRANSFORMERS_TEST_DEVICE_SPEC"]
            assert os.path.isfile(path)
            assert path == os.environ["DIFFUSERS_TEST_DEVICE_SPEC"]
            specification = importlib.import_module(path[: path.index(".py")])
            assert specification.DEVICE_NAME == os.environ["TRANSFORMERS_TEST_DEVICE"] == "openreg"
            assert specification.DEVICE_COUNT_FN() == 2
            specification.MANUAL_SEED_FN(1)
            specification.EMPTY_CACHE_FN()
            assert not hasattr(specification, "SINGLE_PROCESS_DEVICE")
        """
    )
    run(pytester, monkeypatch, "--device", "openreg").assert_outcomes(passed=1)


def test_the_specification_does_not_hide_the_modules_of_objects(pytester, monkeypatch):
    pytester.makepyfile(
        """
        import pickle, torch

        def test_as_the_cache_of_inductor_does():  # pickle looks in all modules for one that has the object
            assert pickle.loads(pickle.dumps(torch.contiguous_format)) is torch.contiguous_format
        """
    )
    run(pytester, monkeypatch, "--device", "openreg").assert_outcomes(passed=1)


def test_what_the_user_set_stays_and_is_reported(pytester, monkeypatch):
    pytester.makepyfile(
        """
        import os
        def test_kept():
            assert os.environ["TRANSFORMERS_TEST_DEVICE"] == "cpu"
            assert "TRANSFORMERS_TEST_DEVICE_SPEC" not in os.environ  # it would contradict
            assert os.environ["TORCH_DEVICE"] == "openreg"
        """
    )
    result = run(pytester, monkeypatch, "--device", "openreg", TRANSFORMERS_TEST_DEVICE="cpu")
    result.assert_outcomes(passed=1)
    says(result, "transformers keeps TRANSFORMERS_TEST_DEVICE=cpu")


def test_a_project_extends_the_table(pytester, monkeypatch):
    pytester.makepyprojecttoml(
        """
        [tool.openreg-testing.libraries.ours]
        env = { OUR_DEVICE = "{device}", OUR_TYPE = "{type}", OUR_IMPORT = "import {module}" }
        spec = "OUR_SPEC"

        [tool.openreg-testing.libraries.timm]
        env = { OTHER = "{type}" }
        """
    )
    pytester.makepyfile(
        """
        import os
        def test_set():
            assert os.environ["OUR_DEVICE"] == "openreg:1"
            assert os.environ["OUR_TYPE"] == os.environ["OTHER"] == "openreg"
            assert os.environ["OUR_IMPORT"] == "import torch_openreg"
            assert os.path.isfile(os.environ["OUR_SPEC"])
        """
    )
    run(pytester, monkeypatch, "--device", "openreg:1").assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("table", "explanation"),
    [
        ('[tool.openreg-testing]\nlibrary = "x"', "unknown key 'library'; accepted: libraries"),
        ('[tool.openreg-testing]\nlibraries = "x"', "expected the tables [tool.openreg-testing.libraries.NAME]"),
        ('[tool.openreg-testing.libraries.x]\nvars = "x"', "unknown key 'vars'; expected env ="),
        ("[tool.openreg-testing.libraries]\nx = 3", "expected env ="),
        ("[tool.openreg-testing.libraries.x]\nenv = { A = 3 }", "the value of A must be a string, got 3"),
        ('[tool.openreg-testing.libraries.x]\nenv = { A = "{dev}" }', "unknown field {dev}; fields: {device}, {type}"),
        ('[tool.openreg-testing.libraries.x]\nenv = { A = "{device" }', "fields: {device}, {type}"),
        ("[tool.openreg-testing\n", "pyproject.toml"),
    ],
)
def test_a_table_that_is_not_as_it_should_be_is_refused(pytester, monkeypatch, table, explanation):
    (pytester.path / "pyproject.toml").write_text(table)
    pytester.makeini("[pytest]\n")  # otherwise pytest itself would refuse the last one
    refused(run(pytester, monkeypatch, "--device", "cpu"), explanation)


def test_the_device_is_the_default_where_asked(pytester, monkeypatch):
    pytester.makepyfile(
        """
        import pytest, torch
        AT_IMPORT = torch.ones(1)

        @pytest.fixture
        def made_in_a_fixture():
            return torch.ones(1)

        def test_default(made_in_a_fixture):
            assert torch.ones(1).device == made_in_a_fixture.device == torch.device("openreg", 1)
            assert AT_IMPORT.device.type == "cpu"
        """
    )
    run(pytester, monkeypatch, "--device", "openreg:1", "--default-device").assert_outcomes(passed=1)


def test_the_environment_names_the_device_for_processes_that_tests_start(pytester, monkeypatch):
    pytester.makepyfile(LAUNCHES)
    result = run(pytester, monkeypatch, OPENREG_TEST_DEVICE="openreg")
    result.assert_outcomes(passed=1)
    says(result, "= device openreg =")


def test_the_cpu_is_a_device_on_which_nothing_is_counted(pytester, monkeypatch):
    pytester.makepyfile(LAUNCHES, test_two="def test_two(two_devices): pass")
    result = run(pytester, monkeypatch, "--device", "cpu")
    result.assert_outcomes(passed=1, skipped=1)
    says(result, "needs two devices")
    says_not(result, "launches")


def test_a_suite_keeps_its_own_option_of_the_same_name(pytester, monkeypatch):
    pytester.makeconftest("def pytest_addoption(parser):\n    parser.addoption('--device', default='theirs')")
    pytester.makepyfile(
        """
        import os
        def test_theirs(pytestconfig):
            assert pytestconfig.getoption("--device") == "fast"
            assert "TORCH_DEVICE" not in os.environ
        """
    )
    result = run(pytester, monkeypatch, "--device", "fast")
    result.assert_outcomes(passed=1)
    pytester.makepyfile(
        test_a_suite_keeps_its_own_option_of_the_same_name="""
        import os
        def test_ours(pytestconfig):
            assert pytestconfig.getoption("--device") == "theirs"
            assert os.environ["TORCH_DEVICE"] == "openreg"
        """
    )
    run(pytester, monkeypatch, "--openreg-device", "openreg").assert_outcomes(passed=1)


def test_a_suite_that_chooses_cuda_by_its_own_option_runs_on_another_device(pytester, monkeypatch):
    pytester.makeconftest("""
        import torch
        HERE = torch.cuda.is_available()

        def pytest_addoption(parser):
            parser.addoption("--device", default="cpu")
    """)
    pytester.makepyfile("""
        import conftest, torch
        def test_theirs(pytestconfig):
            assert conftest.HERE
            assert torch.ones(2, device=pytestconfig.getoption("--device")).is_cuda
    """)
    run(pytester, monkeypatch, "--device", "cuda", "--cuda-as", "openreg").assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("args", "explanation"),
    [
        (["--device", "nppu"], "'nppu' is no device of PyTorch. Available: cpu, openreg:0, openreg:1"),
        (["--device", "openreg:7"], "openreg:7: there are 2 of this type, counted from 0. Available: cpu, openreg:0"),
        (["--device", "openreg:x"], "'openreg:x' is no valid device name; accepted: openreg, openreg:1"),
        (["--device", "cuda"], "this machine has no cuda device. Available: cpu, openreg:0"),
        (["--device", "meta"], "torch.meta has no devices to run tests on. Available"),
        (["--device", "cpu:1"], "there is one cpu"),
        (["--device="], "--device: expected a value"),
        (["--device", "cpu", "--cuda-as", "openreg"], "--device cpu and --cuda-as openreg exclude each other"),
        (["--openreg-report="], "--openreg-report: expected a value, got an empty one"),
        (["--cuda-as", "cpu"], "expected an accelerator other than cuda"),
        (["--cuda-as", "cuda"], "expected an accelerator other than cuda"),
        (["--cuda-as", "openreg:1"], "expected a type without an index"),
        (["--cuda-as", "nppu"], "'nppu' is no device of PyTorch"),
        (["--device", "cpu", "--no-sync"], "--no-sync needs an accelerator, and --device is cpu"),
        (["--check-leaks"], "--check-leaks needs a device: add --device NAME"),
        (["--default-device"], "--default-device needs a device"),
        (["--openreg-report", "x.html"], "--openreg-report needs a device"),
        (["--device", "openreg", "--memory-limit", "much"], "expected a size such as 512MiB"),
        (["--device", "openreg", "--openreg-report", "."], "this is a folder; name a file"),
        (["--device", "openreg", "--openreg-report", "test_x.py/r.html"], "name a file that can be written"),
    ],
)
def test_what_cannot_be_is_refused(pytester, monkeypatch, args, explanation):
    if "cuda" in args:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    pytester.makepyfile(test_x=LAUNCHES)
    refused(run(pytester, monkeypatch, *args), explanation)


def test_a_device_that_is_not_there_is_the_reason_given_where_a_conftest_fails_of_it(pytester, monkeypatch):
    pytester.makeconftest("import os, torch\ntorch.ones(1, device=os.environ['TORCH_DEVICE'])")
    refused(run(pytester, monkeypatch, "--device", "nppu"), "'nppu' is no device of PyTorch")


def test_it_says_how_to_get_openreg_where_that_is_missing(pytester, monkeypatch):
    # A plug-in that makes openreg look as if it were not installed.
    pytester.makepyfile(
        hides_openreg="from openreg_testing.plugin import devices\ndevices.module_of = lambda name: 'torch'"
    )
    monkeypatch.setenv("PYTHONPATH", str(pytester.path))
    monkeypatch.setenv("TORCH_DEVICE_BACKEND_AUTOLOAD", "0")
    result = run(pytester, monkeypatch, "-p", "hides_openreg", "--device", "openreg")
    refused(result, 'openreg is not installed. Available: cpu; to install it: pip install "openreg-testing[device]"')


def test_the_fixture_says_how_to_get_pytorch_where_that_is_missing(pytester, monkeypatch):
    pytester.makepyfile(
        hides_torch="""
        import sys
        class Hidden:
            def find_spec(self, name, path=None, target=None):
                if name == "torch":
                    raise ModuleNotFoundError("No module named 'torch'")
        for name in [name for name in sys.modules if name.partition(".")[0] == "torch"]:
            del sys.modules[name]
        sys.meta_path.insert(0, Hidden())
        """,
        test_x="def test_x(device): pass",
    )
    monkeypatch.setenv("PYTHONPATH", str(pytester.path))
    result = run(pytester, monkeypatch, "-p", "hides_torch", "test_x.py")
    says(result, "the fixture device: PyTorch cannot be imported: No module named 'torch'")
    says(result, 'pip install "openreg-testing[device]"')
