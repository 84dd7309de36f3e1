# SPDX-License-Identifier: BSD-3-Clause
"""A model that cannot be exported raises the error that it raises on the CPU."""

import subprocess
import sys

import pytest
import torch
from exports import DEVICE, Calls, export, operands
from torch import nn
from torch.export import Dim
from torch.onnx.errors import OnnxExporterError

from openreg_ops.functional import swiglu


def refused(model, device, *shapes, **options):
    """The kind of error and the first line that names a cause."""
    args = [torch.ones(shape, device=device) for shape in shapes]
    with pytest.raises((OnnxExporterError, ValueError, TypeError)) as caught:
        export(model, tuple(args), **options)
    causes = [line for line in str(caught.value).splitlines() if line.startswith("<class")]
    return caught.type, causes[0].replace(f"{DEVICE}:0", "cpu") if causes else ""


CASES = {
    "a choice by the data": (Calls(lambda x: x + 1 if x.sum() > 0 else x - 1), {}),
    "a size that the model does not have": (Calls(lambda x: x @ torch.ones(3, 3, device=x.device)), {}),
    "an operator that ONNX does not have": (Calls(lambda x: torch.linalg.qr(x)[0]), {}),
    "dynamic shapes of another number of inputs": (
        Calls(torch.relu),
        {"dynamic_shapes": ({0: Dim("b")}, {0: Dim("b")})},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_mistake_is_the_one_that_the_cpu_has(name):
    model, options = CASES[name]
    assert refused(model, DEVICE, (2, 4), **options) == refused(model, "cpu", (2, 4), **options)


def test_an_input_on_the_cpu_is_refused():
    with pytest.raises(OnnxExporterError, match="same device"):
        export(nn.Linear(4, 2).to(DEVICE), (torch.ones(2, 4),))


@pytest.mark.parametrize("opset", [5, 99])
def test_an_opset_that_does_not_exist_leaves_the_model_in_one_that_does(opset):
    """PyTorch only logs it, on every device; what came of it is in the program."""
    found = [
        export(Calls(torch.relu), (torch.ones(2, 4, device=device),), opset_version=opset).model.opset_imports[""]
        for device in ("cpu", DEVICE)
    ]
    assert found[0] == found[1] >= 18


def test_without_the_table_the_error_names_the_operator():
    with pytest.raises(OnnxExporterError, match=r"openreg\.swiglu"):
        export(Calls(swiglu), operands((2, 8), (2, 8)))


@pytest.mark.parametrize("module", ["onnxscript", "onnx_ir"])
def test_without_onnxscript_the_error_says_what_to_install(module):
    code = f"import sys; sys.modules[{module!r}] = None; import openreg_ops.onnx"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=240, check=False)
    assert result.returncode == 1
    assert f"of which {module} is missing" in result.stderr
    assert "pip install 'openreg-ops[onnx]'" in result.stderr


def test_the_program_runs_on_tensors_of_the_device():
    """ONNXProgram takes them where onnxruntime computes, which is the CPU."""
    model, (x,) = nn.Linear(4, 2).to(DEVICE), operands((3, 4))
    (found,) = export(model, (x,))(x)
    assert found.device.type == "cpu"
    torch.testing.assert_close(found, model(x).detach().cpu())
