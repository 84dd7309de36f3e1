# SPDX-License-Identifier: BSD-3-Clause
"""The package can be imported in any order, registers once, and refuses a runtime with another interface."""

import json
import os
import shutil
from pathlib import Path

import pytest

import openreg_amp
from openreg_testing.fresh import FreshPython

pytestmark = pytest.mark.every_subset


@pytest.fixture(scope="module")
def python():
    """Runs code in a fresh process without autoload, which has imported torch unless it is to be `fresh`."""
    processes = FreshPython()
    env = {name: value for name, value in os.environ.items() if not name.startswith(("TORCH_", "OPENREG_"))}

    def run(code, *, fresh=False):
        return processes.run("-c", code, env={**env, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}, fresh=fresh)

    yield run
    processes.close()


# openreg-runtime's tests have the runtime before torch.
@pytest.mark.parametrize("first", ["openreg_amp", "torch", "openreg_runtime"])
def test_the_order_of_imports_does_not_matter(python, first):
    result = python(
        f"import {first}, openreg_amp, openreg_runtime, torch\n"
        "with torch.autocast('openreg'): print(torch.is_autocast_enabled('openreg'))",
        fresh=first == "openreg_amp",
    )
    assert result.stdout == "True\n", result.stderr


def test_importing_does_not_initialize_the_device(python):
    result = python("import torch, openreg_amp; print(torch.openreg.is_initialized())")
    assert result.stdout == "False\n", result.stderr


WITHOUT_OPERATORS = """
import openreg_amp, torch
scaler = torch.amp.GradScaler("openreg", init_scale=8.0)
scaler.load_state_dict({**scaler.state_dict(), "scale": 4.0})
print(scaler.get_scale(), torch.openreg.get_amp_supported_dtype())
model, x = torch.nn.Linear(2, 2), torch.ones(2, 2)
with torch.autocast("openreg"):
    for create in (lambda: x.to("openreg"), lambda: torch.ones(2, device="openreg"), lambda: model.to("openreg")):
        try:
            create()
        except NotImplementedError as error:
            print(error)
    print(model(x).dtype)
"""


def test_without_operators_everything_works_but_tensors_and_they_name_the_package(python):
    result = python(WITHOUT_OPERATORS)
    first, *errors, last = result.stdout.splitlines()
    assert (first, last) == ("4.0 [torch.float16, torch.bfloat16]", "torch.float32"), result.stderr
    assert len(errors) == 3
    for error in errors:
        assert error.startswith("operator aten::empty")
        assert error.endswith("Install it with: pip install openreg-ops")


def test_a_package_compiled_for_another_runtime_is_refused_before_it_registers(python, tmp_path):
    number = int(python("from openreg_runtime import _C; print(_C._abi_version)").stdout)
    copy = tmp_path / "openreg_amp"
    shutil.copytree(Path(openreg_amp.__file__).parent, copy)
    record = copy / "_build.json"
    record.write_text(json.dumps({**json.loads(record.read_text("utf-8")), "abi_version": number + 1}), "utf-8")
    result = python(
        "import sys\n"
        f"sys.path.insert(0, {str(tmp_path)!r})\n"
        "import torch, openreg_runtime\n"
        "try:\n"
        "    import openreg_amp\n"
        "except ImportError as error:\n"
        "    print(repr(str(error)))\n"
        "print(torch._C._dispatch_get_registrations_for_dispatch_key('AutocastPrivateUse1'))\n"
        "print(torch.openreg.device_count() > 0)"
    )
    message, registered, usable = result.stdout.splitlines()
    for part in ("openreg-amp", str(number + 1), str(number), "pip install"):
        assert part in message
    assert (registered, usable) == ("[]", "True")
