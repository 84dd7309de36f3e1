# SPDX-License-Identifier: BSD-3-Clause
"""A training step that no memory here could hold, on chips that are not here; and a schedule of two streams."""

import torch

import openreg_ops  # noqa: F401  (brings tensors to the device)
import openreg_predict

with torch.device("meta"):
    model = torch.nn.Sequential(torch.nn.Linear(16384, 65536), torch.nn.GELU(), torch.nn.Linear(65536, 16384))
    batch = torch.empty(4096, 16384)


def step():
    """Forward and backward."""
    model(batch).square().mean().backward()


program = openreg_predict.trace(step)
for name in ("h100", "v100"):
    prediction = openreg_predict.predict(program, openreg_predict.load(name))
    print(f"{prediction.chip.title}: {prediction.seconds:.3f} s, bound by {prediction.bound}, fits: {prediction.fits}")
    print(prediction.error_text())

x = torch.ones(1024, 1024, device="openreg")
images = torch.ones(1024, 1024).pin_memory()
loader = torch.openreg.Stream()
with openreg_predict.simulate(openreg_predict.load("h100")) as run:
    with torch.openreg.stream(loader):
        loaded = images.to("openreg", non_blocking=True)
    y = x @ x
    torch.openreg.current_stream().wait_stream(loader)
    z = y + loaded

for item in run.timeline.slices:
    print(f"{item.engine:8} {item.name:14} {item.begin * 1e6:6.1f} to {item.end * 1e6:6.1f} us")
if not torch.equal(z.cpu(), torch.full((1024, 1024), 1025.0)):
    raise SystemExit("WRONG: the values are not those of the program")
