# SPDX-License-Identifier: BSD-3-Clause
"""A model that lives on the device, with operators of ours in it, becomes a file that onnxruntime runs.

Needs openreg-ops[onnx] and onnxruntime.
"""

import tempfile
import warnings
from pathlib import Path

import onnxruntime
import torch
from torch import nn
from torch.export import Dim

import openreg_ops.onnx
from openreg_ops.functional import add_rms_norm, swiglu

warnings.simplefilter("ignore", FutureWarning)  # PyTorch's exporter warns of its own use of what it has deprecated


class Block(nn.Module):
    """A gated feed-forward layer with a norm behind it."""

    def __init__(self, width):
        super().__init__()
        self.up, self.gate = nn.Linear(width, 2 * width), nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)
        self.weight = nn.Parameter(torch.rand(width))

    def forward(self, x):
        """(batch, length, width) to the same."""
        normalized, _ = add_rms_norm(x, self.down(swiglu(self.gate(x), self.up(x))), self.weight)
        return normalized


torch.manual_seed(0)
model = nn.Sequential(nn.Embedding(100, 16), Block(16), nn.Linear(16, 100)).to("openreg").eval()
tokens = torch.randint(100, (2, 9), device="openreg")

with torch.no_grad(), torch.openreg.fallback_mode("error"):  # nothing of it is computed on the CPU
    program = torch.onnx.export(
        model,
        (tokens,),
        dynamo=True,
        dynamic_shapes=({0: Dim("batch", min=1, max=64), 1: Dim("length", min=1, max=512)},),
        custom_translation_table=openreg_ops.onnx.translations(),
        input_names=["tokens"],
        verbose=False,
    )
print("operators:", *sorted({node.op_type for node in program.model.graph}))

with tempfile.TemporaryDirectory() as folder:
    program.save(Path(folder, "model.onnx"))
    session = onnxruntime.InferenceSession(Path(folder, "model.onnx"), providers=["CPUExecutionProvider"])
    print("input:", session.get_inputs()[0].shape)

for sizes in ((2, 9), (1, 1), (7, 40)):
    tokens = torch.randint(100, sizes, device="openreg")
    with torch.no_grad():
        expected = model(tokens).cpu()
    (found,) = session.run(None, {"tokens": tokens.cpu().numpy()})
    torch.testing.assert_close(torch.from_numpy(found), expected, rtol=1e-4, atol=1e-4)
    print(f"a batch of {sizes}: onnxruntime computes what the device computes")
