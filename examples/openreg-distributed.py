# SPDX-License-Identifier: BSD-3-Clause
"""Two processes train a sharded model and save it; this process goes on from the checkpoint alone."""

import tempfile
import warnings
from pathlib import Path

import torch
import torch.distributed.checkpoint as checkpoint
from torch import distributed

import openreg_distributed  # noqa: F401  (it loads with torch where openreg-autoload is installed)

SIZE = 2
STEPS = 5


def join(rank, size, store):
    """One process per device; torchrun sets these by environment variables."""
    torch.openreg.set_device(rank)
    device = torch.device("openreg", rank)
    distributed.init_process_group(init_method=f"file://{store}", rank=rank, world_size=size, device_id=device)


def make_model():
    """The same on every rank."""
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1)).to("openreg")


def train(model, first, rank=0, size=1):
    """The loss of each of some steps, on this rank's part of the batches."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for step in range(first, first + STEPS):
        batch = torch.randn(8, 8, generator=torch.Generator().manual_seed(step)).to("openreg").chunk(size)[rank]
        loss = (model(batch) - batch.sum(1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss = loss.detach()
        if size > 1:
            distributed.all_reduce(loss, distributed.ReduceOp.AVG)
        losses.append(loss.item())
    return losses


def work(rank, store, folder, results):
    """What each of the two processes does."""
    warnings.simplefilter("ignore")  # PyTorch's own, of what is experimental
    from torch.distributed.fsdp import fully_shard

    join(rank, SIZE, store)
    model = make_model()
    for layer in (model[0], model[2], model):
        fully_shard(layer)
    losses = train(model, 0, rank, SIZE)
    checkpoint.save(model.state_dict(), checkpoint_id=folder)
    if rank == 0:
        results.put(losses)
    distributed.barrier()
    distributed.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        results = torch.multiprocessing.get_context("spawn").SimpleQueue()
        arguments = (str(folder / "store"), str(folder / "checkpoint"), results)
        torch.multiprocessing.spawn(work, args=arguments, nprocs=SIZE)
        sharded = results.get()

        model = make_model()
        alone = train(model, 0)  # the same steps, in one process
        expected = train(model, STEPS)
        model = make_model()
        state = model.state_dict()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that no process group is there, which is meant
            checkpoint.load(state, checkpoint_id=str(folder / "checkpoint"), no_dist=True)
        model.load_state_dict(state)
        resumed = train(model, STEPS)

    torch.testing.assert_close(torch.tensor(sharded), torch.tensor(alone), rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(torch.tensor(resumed), torch.tensor(expected), rtol=1e-5, atol=1e-6)
    print("two processes:", *(f"{one:.4f}" for one in sharded))
    print("then one:     ", *(f"{one:.4f}" for one in resumed))
