# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures. The tests of the driver need neither torch nor openreg-testing, so only fixtures import them."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from driver.conftest import Outcome, find_library
from driver.device_api import Api

RunPython = Callable[..., Outcome]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--process-exits", type=int, default=20, help="how many processes driver/test_exits.py ends")


@pytest.fixture(scope="session")
def run_python() -> Iterator[RunPython]:
    """Run a script in a process that has imported torch only, without settings of the device."""
    from openreg_testing.fresh import FreshPython

    python = FreshPython()
    # Taken once: a variable that a test or an import of its adds must not reach other scripts.
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OPENREG_", "TORCH_"))}
    kept["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"

    def run(script: str, *, env: Mapping[str, str] | None = None, finalize: bool = False) -> Outcome:
        done = python.run("-c", textwrap.dedent(script), env={**kept, **(env or {})}, finalize=finalize)
        return Outcome(done.returncode, done.stdout, done.stderr)

    yield run
    python.close()


@pytest.fixture
def succeed(run_python: RunPython) -> RunPython:
    """Run a script, which has to end well and to say nothing on standard error."""

    def run(script: str, **options: object) -> Outcome:
        outcome = run_python(script, **options)
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
    from cmake_runs import cmake, site_packages

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
