# SPDX-License-Identifier: BSD-3-Clause
"""The runtime works on top of another implementation of openreg.h in place of the simulated device."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from cmake_runs import cmake, site_packages
from driver._platform import DRIVER_LIBRARY, IS_POSIX

PROJECT = Path(__file__).resolve().parent

USE = """
import ctypes, sys, torch, openreg_runtime
storage = torch.UntypedStorage(1 << 16, device="openreg:1")
host = torch.UntypedStorage(range(256)).pin_memory(torch.device("openreg"))
stream, event = torch.openreg.Stream(1), torch.openreg.Event(enable_timing=True)
with stream:
    torch.openreg._sleep(1_000_000)
    event.record()
stream.wait_event(event)
event.synchronize()
assert stream.query()
storage.resize_(1 << 17)  # copies what it holds
assert storage.nbytes() == 1 << 17
torch.accelerator.synchronize(1)
generator = torch.Generator("openreg").manual_seed(3)
assert generator.initial_seed() == 3
assert torch.openreg.memory_allocated(1) >= 1 << 17
try:
    torch.openreg.set_device(99)
except RuntimeError as error:
    assert "99" in str(error)
else:
    raise AssertionError("device 99 was accepted")
del storage, host
torch.openreg.empty_cache()
print(openreg_runtime.__file__)
print(ctypes.CDLL(sys.argv[1]).forwarded_calls())
"""


def functions(header):
    """Result, name, parameters and names of the arguments of every function of the interface."""
    text = re.sub(r"/\*.*?\*/", " ", header.read_text("utf-8"), flags=re.DOTALL)
    for result, name, parameters in re.findall(r"^OPENREG_API ([\w \*]+?)(\bor\w+)\(([^)]*)\)", text, re.MULTILINE):
        each = [] if parameters.strip() == "void" else parameters.split(",")
        yield result.strip(), name, f"({parameters})", ", ".join(re.findall(r"\w+", item)[-1] for item in each)


def build_other_driver(build, package):
    """The library, made of the functions that the installed header declares."""
    build.mkdir()
    lines = [
        f"FORWARD({result}, {name}, {parameters}, ({arguments}))"
        for result, name, parameters, arguments in functions(package / "include" / "openreg.h")
    ]
    assert len(lines) > 40
    (build / "forward.inc").write_text("\n".join(lines))
    status, output = cmake(
        *("-S", PROJECT, "-B", build, "-G", "Ninja"),
        f"-DCMAKE_PREFIX_PATH={package.parent}",
        f"-DPython_EXECUTABLE={sys.executable}",
    )
    assert status == 0, output
    status, output = cmake("--build", build, "--target", "other_driver")
    assert status == 0, output
    return build / DRIVER_LIBRARY


@pytest.mark.skipif(not IS_POSIX, reason="the other driver forwards to the simulated one by dlopen()")
def test_the_runtime_works_on_another_driver_in_the_place_of_the_simulated_one(tmp_path):
    package = site_packages() / "openreg_runtime"
    other = build_other_driver(tmp_path / "build", package)
    place = tmp_path / "site" / "openreg_runtime"
    shutil.copytree(package, place)
    simulated = shutil.move(place / "lib" / DRIVER_LIBRARY, tmp_path / DRIVER_LIBRARY)
    shutil.copy(other, place / "lib" / DRIVER_LIBRARY)
    done = subprocess.run(
        [sys.executable, "-c", USE, str(place / "lib" / DRIVER_LIBRARY)],
        env={
            **os.environ,
            "PYTHONPATH": str(place.parent),
            "FORWARD_TO": str(simulated),
            "LD_BIND_NOW": "1",  # what the runtime needs besides the functions of openreg.h ends the process
            "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
        cwd=tmp_path,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    origin, calls = done.stdout.splitlines()
    assert Path(origin).parent == place
    assert int(calls) > 20
