# SPDX-License-Identifier: BSD-3-Clause
"""Exports a model that lives on the device, and compares what onnxruntime computes with what the device computes."""

import io
import warnings
from contextlib import redirect_stdout

import numpy as np
import onnxruntime
import torch
from torch import nn

DEVICE = "openreg"


class Calls(nn.Module):
    """A function as a module."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


def operands(*shapes, dtype=torch.float32):
    """Random ones on the device."""
    return tuple(torch.randn(shape, device=DEVICE, dtype=dtype) for shape in shapes)


def export(model, args=(), kwargs=None, **options):
    """The program of ONNX, made without a word on the standard output."""
    with torch.no_grad(), redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch warns of its own use of what it has deprecated
        return torch.onnx.export(model, args, kwargs=kwargs, dynamo=True, verbose=False, **options)


def check(folder, model, examples, others=(), tolerance=1e-4, **options):
    """Exports with options of torch.onnx.export, runs the file, and compares.

    `examples` are positional and named arguments on the device, from which the graph is made; `others` further ones, of
    other sizes. Gives the program.
    """
    program = export(model, *examples, **options)
    program.save(folder / "model.onnx")
    session = onnxruntime.InferenceSession(folder / "model.onnx", providers=["CPUExecutionProvider"])
    for values in (examples, *others):
        compare(session, model, *values, tolerance)
    return program


def compare(session, model, args, kwargs, tolerance):
    with torch.no_grad():
        expected = model(*args, **kwargs)
    if not isinstance(expected, torch.Tensor):
        expected = expected[0]
    assert expected.device.type == DEVICE
    names = [item.name for item in session.get_inputs()]
    given = kwargs or dict(zip(names, args, strict=True))
    found = session.run(None, {name: given[name].cpu().numpy() for name in names})[0]
    assert found.shape == tuple(expected.shape)
    assert np.abs(found - expected.cpu().numpy()).max() <= tolerance
