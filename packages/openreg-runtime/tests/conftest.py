# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures. Nothing here imports torch before a test asks for it, because the tests of the driver need none."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from driver.conftest import find_library
from driver.device_api import Api
from fresh_process import FreshProcesses, Outcome

RunPython = Callable[..., Outcome]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--process-exits", type=int, default=20, help="how many processes driver/test_exits.py ends")


@pytest.fixture(scope="session")
def fresh_processes() -> Iterator[FreshProcesses]:
    processes = FreshProcesses()
    yield processes
    processes.close()


@pytest.fixture
def run_python(fresh_processes: FreshProcesses) -> RunPython:
    """Run a script in a process that has imported torch only."""
    return fresh_processes.run


@pytest.fixture
def succeed(fresh_processes: FreshProcesses) -> RunPython:
    """Run a script, which has to end well and to say nothing on standard error."""

    def run(script: str, **options: object) -> Outcome:
        outcome = fresh_processes.run(script, **options)
        assert (outcome.code, outcome.errors) == (0, ""), outcome
        return outcome

    return run


@pytest.fixture
def clean_device() -> Iterator[None]:
    """Puts devices, streams and caches back into the state in which a process finds them."""
    import torch

    import openreg_runtime  # noqa: F401

    yield
    for device in range(torch.openreg.device_count()):
        torch.openreg.reset_device(device)
        torch.openreg.set_stream(torch.openreg.default_stream(device))
    torch.openreg.set_device(0)
    torch.openreg.empty_cache()
    torch.openreg.empty_host_cache()


@pytest.fixture(scope="session")
def driver() -> Api:
    """The C interface of the device that torch uses: kernels in Python, and plain copies."""
    return Api(find_library())


@pytest.fixture(scope="session")
def native(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Builds a target of the project in native/ against the installed package; gives its path without suffix."""
    from test_consumer import cmake, site_packages

    folder = tmp_path_factory.mktemp("native")
    status, output = cmake(
        *("-S", Path(__file__).resolve().parent / "native", "-B", folder, "-G", "Ninja"),
        f"-DCMAKE_PREFIX_PATH={site_packages()}",
        f"-DPython_EXECUTABLE={sys.executable}",
    )
    assert status == 0, output

    def build(target: str) -> Path:
        status, output = cmake("--build", folder, "--target", target)
        assert status == 0, output
        return folder / target

    return build
